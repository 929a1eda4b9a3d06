#include "evidence/ab_folder.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/atomic_file.hpp"
#include "base/json_file.hpp"
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

}  // namespace

AbFolder::AbFolder(std::filesystem::path path, const Json& run, Start start) : path_(std::move(path)) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) throw Error(Error::bad_file, path_.string() + ": cannot be made a folder (" + error.message() + ")");

  const bool has_items = std::filesystem::exists(items_file()) && std::filesystem::file_size(items_file()) > 0;
  const bool is_finished = std::filesystem::exists(path_ / kResultFile);
  if (start == Start::anew && has_items && !is_finished) {
    throw Error(Error::bad_argument,
                items_file().string() + ": holds an unfinished run; --resume goes on with it, --overwrite drops it");
  }
  resumes_ = start == Start::resume && has_items;
  if (resumes_) check_same_run(run);
  remove_results();
  write_file(path_ / kRunFile, run.dump(2) + "\n");
}

void AbFolder::check_same_run(const Json& run) const {
  const std::filesystem::path file = path_ / kRunFile;
  const Json before = read_json_file<Json>(file);
  const std::string difference = first_difference(before, run);
  if (difference.empty()) return;
  throw Error(Error::bad_argument,
              fmt::format("--resume: {} was {} and is now {} ({}); a run goes on as it began", difference,
                          shown(before, difference), shown(run, difference), file.string()));
}

void AbFolder::remove_results() const {
  for (const char* name : {kResultFile, "report.md", "report.html"}) std::filesystem::remove(path_ / name);
}

void AbFolder::write(const AbResult& result) const {
  write_file(path_ / "report.md", to_markdown(result));
  write_file(path_ / "report.html", to_html(result));
  // Last, since it is what says that a run is finished.
  write_file(path_ / kResultFile, to_json(result).dump(2) + "\n");
}

}  // namespace qpn8
