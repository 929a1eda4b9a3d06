#include "checkpoint/synthetic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/atomic_file.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "checkpoint/synthetic_tokenizer.hpp"
#include "checkpoint/synthetic_values.hpp"
#include "checkpoint/tensor_list.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Distribution {
  double mean;
  double deviation;
};

// Codes of this deviation reach up to the largest, 448, but not beyond it.
constexpr double kCodeDeviation = 128.0;

double deviation_of_matrix(std::int64_t inputs) { return 1.0 / std::sqrt(static_cast<double>(inputs)); }

Distribution distribution_of(const ListedTensor& tensor) {
  constexpr double kExponentBias = 127.0;
  switch (tensor.role) {
    case TensorRole::block_codes:
      return {0.0, kCodeDeviation};
    case TensorRole::block_scales:
      return {kExponentBias + std::round(std::log2(deviation_of_matrix(tensor.inputs) / kCodeDeviation)), 0.0};
    case TensorRole::integers:
      return {0.0, 0.0};
    case TensorRole::norm:
      return {1.0, 0.1};
    case TensorRole::bias:
      return {0.0, 0.02};
    case TensorRole::matrix:
      break;
  }
  return {0.0, deviation_of_matrix(tensor.shape.back())};
}

using Shard = std::vector<TensorSpec>;

std::vector<Shard> shards_of(const std::vector<ListedTensor>& tensors, const SyntheticOptions& options) {
  std::vector<Shard> shards(1);
  std::size_t size = 0;
  for (const ListedTensor& tensor : tensors) {
    TensorSpec spec = {tensor.name, tensor.dtype.value_or(options.dtype), tensor.shape};
    if (!shards.back().empty() && size + spec.bytes() > options.shard_bytes) {
      shards.emplace_back();
      size = 0;
    }
    size += spec.bytes();
    shards.back().push_back(std::move(spec));
  }
  return shards;
}

std::string file_name(std::size_t shard, std::size_t shards) {
  if (shards == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards);
}

void prepare_folder(const fs::path& folder, std::size_t bytes) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder, error)) {
    throw Error(Error::bad_argument, folder.string() + ": cannot be created, expected a new or an empty folder");
  }
  if (!fs::is_empty(folder, error) || error) {
    throw Error(Error::bad_argument, folder.string() + ": is not empty, expected a new or an empty folder");
  }
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < bytes) {
    throw Error(Error::bad_argument,
                fmt::format("{}: {:.1f} GB are free, the checkpoint takes {:.1f}", folder.string(),
                            static_cast<double>(space.available) / 1e9, static_cast<double>(bytes) / 1e9));
  }
}

/// Writes tensors one after another through one bounded buffer that all threads fill.
class Writer {
 public:
  Writer(const SyntheticOptions& options, std::size_t total, ThreadTeam& team)
      : options_(options), total_(total), team_(team), buffer_(kBufferBytes) {}

  void write(SafetensorsStream& stream, const TensorSpec& tensor, const ListedTensor& listed) {
    if (listed.role == TensorRole::integers) {
      write_pieces(stream, tensor, [&listed](std::int64_t first, std::span<std::byte> out) {
        for (std::size_t at = 0; at < out.size(); at += sizeof(std::int64_t)) {
          const std::int64_t value = listed.integer(first++);
          std::memcpy(out.data() + at, &value, sizeof(value));
        }
      });
      return;
    }
    const Distribution distribution = distribution_of(listed);
    const SyntheticValues values(options_.seed, tensor.name, tensor.dtype, distribution.mean, distribution.deviation);
    write_pieces(stream, tensor, [&values](std::int64_t first, std::span<std::byte> out) { values.fill(first, out); });
  }

 private:
  template <class Fill>
  void write_pieces(SafetensorsStream& stream, const TensorSpec& tensor, const Fill& fill) {
    const auto element = size_of(tensor.dtype);
    const auto per_piece = static_cast<std::int64_t>(kBufferBytes / element);
    for (std::int64_t first = 0; first < tensor.elements(); first += per_piece) {
      const std::int64_t count = std::min(per_piece, tensor.elements() - first);
      const auto piece = std::span(buffer_).first(static_cast<std::size_t>(count) * element);
      team_.for_ranges(count, kGrain, [&](std::int64_t begin, std::int64_t end) {
        fill(first + begin,
             piece.subspan(static_cast<std::size_t>(begin) * element, static_cast<std::size_t>(end - begin) * element));
      });
      stream.append(piece);
      done_ += piece.size();
      if (options_.progress) options_.progress(static_cast<std::int64_t>(done_), static_cast<std::int64_t>(total_));
    }
  }

  static constexpr std::size_t kBufferBytes = std::size_t{8} << 20;
  static constexpr std::int64_t kGrain = 4096;

  const SyntheticOptions& options_;
  std::size_t total_;
  std::size_t done_ = 0;
  ThreadTeam& team_;
  std::vector<std::byte> buffer_;
};

json index_of(const std::vector<Shard>& shards, std::size_t total) {
  json map = json::object();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const TensorSpec& tensor : shards[i]) map[tensor.name] = file_name(i, shards.size());
  }
  return {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
}

json generation_config(const ModelConfig& config) {
  json eos = json::array();
  for (const std::int64_t token : config.eos_tokens) eos.push_back(token);
  if (config.bos_token) eos.push_back(*config.bos_token);
  json result = {{"eos_token_id", std::move(eos)}};
  if (config.bos_token) result["bos_token_id"] = *config.bos_token;
  return result;
}

void write_json(const fs::path& path, const json& value) { write_file(path, value.dump(2) + "\n"); }

}  // namespace

void write_synthetic_checkpoint(const ModelConfig& config, const fs::path& folder, const SyntheticOptions& options,
                                ThreadTeam& team) {
  const std::vector<ListedTensor> tensors = list_tensors(config);
  const std::vector<Shard> shards = shards_of(tensors, options);
  std::map<std::string, const ListedTensor*> listed;
  std::size_t total = 0;
  for (const ListedTensor& tensor : tensors) listed.emplace(tensor.name, &tensor);
  for (const Shard& shard : shards) {
    for (const TensorSpec& tensor : shard) total += tensor.bytes();
  }

  prepare_folder(folder, total);
  write_synthetic_tokenizer(config, folder);
  Writer writer(options, total, team);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    SafetensorsStream stream(folder / file_name(i, shards.size()), shards[i]);
    for (const TensorSpec& tensor : stream.tensors()) writer.write(stream, tensor, *listed.at(tensor.name));
    stream.finish();
  }
  if (shards.size() > 1) write_json(folder / "model.safetensors.index.json", index_of(shards, total));
  write_json(folder / "generation_config.json", generation_config(config));
  json config_json = config.json;
  config_json["torch_dtype"] = options.dtype == DType::f16 ? "float16" : "bfloat16";
  config_json.erase("dtype");
  write_json(folder / "config.json", config_json);
}

}  // namespace qpn8
