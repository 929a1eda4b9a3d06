#include "evidence/report_text.hpp"

#include <fmt/format.h>

#include "evidence/signed_text.hpp"

namespace qpn8 {
namespace {

std::string arm_row(std::string_view name, const ArmSummary& arm) {
  const auto accuracy = arm.accuracy();
  return fmt::format("{:<4}  {:>11}  {:>8}  {:>7}  {:>9}  {:>10}  {:>8.1f}  {:>8.1f}  {:>7.1f}\n", name,
                     fmt::format("{}/{}", arm.correct, arm.scored),
                     accuracy ? fmt::format("{:.2f} %", *accuracy * 100) : "-", arm.invalid, arm.truncated,
                     arm.repetitive, arm.decode_tokens_per_s.median, arm.ttft_ms.median, arm.output_tokens_mean);
}

std::string paired_lines(const PairedSummary& paired) {
  std::string text = fmt::format(
      "discordant  only A right {}, only B right {}; exact McNemar p = {:.4f}\n"
      "accuracy    B - A = {} points, 95 % interval {} to {}\n",
      paired.correct.only_a, paired.correct.only_b, paired.mcnemar_p, signed_text(paired.correct.difference() * 100),
      signed_text(paired.accuracy_diff_ci.low * 100), signed_text(paired.accuracy_diff_ci.high * 100));
  if (paired.decode_ratio_ci) {
    text += fmt::format("decode      B / A = {:.3f} mean, 95 % interval {:.3f} to {:.3f}; {:.3f} median\n",
                        *paired.decode_ratio_mean, paired.decode_ratio_ci->low, paired.decode_ratio_ci->high,
                        *paired.decode_ratio_median);
  }
  text += fmt::format("texts       {} of {} identical\n", paired.identical_text, paired.items);
  return text;
}

}  // namespace

std::string to_text(const AbResult& result) {
  const AbSummary& summary = result.summary;
  std::string text = fmt::format("{:<4}  {:>11}  {:>8}  {:>7}  {:>9}  {:>10}  {:>8}  {:>8}  {:>7}\n", "arm", "correct",
                                 "accuracy", "invalid", "truncated", "repetitive", "tok/s", "ttft ms", "tokens");
  text += arm_row("A", summary.a) + arm_row("B", summary.b) + arm_row("A/A", summary.aa) + "\n";
  text += paired_lines(summary.paired);
  text += fmt::format("\nverdict     {}, {}: {}\n", to_string(result.verdict.quality), to_string(result.verdict.speed),
                      result.verdict.recommendation);
  for (const std::string& reason : result.verdict.reasons) text += fmt::format("            - {}\n", reason);
  return text;
}

}  // namespace qpn8
