#include "model/rope.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "qpn8/error.hpp"
#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

ModelConfig config_with(std::int64_t head_dim, double theta, const std::string& type, nlohmann::json parameters) {
  ModelConfig config;
  config.file = "config.json";
  config.head_dim = head_dim;
  config.max_positions = 65536;
  config.rope.type = type;
  config.rope.theta = theta;
  config.rope.parameters = std::move(parameters);
  return config;
}

void expect_close(float value, double expected) { EXPECT_NEAR(value / expected, 1.0, 1e-6) << expected; }

TEST(Rope, DefaultFrequenciesFallGeometrically) {
  const RopeFrequencies rope = rope_frequencies(config_with(8, 10000.0, "default", nlohmann::json::object()));
  ASSERT_EQ(rope.frequencies.size(), 4U);
  expect_close(rope.frequencies[0], 1.0);
  expect_close(rope.frequencies[1], 0.1);
  expect_close(rope.frequencies[2], 0.01);
  expect_close(rope.frequencies[3], 0.001);
  EXPECT_EQ(rope.scale, 1.0F);
}

TEST(Rope, LinearDividesEveryFrequency) {
  const RopeFrequencies rope = rope_frequencies(config_with(4, 10000.0, "linear", {{"factor", 4.0}}));
  expect_close(rope.frequencies[0], 0.25);
  expect_close(rope.frequencies[1], 0.0025);
}

// Expected values: the published three-branch form (kept, divided, smoothed), computed in double by a script.
TEST(Rope, Llama3KeepsShortWavelengthsAndDividesLongOnes) {
  const RopeFrequencies rope = rope_frequencies(config_with(32, 500000.0, "llama3",
                                                            {{"factor", 8.0},
                                                             {"low_freq_factor", 1.0},
                                                             {"high_freq_factor", 4.0},
                                                             {"original_max_position_embeddings", 64}}));
  ASSERT_EQ(rope.frequencies.size(), 16U);
  expect_close(rope.frequencies[0], 1.0);
  expect_close(rope.frequencies[1], 0.440366603);
  expect_close(rope.frequencies[2], 0.0794030092);
  expect_close(rope.frequencies[3], 0.0106746375);
  expect_close(rope.frequencies[15], 5.6770881e-07);
}

// Expected values: the published table of a model with 64 rotary dimensions, factor 16 over 65,536 positions.
TEST(Rope, YarnBlendsBetweenTheFastAndTheSlowDimension) {
  const RopeFrequencies rope = rope_frequencies(
      config_with(64, 160000.0, "yarn",
                  {{"factor", 16.0}, {"original_max_position_embeddings", 65536}, {"attention_factor", 1.0}}));
  expect_close(rope.frequencies[15], 0.00363553858);
  expect_close(rope.frequencies[16], 0.002265625);
  expect_close(rope.frequencies[20], 2.9697778e-4);
  expect_close(rope.frequencies[24], 1.953125e-5);
  expect_close(rope.frequencies[25], 5.3723127e-6);
  expect_close(rope.frequencies[31], 5.680529e-7);
  EXPECT_EQ(rope.scale, 1.0F);
}

TEST(Rope, YarnScalesByTheLogarithmOfTheFactor) {
  const nlohmann::json plain = {{"factor", 4.0}, {"original_max_position_embeddings", 32}};
  expect_close(rope_frequencies(config_with(16, 1e6, "yarn", plain)).scale, 1.1386294361);
  nlohmann::json both = plain;
  both["mscale"] = 1.0;
  both["mscale_all_dim"] = 1.0;
  expect_close(rope_frequencies(config_with(16, 1e6, "yarn", both)).scale, 1.0);
}

TEST(Rope, PartialRotationHasFewerFrequencies) {
  ModelConfig config = config_with(256, 1e7, "default", nlohmann::json::object());
  config.rope.partial_rotary_factor = 0.25;
  EXPECT_EQ(rope_frequencies(config).frequencies.size(), 32U);
}

struct Fault {
  const char* type;
  nlohmann::json parameters;
  const char* message;
};

TEST(Rope, WhatIsWrongIsNamed) {
  const Fault faults[] = {
      {"longrope", nlohmann::json::object(), "rope_type \"longrope\" is not supported"},
      {"linear", nlohmann::json::object(), "rope_parameters.factor is missing"},
      {"linear", {{"factor", 0}}, "rope_parameters.factor is 0, expected a positive number"},
      {"llama3",
       {{"factor", 8}, {"low_freq_factor", 4}, {"high_freq_factor", 4}, {"original_max_position_embeddings", 64}},
       "high_freq_factor is not above low_freq_factor"},
      {"linear", {{"factor", 0.5}}, "rope_parameters.factor is 0.5, expected at least 1"},
      {"yarn", {{"factor", 0.5}}, "rope_parameters.factor is 0.5, expected at least 1"},
      {"yarn",
       {{"factor", 4}, {"original_max_position_embeddings", 1e-300}},
       "rope_parameters.original_max_position_embeddings is 1e-300, expected at least 1"},
      {"yarn", {{"factor", "x"}}, "rope_parameters.factor is \"x\", expected a positive number"},
  };
  for (const Fault& fault : faults) {
    try {
      rope_frequencies(config_with(32, 10000.0, fault.type, fault.parameters));
      ADD_FAILURE() << "accepted: " << fault.message;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(fault.message));
      EXPECT_THAT(error.what(), testing::HasSubstr("config.json"));
    }
  }
}

TEST(Rope, ARotationThatIsNotFiniteIsRefused) {
  const auto refused = [](double theta, const char* type, nlohmann::json parameters) {
    test::expect_error(
        Error::bad_file, [&] { rope_frequencies(config_with(32, theta, type, parameters)); },
        testing::AllOf(testing::StartsWith("config.json: rope_theta "), testing::HasSubstr(type),
                       testing::HasSubstr("finite frequencies")));
  };
  const nlohmann::json none = nlohmann::json::object();
  refused(1e-300, "default", none);
  refused(1e-40, "default", none);  // FP32 holds the frequencies, but not 65,536 times them
  refused(1e-300, "linear", {{"factor", 2}});
  refused(1e-300, "llama3",
          {{"factor", 2}, {"low_freq_factor", 1}, {"high_freq_factor", 4}, {"original_max_position_embeddings", 64}});
  refused(1e4, "yarn", {{"factor", 4}, {"attention_factor", 1e39}});
  EXPECT_NO_THROW(rope_frequencies(config_with(32, 0.5, "default", none)));
  EXPECT_NO_THROW(rope_frequencies(config_with(32, 1e15, "linear", {{"factor", 1e300}}))) << "no rotation is one";
}

TEST(Rope, YarnNeedsFrequenciesThatFall) {
  for (const double theta : {1.0, 0.5}) {
    test::expect_error(
        Error::bad_file,
        [&] {
          rope_frequencies(config_with(32, theta, "yarn", {{"factor", 4}}));
        },
        testing::HasSubstr("expected a number above 1"));
  }
}

}  // namespace
}  // namespace qpn8
