#pragma once

#include <cstdint>
#include <string>

#include "backend/backend.hpp"

namespace qpn8 {

/// Looks for values that are not finite, on the device. Each look costs a host round trip.
class FiniteProbe {
 public:
  FiniteProbe(Backend& backend, std::int64_t max_rows)
      : backend_(backend), found_(backend.allocate(DType::i32, max_rows, 1)) {}

  /// Error::check_failed naming `where` and the first value that is not finite.
  void require(const Tensor& values, const std::string& where);

 private:
  Backend& backend_;
  OwnedTensor found_;
};

}  // namespace qpn8
