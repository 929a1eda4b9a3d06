#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace qpn8 {

/// The "weight_map" of a model.safetensors.index.json: which of the files beside it holds which tensor.
struct ShardIndex {
  std::filesystem::path path;
  std::vector<std::string> files;                                  ///< each once, sorted
  std::map<std::string, std::size_t, std::less<>> file_of_tensor;  ///< index into files
};

/// Reads the text of an index and checks that every file it names is a plain name: no folder, so that a checkpoint
/// cannot reach out of its own. Error::bad_file naming the index and the tensor. `path` is for messages.
ShardIndex parse_shard_index(std::string_view text, const std::filesystem::path& path);

/// The same for the file, and checks, before any shard is opened, that each is there. Error::bad_file "INDEX: names
/// FILE, which is missing (2 of 5 files are)".
ShardIndex read_shard_index(const std::filesystem::path& path);

}  // namespace qpn8
