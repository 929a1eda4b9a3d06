#include "evidence/ab_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

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
    const AbFolder ab(path(), Start::anew);
    ItemLog log(ab.items_file(), false);
    ab.begin(kRun, log);
    log.append(ItemRecords{});
  }
  std::filesystem::path path() const { return folder / "out/ab"; }

  /// Makes it a finished one.
  void finish() const {
    for (const char* name : kResults) test::write_text(path() / name, "{}");
  }

  static constexpr std::array kResults = {"result.json", "report.md", "report.html"};
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
      Error::bad_file, [&] { AbFolder(folder / "file/out", Start::anew); }, "file/out");
}

TEST(AbFolder, FilesThatAreNoneAreNamed) {
  for (const char* name : {"items.jsonl", "result.json"}) {
    const test::TemporaryFolder folder;
    std::filesystem::create_directory(folder / name);
    expect_error(
        Error::bad_file, [&] { AbFolder(folder.path(), Start::anew); }, name, "not a regular file");
  }
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "report.md/in the way");
  const AbFolder ab(folder.path(), Start::anew);
  ItemLog log(ab.items_file(), false);
  expect_error(
      Error::bad_file, [&] { ab.begin(kRun, log); }, "report.md: cannot be removed");
}

TEST(AbFolder, IsHeldByOneRunAtATime) {
  const test::TemporaryFolder folder;
  const AbFolder first(folder.path(), Start::anew);
  for (const Start start : {Start::anew, Start::overwrite, Start::resume}) {
    expect_error(
        Error::bad_argument, [&] { AbFolder(folder.path(), start); }, folder.path().string(), "another run");
  }
}

TEST(AbFolder, KeepsAnUnfinishedRunUnlessToldToDropIt) {
  const Unfinished unfinished;
  expect_error(
      Error::bad_argument, [&] { AbFolder(unfinished.path(), Start::anew); }, "items.jsonl", "--resume", "--overwrite");
  EXPECT_FALSE(AbFolder(unfinished.path(), Start::overwrite).resumes());
}

TEST(AbFolder, ResumesARunThatIsDescribedAlike) {
  const Unfinished unfinished;
  const AbFolder ab(unfinished.path(), Start::resume);
  EXPECT_TRUE(ab.resumes());
  ab.require_same(kRun);
  EXPECT_FALSE(AbFolder(unfinished.folder / "new", Start::resume).resumes()) << "nothing to go on with";
}

TEST(AbFolder, ThePlanIsComparedWhereItIsKnown) {
  const test::TemporaryFolder folder;
  Json planned = kRun;
  planned["plan"] = {{"summary", {{"qpn8", 24}}}};
  {
    const AbFolder ab(folder.path(), Start::anew);
    ItemLog log(ab.items_file(), false);
    ab.begin(planned, log);
    log.append(ItemRecords{});
  }
  const AbFolder ab(folder.path(), Start::resume);
  ab.require_same(kRun);
  ab.require_same(planned);
  planned["plan"]["summary"]["qpn8"] = 23;
  expect_error(
      Error::bad_argument, [&] { ab.require_same(planned); },
      "--resume: the plan of arm b (projections by route) was {\"qpn8\":24} and is now {\"qpn8\":23}");
}

TEST(AbFolder, RefusesToResumeARunThatWasAnother) {
  const Unfinished unfinished;
  const AbFolder ab(unfinished.path(), Start::resume);
  Json other = kRun;
  other["a"]["qpn8"] = "auto";
  expect_error(
      Error::bad_argument, [&] { ab.require_same(other); }, "--resume: qpn8 of arm a was \"off\" and is now \"auto\"",
      "run.json");
  other = kRun;
  other["margin_points"] = 5;
  expect_error(
      Error::bad_argument, [&] { ab.require_same(other); }, "--resume: --margin was not set and is now 5 (");
  other = kRun;
  other["seeds"] = {1};
  expect_error(
      Error::bad_argument, [&] { ab.require_same(other); }, "--resume: --seeds was [1,2] and is now [1] (");
  other["seeds"] = std::vector<int>(100, 1);
  expect_error(
      Error::bad_argument, [&] { ab.require_same(other); }, "--resume: --seeds was [1,2] and is now another list (");
}

TEST(AbFolder, NamesARunFileThatCannotBeRead) {
  const Unfinished unfinished;
  const AbFolder ab(unfinished.path(), Start::resume);
  const auto file = unfinished.path() / "run.json";
  const auto expect_refusal = [&](const std::string& message) {
    expect_error(
        Error::bad_file, [&] { ab.require_same(kRun); }, message);
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

TEST(AbFolder, KeepsAFinishedRunUntilTheNextHasSomethingToShow) {
  const Unfinished finished;
  finished.finish();
  const std::string items = test::read_text(finished.path() / "items.jsonl");
  Json other = kRun;
  other["seeds"] = {3};
  for (const Start start : {Start::anew, Start::overwrite}) {
    const AbFolder ab(finished.path(), start);
    const ItemLog log(ab.items_file(), ab.resumes());
    EXPECT_EQ(test::read_text(finished.path() / "items.jsonl"), items);
    EXPECT_EQ(Json::parse(test::read_text(finished.path() / "run.json")), kRun);
    for (const char* name : Unfinished::kResults) EXPECT_EQ(test::read_text(finished.path() / name), "{}") << name;
  }
  const AbFolder ab(finished.path(), Start::anew);
  ItemLog log(ab.items_file(), ab.resumes());
  ab.begin(other, log);
  EXPECT_EQ(test::read_text(finished.path() / "items.jsonl"), "");
  EXPECT_EQ(Json::parse(test::read_text(finished.path() / "run.json")), other);
  for (const char* name : Unfinished::kResults) {
    EXPECT_FALSE(std::filesystem::exists(finished.path() / name)) << name << " would not belong to the items";
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
    const AbFolder ab(folder.path(), Start::resume);
    ab.require_same(kRun);
    ItemLog log(ab.items_file(), ab.resumes());
    int asked = 0;
    const AbEnd end = run_ab(run, a, b, log,
                             {.interrupted = [&] { return stops && asked++ >= stop_at; },
                              .first_item_done = [&] { ab.begin(kRun, log); },
                              .progress = nullptr});
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
