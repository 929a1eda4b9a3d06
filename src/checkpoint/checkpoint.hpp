#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"

namespace qpn8 {

/// A tensor of a checkpoint, in the file's mapping; valid as long as its Checkpoint.
struct CheckpointTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
  std::size_t file = 0;  ///< index into Checkpoint::files()

  std::int64_t elements() const;
  /// As a matrix: the last dimension is the columns, the others together the rows. Error::bad_file naming the tensor if
  /// it has fewer than two.
  std::int64_t rows() const;
  std::int64_t cols() const;
};

/// The weights of a Hugging Face folder: model.safetensors, or the shards that model.safetensors.index.json names.
///
/// A checkpoint is untrusted. Header length, JSON, offsets, shapes, dtypes, overlaps, holes and file sizes of every
/// shard are checked when it is opened, before anything is allocated for weights; each fault is Error::bad_file (or
/// unsupported, for a dtype) in one line that names the file and the tensor. Opening costs the headers alone; weights
/// are read from the map when they are used. Nothing is ever written. Thread-safe once opened.
///
/// As in Hugging Face's own loader a folder that has both opens model.safetensors, and a tensor that lies in a shard
/// but not in the index is part of the checkpoint. A tensor of the index that its shard lacks, and a name in two
/// shards, are errors, as are tensors that are not aligned to their element size (files of safetensors before 0.3).
class Checkpoint {
 public:
  /// The folder, or one .safetensors file.
  explicit Checkpoint(const std::filesystem::path& path);
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;

  bool contains(std::string_view name) const;

  /// Error::bad_file naming the folder and the tensor if there is none of that name.
  const CheckpointTensor& tensor(std::string_view name) const;

  /// tensor(name), with a shape that must be `shape`: Error::bad_file names both shapes and says that the config
  /// demands the second.
  const CheckpointTensor& tensor(std::string_view name, std::span<const std::int64_t> shape) const;

  /// All tensors, sorted by name.
  std::span<const CheckpointTensor> tensors() const;

  const std::vector<std::filesystem::path>& files() const;

  /// The tensor's values as float32, whatever float type it is stored in. E4M3 codes are decoded without any scale.
  std::vector<float> floats(const CheckpointTensor& tensor) const;

  /// The pages of these bytes are no longer needed (they have been packed or copied); reading them again still works.
  void release(const CheckpointTensor& tensor, std::span<const std::byte> part) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qpn8
