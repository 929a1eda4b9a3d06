// The parts of the loader that read untrusted bytes: a safetensors header, the index of shards, config.json and
// generation_config.json.
// Whatever the bytes, the answer is a value that keeps its promises or an Error of one line.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "checkpoint/model_config.hpp"
#include "checkpoint/safetensors_header.hpp"
#include "checkpoint/shard_index.hpp"
#include "qpn8/error.hpp"

namespace {

template <class Action>
void expect_value_or_error(Action&& action) {
  try {
    action();
  } catch (const qpn8::Error& error) {
    qpn8::check(std::string_view(error.what()).find('\n') == std::string_view::npos, "an error is one line");
  }
}

void read_header(std::span<const std::byte> file) {
  std::size_t reached = 0;
  for (const qpn8::SafetensorsEntry& entry : qpn8::parse_safetensors_header(file, "f")) {
    std::size_t bytes = size_of(entry.dtype);
    for (const std::int64_t size : entry.shape) bytes *= static_cast<std::size_t>(size);
    qpn8::check(entry.end - entry.begin == bytes, "a tensor has the bytes of its shape");
    qpn8::check(entry.begin >= reached && entry.end <= file.size(), "tensors are in order and in the file");
    reached = entry.end;
  }
}

void read_config(const std::string& text) {
  const qpn8::ModelConfig config = qpn8::parse_model_config(text, "config.json");
  qpn8::check(config.heads >= config.kv_heads && config.kv_heads >= 1, "kv heads are between 1 and heads");
  qpn8::check(config.head_dim >= 1 && config.rope.theta > 0 && config.rms_norm_eps > 0, "sizes are positive");
}

void read_index(const std::string& text) {
  const qpn8::ShardIndex index = qpn8::parse_shard_index(text, "model.safetensors.index.json");
  qpn8::check(!index.file_of_tensor.empty(), "an index names a tensor");
  for (const auto& [tensor, file] : index.file_of_tensor) {
    qpn8::check(file < index.files.size(), "a tensor is in one of the files");
    qpn8::check(index.files[file].find('/') == std::string::npos, "a shard lies beside its index");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  expect_value_or_error([&] { read_header(std::as_bytes(std::span(data, size))); });
  expect_value_or_error([&] { read_config(text); });
  expect_value_or_error([&] { read_index(text); });
  expect_value_or_error([&] { qpn8::parse_generation_config(text, "generation_config.json"); });
  return 0;
}
