#include "block_fp8/block_fp8.hpp"

#include <array>
#include <deque>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_file.hpp"
#include "block_fp8/quantise_block.hpp"
#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "qpn8/error.hpp"
#include "qpn8/pack.hpp"

namespace qpn8 {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr std::array<std::string_view, 8> kProjections = {"wq_a", "wq_b", "wkv", "wo_a", "wo_b", "w1", "w2", "w3"};

/// "layers.0.attn.wq_a" of "layers.0.attn.wq_a.weight"; empty for a tensor that stays as it is.
std::string projection_of(const std::string& tensor) {
  if (!tensor.ends_with(kWeight) || tensor.find(".compressor.") != std::string::npos) return "";
  const std::string module = tensor.substr(0, tensor.size() - kWeight.size());
  for (const std::string_view name : kProjections) {
    if (module.ends_with("." + std::string(name))) return module;
  }
  return "";
}

/// Tensors to be written, and the memory of those that were made.
class Output {
 public:
  void keep(const CheckpointTensor& tensor) {
    tensors_.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  }

  void add(const std::string& name, DType dtype, std::vector<std::int64_t> shape, std::vector<std::byte> bytes) {
    memory_.push_back(std::move(bytes));
    tensors_.push_back({name, dtype, std::move(shape), memory_.back()});
  }

  void write(const std::filesystem::path& out, const nlohmann::json& config) const {
    if (!std::filesystem::create_directories(out)) {
      throw Error(Error::bad_file, out.string() + ": exists already, expected a folder to create");
    }
    write_safetensors(out / "model.safetensors", tensors_);
    std::ofstream(out / "config.json") << config.dump(2) << '\n';
  }

 private:
  std::deque<std::vector<std::byte>> memory_;
  std::vector<TensorToWrite> tensors_;
};

MatrixView<const std::uint8_t> codes_of(const CheckpointTensor& tensor) {
  return {reinterpret_cast<const std::uint8_t*>(tensor.bytes.data()), tensor.rows(), tensor.cols()};
}

}  // namespace

void write_block_fp8(const std::filesystem::path& model, const std::filesystem::path& out,
                     const BlockFp8Options& options) {
  const Checkpoint checkpoint(model);
  Output output;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const std::string projection = projection_of(tensor.name);
    const bool expert = projection.find(".experts.") != std::string::npos;
    if (projection.empty() || (expert && options.experts == ExpertForm::kept)) {
      output.keep(tensor);
      continue;
    }
    const std::vector<float> values = checkpoint.floats(tensor);
    const MatrixView<const float> weight(values.data(), tensor.rows(), tensor.cols());
    const bool fp4 = expert && options.experts == ExpertForm::fp4;
    Quantised quantised = fp4 ? quantise_fp4(weight) : quantise_fp8(weight, options.scales);
    const DType scales = fp4 ? DType::f8_e8m0 : options.scales;
    output.add(tensor.name, fp4 ? DType::i8 : DType::f8_e4m3, {weight.rows, fp4 ? weight.cols / 2 : weight.cols},
               std::move(quantised.codes));
    output.add(scales == DType::f32 ? tensor.name + "_scale_inv" : projection + ".scale", scales,
               {quantised.scale_rows, quantised.scale_cols}, std::move(quantised.scales));
  }
  nlohmann::json config = read_json_file(model / "config.json");
  config["quantization_config"] = {
      {"quant_method", "fp8"}, {"fmt", "e4m3"}, {"weight_block_size", {kScaleBlock, kScaleBlock}}};
  config["expert_dtype"] = options.experts == ExpertForm::fp4 ? "fp4" : "fp8";
  output.write(out, config);
}

void write_dequantised(const std::filesystem::path& model, const std::filesystem::path& out) {
  const Checkpoint checkpoint(model);
  Output output;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    const std::string projection = projection_of(tensor.name);
    const bool fp8 = tensor.dtype == DType::f8_e4m3;
    const bool fp4 = tensor.dtype == DType::i8;
    if (!fp8 && !fp4) {
      const bool scales = tensor.name.ends_with(".scale") || tensor.name.ends_with("_scale_inv");
      if (!scales) output.keep(tensor);
      continue;
    }
    const bool long_name = checkpoint.contains(tensor.name + "_scale_inv");
    const CheckpointTensor& stored = checkpoint.tensor(long_name ? tensor.name + "_scale_inv" : projection + ".scale");
    const std::vector<float> scales = checkpoint.floats(stored);
    const MatrixView<const float> view(scales.data(), stored.rows(), stored.cols());
    const std::vector<float> values =
        fp8 ? dequantise_fp8(codes_of(tensor), view) : dequantise_fp4(codes_of(tensor), view);
    const auto bytes = std::as_bytes(std::span(values));
    output.add(tensor.name, DType::f32, {tensor.rows(), fp8 ? tensor.cols() : 2 * tensor.cols()},
               {bytes.begin(), bytes.end()});
  }
  nlohmann::json config = read_json_file(model / "config.json");
  config.erase("quantization_config");
  config.erase("expert_dtype");
  output.write(out, config);
}

}  // namespace qpn8
