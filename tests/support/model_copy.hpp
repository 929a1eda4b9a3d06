#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8::test {

/// A folder of its own with links to all files of a model but its weights.
inline void link_model_without_weights(const std::filesystem::path& model, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& entry : std::filesystem::directory_iterator(model)) {
    const std::string name = entry.path().filename();
    if (name.find("safetensors") != std::string::npos) continue;
    std::filesystem::create_symlink(std::filesystem::absolute(entry.path()), folder / name);
  }
}

/// The same with weights that no loader takes.
inline void link_model_with_broken_weights(const std::filesystem::path& model, const std::filesystem::path& folder) {
  link_model_without_weights(model, folder);
  write_text(folder / "model.safetensors", "broken");
}

/// The same with the model's weights, but one tensor full of one F32 value.
inline void copy_model_with(const std::filesystem::path& model, const std::filesystem::path& folder,
                            const std::string& tensor, float value) {
  link_model_without_weights(model, folder);
  const Checkpoint checkpoint(model);
  const std::vector<float> values(static_cast<std::size_t>(checkpoint.tensor(tensor).elements()), value);
  std::vector<TensorToWrite> tensors;
  for (const CheckpointTensor& original : checkpoint.tensors()) {
    TensorToWrite copy{original.name, original.dtype, original.shape, original.bytes};
    if (copy.name == tensor) {
      copy.dtype = DType::f32;
      copy.bytes = std::as_bytes(std::span(values));
    }
    tensors.push_back(std::move(copy));
  }
  write_safetensors(folder / "model.safetensors", tensors);
}

}  // namespace qpn8::test
