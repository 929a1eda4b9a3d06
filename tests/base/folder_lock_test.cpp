#include "base/folder_lock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

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

TEST(FolderLock, NamesAFileThatCannotBeLocked) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "lock");
  test::expect_error(
      Error::bad_file, [&] { const FolderLock lock(folder.path()); }, StartsWith((folder / "lock").string()));
  std::filesystem::remove(folder / "lock");
  ASSERT_EQ(mkfifo((folder / "lock").c_str(), 0600), 0);
  test::expect_error(
      Error::bad_file, [&] { const FolderLock lock(folder.path()); }, StartsWith((folder / "lock").string()));
}

}  // namespace
}  // namespace qpn8
