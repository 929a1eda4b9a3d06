#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "model/weights.hpp"

namespace qpn8 {

/// Between the residual h and one block: what the block reads of it, and how what it computes is added.
class ResidualConnection {
 public:
  ResidualConnection() = default;
  virtual ~ResidualConnection() = default;
  ResidualConnection(const ResidualConnection&) = delete;
  ResidualConnection& operator=(const ResidualConnection&) = delete;

  /// x [rows, hidden_size] from h.
  virtual void read(const Tensor& h, const Tensor& x) = 0;

  /// Adds the block's y to h; the last read() was of the same rows.
  virtual void write(const Tensor& h, const Tensor& y) = 0;

  virtual std::int64_t bytes() const = 0;
  virtual std::int64_t products_per_token() const = 0;
};

/// x = rms_norm(h), h += y.
class NormedConnection : public ResidualConnection {
 public:
  NormedConnection(const WeightLoader& loader, Backend& backend, const std::string& norm, std::int64_t hidden_size,
                   float eps)
      : backend_(backend), norm_(loader.centred_row(norm, hidden_size)), eps_(eps) {}

  void read(const Tensor& h, const Tensor& x) override { backend_.rms_norm(h, norm_.tensor, eps_, x); }
  void write(const Tensor& h, const Tensor& y) override { backend_.add(h, y); }
  std::int64_t bytes() const override { return 0; }
  std::int64_t products_per_token() const override { return 0; }

 private:
  Backend& backend_;
  OwnedTensor norm_;
  float eps_;
};

/// A residual of several streams with gates of low rank.
struct GatedStreams {
  std::int64_t streams = 1;
  std::int64_t hidden_size = 0;
  std::int64_t low_rank = 0;
  std::int64_t low_rows = 0;  ///< outputs of the widest projection down
  float eps = 0.0F;
};

/// Memory for one connection at a time; all connections of a model share it.
struct GatedScratch {
  GatedScratch(Backend& backend, const GatedStreams& shape, std::int64_t max_rows);

  OwnedTensor normed;
  OwnedTensor low;
  OwnedTensor gates;
};

/// x = the mean of the normalised streams by gates that all streams decide; h's streams += y by a gate each.
class GatedConnection : public ResidualConnection {
 public:
  enum class Kind : std::uint8_t {
    block,  ///< reads and writes
    head,   ///< only reads
  };

  /// `prefix` ends in '.'.
  GatedConnection(const WeightLoader& loader, Backend& backend, const std::string& prefix, Kind kind,
                  const GatedStreams& shape, GatedScratch& scratch);

  void read(const Tensor& h, const Tensor& x) override;
  void write(const Tensor& h, const Tensor& y) override;
  std::int64_t bytes() const override { return down_->bytes() + up_->bytes(); }
  std::int64_t products_per_token() const override { return products(*down_) + products(*up_); }

 private:
  Backend& backend_;
  GatedStreams shape_;
  GatedScratch& scratch_;
  std::unique_ptr<Linear> down_;  // and, for a block, the gates that inject
  std::unique_ptr<Linear> up_;
  OwnedTensor norm_;
};

}  // namespace qpn8
