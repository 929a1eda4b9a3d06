#pragma once

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/model_config.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "checkpoint/tensor_list.hpp"
#include "support/numbers.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8::test {

/// A llama of one layer whose projections are FP8 codes with block scales, and blocks at its edges cut. A test may
/// change its config and its tensors before it is written.
class Fp8Model {
 public:
  struct Stored {
    DType dtype = DType::f32;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;
  };

  Fp8Model() {
    for (const ListedTensor& tensor : list_tensors(parse_model_config(config.dump(), "config.json"))) {
      if (tensor.name.find("proj") != std::string::npos) {
        add_codes(tensor);
      } else {
        add_floats(tensor.name, tensor.shape, tensor.role == TensorRole::norm ? 1.0F : 0.0F, 0.1F);
      }
    }
  }

  void add_scales(const std::string& name, std::int64_t rows, std::int64_t cols) {
    add_floats(name, {rows, cols}, 0.001F, 0.0002F);
  }

  const std::filesystem::path& write() {
    std::vector<TensorToWrite> written;
    for (const auto& [name, tensor] : tensors) written.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
    write_safetensors(folder_ / "model.safetensors", written);
    folder_.write("config.json", config.dump());
    return folder_.path();
  }

  nlohmann::json config = {
      {"model_type", "llama"},
      {"vocab_size", 72},  // no multiple of 32: QPN8 would round the LM head, whose values are no FP8 codes
      {"hidden_size", 160},
      {"intermediate_size", 288},
      {"num_hidden_layers", 1},
      {"num_attention_heads", 5},
      {"num_key_value_heads", 5},
      {"max_position_embeddings", 32},
      {"quantization_config", {{"quant_method", "fp8"}, {"fmt", "e4m3"}, {"weight_block_size", {128, 128}}}}};
  std::map<std::string, Stored> tensors;

 private:
  void add_floats(const std::string& name, const std::vector<std::int64_t>& shape, float mean, float deviation) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    Matrix<float> values = gaussian(1, count, static_cast<unsigned>(tensors.size()), deviation);
    for (float& value : values.values()) value += mean;
    Stored stored{DType::f32, shape, std::vector<std::byte>(values.values().size_bytes())};
    std::memcpy(stored.bytes.data(), values.values().data(), stored.bytes.size());
    tensors[name] = std::move(stored);
  }

  void add_codes(const ListedTensor& tensor) {
    Stored codes{DType::f8_e4m3, tensor.shape, {}};
    for (std::int64_t i = 0; i < tensor.shape[0] * tensor.shape[1]; ++i) {
      const auto magnitude = static_cast<unsigned>((i * 37 + static_cast<std::int64_t>(tensors.size())) % 127);
      codes.bytes.push_back(static_cast<std::byte>(magnitude | (i % 3 == 0 ? 0x80U : 0U)));
    }
    tensors[tensor.name] = std::move(codes);
    add_scales(tensor.name + "_scale_inv", (tensor.shape[0] + 127) / 128, (tensor.shape[1] + 127) / 128);
  }

  TemporaryFolder folder_;
};

}  // namespace qpn8::test
