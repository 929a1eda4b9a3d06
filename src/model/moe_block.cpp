#include "model/moe_block.hpp"

#include <fmt/format.h>

namespace qpn8 {

MoeBlock::MoeBlock(const WeightLoader& loader, Backend& backend, const std::string& prefix, const DecoderSpec::Moe& moe,
                   std::int64_t max_rows)
    : backend_(backend),
      moe_(moe),
      router_(loader.linear(prefix + "gate")),
      logits_(backend.allocate(DType::f32, max_rows, moe.experts)),
      ids_(backend.allocate(DType::i32, max_rows, moe.experts_per_token)),
      route_weights_(backend.allocate(DType::f32, max_rows, moe.experts_per_token)) {
  for (std::int64_t expert = 0; expert < moe.experts; ++expert) {
    const std::string one = fmt::format("{}experts.{}.", prefix, expert);
    experts_.gate_up.push_back(loader.linear(one + "gate_up_proj"));
    experts_.down.push_back(loader.linear(one + "down_proj"));
  }
}

void MoeBlock::forward(ResidualStream& stream, const RowNorm& norm) {
  const Tensor& x = stream.normed;
  const Tensor logits = logits_.tensor.row_range(0, x.rows);
  const Tensor ids = ids_.tensor.row_range(0, x.rows);
  const Tensor route_weights = route_weights_.tensor.row_range(0, x.rows);
  backend_.normalise(stream, norm);
  backend_.linear(*router_, x, logits);
  backend_.route_experts(logits, moe_.normalise, ids, route_weights);
  backend_.experts(experts_, x, ids, route_weights, stream.delta);
  stream.pending = true;
}

std::int64_t MoeBlock::bytes_per_token() const {
  const std::int64_t one = experts_.gate_up.front()->bytes() + experts_.down.front()->bytes();
  return router_->bytes() + moe_.experts_per_token * one;
}

std::int64_t MoeBlock::bytes() const {
  std::int64_t bytes = router_->bytes();
  for (const auto& expert : experts_.gate_up) bytes += expert->bytes();
  for (const auto& expert : experts_.down) bytes += expert->bytes();
  return bytes;
}

std::int64_t MoeBlock::products_per_token() const {
  const std::int64_t one = products(*experts_.gate_up.front()) + products(*experts_.down.front());
  return products(*router_) + moe_.experts_per_token * one;
}

}  // namespace qpn8
