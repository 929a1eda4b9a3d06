#include "evidence/ab_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "evidence/ab_runner.hpp"
#include "evidence/fake_arm.hpp"
#include "qpn8/error.hpp"
#include "support/expect_error.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;
using test::expect_error;
using Start = AbFolder::Start;

const Json kRun = {{"model", "m"}, {"seeds", {1, 2}}, {"a", {{"qpn8", "off"}}}};

/// A folder with one item run in it, unfinished.
struct Unfinished {
  Unfinished() {
    const AbFolder ab(path(), kRun, Start::anew);
    ItemLog(ab.items_file(), false).append(ItemRecords{});
  }
  std::filesystem::path path() const { return folder / "out/ab"; }

  test::TemporaryFolder folder;
};

TEST(AbFolder, IsMadeWithItsParentsAndSaysWhatWasAsked) {
  const Unfinished unfinished;
  EXPECT_EQ(Json::parse(test::read_text(unfinished.path() / "run.json")), kRun);
}

TEST(AbFolder, ThatCannotBeMadeIsNamed) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "file", "");
  expect_error(
      Error::bad_file, [&] { AbFolder(folder / "file/out", kRun, Start::anew); }, "file/out");
}

TEST(AbFolder, KeepsAnUnfinishedRunUnlessToldToDropIt) {
  const Unfinished unfinished;
  expect_error(
      Error::bad_argument, [&] { AbFolder(unfinished.path(), kRun, Start::anew); }, "items.jsonl", "--resume",
      "--overwrite");
  EXPECT_FALSE(AbFolder(unfinished.path(), kRun, Start::overwrite).resumes());
}

TEST(AbFolder, ResumesARunThatIsDescribedAlike) {
  const Unfinished unfinished;
  EXPECT_TRUE(AbFolder(unfinished.path(), kRun, Start::resume).resumes());
  EXPECT_FALSE(AbFolder(unfinished.folder / "new", kRun, Start::resume).resumes()) << "nothing to go on with";
}

TEST(AbFolder, RefusesToResumeARunThatWasAnother) {
  const Unfinished unfinished;
  Json other = kRun;
  other["a"]["qpn8"] = "auto";
  expect_error(
      Error::bad_argument, [&] { AbFolder(unfinished.path(), other, Start::resume); }, "--resume", "/a/qpn8", "\"off\"",
      "\"auto\"");
  other = kRun;
  other["margin_points"] = 5;
  expect_error(
      Error::bad_argument, [&] { AbFolder(unfinished.path(), other, Start::resume); }, "/margin_points", "absent");
}

TEST(AbFolder, NamesARunFileThatCannotBeRead) {
  const Unfinished unfinished;
  const auto file = unfinished.path() / "run.json";
  const auto expect_refusal = [&](const std::string& message) {
    expect_error(
        Error::bad_file, [&] { AbFolder(unfinished.path(), kRun, Start::resume); }, message);
  };
  test::write_text(file, "{");
  expect_refusal("run.json:1:1: not valid JSON");
  test::write_text(file, R"({"a": )" + std::string(1'000'000, '['));
  expect_refusal("run.json:1:70: nested more than 64 deep");
  std::filesystem::remove(file);
  expect_refusal("run.json: No such file or directory");
  std::filesystem::create_directory(file);
  expect_refusal("run.json: is not a regular file");
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  expect_refusal("run.json: is not a regular file");
}

TEST(AbFolder, ReplacesAFinishedRunAndItsReports) {
  const Unfinished unfinished;
  for (const char* name : {"result.json", "report.md", "report.html"}) test::write_text(unfinished.path() / name, "{}");
  EXPECT_FALSE(AbFolder(unfinished.path(), kRun, Start::anew).resumes());
  for (const char* name : {"result.json", "report.md", "report.html"}) {
    EXPECT_FALSE(std::filesystem::exists(unfinished.path() / name)) << name << " would not belong to the items";
  }
}

/// The result of a comparison that is stopped before output `stop_at` and then resumed.
std::string result_after(int stop_at) {
  const test::TemporaryFolder folder;
  const auto arm = [](const char* text) {
    return test::FakeArm("arm", [text](std::span<const ChatMessage> messages, std::uint64_t seed) {
      return test::output(text + messages.back().content, {1, 2, static_cast<std::int32_t>(seed)}, 100.0 / 3);
    });
  };
  auto a = arm("a 0");
  auto b = arm("a 1");
  const AbRun run{test::numbered_items(6), {0, 9}};
  for (const bool stops : {true, false}) {
    const AbFolder ab(folder.path(), kRun, Start::resume);
    ItemLog log(ab.items_file(), ab.resumes());
    int asked = 0;
    const AbEnd end =
        run_ab(run, a, b, log, {.interrupted = [&] { return stops && asked++ >= stop_at; }, .progress = nullptr});
    if (end == AbEnd::interrupted) continue;
    AbResult result;
    result.run = kRun;
    result.items = log.items();
    result.summary = summarise(result.items, {.resamples = 50});
    result.verdict = judge(result.summary, result.limits);
    ab.write(result);
    EXPECT_TRUE(std::filesystem::exists(folder / "report.md"));
    EXPECT_TRUE(std::filesystem::exists(folder / "report.html"));
  }
  return test::read_text(folder / "result.json");
}

TEST(AbFolder, AResumedRunGivesTheSameResultFile) {
  const std::string whole = result_after(1000);
  EXPECT_GT(whole.size(), 1000U);
  for (const int stop_at : {0, 1, 7, 20, 30}) EXPECT_EQ(result_after(stop_at), whole) << stop_at;
}

}  // namespace
}  // namespace qpn8
