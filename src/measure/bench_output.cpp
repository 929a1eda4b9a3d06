#include "measure/bench_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text_table.hpp"
#include "measure/bars.hpp"

namespace qpn8 {
namespace {

using nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

constexpr double kMb = 1e6;

const char* name_of(Route route) { return route == Route::qpn8 ? "qpn8" : "dense"; }

ordered_json to_json(const Samples& samples, double unit) {
  const Distribution of = describe(samples);
  return {{"median", of.median / unit}, {"p10", of.p10 / unit}, {"p90", of.p90 / unit}};
}

double tokens_per_s(const DecodeResult& result) { return 1.0 / median(result.seconds); }

double tokens_per_s(const PrefillResult& result) { return static_cast<double>(result.tokens) / median(result.seconds); }

/// The read probe of the run: over the memory that the operators rotate through, else over a decode step's bytes.
double read_bytes_per_s(const BenchResult& result) {
  if (!result.operators.empty()) return median(result.operators.front().probe);
  if (!result.decode.empty()) return median(result.decode.front().probe);
  return 0;
}

ordered_json to_json(const OperatorResult& result) {
  const double seconds = median(result.seconds);
  return {{"role", result.role},
          {"k", result.k},
          {"n", result.n},
          {"m", result.m},
          {"route", name_of(result.route)},
          {"bytes", result.bytes},
          {"us", seconds * 1e6},
          {"us_spread", to_json(result.seconds, 1e-6)},
          {"gb_per_s", static_cast<double>(result.bytes) / seconds / kGb},
          {"probe_gb_per_s", median(result.probe) / kGb},
          {"bandwidth_fraction", median(result.bandwidth_fraction())},
          {"gflop_per_s", 2.0 * static_cast<double>(result.k * result.n * result.m) / seconds / 1e9}};
}

ordered_json to_json(const DecodeResult& result) {
  return {{"route", name_of(result.route)},
          {"context", result.context},
          {"tokens_per_s", tokens_per_s(result)},
          {"ms_per_token", to_json(result.seconds, 1e-3)},
          {"bytes_per_token", median(result.bytes)},
          {"probe_gb_per_s", median(result.probe) / kGb},
          {"bandwidth_fraction", median(result.bandwidth_fraction())}};
}

ordered_json to_json(const PrefillResult& result) {
  return {{"route", name_of(result.route)},
          {"tokens", result.tokens},
          {"tokens_per_s", tokens_per_s(result)},
          {"ms", to_json(result.seconds, 1e-3)},
          {"gflop", result.flop / 1e9},
          {"peak_gflop_per_s", median(result.peak) / 1e9},
          {"flop_fraction", median(result.flop_fraction())}};
}

ordered_json to_json(const LoadResult& load) {
  return {{"seconds", load.seconds},
          {"weights_seconds", load.weights_seconds},
          {"checkpoint_mb", static_cast<double>(load.checkpoint_bytes) / kMb},
          {"weights_mb", static_cast<double>(load.weight_bytes) / kMb},
          {"peak_rss_mb", static_cast<double>(load.peak_rss_bytes) / kMb}};
}

ordered_json to_json(const Bar& bar) {
  return {{"bar", bar.number},
          {"what", bar.what},
          {"seen", bar.seen},
          {bar.at_least ? "at_least" : "at_most", bar.limit},
          {"holds", bar.holds()}};
}

std::string percent(double fraction) { return fmt::format("{:.0f} %", fraction * 100); }

/// "1.23 (1.20 to 1.31)"
std::string with_spread(const Samples& samples, double unit, int digits) {
  const Distribution of = describe(samples);
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", of.median / unit, digits, of.p10 / unit, digits, of.p90 / unit,
                     digits);
}

void add_table(std::string& text, const Rows& rows, const std::vector<Align>& align) {
  if (rows.size() > 1) text += text_table(rows, align) + "\n";
}

constexpr Align kLeft = Align::left;
constexpr Align kRight = Align::right;

std::string operator_table(const BenchResult& result) {
  Rows rows = {{"OPERATOR", "K x N", "ROUTE", "M", "us (p10 to p90)", "GB/s", "of the probe", "GFLOP/s"}};
  for (const OperatorResult& op : result.operators) {
    const double seconds = median(op.seconds);
    rows.push_back({op.role, fmt::format("{}x{}", op.k, op.n), name_of(op.route), std::to_string(op.m),
                    with_spread(op.seconds, 1e-6, 1),
                    fmt::format("{:.1f}", static_cast<double>(op.bytes) / seconds / kGb),
                    percent(median(op.bandwidth_fraction())),
                    fmt::format("{:.0f}", 2.0 * static_cast<double>(op.k * op.n * op.m) / seconds / 1e9)});
  }
  std::string text;
  add_table(text, rows, {kLeft, kRight, kLeft, kRight, kRight, kRight, kRight, kRight});
  return text;
}

std::string decode_table(const BenchResult& result) {
  Rows rows = {{"DECODE", "CONTEXT", "tokens/s", "ms a token (p10 to p90)", "MB a token", "of the probe"}};
  for (const DecodeResult& decode : result.decode) {
    rows.push_back({name_of(decode.route), std::to_string(decode.context), fmt::format("{:.1f}", tokens_per_s(decode)),
                    with_spread(decode.seconds, 1e-3, 2), fmt::format("{:.1f}", median(decode.bytes) / kMb),
                    fits_cache(decode, result) ? "in cache" : percent(median(decode.bandwidth_fraction()))});
  }
  std::string text;
  add_table(text, rows, {kLeft, kRight, kRight, kRight, kRight, kRight});
  return text;
}

std::string prefill_table(const BenchResult& result) {
  Rows rows = {{"PREFILL", "TOKENS", "tokens/s", "ms (p10 to p90)", "GFLOP/s", "of the FP32 peak"}};
  for (const PrefillResult& prefill : result.prefill) {
    rows.push_back({name_of(prefill.route), std::to_string(prefill.tokens),
                    fmt::format("{:.1f}", tokens_per_s(prefill)), with_spread(prefill.seconds, 1e-3, 0),
                    fmt::format("{:.0f}", prefill.flop / median(prefill.seconds) / 1e9),
                    percent(median(prefill.flop_fraction()))});
  }
  std::string text;
  add_table(text, rows, {kLeft, kRight, kRight, kRight, kRight, kRight});
  return text;
}

std::string load_table(const BenchResult& result) {
  Rows rows = {{"LOAD", "s", "of it weights", "checkpoint MB", "weights MB", "peak MB"}};
  for (const RouteLoad& route : result.load) {
    const LoadResult load = route.median();
    rows.push_back({name_of(route.route), fmt::format("{:.2f}", load.seconds),
                    fmt::format("{:.2f}", load.weights_seconds),
                    fmt::format("{:.0f}", static_cast<double>(load.checkpoint_bytes) / kMb),
                    fmt::format("{:.0f}", static_cast<double>(load.weight_bytes) / kMb),
                    fmt::format("{:.0f}", static_cast<double>(load.peak_rss_bytes) / kMb)});
  }
  std::string text;
  add_table(text, rows, {kLeft, kRight, kRight, kRight, kRight, kRight});
  return text;
}

std::string bar_table(const BenchResult& result) {
  Rows rows = {{"BAR", "WHAT", "SEEN", "MUST BE", "HOLDS"}};
  for (const Bar& bar : bars_of(result)) {
    rows.push_back({std::to_string(bar.number), bar.what, fmt::format("{:.2f}", bar.seen),
                    fmt::format("{} {:.2f}", bar.at_least ? ">=" : "<=", bar.limit), bar.holds() ? "yes" : "NO"});
  }
  std::string text;
  add_table(text, rows, {kRight, kLeft, kRight, kRight, kLeft});
  return text;
}

std::string head_line(const BenchResult& result) {
  std::string line =
      fmt::format("{}, {} threads, last-level cache {} MiB", result.hardware, result.threads, result.cache_bytes >> 20);
  if (const double read = read_bytes_per_s(result); read > 0)
    line += fmt::format("; read probe {:.1f} GB/s", read / kGb);
  if (!result.operators.empty()) line += fmt::format(" over {} MiB", result.rotation_bytes >> 20);
  if (!result.prefill.empty()) {
    line += fmt::format("; FP32 peak {:.0f} GFLOP/s", median(result.prefill.front().peak) / 1e9);
  }
  return line + "\n\n";
}

}  // namespace

ordered_json to_json(const BenchResult& result) {
  ordered_json json = {{"hardware", result.hardware},
                       {"threads", result.threads},
                       {"last_level_cache_mb", static_cast<double>(result.cache_bytes) / kMb},
                       {"rotation_mb", static_cast<double>(result.rotation_bytes) / kMb},
                       {"read_gb_per_s", read_bytes_per_s(result) / kGb},
                       {"operators", ordered_json::array()},
                       {"decode", ordered_json::array()},
                       {"prefill", ordered_json::array()},
                       {"load_s", ordered_json::object()},
                       {"peak_rss_mb", ordered_json::object()},
                       {"load", ordered_json::object()},
                       {"bars", ordered_json::array()},
                       {"notes", result.notes},
                       {"plan", result.plan}};
  for (const OperatorResult& entry : result.operators) json["operators"].push_back(to_json(entry));
  for (const DecodeResult& entry : result.decode) json["decode"].push_back(to_json(entry));
  for (const PrefillResult& entry : result.prefill) json["prefill"].push_back(to_json(entry));
  for (const RouteLoad& route : result.load) {
    const LoadResult load = route.median();
    json["load_s"][name_of(route.route)] = load.seconds;
    json["peak_rss_mb"][name_of(route.route)] = static_cast<double>(load.peak_rss_bytes) / kMb;
    json["load"][name_of(route.route)] = to_json(load);
  }
  for (const Bar& bar : bars_of(result)) json["bars"].push_back(to_json(bar));
  if (result.growth) {
    json["growth"] = {{"small", to_json(result.growth->small)}, {"large", to_json(result.growth->large)}};
  }
  return json;
}

std::string to_table(const BenchResult& result) {
  std::string text = head_line(result) + operator_table(result) + decode_table(result) + prefill_table(result) +
                     load_table(result) + bar_table(result);
  if (fits_cache(result)) {
    text +=
        "note: the last-level cache holds what a step reads, so that memory does not bound it: no bars but the "
        "operators'\n";
  }
  for (const std::string& note : result.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace qpn8
