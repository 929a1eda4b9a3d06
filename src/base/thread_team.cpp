#include "qpn8/thread_team.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "qpn8/error.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace qpn8 {
namespace {

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A decode step hands some hundreds of bodies over, microseconds apart: spinning for about 20 us bridges the gaps
// between them, and sleeping after that keeps an idle engine off the processors.
constexpr int kSpins = 2000;

/// Waits until `word` differs from `old`: spins first, then sleeps in the kernel.
std::uint32_t wait_for_change(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    const std::uint32_t now = word.load(std::memory_order_acquire);
    if (now != old) return now;
    pause_briefly();
  }
  word.wait(old, std::memory_order_acquire);
  return word.load(std::memory_order_acquire);
}

/// The blocks [front, back) that a member has left, both in one word, so that its owner and a helper cannot take the
/// same.
class alignas(64) Share {
 public:
  void set(std::uint64_t front, std::uint64_t back) { word_.store(front | back << 32, std::memory_order_relaxed); }

  std::int64_t left() const {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    return static_cast<std::int64_t>(word >> 32) - static_cast<std::int64_t>(word & kFront);
  }

  std::int64_t take_front() {
    return take([](std::uint64_t word) { return word + 1; }, [](std::uint64_t word) { return word & kFront; });
  }
  std::int64_t take_back() {
    return take([](std::uint64_t word) { return word - (std::uint64_t{1} << 32); },
                [](std::uint64_t word) { return (word >> 32) - 1; });
  }

 private:
  static constexpr std::uint64_t kFront = 0xffffffffU;

  template <class Next, class Taken>
  std::int64_t take(Next next, Taken taken) {
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    while ((word & kFront) < word >> 32) {
      if (word_.compare_exchange_weak(word, next(word), std::memory_order_relaxed)) {
        return static_cast<std::int64_t>(taken(word));
      }
    }
    return -1;
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace

int processor_count() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

class ThreadTeam::Impl {
 public:
  explicit Impl(int threads)
      : shares_(static_cast<std::size_t>(threads)), failures_(static_cast<std::size_t>(threads)) {
    workers_.reserve(static_cast<std::size_t>(threads - 1));
    for (int member = 1; member < threads; ++member) {
      workers_.emplace_back([this, member] { work(member); });
    }
  }

  ~Impl() {
    stop_ = true;
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  int size() const { return static_cast<int>(failures_.size()); }

  void run(void (*call)(void*, int), void* object) {
    call_ = call;
    object_ = object;
    const auto helpers = static_cast<std::uint32_t>(workers_.size());
    if (helpers > 0) {
      running_.store(helpers, std::memory_order_relaxed);
      epoch_.fetch_add(1, std::memory_order_release);
      epoch_.notify_all();
    }
    execute(0);
    for (std::uint32_t left = running_.load(std::memory_order_acquire); left != 0;) {
      left = wait_for_change(running_, left);
    }
    rethrow_first();
  }

  /// Before run(), which hands the shares over with the body.
  void share(std::int64_t blocks) {
    const auto members = static_cast<std::int64_t>(shares_.size());
    check(blocks < std::int64_t{1} << 32, "blocks are counted in 32 bits");
    for (std::int64_t member = 0; member < members; ++member) {
      shares_[static_cast<std::size_t>(member)].set(static_cast<std::uint64_t>(blocks * member / members),
                                                    static_cast<std::uint64_t>(blocks * (member + 1) / members));
    }
  }

  std::int64_t take(int member) {
    const std::int64_t own = shares_[static_cast<std::size_t>(member)].take_front();
    if (own >= 0) return own;
    for (;;) {
      const auto most = std::max_element(shares_.begin(), shares_.end(),
                                         [](const Share& a, const Share& b) { return a.left() < b.left(); });
      if (most->left() <= 0) return -1;
      const std::int64_t block = most->take_back();
      if (block >= 0) return block;
    }
  }

 private:
  void work(int member) {
    std::uint32_t seen = 0;
    for (;;) {
      seen = wait_for_change(epoch_, seen);
      if (stop_) return;
      execute(member);
      if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_all();
    }
  }

  void execute(int member) {
    try {
      call_(object_, member);
    } catch (...) {
      failures_[static_cast<std::size_t>(member)] = std::current_exception();
    }
  }

  void rethrow_first() {
    std::exception_ptr first;
    for (std::exception_ptr& error : failures_) {
      if (error && !first) first = error;
      error = nullptr;
    }
    if (first) std::rethrow_exception(first);
  }

  alignas(64) std::atomic<std::uint32_t> epoch_{0};
  // Written before, and read after, a change of epoch_, which brings them along in its cache line.
  bool stop_ = false;
  void (*call_)(void*, int) = nullptr;
  void* object_ = nullptr;
  std::vector<Share> shares_;
  std::vector<std::exception_ptr> failures_;
  std::vector<std::thread> workers_;
  alignas(64) std::atomic<std::uint32_t> running_{0};
};

ThreadTeam::ThreadTeam(int threads) {
  if (threads < 1) {
    throw Error(Error::bad_argument, "threads is " + std::to_string(threads) + "; at least 1 is needed");
  }
  impl_ = std::make_unique<Impl>(threads);
}

ThreadTeam::~ThreadTeam() = default;

int ThreadTeam::size() const { return impl_->size(); }

void ThreadTeam::share(std::int64_t blocks) { impl_->share(blocks); }

std::int64_t ThreadTeam::take(int member) { return impl_->take(member); }

void ThreadTeam::run_erased(void (*call)(void*, int), void* object) { impl_->run(call, object); }

}  // namespace qpn8
