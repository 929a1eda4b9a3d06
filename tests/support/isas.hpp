#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "kernels/cpu/isa.hpp"

namespace qpn8::test {

/// Runs `body` once with every instruction set that this machine has, and leaves the best one in use.
template <class Body>
void for_each_isa(const Body& body) {
  for (const cpu::Isa isa : cpu::available_isas()) {
    SCOPED_TRACE(cpu::to_string(isa));
    cpu::use_isa(isa);
    body();
  }
  cpu::use_isa(std::nullopt);
}

}  // namespace qpn8::test
