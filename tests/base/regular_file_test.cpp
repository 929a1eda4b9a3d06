#include "base/regular_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "base/json_file.hpp"
#include "base/mapped_file.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using test::error_of;

TEST(RegularFile, FoldersFifosAndDevicesAreNamedAndNeverWaitedFor) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "folder");
  const std::filesystem::path fifo = folder.make_fifo("fifo");
  for (const std::filesystem::path& path : {folder / "folder", fifo, std::filesystem::path("/dev/null")}) {
    const std::string expected = path.string() + ": is not a regular file";
    EXPECT_EQ(error_of([&] { read_file(path); }), expected);
    EXPECT_EQ(error_of([&] { MappedFile{path}; }), expected);
    EXPECT_EQ(error_of([&] { read_json_file(path); }), expected);
    EXPECT_EQ(error_of([&] { open_regular_file(path, O_WRONLY); }), expected);
  }
}

TEST(RegularFile, AFifoThatSomebodyReadsIsNotWrittenTo) {
  const test::TemporaryFolder folder;
  const std::filesystem::path fifo = folder.make_fifo("fifo");
  const FileDescriptor reader(open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(reader.is_open());
  EXPECT_EQ(error_of([&] { open_regular_file(fifo, O_WRONLY); }), fifo.string() + ": is not a regular file");
}

TEST(RegularFile, ReadsAllBytesAndNamesTheMissing) {
  const test::TemporaryFolder folder;
  const std::string bytes("a\0b\n", 4);
  EXPECT_EQ(read_file(folder.write("a", bytes)), bytes);
  EXPECT_EQ(read_file(folder.write("empty", "")), "");
  EXPECT_EQ(error_of([&] { read_file(folder / "none"); }), (folder / "none").string() + ": No such file or directory");
}

}  // namespace
}  // namespace qpn8
