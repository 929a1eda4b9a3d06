#include "evidence/ab_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "evidence/answer_parser.hpp"
#include "evidence/output_metrics.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

/// Joins the output of a further turn to those before it. Speeds are those of all tokens over all decoding time.
void append_turn(ArmOutput& all, ArmOutput turn) {
  const auto decoded = [](const ArmOutput& output) {
    return output.decode_tokens_per_s > 0 ? static_cast<double>(output.token_count - 1) : 0.0;
  };
  const auto seconds = [&](const ArmOutput& output) {
    return output.decode_tokens_per_s > 0 ? decoded(output) / output.decode_tokens_per_s : 0.0;
  };
  const double all_tokens = decoded(all) + decoded(turn);
  const double all_seconds = seconds(all) + seconds(turn);
  all.decode_tokens_per_s = all_seconds > 0 ? all_tokens / all_seconds : 0.0;
  all.text += "\n\n" + turn.text;
  std::copy(turn.tokens.begin(), turn.tokens.end(), std::back_inserter(all.tokens));
  all.tokens_are_ids = all.tokens_are_ids && turn.tokens_are_ids;
  all.token_count += turn.token_count;
  if (all.finish_reason != "length") all.finish_reason = turn.finish_reason;
  all.retries += turn.retries;
}

/// Carries the item's conversation to its end.
ArmOutput converse(Arm& arm, const DatasetItem& item, std::uint64_t seed) {
  std::vector<ChatMessage> messages;
  std::optional<ArmOutput> all;
  for (const std::string& turn : item.turns) {
    messages.push_back({"user", turn});
    ArmOutput output = arm.generate(messages, seed);
    messages.push_back({"assistant", output.text});
    if (all) {
      append_turn(*all, std::move(output));
    } else {
      all = std::move(output);
    }
  }
  return std::move(*all);
}

ItemRecord score(const DatasetItem& item, ArmName arm, std::uint64_t seed, ArmOutput output) {
  ItemRecord record;
  record.index = item.index;
  record.id = item.id;
  record.arm = arm;
  record.seed = seed;
  record.request_seed = seed + static_cast<std::uint64_t>(item.index);
  record.value = parse_answer(output.text);
  record.last_number = parse_last_number(output.text);
  record.expected = item.expected;
  if (item.expected) record.correct = record.value == item.expected;
  record.invalid = item.expected ? !record.value : output.text.find_first_not_of(" \t\r\n") == std::string::npos;
  record.truncated = output.finish_reason == "length";
  record.finish_reason = std::move(output.finish_reason);
  record.output_tokens = output.token_count;
  record.repeated_4gram = repeated_4gram_rate(output.tokens);
  record.replacement_chars = count_replacement_chars(output.text);
  record.nul_chars = count_nul_chars(output.text);
  record.ttft_ms = output.ttft_ms;
  record.decode_tokens_per_s = output.decode_tokens_per_s;
  record.retries = output.retries;
  record.answer = std::move(output.text);
  if (output.tokens_are_ids) {
    record.token_hash = token_hash(output.tokens);
    record.output_ids = std::move(output.tokens);
  }
  return record;
}

/// Runs the tally over the log and then along with the run.
class Tally {
 public:
  Tally(std::size_t total, const ItemLog& log) {
    tally_.total = total;
    for (const ItemRecords& records : log.items()) add(records);
  }

  void add(const ItemRecords& records) {
    ++tally_.done;
    const auto& [a, b, aa] = records;
    if (a.correct && b.correct) tally_.correct.add(*a.correct, *b.correct);
    if (a.decode_tokens_per_s > 0 && b.decode_tokens_per_s > 0) {
      ratios_.push_back(b.decode_tokens_per_s / a.decode_tokens_per_s);
      tally_.decode_ratio = median(ratios_);
    }
  }

  const AbTally& value() const { return tally_; }

 private:
  AbTally tally_;
  std::vector<double> ratios_;
};

class Runner {
 public:
  Runner(const AbRun& run, Arm& a, Arm& b, const AbHooks& hooks) : run_(&run), a_(&a), b_(&b), hooks_(&hooks) {}

  void warm_up() {
    for (const ArmName name : {ArmName::a, ArmName::b}) answer(name, run_->items.front(), run_->seeds.front());
  }

  /// The item's outputs, or nothing if the run is to end.
  std::optional<ItemRecords> run_item(const ScheduledItem& scheduled, std::int64_t first_order) {
    const DatasetItem& item = run_->items[scheduled.position];
    ItemRecords records;
    for (const ArmName name : scheduled.arms) {
      if (hooks_->interrupted && hooks_->interrupted()) return std::nullopt;
      ItemRecord& record = records[static_cast<std::size_t>(name)];
      record = score(item, name, scheduled.seed, answer(name, item, scheduled.seed));
      record.order = first_order++;
    }
    const auto& [a, b, aa] = records;
    for (const ArmName name : {ArmName::b, ArmName::aa}) {
      ItemRecord& record = records[static_cast<std::size_t>(name)];
      if (a.token_hash && record.token_hash) {
        record.first_divergent_token = first_divergence(a.output_ids, record.output_ids);
      }
    }
    return records;
  }

 private:
  ArmOutput answer(ArmName name, const DatasetItem& item, std::uint64_t seed) {
    Arm& arm = name == ArmName::b ? *b_ : *a_;
    try {
      return converse(arm, item, seed + static_cast<std::uint64_t>(item.index));
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("arm {}, item {}: {}", to_string(name), item.index, error.what()));
    }
  }

  const AbRun* run_;
  Arm* a_;
  Arm* b_;
  const AbHooks* hooks_;
};

}  // namespace

void require_items_of(const AbRun& run, const ItemLog& log) {
  std::set<std::int64_t> indices;
  for (const DatasetItem& item : run.items) indices.insert(item.index);
  for (const ItemRecords& records : log.items()) {
    const ItemRecord& record = records.front();
    const bool seed_is_known = std::find(run.seeds.begin(), run.seeds.end(), record.seed) != run.seeds.end();
    if (seed_is_known && indices.contains(record.index)) continue;
    throw Error(Error::bad_file,
                fmt::format("{}: item {} under seed {} is not of this run; take its lines out, or begin again with "
                            "--overwrite",
                            log.file().string(), record.index, record.seed));
  }
}

AbEnd run_ab(const AbRun& run, Arm& a, Arm& b, ItemLog& log, const AbHooks& hooks) {
  require_items_of(run, log);
  const std::vector<ScheduledItem> schedule = interleave(run.items.size(), run.seeds);
  Tally tally(schedule.size(), log);
  const auto report = [&] {
    if (hooks.progress) hooks.progress(tally.value());
  };
  report();
  std::set<std::pair<std::uint64_t, std::int64_t>> done;
  for (const ItemRecords& records : log.items()) done.emplace(records.front().seed, records.front().index);

  Runner runner(run, a, b, hooks);
  bool warm = false;
  bool recorded = false;
  for (std::size_t step = 0; step < schedule.size(); ++step) {
    const ScheduledItem& scheduled = schedule[step];
    if (done.contains({scheduled.seed, run.items[scheduled.position].index})) continue;
    if (hooks.interrupted && hooks.interrupted()) return AbEnd::interrupted;
    if (!std::exchange(warm, true)) runner.warm_up();
    const auto records = runner.run_item(scheduled, static_cast<std::int64_t>(step * scheduled.arms.size()));
    if (!records) return AbEnd::interrupted;
    if (!std::exchange(recorded, true) && hooks.first_item_done) hooks.first_item_done();
    log.append(*records);
    tally.add(*records);
    report();
  }
  return AbEnd::finished;
}

}  // namespace qpn8
