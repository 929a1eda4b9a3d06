#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"

namespace qpn8 {

/// What a model remembers of the sequences it serves: keys and values, and whatever else an architecture carries on.
class Cache {
 public:
  Cache() = default;
  virtual ~Cache() = default;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  /// Forgets the sequence in this slot, so that its next token is at position 0.
  virtual void reset(int slot) = 0;
  virtual std::int64_t bytes() const = 0;

  /// Bytes that a decode step of one sequence reads of it when the step's token is the last of `context`.
  virtual std::int64_t bytes_read(std::int64_t context) const = 0;
};

/// A decoder on a backend. Not thread-safe: one pass at a time.
class Model {
 public:
  Model() = default;
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  virtual std::int64_t vocab_size() const = 0;

  /// Memory for `slots` sequences of up to `capacity` tokens; kv_dtype is f16 or f32.
  virtual std::unique_ptr<Cache> make_cache(int slots, std::int64_t capacity, DType kv_dtype) = 0;

  /// Runs the batch's tokens, which extend what `cache` holds, and writes logits (F32 [n, vocab_size]) for the n rows
  /// of the batch that `logit_rows` (i32 [n, 1]) names. batch.rows is at most the max_rows the model was loaded with,
  /// and so is n, which may be 0.
  virtual void forward(const Batch& batch, Cache& cache, const Tensor& logit_rows, const Tensor& logits) = 0;

  /// Bytes that one decode step of one sequence reads of weights (the LM head included, the embedding's row not).
  virtual std::int64_t weight_bytes_per_token() const = 0;

  /// Bytes of all matrices on the backend: projections, experts, the embedding; a head that shares the embedding's
  /// memory counts once.
  virtual std::int64_t weight_bytes() const = 0;

  /// Floating-point operations that a prefill of `tokens` tokens needs, from an empty cache and with logits of the last
  /// row: two a weight and token, four a value of attention that the mask lets through.
  virtual double prefill_flop(std::int64_t tokens) const = 0;

  /// While set, every block's output is checked and the first value that is not finite is Error::check_failed naming
  /// the layer. Costs a host round trip a layer.
  void check_finite(bool on) { check_finite_ = on; }

 protected:
  bool check_finite_ = false;
};

}  // namespace qpn8
