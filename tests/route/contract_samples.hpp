#pragma once

#include <string>
#include <vector>

#include "qpn8/contract.hpp"
#include "qpn8/error.hpp"
#include "route/plan.hpp"

namespace qpn8::test {

inline const Contract& shipped(const std::string& name) {
  for (const Contract& contract : shipped_contracts()) {
    if (contract.name == name) return contract;
  }
  throw Error(Error::bad_argument, "no shipped contract is " + name);
}

inline Hardware sm70() { return parse_hardware("sm70"); }
inline Hardware avx2() { return parse_hardware("cpu-avx2"); }

/// A projection of FP16 weights with channel scales.
inline TensorDesc half_tensor(const std::string& role, std::int64_t k, std::int64_t n, int layer_tp = 1) {
  TensorDesc tensor;
  tensor.role = role;
  tensor.layer_tp = layer_tp;
  tensor.k = k;
  tensor.n = n;
  return tensor;
}

/// A projection of FP8 weights with 128x128 block scales.
inline TensorDesc block_tensor(const std::string& role, std::int64_t k, std::int64_t n, int layer_tp,
                               std::int64_t groups = 1) {
  TensorDesc tensor = half_tensor(role, k, n, layer_tp);
  tensor.groups = groups;
  tensor.type = WeightType::f8_e4m3;
  tensor.scales = ScaleKind::block;
  tensor.block_n = kScaleBlock;
  tensor.block_k = kScaleBlock;
  return tensor;
}

/// The projections that sm70-pp2tp4 admits, as a rank of PP2 x TP4 holds them.
inline std::vector<TensorDesc> pp2tp4_tensors() {
  return {block_tensor("fused_wqa_wkv", 4096, 1536, 1), block_tensor("wq_b", 1024, 8192, 4),
          block_tensor("wo_b", 2048, 4096, 4), block_tensor("wo_a", 4096, 1024, 4, 2),
          block_tensor("shared_experts.down_proj", 512, 4096, 4)};
}

/// The projections that sm70-tp4-online admits, as a rank of TP4 holds them.
inline std::vector<TensorDesc> online_tensors() {
  return {half_tensor("linear_attn.in_proj_qkvz", 2560, 4096, 4),
          half_tensor("linear_attn.out_proj", 1536, 2560, 4),
          half_tensor("self_attn.qkv_proj", 2560, 3584, 4),
          half_tensor("self_attn.o_proj", 1536, 2560, 4),
          half_tensor("hyper_connection.up", 320, 10240, 1),
          half_tensor("hyper_connection.down_inject", 10240, 336, 1)};
}

/// A contract of one row for avx2, on by default; tests change what they are about.
inline Contract small_contract(const std::string& name) {
  Contract contract;
  contract.name = name;
  contract.hardware = {avx2()};
  contract.max_sequences = 8;
  contract.types = {WeightType::f16};
  contract.scales = {ScaleKind::channel};
  AdmittedRow row;
  row.role = "mlp.down_proj";
  contract.rows = {row};
  contract.evidence.note = "made for a test";
  return contract;
}

}  // namespace qpn8::test
