#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "kernels/cpu/isa.hpp"

namespace qpn8::test {

/// Runs a test once for every instruction set of the machine and restores the best one after it.
class OnEveryIsa : public testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override { cpu::use_isa(GetParam()); }
  void TearDown() override { cpu::use_isa(std::nullopt); }
};

inline std::string isa_name(const testing::TestParamInfo<cpu::Isa>& info) {
  return std::string(cpu::to_string(info.param));
}

/// The same within a test that is not parametrised: runs `body` once with every instruction set that this machine has,
/// and leaves the best one in use.
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
