#include "engine/engine_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::HasSubstr;

EngineOptions with(const std::string& json) {
  EngineOptions options;
  options.apply(Json::parse(json));
  return options;
}

TEST(EngineOptions, EveryArgumentReachesItsFieldAndIsReportedBack) {
  const std::string json =
      R"({"device":"cpu","threads":3,"tp":2,"pp":4,"qpn8":"require","contract":["a.json","b.json"],)"
      R"("kv_dtype":"float32","max_model_len":77,"max_num_seqs":5,"prefill_chunk":9,"cpu_isa":"avx2"})";
  const EngineOptions options = with(json);
  EXPECT_EQ(options.device, "cpu");
  EXPECT_EQ(options.threads, 3);
  EXPECT_EQ(options.tp, 2);
  EXPECT_EQ(options.pp, 4);
  EXPECT_EQ(options.qpn8, "require");
  EXPECT_EQ(options.contracts, (std::vector<std::string>{"a.json", "b.json"}));
  EXPECT_EQ(options.kv_dtype, DType::f32);
  EXPECT_EQ(options.max_model_len, 77);
  EXPECT_EQ(options.max_num_seqs, 5);
  EXPECT_EQ(options.prefill_chunk, 9);
  EXPECT_EQ(options.cpu_isa, "avx2");
  EXPECT_EQ(options.to_json().dump(), json);
}

TEST(EngineOptions, WhatIsReportedCanBeAppliedAgain) {
  EngineOptions options;
  options.apply(EngineOptions{}.to_json());
  EXPECT_EQ(options.to_json(), EngineOptions{}.to_json());
}

TEST(EngineOptions, EveryArgumentIsDocumentedAndReported) {
  const Json json = EngineOptions{}.to_json();
  EXPECT_EQ(engine_option_docs().size(), json.size());
  for (const EngineOptionDoc& doc : engine_option_docs()) EXPECT_TRUE(json.contains(doc.key)) << doc.key;
}

TEST(EngineOptions, OneContractNeedsNoListAndNoneMeansUnset) {
  EXPECT_EQ(with(R"({"contract": "a.json"})").contracts, std::vector<std::string>{"a.json"});
  EXPECT_EQ(with(R"({"qpn8": "off", "qpn8": null})").qpn8, std::nullopt);
}

TEST(EngineOptions, AnUnknownKeyListsTheKnownOnes) {
  test::expect_error(
      Error::bad_argument, [] { with(R"({"unknown_key": 1})"); },
      AllOf(HasSubstr("\"unknown_key\""), HasSubstr("device, threads, tp, pp, qpn8, contract")));
}

TEST(EngineOptions, AValueOfTheWrongTypeOrRangeSaysWhatItShouldBe) {
  struct Case {
    std::string json;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {R"({"device": "gpu"})", R"("gpu" is not "auto", "cpu" or "cuda")"},
      {R"({"device": 1})", R"(1 is not "auto", "cpu" or "cuda")"},
      {R"({"threads": "abc"})", R"("abc" is not an integer from 0 to 1024)"},
      {R"({"threads": 1.5})", "1.5 is not an integer"},
      {R"({"threads": -1})", "-1 is not an integer from 0"},
      {R"({"threads": true})", "true is not an integer"},
      {R"({"threads": 18446744073709551615})", "is not an integer from 0 to 1024"},
      {R"({"tp": 0})", "0 is not an integer from 1"},
      {R"({"pp": null})", "null is not an integer from 1"},
      {R"({"qpn8": "yes"})", R"("yes" is not "auto", "on", "off" or "require")"},
      {R"({"contract": ["a", 1]})", "an array is not a file, or a list of files"},
      {R"({"kv_dtype": "int8"})", R"("int8" is not "float16" or "float32")"},
      {R"({"max_model_len": -5})", "-5 is not an integer from 0"},
      {R"({"max_num_seqs": 0})", "0 is not an integer from 1 to 256"},
      {R"({"prefill_chunk": 0})", "0 is not an integer from 1"},
      {R"({"cpu_isa": "sse"})", R"("sse" is not "avx512", "avx2", "neon" or "portable")"},
  };
  for (const Case& c : cases) {
    test::expect_error(
        Error::bad_argument, [&] { with(c.json); }, HasSubstr(c.expected));
  }
}

TEST(EngineOptions, AFlagIsNamedAsTheCulprit) {
  EngineOptions options;
  test::expect_error(
      Error::bad_argument, [&] { options.set("threads", "x", "--threads"); }, testing::StartsWith("--threads: "));
}

}  // namespace
}  // namespace qpn8
