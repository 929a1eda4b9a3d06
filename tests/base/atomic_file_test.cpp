#include "base/atomic_file.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(AtomicFile, AppearsUnderItsNameOnlyWhenItIsCommitted) {
  const test::TemporaryFolder folder;
  {
    AtomicFile file(folder / "a");
    file.write("one ");
    file.write("two");
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    file.commit();
    EXPECT_EQ(content(folder / "a"), "one two");
  }
  EXPECT_EQ(content(folder / "a"), "one two");
  EXPECT_FALSE(std::filesystem::exists(folder / "a.partial"));
}

TEST(AtomicFile, LeavesTheOldFileAndNoPartialOneWithoutACommit) {
  const test::TemporaryFolder folder;
  write_file(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("new");
  }
  EXPECT_EQ(content(folder / "a"), "old");
  EXPECT_FALSE(std::filesystem::exists(folder / "a.partial"));
}

TEST(AtomicFile, NamesTheFileThatCannotBeWritten) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(test::error_of([&] { write_file(folder / "none" / "a", "x"); }),
            (folder / "none" / "a.partial").string() + ": No such file or directory");
}

TEST(AtomicFile, RefusesAFifoUnderItsPartialName) {
  const test::TemporaryFolder folder;
  const std::filesystem::path fifo = folder.make_fifo("a.partial");
  EXPECT_EQ(test::error_of([&] { write_file(folder / "a", "x"); }), fifo.string() + ": is not a regular file");
  EXPECT_TRUE(std::filesystem::is_fifo(fifo)) << "it is somebody else's";
}

}  // namespace
}  // namespace qpn8
