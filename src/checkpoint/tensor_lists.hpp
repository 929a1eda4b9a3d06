#pragma once

#include <string>
#include <utility>
#include <vector>

#include "checkpoint/tensor_list.hpp"

// What list_tensors() chooses from, a file a family of models.

namespace qpn8 {

std::vector<ListedTensor> list_decoder_tensors(const ModelConfig& config);      ///< llama, qwen2, qwen3, qwen3_moe
std::vector<ListedTensor> list_deepseek_v4_tensors(const ModelConfig& config);  ///< deepseek_v4
std::vector<ListedTensor> list_qwen4_exp_tensors(const ModelConfig& config);    ///< qwen4_exp_text

/// Collects the tensors of a list.
class TensorCollector {
 public:
  using Shape = std::vector<std::int64_t>;

  void add(ListedTensor tensor) { tensors_.push_back(std::move(tensor)); }
  void matrix(std::string name, Shape shape) { add({std::move(name), std::move(shape)}); }
  void norm(std::string name, std::int64_t size) { add({std::move(name), {size}, TensorRole::norm}); }
  void bias(std::string name, Shape shape) { add({std::move(name), std::move(shape), TensorRole::bias}); }

  std::vector<ListedTensor> take() { return std::move(tensors_); }

 private:
  std::vector<ListedTensor> tensors_;
};

}  // namespace qpn8
