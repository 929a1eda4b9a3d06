#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "model/weights.hpp"

namespace qpn8 {

/// A residual of several streams, and how its blocks are connected with it.
struct StreamOptions {
  std::int64_t streams = 1;
  std::int64_t hidden_size = 0;
  std::int64_t sinkhorn_steps = 1;
  float eps = 0.0F;
  float norm_eps = 0.0F;
};

/// Memory for the weights of one block at a time; all connections of a model share it.
class StreamScratch {
 public:
  StreamScratch(Backend& backend, const StreamOptions& options, std::int64_t max_rows);

  Tensor mapped(std::int64_t rows, std::int64_t cols) const {
    return mapped_.tensor.row_range(0, rows).col_range(0, cols);
  }
  Tensor weights(std::int64_t rows, std::int64_t cols) const {
    return weights_.tensor.row_range(0, rows).col_range(0, cols);
  }

 private:
  OwnedTensor mapped_;
  OwnedTensor weights_;
};

/// Connects one block with the streams: read() before it, write() after it, with no other connection between.
class StreamConnection {
 public:
  enum class Kind : std::uint8_t {
    block,  ///< reads and writes
    head,   ///< reads alone
  };

  /// `prefix` with fn, base and scale appended names its tensors.
  StreamConnection(const WeightLoader& loader, Backend& backend, const std::string& prefix, Kind kind,
                   const StreamOptions& options, StreamScratch& scratch);

  /// x [rows, hidden_size] becomes what the block reads of h [rows, streams * hidden_size].
  void read(const Tensor& h, const Tensor& x);

  /// h takes up the block's output and mixes its streams.
  void write(const Tensor& h, const Tensor& y);

  std::int64_t bytes() const { return fn_->bytes(); }
  std::int64_t products_per_token() const { return products(*fn_); }

 private:
  Backend& backend_;
  StreamOptions options_;
  StreamScratch& scratch_;
  std::unique_ptr<Linear> fn_;
  OwnedTensor base_;
  OwnedTensor scale_;
};

}  // namespace qpn8
