#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/text_table.hpp"
#include "measure/tune.hpp"

namespace qpn8 {
namespace {

using nlohmann::ordered_json;

const ScheduleTrial& chosen(const TunedShape& shape) { return shape.trials[shape.chosen]; }

/// Bytes a second at one row, as a fraction of the probe's.
double fraction(const TunedShape& shape, const ScheduleTrial& trial) {
  return median(ratios(rates(static_cast<double>(shape.bytes), trial.one_row), shape.probe));
}

/// Tokens a second over those of the first trial.
double gain(const TunedShape& shape) { return median(ratios(shape.trials.front().one_row, chosen(shape).one_row)); }

double largest_error(const TuneResult& result) {
  double error = 0;
  for (const TunedShape& shape : result.shapes) {
    for (const ScheduleTrial& trial : shape.trials) error = std::max(error, trial.relative_l2);
  }
  return error;
}

std::string evidence_note(const TuneResult& result) {
  std::vector<std::string> shapes;
  for (const TunedShape& shape : result.shapes) {
    shapes.push_back(fmt::format("{} {}x{} {:.2f} of the read probe", shape.tensor.role, shape.tensor.k, shape.tensor.n,
                                 fraction(shape, chosen(shape))));
  }
  return fmt::format(
      "Measured by qpn8 tune on {} with {} threads, one row, weights of {} MiB in rotation, median of {} rounds: {}. "
      "Every candidate was within {:.1e} (relative L2) of the FP64 reference.",
      result.hardware, result.threads, result.rotation_bytes >> 20, result.shapes.front().probe.size(),
      fmt::join(shapes, "; "), largest_error(result));
}

ordered_json to_json(const Schedule& schedule) {
  return {{"split_k", schedule.split_k},
          {"accumulator_chains", schedule.accumulator_chains},
          {"prefetch", schedule.prefetch}};
}

ordered_json to_json(const TunedShape& shape) {
  ordered_json trials = ordered_json::array();
  for (const ScheduleTrial& trial : shape.trials) {
    trials.push_back({{"schedule", to_json(trial.schedule)},
                      {"relative_l2", trial.relative_l2},
                      {"us_1_row", median(trial.one_row) * 1e6},
                      {"us_8_rows", median(trial.eight_rows) * 1e6},
                      {"bandwidth_fraction", fraction(shape, trial)}});
  }
  return {{"role", shape.tensor.role},
          {"k", shape.tensor.k},
          {"n", shape.tensor.n},
          {"bytes", shape.bytes},
          {"probe_gb_per_s", median(shape.probe) / kGb},
          {"chosen", to_json(chosen(shape).schedule)},
          {"trials", trials}};
}

}  // namespace

Contract tuned_contract(const TuneResult& result, const Contract& base, const std::string& name) {
  Contract contract = base;
  contract.name = name;
  contract.evidence = {.file = "", .note = evidence_note(result)};
  contract.rows.clear();
  for (const TunedShape& shape : result.shapes) {
    AdmittedRow row;
    row.role = shape.tensor.role;
    row.k = shape.tensor.k;
    row.n = shape.tensor.n;
    row.schedule = chosen(shape).schedule;
    contract.rows.push_back(row);
  }
  contract.rows.insert(contract.rows.end(), base.rows.begin(), base.rows.end());
  return contract;
}

ordered_json to_json(const TuneResult& result) {
  ordered_json json = {{"hardware", result.hardware},
                       {"threads", result.threads},
                       {"rotation_mb", static_cast<double>(result.rotation_bytes) / 1e6},
                       {"shapes", ordered_json::array()},
                       {"threads_us_1_row", ordered_json::array()}};
  for (const TunedShape& shape : result.shapes) json["shapes"].push_back(to_json(shape));
  for (const ThreadTrial& trial : result.thread_trials) {
    json["threads_us_1_row"].push_back({{"threads", trial.threads}, {"us", median(trial.seconds) * 1e6}});
  }
  return json;
}

std::string to_table(const TuneResult& result) {
  std::vector<std::vector<std::string>> rows = {
      {"ROLE", "K x N", "SCHEDULE", "of the probe", "8 rows / 1 row", "gain", "relative L2"}};
  for (const TunedShape& shape : result.shapes) {
    const ScheduleTrial& trial = chosen(shape);
    rows.push_back({shape.tensor.role, fmt::format("{}x{}", shape.tensor.k, shape.tensor.n), to_string(trial.schedule),
                    fmt::format("{:.0f} %", fraction(shape, trial) * 100),
                    fmt::format("{:.2f}", median(ratios(trial.eight_rows, trial.one_row))),
                    fmt::format("{:.3f}", gain(shape)), fmt::format("{:.1e}", trial.relative_l2)});
  }
  std::string text = text_table(
      rows, {Align::left, Align::right, Align::left, Align::right, Align::right, Align::right, Align::right});
  for (const ThreadTrial& trial : result.thread_trials) {
    text += fmt::format("{} of {} threads: {:.1f} us a row of the widest shape\n", trial.threads, result.threads,
                        median(trial.seconds) * 1e6);
  }
  return text;
}

}  // namespace qpn8
