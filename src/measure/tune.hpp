#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "measure/samples.hpp"
#include "qpn8/contract.hpp"
#include "qpn8/schedule.hpp"

namespace qpn8 {

/// One schedule for one shape.
struct ScheduleTrial {
  Schedule schedule;
  double relative_l2 = 0;  ///< of 8 rows, against the FP64 product of the same codes
  Samples one_row;         ///< seconds
  Samples eight_rows;
};

/// All schedules for one shape, measured in turn.
struct TunedShape {
  TensorDesc tensor;
  std::int64_t bytes = 0;  ///< that a product reads
  std::vector<ScheduleTrial> trials;
  Samples probe;           ///< bytes a second of the read probe, in the same rounds
  std::size_t chosen = 0;  ///< index of the trial that choose_trial() chose
};

/// The widest shape's one-row product by a part of the processors.
struct ThreadTrial {
  int threads = 0;
  Samples seconds;
};

struct TuneResult {
  std::string hardware;
  int threads = 0;
  std::int64_t rotation_bytes = 0;
  std::vector<TunedShape> shapes;
  std::vector<ThreadTrial> thread_trials;
};

struct TuneOptions {
  int threads = 0;                  ///< 0: one a processor
  std::int64_t rotation_bytes = 0;  ///< 0: default_rotation_bytes() of the hardware
  Repeats repeats = {.warmups = 1, .counted = 7};
};

/// Every schedule that the CPU kernels have for k inputs: 1, 2, 4 and 8 parts where they divide k, each with 1, 2 and 4
/// chains, with and without prefetch. The width of a strip of channels follows from rows and chains, and how far ahead
/// codes are asked for is fixed: neither is part of a schedule.
std::vector<Schedule> candidate_schedules(std::int64_t k);

/// Index of the trial to use: the one with the least time a row alone plus time a row among eight. Where it gains less
/// than 2 % over the first trial, the first: that is noise.
std::size_t choose_trial(const std::vector<ScheduleTrial>& trials);

/// Measures the schedules of each tensor with the CPU kernels in use (cpu::use_isa), on random weights that no cache
/// holds; on a GPU the one that its kernels choose by shape, against the CPU's products. A candidate whose numbers are
/// further than 1e-5 (relative L2) from the FP64 reference is Error::check_failed naming it.
TuneResult tune(const Hardware& hardware, const std::vector<TensorDesc>& tensors, const TuneOptions& options,
                const SampleObserver& on_sample = nullptr);

/// `base` with a row for every tuned shape before its own rows, under a name of its own and with what was measured as
/// its evidence.
Contract tuned_contract(const TuneResult& result, const Contract& base, const std::string& name);

/// Everything that was measured, for an evidence file.
nlohmann::ordered_json to_json(const TuneResult& result);

/// For people: a row a shape, with the schedule chosen and what it gained.
std::string to_table(const TuneResult& result);

}  // namespace qpn8
