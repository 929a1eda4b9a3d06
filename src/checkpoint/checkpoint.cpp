#include "checkpoint/checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "base/directory_entry.hpp"
#include "base/mapped_file.hpp"
#include "base/printable.hpp"
#include "base/regular_file.hpp"
#include "checkpoint/safetensors_header.hpp"
#include "checkpoint/shard_index.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "qpn8/half.hpp"

namespace qpn8 {
namespace {

namespace fs = std::filesystem;

bool by_name(const CheckpointTensor& a, const CheckpointTensor& b) { return a.name < b.name; }

/// The stored elements through `decode`, whose argument is the element's type.
template <class Stored, class Decode>
std::vector<float> decode_all(std::span<const std::byte> bytes, Decode decode) {
  std::vector<float> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = decode(stored);
  }
  return values;
}

}  // namespace

std::int64_t CheckpointTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::int64_t CheckpointTensor::rows() const {
  if (shape.size() < 2) {
    throw Error(Error::bad_file, fmt::format("tensor {}: shape [{}], expected at least two dimensions", printable(name),
                                             fmt::join(shape, ", ")));
  }
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

std::int64_t CheckpointTensor::cols() const {
  rows();
  return shape.back();
}

class Checkpoint::Impl {
 public:
  explicit Impl(const fs::path& path) : path_(path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      add_file(path);
    } else if (entry_exists(path / "model.safetensors")) {
      add_file(path / "model.safetensors");
    } else if (entry_exists(path / "model.safetensors.index.json")) {
      add_shards(read_shard_index(path / "model.safetensors.index.json"));
    } else {
      fail_file(path, "holds neither model.safetensors nor model.safetensors.index.json");
    }
    std::sort(tensors_.begin(), tensors_.end(), by_name);
    check_names_are_unique();
  }

  const CheckpointTensor* find(std::string_view name) const {
    const auto at =
        std::lower_bound(tensors_.begin(), tensors_.end(), name,
                         [](const CheckpointTensor& tensor, std::string_view n) { return tensor.name < n; });
    return at != tensors_.end() && at->name == name ? &*at : nullptr;
  }

  const fs::path& path() const { return path_; }
  const std::vector<fs::path>& files() const { return files_; }
  const std::vector<CheckpointTensor>& tensors() const { return tensors_; }
  const MappedFile& map(std::size_t file) const { return maps_[file]; }

 private:
  void add_file(const fs::path& file) {
    const MappedFile& map = maps_.emplace_back(file);
    files_.push_back(file);
    for (SafetensorsEntry& entry : parse_safetensors_header(map.bytes(), file.string())) {
      tensors_.push_back({std::move(entry.name), entry.dtype, std::move(entry.shape),
                          map.bytes().subspan(entry.begin, entry.end - entry.begin), files_.size() - 1});
    }
  }

  void add_shards(const ShardIndex& index) {
    std::vector<std::string> listed;
    for (std::size_t file = 0; file < index.files.size(); ++file) {
      const std::size_t first = tensors_.size();
      add_file(index.path.parent_path() / index.files[file]);
      for (std::size_t i = first; i < tensors_.size(); ++i) {
        const auto at = index.file_of_tensor.find(tensors_[i].name);
        if (at != index.file_of_tensor.end() && at->second == file) listed.push_back(tensors_[i].name);
      }
    }
    if (listed.size() == index.file_of_tensor.size()) return;
    std::sort(listed.begin(), listed.end());
    for (const auto& [tensor, file] : index.file_of_tensor) {
      if (std::binary_search(listed.begin(), listed.end(), tensor)) continue;
      fail_file(index.path, fmt::format("tensor {}: is not in {} (shards of another revision?)", printable(tensor),
                                        printable(index.files[file])));
    }
  }

  void check_names_are_unique() const {
    const auto twice = std::adjacent_find(tensors_.begin(), tensors_.end(),
                                          [](const auto& a, const auto& b) { return a.name == b.name; });
    if (twice == tensors_.end()) return;
    const CheckpointTensor& other = *std::next(twice);
    const auto [low, high] = std::minmax(twice->file, other.file);
    fail_file(files_[high], fmt::format("tensor {}: is in {} too, expected one of them", printable(twice->name),
                                        files_[low].string()));
  }

  fs::path path_;
  std::vector<fs::path> files_;
  std::vector<MappedFile> maps_;
  std::vector<CheckpointTensor> tensors_;
};

Checkpoint::Checkpoint(const fs::path& path) : impl_(std::make_unique<Impl>(path)) {}
Checkpoint::~Checkpoint() = default;
Checkpoint::Checkpoint(Checkpoint&&) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&&) noexcept = default;

bool Checkpoint::contains(std::string_view name) const { return impl_->find(name) != nullptr; }

const CheckpointTensor& Checkpoint::tensor(std::string_view name) const {
  const CheckpointTensor* found = impl_->find(name);
  if (found == nullptr) fail_file(impl_->path(), fmt::format("tensor {}: is missing", printable(name)));
  return *found;
}

const CheckpointTensor& Checkpoint::tensor(std::string_view name, std::span<const std::int64_t> shape) const {
  const CheckpointTensor& found = tensor(name);
  if (!std::equal(shape.begin(), shape.end(), found.shape.begin(), found.shape.end())) {
    fail_file(impl_->files()[found.file], fmt::format("tensor {}: shape [{}], the config demands [{}]", printable(name),
                                                      fmt::join(found.shape, ", "), fmt::join(shape, ", ")));
  }
  return found;
}

std::span<const CheckpointTensor> Checkpoint::tensors() const { return impl_->tensors(); }

const std::vector<fs::path>& Checkpoint::files() const { return impl_->files(); }

std::vector<float> Checkpoint::floats(const CheckpointTensor& tensor) const {
  switch (tensor.dtype) {
    case DType::f32:
      return decode_all<float>(tensor.bytes, [](float value) { return value; });
    case DType::f16:
      return decode_all<Half>(tensor.bytes, [](Half value) { return to_float(value); });
    case DType::bf16:
      return decode_all<BFloat16>(tensor.bytes, [](BFloat16 value) { return to_float(value); });
    case DType::f8_e4m3:
      return decode_all<std::uint8_t>(tensor.bytes, decode_e4m3);
    case DType::f8_e8m0:
      return decode_all<std::uint8_t>(tensor.bytes, decode_e8m0);
    default:
      fail_file(impl_->files()[tensor.file], fmt::format("tensor {}: dtype {}, expected a floating-point type",
                                                         printable(tensor.name), to_string(tensor.dtype)));
  }
}

void Checkpoint::release(const CheckpointTensor& tensor, std::span<const std::byte> part) const {
  check(part.data() >= tensor.bytes.data() && part.data() + part.size() <= tensor.bytes.data() + tensor.bytes.size(),
        "a released part lies in its tensor");
  impl_->map(tensor.file).release(part);
}

}  // namespace qpn8
