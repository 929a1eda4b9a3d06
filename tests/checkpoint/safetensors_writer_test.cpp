#include "checkpoint/safetensors_writer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/craft.hpp"
#include "qpn8/error.hpp"
#include "support/error_of.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

TEST(SafetensorsWriter, WhatIsWrittenIsReadBackAndAligned) {
  const test::TemporaryFolder folder;
  const std::string data = "0123456789abcdef";
  const std::vector<TensorToWrite> tensors = {
      {"codes", DType::u8, {3, 1}, test::bytes_of(data).subspan(0, 3)},
      {"empty", DType::f32, {0, 4}, {}},
      {"halves", DType::f16, {2, 2}, test::bytes_of(data).subspan(3, 8)},
      {"scalar", DType::i64, {}, test::bytes_of(data).subspan(1, 8)},
      {"name \" with\nall", DType::bf16, {1}, test::bytes_of(data).subspan(14)},
  };
  write_safetensors(folder / "x.safetensors", tensors);
  const Checkpoint checkpoint(folder / "x.safetensors");
  ASSERT_EQ(checkpoint.tensors().size(), tensors.size());
  for (const TensorToWrite& written : tensors) {
    const CheckpointTensor& read = checkpoint.tensor(written.name, written.shape);
    EXPECT_EQ(read.dtype, written.dtype) << written.name;
    EXPECT_TRUE(std::equal(read.bytes.begin(), read.bytes.end(), written.bytes.begin(), written.bytes.end()));
  }
}

TEST(SafetensorsWriter, AnUnfinishedStreamLeavesNoFile) {
  const test::TemporaryFolder folder;
  {
    SafetensorsStream stream(folder / "x.safetensors", {{"a", DType::u8, {4}}});
    stream.append(test::bytes_of("ab"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SafetensorsWriter, NamesTheFileThatCannotBeWritten) {
  const test::TemporaryFolder folder;
  const std::string path = (folder / "none" / "x").string();
  EXPECT_EQ(test::error_of([&] { write_safetensors(path, {}); }), path + ".partial: No such file or directory");
}

}  // namespace
}  // namespace qpn8
