#include "checkpoint/synthetic.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/presets.hpp"
#include "checkpoint/synthetic_values.hpp"
#include "checkpoint/tensor_list.hpp"
#include "qpn8/error.hpp"
#include "qpn8/half.hpp"
#include "support/error_of.hpp"
#include "support/shared_data.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

using test::error_of;
using test::TemporaryFolder;

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename().string()] = content(entry.path());
  }
  return files;
}

ModelConfig fixture(const char* name) { return load_model_config(test::data() / name); }

void write_with_threads(const ModelConfig& config, const std::filesystem::path& folder,
                        const SyntheticOptions& options = {}, int threads = 1) {
  ThreadTeam team(threads);
  write_synthetic_checkpoint(config, folder, options, team);
}

std::int64_t parameters(const ModelConfig& config) {
  std::int64_t sum = 0;
  for (const ListedTensor& tensor : list_tensors(config)) {
    std::int64_t product = 1;
    for (const std::int64_t size : tensor.shape) product *= size;
    sum += product;
  }
  return sum;
}

TEST(Presets, HaveThePublishedNumbersOfParameters) {
  EXPECT_EQ(parameters(preset_config("qwen3-0.6b")), 596'049'920);
  EXPECT_EQ(parameters(preset_config("qwen3-1.7b")), 1'720'574'976);
  EXPECT_EQ(parameters(preset_config("qwen3-8b")), 8'190'735'360);
  EXPECT_EQ(parameters(preset_config("qwen3-30b-a3b")), 30'532'122'624);
  EXPECT_EQ(parameters(preset_config("llama3-8b")), 8'030'261'248);
}

TEST(Presets, EveryNameOfTheListHasAConfigAndAnUnknownNameListsThem) {
  const std::vector<std::string> names = preset_names();
  EXPECT_THAT(names, testing::Contains("qwen3-0.6b"));
  for (const std::string& name : names) EXPECT_GT(preset_config(name).layers, 0) << name;
  EXPECT_EQ(error_of([] { preset_config("gpt-5"); }),
            "--like gpt-5: is not a known model, expected one of deepseek-v4-flash, llama3-8b, qwen3-0.6b, qwen3-1.7b, "
            "qwen3-30b-a3b, qwen3-8b, qwen3.8-flash-next");
}

TEST(TensorList, IsExactlyWhatRealCheckpointsHold) {
  for (const char* name : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-qwen3-moe"}) {
    const Checkpoint checkpoint(test::data() / name);
    std::set<std::string> listed;
    for (const ListedTensor& tensor : list_tensors(fixture(name))) {
      EXPECT_EQ(error_of([&] { checkpoint.tensor(tensor.name, tensor.shape); }), "(no error)") << name;
      EXPECT_TRUE(listed.insert(tensor.name).second) << name << ": " << tensor.name;
    }
    EXPECT_EQ(listed.size(), checkpoint.tensors().size()) << name;
  }
}

TEST(TensorList, BiasesFollowTheConfig) {
  const auto biases = [](const ModelConfig& config) {
    std::set<std::string> names;
    for (const ListedTensor& tensor : list_tensors(config)) {
      if (tensor.role == TensorRole::bias && tensor.name.starts_with("model.layers.0.")) {
        names.insert(tensor.name.substr(15));
      }
    }
    return names;
  };
  ModelConfig config = fixture("tiny-llama");
  EXPECT_TRUE(biases(config).empty());
  config.json["attention_bias"] = true;
  config.json["mlp_bias"] = true;
  EXPECT_THAT(biases(config),
              testing::UnorderedElementsAre("self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias",
                                            "self_attn.o_proj.bias", "mlp.gate_proj.bias", "mlp.up_proj.bias",
                                            "mlp.down_proj.bias"));
}

TEST(TensorList, AnUnknownModelTypeIsNamed) {
  ModelConfig config = fixture("tiny-llama");
  config.model_type = "mamba";
  EXPECT_EQ(error_of([&] { list_tensors(config); }),
            config.file.string() + ": model_type mamba has no list of tensors");
}

TEST(SyntheticValues, AnElementDependsOnItsIndexAlone) {
  const SyntheticValues values(7, "x", DType::f16, 0.0, 1.0);
  std::vector<std::byte> whole(2 * 1000);
  values.fill(0, whole);
  std::vector<std::byte> part(2 * 13);
  values.fill(500, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 2 * 500));
}

TEST(SyntheticValues, HaveTheMeanAndTheDeviationAndDifferByNameAndSeed) {
  constexpr std::size_t kCount = 100'000;
  const auto values_of = [](std::uint64_t seed, const char* name) {
    std::vector<Half> stored(kCount);
    SyntheticValues(seed, name, DType::f16, 3.0, 0.25).fill(0, std::as_writable_bytes(std::span(stored)));
    std::vector<double> values;
    for (const Half value : stored) values.push_back(to_float(value));
    return values;
  };
  const std::vector<double> base = values_of(1, "a");
  double sum = 0;
  double squares = 0;
  for (const double value : base) {
    sum += value;
    squares += (value - 3.0) * (value - 3.0);
    ASSERT_LT(std::abs(value - 3.0), 0.25 * 3.47);
  }
  // Five standard errors of the estimates.
  EXPECT_NEAR(sum / kCount, 3.0, 5 * 0.25 / std::sqrt(kCount));
  EXPECT_NEAR(std::sqrt(squares / kCount), 0.25, 5 * 0.25 / std::sqrt(2.0 * kCount));
  EXPECT_NE(base, values_of(1, "b"));
  EXPECT_NE(base, values_of(2, "a"));
}

TEST(SyntheticCheckpoint, OpensWithTheTensorsOfItsConfig) {
  for (const char* name : {"tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-qwen3-moe"}) {
    const TemporaryFolder folder;
    write_with_threads(fixture(name), folder / "out");
    const ModelConfig config = load_model_config(folder / "out");
    const Checkpoint checkpoint(folder / "out");
    for (const ListedTensor& tensor : list_tensors(config)) {
      EXPECT_EQ(checkpoint.tensor(tensor.name, tensor.shape).dtype, DType::bf16);
    }
    EXPECT_EQ(config.json.at("torch_dtype"), "bfloat16");
    EXPECT_FALSE(load_generation_config(folder / "out").eos_tokens.empty());
  }
}

TEST(SyntheticCheckpoint, HasTheSameBytesWhateverTheNumberOfThreads) {
  const TemporaryFolder folder;
  const ModelConfig config = fixture("tiny-qwen2");
  write_with_threads(config, folder / "1", {.seed = 5}, 1);
  const auto one = contents(folder / "1");
  EXPECT_THAT(one, testing::Contains(testing::Key("model.safetensors")));
  for (const int threads : {2, 3}) {
    const std::string name = std::to_string(threads);
    write_with_threads(config, folder / name, {.seed = 5}, threads);
    EXPECT_EQ(contents(folder / name), one) << threads;
  }
  write_with_threads(config, folder / "other", {.seed = 6});
  EXPECT_NE(contents(folder / "other"), one);
}

TEST(SyntheticCheckpoint, ShardsHoldTheSameTensorsAndKeepToTheirSize) {
  const TemporaryFolder folder;
  const ModelConfig config = fixture("tiny-qwen3");
  constexpr std::size_t kShard = 1'000'000;
  write_with_threads(config, folder / "one", {.dtype = DType::f16});
  write_with_threads(config, folder / "many", {.dtype = DType::f16, .shard_bytes = kShard});
  const Checkpoint one(folder / "one");
  const Checkpoint many(folder / "many");
  EXPECT_GT(many.files().size(), 3);
  ASSERT_EQ(many.tensors().size(), one.tensors().size());
  std::vector<std::size_t> sizes(many.files().size());
  for (const CheckpointTensor& tensor : many.tensors()) {
    sizes[tensor.file] += tensor.bytes.size();
    EXPECT_EQ(one.floats(one.tensor(tensor.name, tensor.shape)), many.floats(tensor)) << tensor.name;
  }
  for (const std::size_t size : sizes) EXPECT_LE(size, kShard);
  EXPECT_EQ(many.files().front().filename(),
            "model-00001-of-0000" + std::to_string(many.files().size()) + ".safetensors");
}

TEST(SyntheticCheckpoint, ATensorLargerThanTheBufferHasTheSameValuesInOnePieceAndInMany) {
  const TemporaryFolder folder;
  ModelConfig config = reduced_config(fixture("tiny-qwen2"), {.layers = 1});
  config.vocab_size = 40'000;  // x 128 x 2 bytes: more than the 8 MiB of the buffer
  write_with_threads(config, folder / "out", {.seed = 3});
  const Checkpoint checkpoint(folder / "out");
  const CheckpointTensor& embedding = checkpoint.tensor("model.embed_tokens.weight");
  std::vector<std::byte> expected(embedding.bytes.size());
  SyntheticValues(3, embedding.name, DType::bf16, 0.0, 1.0 / std::sqrt(128.0)).fill(0, expected);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), embedding.bytes.begin()));
}

TEST(SyntheticCheckpoint, ReportsItsProgressToTheEnd) {
  const TemporaryFolder folder;
  std::int64_t last = 0;
  std::int64_t of = 0;
  SyntheticOptions options;
  options.progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_GT(done, last);
    last = done;
    of = total;
  };
  write_with_threads(fixture("tiny-qwen2"), folder / "out", options);
  EXPECT_EQ(last, of);
  EXPECT_EQ(of, 2 * parameters(fixture("tiny-qwen2")));
}

TEST(SyntheticCheckpoint, RefusesAFolderThatIsNotEmptyAndAFile) {
  const TemporaryFolder folder;
  folder.write("kept", "x");
  EXPECT_EQ(error_of([&] { write_with_threads(fixture("tiny-qwen2"), folder.path()); }),
            folder.path().string() + ": is not empty, expected a new or an empty folder");
  EXPECT_EQ(contents(folder.path()).size(), 1);
  EXPECT_EQ(error_of([&] { write_with_threads(fixture("tiny-qwen2"), folder / "kept"); }),
            (folder / "kept").string() + ": cannot be created, expected a new or an empty folder");
}

TEST(SyntheticCheckpoint, TheTokenizerHasEveryIdOnceAndEveryByte) {
  const TemporaryFolder folder;
  const ModelConfig config = fixture("tiny-qwen3");
  write_with_threads(config, folder / "out");
  const auto tokenizer = nlohmann::json::parse(content(folder / "out" / "tokenizer.json"));
  std::set<std::int64_t> ids;
  std::size_t single = 0;
  for (const auto& [token, id] : tokenizer.at("model").at("vocab").items()) {
    ids.insert(id.get<std::int64_t>());
    single += token.size() == 1 || (token.size() == 2 && (token[0] & 0x80) != 0) ? 1 : 0;
  }
  EXPECT_EQ(static_cast<std::int64_t>(ids.size()), config.vocab_size);
  EXPECT_EQ(*ids.rbegin(), config.vocab_size - 1);
  EXPECT_EQ(single, 256);
  std::map<std::string, std::int64_t> special;
  for (const auto& token : tokenizer.at("added_tokens")) special[token.at("content")] = token.at("id");
  EXPECT_EQ(special,
            (std::map<std::string, std::int64_t>{{"<|endoftext|>", 1}, {"<|im_end|>", 2}, {"<|im_start|>", 3}}));
}

TEST(SyntheticCheckpoint, AVocabularyTooSmallForTheTokenizerIsRefused) {
  const TemporaryFolder folder;
  ModelConfig config = fixture("tiny-qwen2");
  config.vocab_size = 258;
  EXPECT_THAT(error_of([&] { write_with_threads(config, folder / "out"); }),
              testing::HasSubstr("vocab_size is 258, a synthetic tokenizer needs 259 ids"));
}

TEST(ReducedConfig, CutsLayersAndExperts) {
  const ModelConfig qwen3 = reduced_config(fixture("tiny-qwen3"), {.layers = 2});
  EXPECT_EQ(qwen3.layers, 2);
  EXPECT_EQ(qwen3.json.at("layer_types").size(), 2);
  const ModelConfig moe = reduced_config(preset_config("qwen3-30b-a3b"), {.layers = 1, .experts = 16});
  EXPECT_EQ(moe.integer("num_experts", 1), 16);
  EXPECT_EQ(list_tensors(moe).size(), 3 + 2 + 6 + 1 + 3 * 16);
}

TEST(ReducedConfig, NamesTheLegalValues) {
  const ModelConfig qwen3 = preset_config("qwen3-0.6b");
  const ModelConfig moe = preset_config("qwen3-30b-a3b");
  EXPECT_EQ(error_of([&] { reduced_config(qwen3, {.layers = 29}); }), "--layers 29: expected 1 to 28");
  EXPECT_EQ(error_of([&] { reduced_config(qwen3, {.layers = 0}); }), "--layers 0: expected 1 to 28");
  EXPECT_EQ(error_of([&] { reduced_config(qwen3, {.experts = 4}); }), "--experts 4: model_type qwen3 has none");
  EXPECT_EQ(error_of([&] { reduced_config(moe, {.experts = 7}); }), "--experts 7: expected 8 to 128");
}

TEST(ReducedConfig, CutsNgramTablesWhereTheModelHasThem) {
  const ModelConfig next = preset_config("qwen3.8-flash-next");
  EXPECT_EQ(reduced_config(next, {.ngram_rows = 100}).integer("ngram_vocab_size_base", 1), 100);
  EXPECT_EQ(error_of([&] { reduced_config(next, {.ngram_rows = 1}); }), "--ngram-rows 1: expected 2 to 20000000");
  EXPECT_EQ(error_of([&] { reduced_config(preset_config("qwen3-8b"), {.ngram_rows = 100}); }),
            "--ngram-rows 100: model_type qwen3 has no n-gram tables");
}

}  // namespace
}  // namespace qpn8
