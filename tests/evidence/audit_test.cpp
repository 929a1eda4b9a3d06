#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "backend/cpu_backend.hpp"
#include "backend/weight_file.hpp"
#include "evidence/audit.hpp"
#include "evidence/audit_product.hpp"
#include "evidence/audit_report.hpp"
#include "evidence/audit_weight.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "support/expect_error.hpp"
#include "support/shared_data.hpp"

namespace qpn8::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

EngineOptions options_with(const std::string& route) {
  EngineOptions options;
  options.threads = 1;
  options.qpn8 = route;
  return options;
}

AuditedModel open(const std::string& fixture, const std::string& route = "on") {
  return open_audited_model(data() / fixture, options_with(route), kAuditText, {});
}

/// The audit of one model, run once for all tests.
const AuditResult& whole_audit() {
  static const AuditResult result = [] {
    ThreadTeam team(1);
    AuditOptions options;
    options.least_outputs = 4096;
    AuditResult audited;
    audit_projections(open("tiny-qwen2"), shipped_contracts(), options, team, audited);
    return audited;
  }();
  return result;
}

LinearSource source_of(const PlannedProjection& plan, const WeightFile& file) {
  return {.plan = &plan, .checkpoint = &file.opened(), .parts = {file.part("w")}, .bias = {}};
}

TEST(ServedWeight, IsTheStoredNumbersOnTheDenseRoute) {
  WeightFile file;
  const Matrix<float> w = gaussian(32, 16, 3);
  file.add("w", DType::bf16, w);
  file.open();
  const PlannedProjection plan = planned(Route::dense, 32, 16);
  const ServedWeight served(source_of(plan, file));
  std::vector<double> row(16);
  served.row(5, row);
  const Matrix<float> stored = rounded(w, DType::bf16);
  for (std::int64_t i = 0; i < 16; ++i) EXPECT_EQ(row[static_cast<std::size_t>(i)], stored(5, i));
}

TEST(ServedWeight, IsCodesTimesScaleOnQpn8) {
  WeightFile file;
  const Matrix<float> w = gaussian(32, 16, 4);
  file.add("w", DType::f16, w);
  file.open();
  const PlannedProjection plan = planned(Route::qpn8, 32, 16, 32);
  const ServedWeight served(source_of(plan, file));
  const Matrix<float> stored = rounded(w, DType::f16);
  std::vector<double> row(16);
  for (std::int64_t n = 0; n < 32; ++n) {
    served.row(n, row);
    float largest = 0;
    for (std::int64_t i = 0; i < 16; ++i) largest = std::max(largest, std::abs(stored(n, i)));
    const float scale = largest / kE4M3Max;
    for (std::int64_t i = 0; i < 16; ++i) {
      const double expected = static_cast<double>(decode_e4m3(encode_e4m3(stored(n, i) / scale))) * scale;
      EXPECT_EQ(row[static_cast<std::size_t>(i)], expected) << n << " " << i;
    }
  }
}

TEST(ServedWeight, KeepsTheStoredCodesAndBlockScalesOfAPartThatBeginsWithinABlock) {
  constexpr std::int64_t kRows = 160;
  constexpr std::int64_t kCols = 288;
  std::vector<std::byte> codes(kRows * kCols);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::byte>(i * 37 % 127);
  Matrix<float> scales(2, 3);
  for (std::size_t i = 0; i < 6; ++i) scales.values()[i] = 0.25F * static_cast<float>(i + 1);
  WeightFile file;
  file.add_bytes("w", DType::f8_e4m3, kRows, kCols, codes);
  file.add("w_scale_inv", DType::f32, scales);
  file.open();
  const PlannedProjection plan = planned(Route::qpn8, 32, 64, 32);
  LinearSource source = source_of(plan, file);
  WeightPart& part = source.parts.front();
  part.first_row = 112;
  part.rows = 32;
  part.first_col = 96;
  part.cols = 64;
  const ServedWeight served(source);
  std::vector<double> row(64);
  for (const std::int64_t n : {0, 15, 16, 31}) {
    served.row(n, row);
    for (std::int64_t i = 0; i < 64; ++i) {
      const auto code = std::to_integer<std::uint8_t>(codes[static_cast<std::size_t>((112 + n) * kCols + 96 + i)]);
      const float scale = scales((112 + n) / 128, (96 + i) / 128);
      EXPECT_EQ(row[static_cast<std::size_t>(i)], static_cast<double>(decode_e4m3(code)) * scale) << n << " " << i;
    }
  }
}

TEST(ActivationRecorder, KeepsWhatTheModelFeedsEveryProjection) {
  const AuditedModel model = open("tiny-qwen2");
  ASSERT_GT(model.captured_tokens, 9);
  for (const PlannedProjection& projection : model.plan.projections()) {
    const auto found = model.captured.find(projection.name);
    ASSERT_NE(found, model.captured.end()) << projection.name;
    EXPECT_EQ(found->second.cols(), projection.tensor.k) << projection.name;
    EXPECT_EQ(found->second.rows(), model.captured_tokens) << projection.name;
  }
}

TEST(ActivationRecorder, ReachesTheInputsOfExperts) {
  const AuditedModel model = open("tiny-qwen3-moe");
  std::int64_t routed = 0;
  for (const PlannedProjection& projection : model.plan.projections()) {
    if (projection.tensor.role != "mlp.experts.down_proj") continue;
    const std::string prefix = projection.name.substr(0, projection.name.rfind('.'));
    const auto down = model.captured.find(projection.name);
    const auto gate_up = model.captured.find(prefix + ".gate_up_proj");
    ASSERT_EQ(down == model.captured.end(), gate_up == model.captured.end()) << prefix;
    if (down == model.captured.end()) continue;
    EXPECT_EQ(down->second.cols(), projection.tensor.k);
    EXPECT_EQ(down->second.rows(), gate_up->second.rows());
    routed += down->second.rows();
  }
  EXPECT_GT(routed, model.captured_tokens) << "every token goes to several experts";
}

TEST(Audit, ComparesEveryProjectionPatternAndStepWithThreeReferences) {
  const AuditResult& result = whole_audit();
  const std::size_t projections = result.plan.at("projections").size();
  EXPECT_EQ(result.rows.size(), projections * 4 * 2 * 3);
  std::set<std::string> seen;
  for (const AuditRow& row : result.rows) {
    seen.insert(fmt::format("{} {} {} {}", row.name, row.m, to_string(row.pattern), to_string(row.reference)));
    EXPECT_TRUE(row.measures.finite) << row.name;
  }
  EXPECT_EQ(seen.size(), result.rows.size());
  EXPECT_TRUE(result.notes.empty());
}

TEST(Audit, TellsWhatTheKernelCostsFromWhatTheEightBitsCost) {
  const AuditResult& result = whole_audit();
  EXPECT_TRUE(result.broken().empty());
  for (const AuditRow& row : result.rows) {
    SCOPED_TRACE(row.name);
    if (row.route == "dense" || row.reference != AuditReference::original) {
      EXPECT_LT(row.measures.relative_l2, 2e-6);
    } else {
      EXPECT_GT(row.measures.relative_l2, 0.01);
      EXPECT_LT(row.measures.relative_l2, 0.05);
    }
  }
}

TEST(Audit, TheFusedFormIsAuditedAndNotAdmitted) {
  const AuditResult& result = whole_audit();
  ASSERT_FALSE(result.fused.empty());
  for (const AuditRow& row : result.fused) {
    EXPECT_EQ(row.route, "fused");
    if (row.reference != AuditReference::fallback) continue;
    EXPECT_FALSE(result.bounds.hold(row.measures)) << row.name;
  }
  ASSERT_EQ(result.fused_admissions.size(), 1U);
  EXPECT_EQ(result.fused_admissions.front().role, "mlp.gate_up_proj");
  EXPECT_FALSE(result.fused_admissions.front().admitted);
  EXPECT_THAT(result.fused_admissions.front().reason, HasSubstr("keeps gate and up in FP32"));
}

TEST(Audit, AFusedFormThatAContractAdmitsHasToHoldTheBounds) {
  std::vector<Contract> contracts = shipped_contracts();
  for (Contract& contract : contracts) {
    std::erase_if(contract.excluded, [](const ExcludedRole& excluded) { return excluded.activation.has_value(); });
    std::vector<AdmittedRow> fused = contract.rows;
    for (AdmittedRow& row : fused) row.activation = FusedActivation::silu;
    contract.rows.insert(contract.rows.end(), fused.begin(), fused.end());
  }
  ThreadTeam team(1);
  AuditOptions options;
  options.rows = {1};
  options.least_outputs = 256;
  AuditResult result;
  audit_projections(open("tiny-qwen2"), contracts, options, team, result);
  result.rows.clear();  // too few outputs for a share
  ASSERT_EQ(result.broken().size(), 2U * 4U) << "two layers, four patterns";
  EXPECT_EQ(result.broken().front()->route, "fused");
  expect_error(
      Error::check_failed, [&] { require_passed(result); },
      AllOf(HasSubstr("audit: model.layers.0.mlp.gate_up_proj M = 1"), HasSubstr("at least 0.99707"),
            HasSubstr("of 256 outputs, too few to tell 0.3 % from chance; --outputs 16384 is enough")));
}

TEST(Audit, AModelWithoutAQpn8ProjectionIsAnErrorAndNotAPass) {
  expect_error(
      Error::missing_capability, [] { open("tiny-qwen2", "off"); },
      AllOf(HasSubstr("no projection runs on QPN8"), HasSubstr("off")));
}

/// A result of two rows, the second beyond the bounds.
AuditResult two_rows() {
  AuditResult result;
  AuditRow good;
  good.name = "layer.good";
  good.role = "good";
  good.k = 16;
  good.n = 32;
  good.m = 1;
  good.route = "qpn8";
  good.reference = AuditReference::fallback;
  good.measures = {.outputs = 32, .exact_fp16_fraction = 0.999, .relative_l2 = 1e-6, .max_ulp = 1};
  AuditRow bad = good;
  bad.name = "layer.bad";
  bad.measures.exact_fp16_fraction = 0.5;
  result.rows = {good, bad};
  return result;
}

TEST(AuditReport, HasTheDocumentedKeys) {
  AuditResult result = two_rows();
  EXPECT_EQ(to_json(result)["gate"], nullptr);
  result.gate = GateResult{{{"fp64", "layer.good", true, "holds"}}};
  const nlohmann::ordered_json json = to_json(result);
  for (const char* key : {"name", "role", "k", "n", "m", "pattern", "reference", "route", "relative_l2",
                          "exact_fp16_fraction", "max_ulp"}) {
    EXPECT_TRUE(json["rows"][0].contains(key)) << key;
  }
  EXPECT_EQ(json["gate"]["passed"], true);
  EXPECT_EQ(json["gate"]["checks"][0]["name"], "fp64");
  EXPECT_EQ(json["passed"], false);
}

TEST(AuditReport, ShowsTheWorstRowFirstAndSaysWhatAReferenceMeans) {
  const AuditResult result = two_rows();
  for (const std::string& text : {to_markdown(result), to_text(result)}) {
    EXPECT_LT(text.find("layer.bad"), text.find("layer.good"));
    EXPECT_THAT(text, HasSubstr("1 of 2 rows of QPN8 against the fallback are beyond the bounds"));
    EXPECT_THAT(text, HasSubstr("what 8 bits cost"));
    EXPECT_THAT(text, HasSubstr("what the kernel costs"));
  }
}

TEST(AuditReport, AFailureNamesRowsAndChecks) {
  AuditResult result = two_rows();
  result.gate = GateResult{{{"grouped", "layer", false, "group 1 of 2: dropped"}}};
  expect_error(
      Error::check_failed, [&] { require_passed(result); },
      AllOf(HasSubstr("layer.bad M = 1 gaussian: exact FP16 fraction 0.50000"), Not(HasSubstr("layer.good")),
            HasSubstr("gate: grouped layer: group 1 of 2: dropped")));
  result.rows.pop_back();
  result.gate.reset();
  EXPECT_NO_THROW(require_passed(result));
}

TEST(AuditReport, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  expect_error(
      Error::bad_file, [&] { write_audit(folder / "file/audit", two_rows()); }, HasSubstr("file/audit"));
}

}  // namespace
}  // namespace qpn8::test
