#include "checkpoint/shard_index.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_file.hpp"
#include "base/mapped_file.hpp"
#include "base/printable.hpp"
#include "base/regular_file.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

void check_files_exist(const ShardIndex& index) {
  std::vector<std::string> missing;
  for (const std::string& file : index.files) {
    std::error_code ignored;
    if (!std::filesystem::exists(index.path.parent_path() / file, ignored)) missing.push_back(file);
  }
  if (missing.empty()) return;
  fail_file(index.path, fmt::format("names {}, which is missing ({} of {} files {})", printable(missing.front()),
                                    missing.size(), index.files.size(), missing.size() == 1 ? "is" : "are"));
}

}  // namespace

ShardIndex parse_shard_index(std::string_view text, const std::filesystem::path& path) {
  const nlohmann::json root = parse_json(text, path.string());
  const auto map = root.is_object() ? root.find("weight_map") : root.end();
  if (map == root.end() || !map->is_object() || map->empty()) {
    fail_file(path, "expected an object \"weight_map\" of tensor names and the files that hold them");
  }
  ShardIndex index;
  index.path = path;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) {
      fail_file(path, fmt::format("tensor {}: {}, expected a file name", printable(tensor), describe(file)));
    }
    const auto& name = file.get_ref<const std::string&>();
    if (!is_plain_name(name)) {
      fail_file(path, fmt::format("tensor {}: {} is not a plain file name (a shard lies beside its index)",
                                  printable(tensor), in_quotes(name)));
    }
    index.files.push_back(name);
  }
  std::sort(index.files.begin(), index.files.end());
  index.files.erase(std::unique(index.files.begin(), index.files.end()), index.files.end());
  for (const auto& [tensor, file] : map->items()) {
    const auto at = std::lower_bound(index.files.begin(), index.files.end(), file.get_ref<const std::string&>());
    index.file_of_tensor.emplace(tensor, static_cast<std::size_t>(at - index.files.begin()));
  }
  return index;
}

ShardIndex read_shard_index(const std::filesystem::path& path) {
  const MappedFile file(path);
  ShardIndex index = parse_shard_index(file.text(), path);
  check_files_exist(index);
  return index;
}

}  // namespace qpn8
