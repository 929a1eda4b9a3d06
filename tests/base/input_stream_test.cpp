#include "base/input_stream.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "support/expect_error.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(InputStream, ReadsAFileByLinesAndToItsEnd) {
  const test::TemporaryFolder folder;
  const std::string text = "one\ntwo\n" + std::string(200'000, 'x');
  InputStream stream(folder.write("file", text));
  std::string line;
  EXPECT_TRUE(std::getline(stream, line));
  EXPECT_EQ(line, "one");
  EXPECT_EQ(stream.read_to_end(1 << 20), text.substr(4));
  EXPECT_EQ(InputStream(folder.write("empty", "")).read_to_end(0), "");
}

TEST(InputStream, ReadsAPipe) {
  const test::TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { test::write_text(pipe, "through"); });
  EXPECT_EQ(InputStream(pipe).read_to_end(100), "through");
  writer.join();
}

TEST(InputStream, AReadErrorIsNotTheEnd) {
  const test::TemporaryFolder folder;
  const int descriptor = open(folder.path().c_str(), O_RDONLY);
  InputStream stream(descriptor, "stdin");
  std::string line;
  test::expect_error(
      Error::bad_file, [&] { std::getline(stream, line); }, StartsWith("stdin: Is a directory"));
  test::expect_error(
      Error::bad_file, [&] { InputStream(folder.path()).read_to_end(10); },
      AllOf(StartsWith(folder.path().string()), HasSubstr("Is a directory")));
  close(descriptor);
}

TEST(InputStream, NamesAFileThatIsNotThereAndAnInputWithoutEnd) {
  test::expect_error(
      Error::bad_file, [] { InputStream stream("/nowhere/file"); }, StartsWith("/nowhere/file: No such file"));
  test::expect_error(
      Error::bad_file, [] { InputStream("/dev/zero").read_to_end(std::size_t{2} << 20); },
      StartsWith("/dev/zero: is longer than 2 MiB"));
}

}  // namespace
}  // namespace qpn8
