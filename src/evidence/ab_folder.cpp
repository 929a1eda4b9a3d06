#include "evidence/ab_folder.hpp"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "base/atomic_file.hpp"
#include "base/json_file.hpp"
#include "base/json_rows.hpp"
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

/// An entry for a message; whole lists and plans would not fit a line.
std::string shown(const Json& document, const std::string& pointer) {
  const Json::json_pointer path(pointer);
  if (!document.contains(path)) return "absent";
  const Json& value = document.at(path);
  return value.is_structured() ? "another list" : describe(value);
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
  throw Error(Error::bad_argument,
              fmt::format("--resume: {} was {} and is now {} ({}); a run goes on as it began", difference,
                          shown(before, difference), shown(run, difference), file.string()));
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
