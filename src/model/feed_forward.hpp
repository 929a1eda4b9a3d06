#pragma once

#include <cstdint>

#include "backend/backend.hpp"

namespace qpn8 {

/// The second half of a decoder layer.
class FeedForward {
 public:
  FeedForward() = default;
  virtual ~FeedForward() = default;
  FeedForward(const FeedForward&) = delete;
  FeedForward& operator=(const FeedForward&) = delete;

  /// stream += block(rms_norm(stream)); rows at most the max_rows of construction.
  virtual void forward(ResidualStream& stream, const RowNorm& norm) = 0;

  /// Weight bytes that one token reads.
  virtual std::int64_t bytes_per_token() const = 0;

  /// Weight bytes on the backend.
  virtual std::int64_t bytes() const = 0;

  /// Multiply-adds with weights that one token takes.
  virtual std::int64_t products_per_token() const = 0;
};

}  // namespace qpn8
