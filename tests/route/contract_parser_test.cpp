#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/mapped_file.hpp"
#include "route/contract_samples.hpp"
#include "support/error_of.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

// Every key of the format on a line of its own.
const char* const kText = R"({
  "name": "my-box",
  "hardware": ["cpu-avx2", "sm80+"],
  "topology": {
    "tp": 4,
    "pp": "any",
    "max_sequences": 2,
    "speculation": false
  },
  "weights": {
    "types": ["f16", "f8_e4m3"],
    "scales": ["channel", "block-128x128"]
  },
  "workspace_bytes": 33554432,
  "default": "off",
  "rows": [
    {
      "role": "self_attn.qkv_proj",
      "layer_tp": 4,
      "k": 320,
      "n": 336,
      "padded_n": 384,
      "groups": 2,
      "activation": "none",
      "schedule": {
        "split_k": 4,
        "accumulator_chains": 2,
        "prefetch": true
      }
    },
    {
      "role": "mlp.*",
      "layer_tp": "any",
      "k": "any",
      "n": "any",
      "schedule": {"split_k": 2, "accumulator_chains": 1, "prefetch": false}
    }
  ],
  "excluded": [
    {
      "role": "mlp.router",
      "reason": "small"
    },
    {
      "role": "mlp.gate_up_proj",
      "activation": "silu",
      "reason": "differs"
    }
  ],
  "evidence": {
    "file": "evidence/my-box",
    "note": "made up"
  }
}
)";

std::string replaced(const std::string& old_text, const std::string& new_text) {
  std::string text = kText;
  const std::size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  return text.replace(at, old_text.size(), new_text);
}

TEST(ParseContract, ReadsEveryField) {
  const Contract contract = parse_contract(kText, "c.json");
  EXPECT_EQ(contract.name, "my-box");
  EXPECT_EQ(contract.hardware, std::vector<Hardware>{parse_hardware("cpu-avx2")});
  EXPECT_EQ(contract.compute_capability_at_least, 80);
  EXPECT_EQ(contract.tp, 4);
  EXPECT_EQ(contract.pp, std::nullopt);
  EXPECT_EQ(contract.max_sequences, 2);
  EXPECT_FALSE(contract.speculation);
  EXPECT_EQ(contract.types, (std::vector<WeightType>{WeightType::f16, WeightType::f8_e4m3}));
  EXPECT_EQ(contract.scales, (std::vector<ScaleKind>{ScaleKind::channel, ScaleKind::block}));
  EXPECT_EQ(contract.workspace_bytes, 32 << 20);
  EXPECT_FALSE(contract.default_on);
  EXPECT_EQ(contract.evidence.file, "evidence/my-box");
  EXPECT_EQ(contract.evidence.note, "made up");

  ASSERT_EQ(contract.rows.size(), 2U);
  const AdmittedRow& full = contract.rows[0];
  EXPECT_EQ(full.role, "self_attn.qkv_proj");
  EXPECT_EQ(full.layer_tp, 4);
  EXPECT_EQ(full.k, 320);
  EXPECT_EQ(full.n, 336);
  EXPECT_EQ(full.padded_n, 384);
  EXPECT_EQ(full.groups, 2);
  EXPECT_EQ(full.activation, FusedActivation::none);
  EXPECT_EQ(full.schedule, (Schedule{4, 2, true}));
  const AdmittedRow& open = contract.rows[1];
  EXPECT_EQ(open.layer_tp, std::nullopt);
  EXPECT_EQ(open.k, std::nullopt);
  EXPECT_EQ(open.n, std::nullopt);
  EXPECT_EQ(open.padded_n, std::nullopt);
  EXPECT_EQ(open.groups, 1) << "left out means one, not any";

  ASSERT_EQ(contract.excluded.size(), 2U);
  EXPECT_EQ(contract.excluded[0].activation, std::nullopt);
  EXPECT_EQ(contract.excluded[1].activation, FusedActivation::silu);
  EXPECT_EQ(contract.excluded[1].reason, "differs");
}

TEST(ParseContract, WorkspaceIs16MiBUnlessTheContractSaysOtherwise) {
  EXPECT_EQ(parse_contract(replaced("\"workspace_bytes\": 33554432,\n", "\n"), "c.json").workspace_bytes, 16 << 20);
}

struct Fault {
  std::string old_text;
  std::string new_text;
  std::string message;  // after "c.json:"
};

void expect_faults(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    try {
      parse_contract(replaced(fault.old_text, fault.new_text), "c.json");
      ADD_FAILURE() << "accepted: " << fault.new_text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::bad_file) << error.what();
      EXPECT_EQ(error.what(), "c.json:" + fault.message);
    }
  }
}

TEST(ParseContract, UnknownKeysAreRefusedAtTheirLine) {
  expect_faults({
      {"\"name\": \"my-box\",", "\"name\": \"my-box\",\n\"model\": \"x\",",
       "3: unknown key \"model\"; a contract has name, hardware, topology, weights, rows, excluded, default, evidence, "
       "workspace_bytes"},
      {"\"tp\": 4,", "\"tp\": 4, \"ep\": 2,",
       "5: unknown key \"ep\"; a topology has tp, pp, max_sequences, speculation"},
      {"\"types\":", "\"dtype\": 1, \"types\":", "11: unknown key \"dtype\"; weights has types, scales"},
      {"\"padded_n\"", "\"padding\"",
       "22: unknown key \"padding\"; a row has role, layer_tp, k, n, schedule, groups, padded_n, activation"},
      {"\"prefetch\": true", "\"prefetch\": true, \"x\": 1",
       "28: unknown key \"x\"; a schedule has split_k, accumulator_chains, prefetch"},
      {"\"reason\": \"small\"", "\"reason\": \"small\", \"why\": 1",
       "42: unknown key \"why\"; an exclusion has role, reason, activation"},
      {"\"file\":", "\"path\":", "51: unknown key \"path\"; evidence has file, note"},
  });
}

TEST(ParseContract, MissingKeysAreRefusedAtTheObjectThatLacksThem) {
  expect_faults({
      {"\"name\": \"my-box\",", "", "1: a contract lacks \"name\""},
      {"\"hardware\": [\"cpu-avx2\", \"sm80+\"],", "", "1: a contract lacks \"hardware\""},
      {"\"default\": \"off\",", "", "1: a contract lacks \"default\""},
      {"\"tp\": 4,", "", "4: a topology lacks \"tp\""},
      {"\"speculation\": false", "\"pp \": 1",
       "8: unknown key \"pp \"; a topology has tp, pp, max_sequences, speculation"},
      {"\"max_sequences\": 2,", "", "4: a topology lacks \"max_sequences\""},
      {"\"k\": 320,", "", "17: a row lacks \"k\""},
      {"\"layer_tp\": 4,", "", "17: a row lacks \"layer_tp\""},
      {"\"split_k\": 4,", "", "25: a schedule lacks \"split_k\""},
      {"\"reason\": \"small\"", "\"activation\": \"none\"", "40: an exclusion lacks \"reason\""},
      {"\"file\": \"evidence/my-box\",\n    \"note\": \"made up\"", "",
       "50: \"evidence\" has neither a \"file\" nor a \"note\""},
  });
}

TEST(ParseContract, WrongTypesAndValuesAreRefusedWithWhatIsExpected) {
  expect_faults({
      {"\"my-box\"", "7", "2: \"name\" is 7, expected a text that is not empty"},
      {"\"my-box\"", "\"\"", "2: \"name\" is \"\", expected a text that is not empty"},
      {"\"my-box\"", "\"My_Box\"",
       "2: \"name\" is \"My_Box\", expected lower-case letters, digits and single dashes, at most 64"},
      {"\"my-box\"", "\"my--box\"",
       "2: \"name\" is \"my--box\", expected lower-case letters, digits and single dashes, at most 64"},
      {"[\"cpu-avx2\", \"sm80+\"]", "\"cpu-avx2\"", "3: \"hardware\" is \"cpu-avx2\", expected an array"},
      {"[\"cpu-avx2\", \"sm80+\"]", "[]", "3: \"hardware\" is empty, so the contract can never hold"},
      {"\"cpu-avx2\"", "\"cpu-avx2+\"", "3: an element is \"cpu-avx2+\", expected a '+' after CUDA hardware only"},
      {"\"cpu-avx2\"", "\"sm90+\"", "3: a second '+'; one covers everything newer"},
      {"\"sm80+\"", "\"cpu-avx2\"", "3: hardware \"cpu-avx2\" is given twice"},
      {"\"tp\": 4", "\"tp\": 0", "5: \"tp\" is 0, expected an integer from 1 to 1024"},
      {"\"tp\": 4", "\"tp\": 4.5", "5: \"tp\" is 4.5, expected an integer from 1 to 1024"},
      {"\"tp\": 4", "\"tp\": \"all\"", "5: \"tp\" is \"all\", expected an integer from 1 to 1024 or \"any\""},
      {"\"pp\": \"any\"", "\"pp\": null", "6: \"pp\" is null, expected an integer from 1 to 1024"},
      {"\"max_sequences\": 2", "\"max_sequences\": \"any\"",
       "7: \"max_sequences\" is \"any\", expected an integer from 1 to 2147483647"},
      {"\"speculation\": false", "\"speculation\": 0", "8: \"speculation\" is 0, expected true or false"},
      {"\"f16\"", "\"int8\"", "11: an element is \"int8\", expected one of f32, f16, bf16, f8_e4m3"},
      {"[\"f16\", \"f8_e4m3\"]", "[]", "11: \"types\" is empty, so nothing is admitted"},
      {"\"block-128x128\"", "\"block-64x64\"",
       "12: an element is \"block-64x64\", expected one of channel, block-128x128"},
      {"33554432", "1", "14: \"workspace_bytes\" is 1, expected an integer from 1048576 to 17179869184"},
      {"\"off\"", "false", "15: \"default\" is false, expected one of on, off"},
      {"\"self_attn.qkv_proj\"", "\"self attn\"",
       "18: \"role\" is \"self attn\", expected letters, digits, '_', '-', '.' and '*'"},
      {"\"k\": 320", "\"k\": -16", "20: \"k\" is -16, expected an integer from 1 to 2147483647"},
      {"\"k\": 320", "\"k\": [320]", "20: \"k\" is an array, expected an integer from 1 to 2147483647"},
      {"\"activation\": \"none\"", "\"activation\": \"gelu\"",
       "24: \"activation\" is \"gelu\", expected one of none, silu"},
      {"\"prefetch\": true", "\"prefetch\": \"yes\"", "28: \"prefetch\" is \"yes\", expected true or false"},
      {"\"accumulator_chains\": 2", "\"accumulator_chains\": 3", "27: \"accumulator_chains\" is 3, expected 1, 2 or 4"},
      {"\"accumulator_chains\": 2", "\"accumulator_chains\": 8",
       "27: \"accumulator_chains\" is 8, expected an integer from 1 to 4"},
      {"\"split_k\": 4", "\"split_k\": 0", "26: \"split_k\" is 0, expected an integer from 1 to 2147483647"},
  });
  EXPECT_THAT(test::error_of([] { parse_contract(replaced("\"cpu-avx2\"", "\"cpu-sse2\""), "c.json"); }),
              ::testing::StartsWith("c.json:3: hardware \"cpu-sse2\" is not known; known: cpu-avx512"));
  EXPECT_EQ(test::error_of([] { parse_contract("[]", "c.json"); }),
            "c.json:1: an element is an array, expected a contract, which is an object");
}

TEST(ParseContract, ShapesThatCannotBePackedOrSplitAreRefused) {
  expect_faults({
      {"\"split_k\": 4", "\"split_k\": 12", "26: \"split_k\" is 12, but k / 16 = 20 is not a multiple of it"},
      {"\"split_k\": 4", "\"split_k\": 40", "26: \"split_k\" is 40, but k / 16 = 20 is not a multiple of it"},
      {"\"k\": 320", "\"k\": 328", "20: \"k\" is 328, not a multiple of 16"},
      {"\"padded_n\": 384,", "", "21: \"n\" is 336, not a multiple of 32"},
      {"\"padded_n\": 384", "\"padded_n\": 380", "22: \"padded_n\" is 380, not a multiple of 32"},
      {"\"padded_n\": 384", "\"padded_n\": 320", "22: \"padded_n\" is 320, expected an integer from 336 to 2147483647"},
      {"\"n\": 336", "\"n\": \"any\"", "22: \"padded_n\" needs an \"n\" that is a number"},
      {"\"layer_tp\": 4", "\"layer_tp\": 8", "19: \"layer_tp\" is 8, but the contract's tp is 4"},
  });
}

// One row, on two lines.
std::string row(const std::string& role, const std::string& k, int split, const std::string& groups = "1") {
  return "{\"role\": \"" + role + "\", \"layer_tp\": \"any\", \"k\": " + k + ", \"n\": \"any\", \"groups\": " + groups +
         ",\n\"schedule\": {\"split_k\": " + std::to_string(split) +
         ", \"accumulator_chains\": 1, \"prefetch\": false}}";
}

TEST(ParseContract, ARowThatAnEarlierOneCoversIsRefused) {
  const std::string last = "\"prefetch\": false}\n    }";
  expect_faults({
      {last, last + ",\n" + row("mlp.*", "\"any\"", 2),
       "38: row \"mlp.*\" never applies: the row at line 31 admits all of it"},
      {last, last + ",\n" + row("mlp.up_proj", "64", 1),
       "38: row \"mlp.up_proj\" never applies: the row at line 31 admits all of it"},
      {last, last + ",\n" + row("mlp.up_proj", "\"any\"", 4),
       "38: row \"mlp.up_proj\" never applies: the row at line 31 admits all of it"},
      {"\"rows\": [", "\"rows\": [" + row("self_attn.*", "320", 5, "\"any\"") + ",",
       "18: row \"self_attn.qkv_proj\" never applies: the row at line 16 admits all of it"},
  });
  // What the earlier row's keys or schedule do not serve is left to the later one.
  std::string fused = row("mlp.*", "\"any\"", 2);
  fused.insert(1, "\"activation\": \"silu\", ");
  for (const std::string& later : {row("mlp.up_proj", "48", 1), row("mlp.*", "\"any\"", 1), row("x", "\"any\"", 2),
                                   row("mlp.*", "\"any\"", 2, "\"any\""), fused}) {
    EXPECT_EQ(test::error_of([&] { parse_contract(replaced(last, last + "," + later), "c.json"); }), "(no error)")
        << later;
  }
}

TEST(ParseContract, ARoleBothAdmittedAndExcludedIsRefused) {
  expect_faults({
      {"\"role\": \"mlp.router\"", "\"role\": \"self_attn.qkv_proj\"",
       "41: role \"self_attn.qkv_proj\" is excluded here and admitted at line 17"},
      {"\"role\": \"mlp.router\"", "\"role\": \"self_attn.*\"",
       "41: role \"self_attn.qkv_proj\" is excluded here and admitted at line 17"},
      {"\"role\": \"mlp.router\"", "\"role\": \"*\"",
       "41: role \"self_attn.qkv_proj\" is excluded here and admitted at line 17"},
      {"\"role\": \"mlp.gate_up_proj\",\n      \"activation\": \"silu\"", "\"role\": \"mlp.router\"",
       "45: role \"mlp.router\" is excluded at line 40 already"},
  });
  // Excluding it with another activation is no contradiction.
  EXPECT_EQ(test::error_of([] {
              parse_contract(replaced("\"role\": \"mlp.gate_up_proj\"", "\"role\": \"self_attn.qkv_proj\""), "c.json");
            }),
            "(no error)");
}

TEST(ParseContract, ThePublicHeaderHasNoWayToNameAModel) {
  const MappedFile header(test::repository() / "include/qpn8/contract.hpp");
  const std::string text(reinterpret_cast<const char*>(header.bytes().data()), header.bytes().size());
  for (const char* word : {"filesystem", "model_type", "model_name", "ModelConfig", "path&"}) {
    EXPECT_EQ(text.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace qpn8
