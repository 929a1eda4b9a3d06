#include "checkpoint/safetensors_writer.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.hpp"

namespace qpn8 {
namespace {

std::vector<TensorSpec> in_file_order(std::vector<TensorSpec> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorSpec& a, const TensorSpec& b) {
    if (size_of(a.dtype) != size_of(b.dtype)) return size_of(a.dtype) > size_of(b.dtype);
    return a.name < b.name;
  });
  return tensors;
}

/// The length in 8 bytes, then the JSON padded with spaces so that the data begins at a multiple of 8.
std::string header_of(const std::vector<TensorSpec>& tensors) {
  auto header = nlohmann::json::object();
  header["__metadata__"] = {{"format", "pt"}};
  std::size_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    const std::size_t end = offset + tensor.bytes();
    header[tensor.name] = {
        {"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length;
  for (std::size_t shift = 0; shift < 64; shift += 8) length += static_cast<char>(text.size() >> shift & 0xffU);
  return length + text;
}

}  // namespace

std::int64_t TensorSpec::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::size_t TensorSpec::bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype); }

SafetensorsStream::SafetensorsStream(const std::filesystem::path& path, std::vector<TensorSpec> tensors)
    : file_(path), tensors_(in_file_order(std::move(tensors))) {
  for (const TensorSpec& tensor : tensors_) left_ += tensor.bytes();
  file_.write(header_of(tensors_));
}

void SafetensorsStream::append(std::span<const std::byte> bytes) {
  check(bytes.size() <= left_, "no more bytes are appended than the header announced");
  file_.write(bytes);
  left_ -= bytes.size();
}

void SafetensorsStream::finish() {
  check(left_ == 0, "every byte that the header announced was appended");
  file_.commit();
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors) {
  std::vector<TensorSpec> specs;
  std::map<std::string, std::span<const std::byte>> bytes;
  for (const TensorToWrite& tensor : tensors) {
    specs.push_back({tensor.name, tensor.dtype, tensor.shape});
    check(tensor.bytes.size() == specs.back().bytes(), "a tensor's bytes match its shape and dtype");
    check(bytes.emplace(tensor.name, tensor.bytes).second, "tensor names are unique");
  }
  SafetensorsStream stream(path, std::move(specs));
  for (const TensorSpec& tensor : stream.tensors()) stream.append(bytes.at(tensor.name));
  stream.finish();
}

}  // namespace qpn8
