#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "evidence/ab_result.hpp"

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

  /// Makes the folder ready for a run described by `run`: everything that decides outputs, results or the verdict. A
  /// resumed run must be described alike, else Error::bad_argument names the first entry that differs.
  AbFolder(std::filesystem::path path, const nlohmann::ordered_json& run, Start start);

  std::filesystem::path items_file() const { return path_ / "items.jsonl"; }
  bool resumes() const { return resumes_; }

  /// Writes result.json and the reports, each under a temporary name first.
  void write(const AbResult& result) const;

 private:
  void check_same_run(const nlohmann::ordered_json& run) const;
  void remove_results() const;

  std::filesystem::path path_;
  bool resumes_ = false;
};

}  // namespace qpn8
