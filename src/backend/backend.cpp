#include "backend/backend.hpp"

namespace qpn8 {

void Backend::prepare_heads(KvCache& cache, std::int64_t layer, const HeadInputs& heads, const Batch& batch) {
  if (heads.q_norm != nullptr) head_rms_norm(heads.q, *heads.q_norm, heads.eps);
  if (heads.k_norm != nullptr) head_rms_norm(heads.k, *heads.k_norm, heads.eps);
  rope(heads.q, heads.head_dim, heads.angles, heads.pairing);
  rope(heads.k, heads.head_dim, heads.angles, heads.pairing);
  append_kv(cache, layer, heads.k, heads.v, batch);
}

void Backend::require_room(const Plan& /*plan*/) {}

void Backend::run_step(const Batch& /*batch*/, int /*variant*/, const std::function<void()>& step) { step(); }

}  // namespace qpn8
