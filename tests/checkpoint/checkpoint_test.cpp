#include "checkpoint/checkpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "checkpoint/craft.hpp"
#include "checkpoint/safetensors_writer.hpp"
#include "qpn8/error.hpp"
#include "support/error_of.hpp"
#include "support/shared_data.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using test::bytes_of;
using test::error_of;
using test::TemporaryFolder;

constexpr const char* kIndex = "model.safetensors.index.json";

void write_shard(const TemporaryFolder& folder, const std::string& name, const std::vector<std::string>& tensors) {
  static const std::string two_bytes = "\x01\x02";
  std::vector<TensorToWrite> list;
  list.reserve(tensors.size());
  for (const std::string& tensor : tensors) list.push_back({tensor, DType::u8, {2}, bytes_of(two_bytes)});
  write_safetensors(folder / name, list);
}

std::string opening(const std::filesystem::path& path) {
  return error_of([&] { Checkpoint checkpoint(path); });
}

TEST(Checkpoint, OpensAFolderAndASingleFile) {
  const TemporaryFolder folder;
  write_shard(folder, "model.safetensors", {"b", "a"});
  for (const auto& path : {folder.path(), folder / "model.safetensors"}) {
    const Checkpoint checkpoint(path);
    ASSERT_EQ(checkpoint.tensors().size(), 2);
    EXPECT_EQ(checkpoint.tensors()[0].name, "a");
    EXPECT_TRUE(checkpoint.contains("b"));
    EXPECT_FALSE(checkpoint.contains("c"));
    EXPECT_THAT(checkpoint.files(), testing::ElementsAre(folder / "model.safetensors"));
    EXPECT_EQ(checkpoint.tensor("b").bytes[1], std::byte{2});
  }
}

TEST(Checkpoint, PutsShardsTogetherAndReadsAnUnlistedTensorAsHuggingFaceDoes) {
  const TemporaryFolder folder;
  write_shard(folder, "s1", {"a", "extra"});
  write_shard(folder, "s2", {"b"});
  folder.write(kIndex, R"({"metadata": {"total_size": 6}, "weight_map": {"a": "s1", "b": "s2"}})");
  const Checkpoint checkpoint(folder.path());
  ASSERT_EQ(checkpoint.tensors().size(), 3);
  EXPECT_EQ(checkpoint.files()[checkpoint.tensor("b").file], folder / "s2");
  EXPECT_TRUE(checkpoint.contains("extra"));
}

TEST(Checkpoint, PrefersTheSingleFileToTheIndex) {
  const TemporaryFolder folder;
  write_shard(folder, "model.safetensors", {"a"});
  folder.write(kIndex, "broken");
  EXPECT_EQ(opening(folder.path()), "(no error)");
}

TEST(Checkpoint, AFolderOrFileThatIsNotThereIsNamed) {
  const TemporaryFolder folder;
  EXPECT_EQ(opening(folder.path()),
            folder.path().string() + ": holds neither model.safetensors nor " + std::string(kIndex));
  EXPECT_EQ(opening(folder / "x"), (folder / "x").string() + ": No such file or directory");
}

TEST(Checkpoint, MissingShardsAreFoundBeforeAnyShardIsOpened) {
  const TemporaryFolder folder;
  folder.write("s1", "not even a header");
  folder.write(kIndex, R"({"weight_map": {"a": "s1", "b": "s2", "c": "s3", "d": "s3"}})");
  EXPECT_EQ(opening(folder.path()), (folder / kIndex).string() + ": names s2, which is missing (2 of 3 files are)");
  folder.write("s2", "");
  EXPECT_EQ(opening(folder.path()), (folder / kIndex).string() + ": names s3, which is missing (1 of 3 files is)");
}

TEST(Checkpoint, EachKindOfBadIndexIsRefused) {
  const TemporaryFolder folder;
  write_shard(folder, "s1", {"a"});
  write_shard(folder, "s2", {"a", "b"});
  const std::string no_map = ": expected an object \"weight_map\" of tensor names and the files that hold them";
  const auto not_plain = [](const std::string& name) {
    return ": tensor a: \"" + name + "\" is not a plain file name (a shard lies beside its index)";
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{", ":1:1: not valid JSON: unexpected end of input; expected string literal"},
      {"[]", no_map},
      {"{}", no_map},
      {R"({"weight_map": []})", no_map},
      {R"({"weight_map": {}})", no_map},
      {R"({"weight_map": {"a": 1}})", ": tensor a: 1, expected a file name"},
      {R"({"weight_map": {"a": "s1", "a": "s2"}})", ":1:30: key \"a\" stands twice in one object"},
      {R"({"weight_map": {"a": "../s1"}})", not_plain("../s1")},
      {R"({"weight_map": {"a": "/etc/passwd"}})", not_plain("/etc/passwd")},
      {R"({"weight_map": {"a": "sub/s1"}})", not_plain("sub/s1")},
      {R"({"weight_map": {"a": "sub\\s1"}})", not_plain(R"(sub\\s1)")},
      {R"({"weight_map": {"a": ".."}})", not_plain("..")},
      {R"({"weight_map": {"a": ""}})", not_plain("")},
      {R"({"weight_map": {"a": "s1\u0000x"}})", not_plain("s1\\x00x")},
      {R"({"weight_map": {"a": "s1", "b": "s1"}})", ": tensor b: is not in s1 (shards of another revision?)"},
  };
  for (const auto& [text, message] : cases) {
    folder.write(kIndex, text);
    EXPECT_EQ(opening(folder.path()), (folder / kIndex).string() + message) << text;
  }
  folder.write(kIndex, R"({"weight_map": {"a": "s1", "b": "s2"}})");
  EXPECT_EQ(opening(folder.path()),
            (folder / "s2").string() + ": tensor a: is in " + (folder / "s1").string() + " too, expected one of them");
}

TEST(Checkpoint, ATensorInAnotherShardThanTheIndexSaysIsAnError) {
  const TemporaryFolder folder;
  write_shard(folder, "s1", {"a", "b"});
  write_shard(folder, "s2", {"c"});
  folder.write(kIndex, R"({"weight_map": {"a": "s1", "b": "s2", "c": "s2"}})");
  EXPECT_EQ(opening(folder.path()),
            (folder / kIndex).string() + ": tensor b: is not in s2 (shards of another revision?)");
}

TEST(Checkpoint, ABadShardIsNamed) {
  const TemporaryFolder folder;
  write_shard(folder, "s1", {"a"});
  std::filesystem::resize_file(folder / "s1", std::filesystem::file_size(folder / "s1") - 1);
  folder.write(kIndex, R"({"weight_map": {"a": "s1"}})");
  EXPECT_THAT(opening(folder.path()), testing::StartsWith((folder / "s1").string() + ": tensor a: ends at byte "));
  std::filesystem::remove(folder / "s1");
  std::filesystem::create_directory(folder / "s1");
  EXPECT_EQ(opening(folder.path()), (folder / "s1").string() + ": is not a regular file");
}

TEST(Checkpoint, AMissingTensorAndAShapeUnlikeTheConfigAreNamed) {
  const TemporaryFolder folder;
  write_shard(folder, "model.safetensors", {"a"});
  const Checkpoint checkpoint(folder.path());
  EXPECT_EQ(error_of([&] { checkpoint.tensor("b"); }), folder.path().string() + ": tensor b: is missing");
  const std::vector<std::int64_t> shape = {2};
  EXPECT_EQ(&checkpoint.tensor("a", shape), &checkpoint.tensor("a"));
  const std::vector<std::int64_t> other = {2, 1};
  EXPECT_EQ(error_of([&] { checkpoint.tensor("a", other); }),
            (folder / "model.safetensors").string() + ": tensor a: shape [2], the config demands [2, 1]");
  EXPECT_EQ(error_of([&] { checkpoint.tensor("a").rows(); }), "tensor a: shape [2], expected at least two dimensions");
}

class CheckpointFloats : public testing::Test {
 protected:
  /// The values of a tensor with these stored elements.
  template <class Stored>
  std::vector<float> floats(DType dtype, const std::vector<Stored>& stored) {
    const TensorToWrite tensor = {
        "x", dtype, {static_cast<std::int64_t>(stored.size())}, std::as_bytes(std::span(stored))};
    write_safetensors(folder_ / "model.safetensors", std::span(&tensor, 1));
    const Checkpoint checkpoint(folder_.path());
    return checkpoint.floats(checkpoint.tensor("x"));
  }

  TemporaryFolder folder_;
};

TEST_F(CheckpointFloats, EveryFloatTypeHasItsValues) {
  using testing::ElementsAre;
  EXPECT_THAT(floats<float>(DType::f32, {1.5F, -0.1F}), ElementsAre(1.5F, -0.1F));
  EXPECT_THAT(floats<std::uint16_t>(DType::f16, {0x3c00, 0x0001, 0xfbff}), ElementsAre(1.0F, 0x1p-24F, -65504.0F));
  EXPECT_THAT(floats<std::uint16_t>(DType::bf16, {0x3f80, 0xc040}), ElementsAre(1.0F, -3.0F));
  EXPECT_THAT(floats<std::uint8_t>(DType::f8_e4m3, {0x38, 0x01, 0xfe}), ElementsAre(1.0F, 0x1p-9F, -448.0F));
  EXPECT_THAT(floats<std::uint8_t>(DType::f8_e8m0, {127, 0, 254}), ElementsAre(1.0F, 0x1p-127F, 0x1p127F));
  EXPECT_TRUE(std::isnan(floats<std::uint8_t>(DType::f8_e4m3, {0x7f}).at(0)));
  EXPECT_TRUE(floats<float>(DType::f32, {}).empty());
}

TEST_F(CheckpointFloats, IntegersAreNotFloats) {
  EXPECT_EQ(error_of([&] { floats<std::int64_t>(DType::i64, {1}); }),
            (folder_ / "model.safetensors").string() + ": tensor x: dtype I64, expected a floating-point type");
}

TEST(Checkpoint, ReleasedBytesReadTheSameAgain) {
  const TemporaryFolder folder;
  std::vector<std::uint8_t> values(1 << 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(i * 7);
  const TensorToWrite tensor = {"x", DType::u8, {1 << 8, 1 << 8}, std::as_bytes(std::span(values))};
  write_safetensors(folder / "model.safetensors", std::span(&tensor, 1));
  const Checkpoint checkpoint(folder.path());
  const CheckpointTensor& x = checkpoint.tensor("x");
  checkpoint.release(x, x.bytes);
  checkpoint.release(x, x.bytes.subspan(100, 10'000));
  EXPECT_EQ(std::memcmp(x.bytes.data(), values.data(), values.size()), 0);
}

TEST(Checkpoint, EveryFixtureOpens) {
  for (const char* name : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-qwen3-moe"}) {
    const Checkpoint weights(test::data() / name);
    const CheckpointTensor& embedding = weights.tensor("model.embed_tokens.weight");
    EXPECT_EQ(embedding.elements(), embedding.rows() * embedding.cols()) << name;
    for (const float value : weights.floats(embedding)) ASSERT_TRUE(std::isfinite(value)) << name;
    const Checkpoint golden(test::data() / name / "golden.safetensors");
    EXPECT_EQ(golden.tensor("greedy_0").shape, std::vector<std::int64_t>{24}) << name;
    EXPECT_EQ(golden.tensor("logits_0").dtype, DType::f32) << name;
  }
}

TEST(Checkpoint, TiedAndUntiedHeadsBothLoad) {
  EXPECT_FALSE(Checkpoint(test::data() / "tiny-qwen3").contains("lm_head.weight"));
  EXPECT_TRUE(Checkpoint(test::data() / "tiny-llama").contains("lm_head.weight"));
}

TEST(Checkpoint, TheOtherSharedFixturesAndModelsOpen) {
  for (const char* name : {"fixtures/tiny-deepseek-v4", "fixtures/tiny-qwen4-exp", "models/wordmath-11m"}) {
    const auto folder = test::shared_data(name);
    if (!folder) GTEST_SKIP() << "needs ../shared/" << name << ", which is not here";
    EXPECT_FALSE(Checkpoint(*folder).tensors().empty()) << name;
  }
}

}  // namespace
}  // namespace qpn8
