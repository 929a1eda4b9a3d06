#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/folder_lock.hpp"
#include "evidence/ab_result.hpp"
#include "evidence/item_log.hpp"

namespace qpn8 {

/// The folder that a comparison leaves behind: run.json (what was asked), items.jsonl (what was run), result.json and
/// the reports (what came out).
class AbFolder {
 public:
  enum class Start : std::uint8_t {
    anew,       ///< replaces a finished run; an unfinished one is an error that names --resume
    overwrite,  ///< replaces whatever there is
    resume,     ///< goes on with what there is, or starts if there is nothing
  };

  /// Makes the folder and holds it alone for as long as the object lives; nothing in it is changed yet.
  /// Error::bad_argument if another run has it, or if it holds an unfinished run that `start` does not say what to do
  /// with.
  AbFolder(std::filesystem::path path, Start start);

  /// A run that goes on must be described as it was begun, else Error::bad_argument names the first entry that differs.
  /// `run` is everything that decides outputs, results or the verdict; its "plan" may be missing, for a check before
  /// the plan is known. Nothing is checked if no run goes on.
  void require_same(const nlohmann::ordered_json& run) const;

  /// Replaces what the folder holds by a run that has something to show: results go, the log is opened, run.json says
  /// what is run.
  void begin(const nlohmann::ordered_json& run, ItemLog& log) const;

  std::filesystem::path items_file() const { return path_ / "items.jsonl"; }
  bool resumes() const { return resumes_; }

  /// Writes result.json and the reports, each under a temporary name first.
  void write(const AbResult& result) const;

 private:
  std::filesystem::path path_;
  FolderLock lock_;
  bool resumes_ = false;
};

}  // namespace qpn8
