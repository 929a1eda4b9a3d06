#include "base/folder_lock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "qpn8/error.hpp"
#include "support/expect_error.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(FolderLock, IsHeldByOneAndFreeAfterwards) {
  const test::TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    test::expect_error(
        Error::bad_argument, [&] { const FolderLock second(folder.path()); },
        AllOf(StartsWith(folder.path().string()), HasSubstr("another run")));
  }
  const FolderLock again(folder.path());
}

TEST(FolderLock, VanishesWithAKilledProcess) {
  const test::TemporaryFolder folder;
  std::array<int, 2> ready{};
  ASSERT_EQ(pipe(ready.data()), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const FolderLock lock(folder.path());
    if (write(ready[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  test::expect_error(
      Error::bad_argument, [&] { const FolderLock second(folder.path()); }, HasSubstr("another run"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const FolderLock lock(folder.path());
  close(ready[0]);
  close(ready[1]);
}

TEST(FolderLock, LeavesNothingInTheFolder) {
  const test::TemporaryFolder folder;
  const FolderLock lock(folder.path());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "not even while it is held";
}

TEST(FolderLock, NamesWhatIsNoFolderToWriteInto) {
  const test::TemporaryFolder folder;
  test::write_text(folder / "file", "");
  for (const char* name : {"file", "nowhere"}) {
    test::expect_error(
        Error::bad_file, [&] { const FolderLock lock(folder / name); }, StartsWith((folder / name).string()));
  }
}

/// Ends the process: 0 if the folder is refused, with the reason on stderr, 1 if it was locked.
[[noreturn]] void lock_as_nobody(const std::filesystem::path& folder) {
  constexpr uid_t kNobody = 65534;
  if (geteuid() == 0 && setuid(kNobody) != 0) _exit(2);  // a read-only folder does not stop the superuser
  try {
    const FolderLock lock(folder);
    _exit(1);
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    _exit(0);
  }
}

TEST(FolderLock, RefusesAFolderThatCannotBeWrittenInto) {
  const test::TemporaryFolder folder;
  constexpr auto kReadable = static_cast<std::filesystem::perms>(0555);
  std::filesystem::permissions(folder.path(), kReadable);
  EXPECT_EXIT(lock_as_nobody(folder.path()), ::testing::ExitedWithCode(0), "cannot be written into");
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace qpn8
