#include "measure/bars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace qpn8 {
namespace {

template <class Result>
const Result* on(const std::vector<Result>& results, Route route) {
  const auto found = std::find_if(results.begin(), results.end(), [&](const Result& r) { return r.route == route; });
  return found == results.end() ? nullptr : &*found;
}

class Bars {
 public:
  explicit Bars(const BenchResult& result) : result_(result) {}

  std::vector<Bar> all() {
    operators();
    if (fits_cache(result_)) return std::move(bars_);
    decode();
    prefill();
    load();
    growth();
    context();
    return std::move(bars_);
  }

 private:
  void at_least(int number, std::string_view what, double seen, double limit) {
    bars_.push_back({number, std::string(what), seen, limit, true});
  }
  void at_most(int number, std::string_view what, double seen, double limit) {
    bars_.push_back({number, std::string(what), seen, limit, false});
  }

  const OperatorResult* beyond_cache(std::int64_t m) const {
    const auto found = std::find_if(result_.operators.begin(), result_.operators.end(),
                                    [m](const OperatorResult& r) { return r.role == kBeyondCacheRole && r.m == m; });
    return found == result_.operators.end() ? nullptr : &*found;
  }

  void operators() {
    const OperatorResult* one = beyond_cache(1);
    const OperatorResult* eight = beyond_cache(8);
    if (one == nullptr) return;
    at_least(1, "QPN8 product of one row, beyond the cache: fraction of the read probe",
             median(one->bandwidth_fraction()), 0.80);
    if (eight == nullptr) return;
    at_most(1, "QPN8 product of 8 rows: times the time of one", median(ratios(eight->seconds, one->seconds)), 2.0);
  }

  void decode() {
    const DecodeResult* packed = on(result_.decode, Route::qpn8);
    const DecodeResult* dense = on(result_.decode, Route::dense);
    if (packed == nullptr) return;
    at_least(2, fmt::format("QPN8 decode at a context of {}: fraction of the read probe", packed->context),
             median(packed->bandwidth_fraction()), 0.70);
    at_least(2, "QPN8 decode: times the tokens a second of the dense route",
             median(ratios(dense->seconds, packed->seconds)), 1.6);
  }

  void prefill() {
    for (const PrefillResult& result : result_.prefill) {
      at_least(3,
               fmt::format("{} prefill of {} tokens: fraction of the FP32 peak",
                           result.route == Route::qpn8 ? "QPN8" : "dense", result.tokens),
               median(result.flop_fraction()), 0.55);
    }
    const PrefillResult* packed = on(result_.prefill, Route::qpn8);
    if (packed == nullptr) return;
    at_least(3, "QPN8 prefill: times the tokens a second of the dense route",
             median(ratios(on(result_.prefill, Route::dense)->seconds, packed->seconds)), 0.95);
  }

  void load() {
    constexpr double kAllowance = 200e6;
    for (const RouteLoad& route : result_.load) {
      const LoadResult load = route.median();
      const char* name = route.route == Route::qpn8 ? "QPN8" : "dense";
      if (route.route == Route::qpn8) {
        at_least(4, "QPN8 load: GB of checkpoint packed a second and core",
                 static_cast<double>(load.checkpoint_bytes) / load.weights_seconds / load.threads / 1e9, 1.0);
      }
      at_most(4, fmt::format("{} load: peak memory less 200 MB, times the weights kept", name),
              (static_cast<double>(load.peak_rss_bytes) - kAllowance) / static_cast<double>(load.weight_bytes), 1.15);
    }
  }

  void growth() {
    if (!result_.growth) return;
    const DecodeResult& small = result_.growth->small;
    const DecodeResult& large = result_.growth->large;
    const double bytes = median(large.bytes) / median(small.bytes);
    at_most(5, fmt::format("time a token of a model that reads {:.2f} times as much, over {:.2f}", bytes, bytes),
            median(ratios(large.seconds, small.seconds)) / bytes, 1.10);
  }

  /// What the longest context adds to a step, beside what its bytes would take at the speed of the shortest.
  void context() {
    const DecodeResult* shortest = on(result_.decode, Route::qpn8);
    if (shortest == nullptr) return;
    const DecodeResult* longest = shortest;
    for (const DecodeResult& result : result_.decode) {
      if (result.route == Route::qpn8 && result.context > longest->context) longest = &result;
    }
    if (longest == shortest) return;
    const double seconds = median(shortest->seconds);
    const double byte_seconds = seconds / median(shortest->bytes);
    const double expected = (median(longest->bytes) - median(shortest->bytes)) * byte_seconds;
    at_most(5,
            fmt::format("a context of {} instead of {}: added time over that of its bytes", longest->context,
                        shortest->context),
            (median(longest->seconds) - seconds) / expected, 1.25);
  }

  const BenchResult& result_;
  std::vector<Bar> bars_;
};

}  // namespace

bool fits_cache(const DecodeResult& decode, const BenchResult& result) {
  return median(decode.bytes) < static_cast<double>(result.cache_bytes);
}

bool fits_cache(const BenchResult& result) {
  const DecodeResult* packed = on(result.decode, Route::qpn8);
  return packed != nullptr && fits_cache(*packed, result);
}

std::vector<Bar> bars_of(const BenchResult& result) { return Bars(result).all(); }

}  // namespace qpn8
