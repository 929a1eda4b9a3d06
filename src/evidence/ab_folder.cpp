#include "evidence/ab_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/json_file.hpp"
#include "base/json_rows.hpp"
#include "base/printable.hpp"
#include "evidence/report_html.hpp"
#include "evidence/report_markdown.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kRunFile = "run.json";
constexpr const char* kResultFile = "result.json";

/// The path of the first entry in which two documents differ, as a JSON pointer; empty if they are equal.
std::string first_difference(const Json& left, const Json& right) {
  const auto patch = Json::diff(left, right);
  return patch.empty() ? std::string() : patch.front().at("path").get<std::string>();
}

/// A value for a message: a short list as it is, what would not fit a line in words.
std::string shown(const Json* value) {
  constexpr std::size_t kMost = 60;
  if (value == nullptr) return "not set";
  if (!value->is_structured()) return describe(*value);
  const std::string text = value->dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kMost ? printable(text) : std::string(value->is_array() ? "another list" : "another object");
}

const Json* member(const Json* object, const std::string& key) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(key);
  return found == object->end() ? nullptr : &*found;
}

/// What a user gave to set an entry of run.json, where its name is not that of the flag.
std::string given_by(const std::string& key) {
  static const std::map<std::string, std::string> kNames = {
      {"dataset_sha256", "the SHA-256 of --dataset's content"},
      {"items", "the number of items that --dataset, --start and --limit leave"},
      {"margin_points", "--margin"},
      {"rate_bound_points", "--rate-bound"},
      {"plan", "the plan of arm b"}};
  const auto found = kNames.find(key);
  if (found != kNames.end()) return found->second;
  std::string flag = "--" + key;
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

/// "--seeds was [1,2] and is now [1]"; an arm's argument by its own name; the plan, which is long, by its summary.
std::string difference_text(const Json& before, const Json& now, const std::string& pointer) {
  const std::string key = pointer.substr(1, pointer.find('/', 1) - 1);
  const Json* old_value = member(&before, key);
  const Json* new_value = member(&now, key);
  std::string name = given_by(key);
  if (key == "plan") {
    name += " (projections by route)";
    old_value = member(old_value, "summary");
    new_value = member(new_value, "summary");
  } else if (const std::size_t inner = pointer.find('/', 1); (key == "a" || key == "b") && inner != std::string::npos) {
    const std::string argument = pointer.substr(inner + 1, pointer.find('/', inner + 1) - inner - 1);
    name = fmt::format("{} of arm {}", argument, key);
    old_value = member(old_value, argument);
    new_value = member(new_value, argument);
  }
  return fmt::format("{} was {} and is now {}", name, shown(old_value), shown(new_value));
}

/// Whether there is a file with something in it. Error::bad_file if that cannot be told, or if it is no file.
bool holds_something(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found) return false;
  if (!error && status.type() != std::filesystem::file_type::regular) {
    throw Error(Error::bad_file, file.string() + ": is not a regular file");
  }
  const std::uintmax_t size = error ? 0 : std::filesystem::file_size(file, error);
  if (error) throw Error(Error::bad_file, file.string() + ": " + error.message());
  return size > 0;
}

void remove_file(const std::filesystem::path& file) {
  std::error_code error;
  std::filesystem::remove(file, error);
  if (error) throw Error(Error::bad_file, file.string() + ": cannot be removed (" + error.message() + ")");
}

const std::filesystem::path& made(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(Error::bad_file, folder.string() + ": cannot be made a folder (" + error.message() + ")");
  return folder;
}

}  // namespace

AbFolder::AbFolder(std::filesystem::path path, Start start) : path_(std::move(path)), lock_(made(path_)) {
  const bool has_items = holds_something(items_file());
  const bool is_finished = holds_something(path_ / kResultFile);
  if (start == Start::anew && has_items && !is_finished) {
    throw Error(Error::bad_argument,
                items_file().string() + ": holds an unfinished run; --resume goes on with it, --overwrite drops it");
  }
  resumes_ = start == Start::resume && has_items;
}

void AbFolder::require_same(const Json& run) const {
  if (!resumes_) return;
  const std::filesystem::path file = path_ / kRunFile;
  Json before = read_json_file<Json>(file);
  if (!before.is_object()) throw Error(Error::bad_file, file.string() + ": expected an object, as a run writes it");
  if (!run.contains("plan")) before.erase("plan");
  const std::string difference = first_difference(before, run);
  if (difference.empty()) return;
  throw Error(Error::bad_argument, fmt::format("--resume: {} ({}); a run goes on as it began",
                                               difference_text(before, run, difference), file.string()));
}

// A process may be killed between any two of these steps. What is left is then the old run without its result, which
// resumes as what it was, or no items at all: never new items beside an old result, or old items under a new
// description.
void AbFolder::begin(const Json& run, ItemLog& log) const {
  for (const char* name : {kResultFile, "report.md", "report.html"}) remove_file(path_ / name);
  log.open();
  write_file(path_ / kRunFile, run.dump(2) + "\n");
}

void AbFolder::write(const AbResult& result) const {
  write_file(path_ / "report.md", to_markdown(result));
  write_file(path_ / "report.html", to_html(result));
  // Last, since it is what says that a run is finished.
  write_file(path_ / kResultFile, dump_rows(to_json(result)));
}

}  // namespace qpn8
