#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "kernels/cpu/argmax.hpp"
#include "model/model.hpp"
#include "qpn8/error.hpp"

namespace qpn8::test {

/// Host memory and the choice of a token: any other operator is a failure of the test.
class MemoryBackend : public Backend {
 public:
  const Hardware& hardware() const override { return hardware_; }
  DType activation_type() const override { return DType::f32; }

  OwnedTensor allocate(DType dtype, std::int64_t rows, std::int64_t cols) override {
    auto memory = std::make_unique<Memory>(static_cast<std::size_t>(rows * cols) * size_of(dtype));
    const Tensor tensor = {dtype, rows, cols, cols, memory->bytes.data()};
    return {tensor, std::move(memory)};
  }
  void write(const Tensor& target, std::span<const std::byte> source) override {
    if (source.size() != bytes_of(target)) throw std::logic_error("write: size");
    std::memcpy(target.data, source.data(), source.size());
  }
  void read(const Tensor& source, std::span<std::byte> target) override {
    if (target.size() != bytes_of(source)) throw std::logic_error("read: size");
    std::memcpy(target.data(), source.data, target.size());
  }

  std::unique_ptr<KvCache> make_kv_cache(const KvShape& /*shape*/) override { refuse(); }
  std::unique_ptr<Linear> load_linear(const LinearSource& /*source*/) override { refuse(); }
  std::unique_ptr<Linear> share_linear(const Tensor& /*weight*/) override { refuse(); }
  OwnedTensor load_table(const Checkpoint& /*checkpoint*/, const CheckpointTensor& /*tensor*/) override { refuse(); }
  void embed(const Tensor&, const Tensor&, const Tensor&) override { refuse(); }
  void gather_rows(const Tensor&, const Tensor&, const Tensor&) override { refuse(); }
  void linear(const Linear&, const Tensor&, const Tensor&) override { refuse(); }
  void rms_norm(const Tensor&, const Tensor&, float, const Tensor&) override { refuse(); }
  void add_rms_norm(const Tensor&, const Tensor&, const Tensor&, float, const Tensor&) override { refuse(); }
  void head_rms_norm(const Tensor&, const Tensor&, float) override { refuse(); }
  void rope_angles(const Tensor&, const Tensor&, float, const Tensor&) override { refuse(); }
  void rope(const Tensor&, std::int64_t, const Tensor&, RopePairing) override { refuse(); }
  void append_kv(KvCache&, std::int64_t, const Tensor&, const Tensor&, const Batch&) override { refuse(); }
  void attention(const KvCache&, std::int64_t, const Tensor&, const Batch&, const AttentionShape&,
                 const Tensor&) override {
    refuse();
  }
  void swiglu(const Tensor&, float, const Tensor&) override { refuse(); }
  void route_experts(const Tensor&, bool, const Tensor&, const Tensor&) override { refuse(); }
  void experts(const ExpertWeights&, const Tensor&, const Tensor&, const Tensor&, const Tensor&) override { refuse(); }
  void find_non_finite(const Tensor&, const Tensor&) override { refuse(); }
  void argmax(const Tensor& x, const Tensor& out) override {
    for (std::int64_t row = 0; row < x.rows; ++row) {
      const std::optional<std::size_t> best = cpu::argmax(x.host<float>().row(row));
      out.host<std::int32_t>().row(row)[0] = best ? static_cast<std::int32_t>(*best) : -1;
    }
  }

 private:
  struct Memory : DeviceMemory {
    explicit Memory(std::size_t size) : bytes(size) {}
    std::vector<std::byte> bytes;
  };

  static std::size_t bytes_of(const Tensor& tensor) {
    return static_cast<std::size_t>(tensor.rows * tensor.cols) * size_of(tensor.dtype);
  }
  [[noreturn]] static void refuse() { throw std::logic_error("the engine calls no other operator itself"); }

  Hardware hardware_;
};

class FakeCache : public Cache {
 public:
  void reset(int /*slot*/) override { tokens.clear(); }
  std::int64_t bytes() const override { return 0; }
  std::int64_t bytes_read(std::int64_t /*context*/) const override { return 0; }
  std::vector<TokenId> tokens;  ///< of the one sequence
};

/// A model whose logits after a sequence are whatever a function says. It checks that tokens come in order and without
/// gaps, and keeps the sizes of the passes.
class FakeModel : public Model {
 public:
  using Rule = std::function<std::vector<float>(const std::vector<TokenId>& sequence)>;

  FakeModel(std::int64_t vocabulary, Rule rule) : vocabulary_(vocabulary), rule_(std::move(rule)) {}

  std::int64_t vocab_size() const override { return vocabulary_; }
  std::unique_ptr<Cache> make_cache(int, std::int64_t, DType) override { return std::make_unique<FakeCache>(); }
  std::int64_t weight_bytes_per_token() const override { return 0; }
  std::int64_t weight_bytes() const override { return 0; }
  double prefill_flop(std::int64_t /*tokens*/) const override { return 0; }

  void forward(const Batch& batch, Cache& cache, const Tensor& logit_rows, const Tensor& logits) override {
    auto& tokens = static_cast<FakeCache&>(cache).tokens;
    const BatchSpan& span = batch.spans.front();
    if (check_finite_) throw Error(Error::check_failed, "model.layers.3: planted");
    if (batch.spans.size() != 1 || span.rows != batch.rows || span.first_row != 0 || span.slot != 0 ||
        span.first_position != static_cast<std::int64_t>(tokens.size())) {
      throw std::logic_error("a span that does not follow on");
    }
    const auto first = tokens.size();
    for (std::int64_t row = 0; row < batch.rows; ++row) {
      if (batch.positions.host<std::int32_t>().row(row)[0] != span.first_position + row ||
          batch.slots.host<std::int32_t>().row(row)[0] != 0) {
        throw std::logic_error("a position or slot that is not its row's");
      }
      tokens.push_back(batch.ids.host<std::int32_t>().row(row)[0]);
    }
    passes.push_back(batch.rows);
    if (logits.rows != logit_rows.rows || logits.cols != vocabulary_) throw std::logic_error("logits: shape");
    for (std::int64_t i = 0; i < logit_rows.rows; ++i) {
      const auto row = static_cast<std::size_t>(logit_rows.host<std::int32_t>().row(i)[0]);
      const std::vector<float> values =
          rule_({tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(first + row + 1)});
      std::copy(values.begin(), values.end(), logits.host<float>().row(i).begin());
    }
  }

  std::vector<std::int64_t> passes;

 private:
  std::int64_t vocabulary_;
  Rule rule_;
};

/// Logits that make `token` the likeliest.
inline std::vector<float> favour(TokenId token, std::int64_t vocabulary) {
  std::vector<float> logits(static_cast<std::size_t>(vocabulary), 0.0F);
  logits[static_cast<std::size_t>(token)] = 10.0F;
  return logits;
}

}  // namespace qpn8::test
