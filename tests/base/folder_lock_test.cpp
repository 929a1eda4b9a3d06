#include "base/folder_lock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>

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
  if (geteuid() == 0) GTEST_SKIP() << "a read-only folder does not stop the superuser";
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  test::expect_error(
      Error::bad_file, [&] { const FolderLock lock(folder.path()); }, HasSubstr("cannot be written into"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms::owner_all);
}

}  // namespace
}  // namespace qpn8
