#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace qpn8 {

/// Processors that this process may use, at least 1: the size of a team that has the machine to itself.
int processor_count();

/// A fixed set of threads that run the same body together and wait for each other: the caller is member 0.
///
/// The team is persistent; handing a body over allocates nothing and takes no lock while members are spinning. Which
/// member computes an element may depend on timing, what it computes must not. One body at a time: run() is not
/// re-entrant and must be called by one thread at a time.
class ThreadTeam {
 public:
  /// threads >= 1, else Error::bad_argument.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const;

  /// Calls body(member) once for every member in [0, size()) and returns when all have returned. An exception of any
  /// member is rethrown here (the lowest member's) after all have returned.
  template <class Body>
  void run(Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_erased([](void* object, int member) { (*static_cast<Plain*>(object))(member); },
               const_cast<void*>(static_cast<const void*>(&body)));
  }

  /// Splits [0, count) into contiguous ranges whose inner borders are multiples of `grain` and calls body(begin, end)
  /// for each non-empty one, in parallel. Which element falls into which range depends on size(), so a body's result
  /// for an element must not depend on the range it came in.
  template <class Body>
  void for_ranges(std::int64_t count, std::int64_t grain, Body&& body) {
    const std::int64_t blocks = (count + grain - 1) / grain;
    const std::int64_t members = std::min<std::int64_t>(size(), blocks);
    if (members <= 1) {
      if (count > 0) body(std::int64_t{0}, count);
      return;
    }
    run([&](int member) {
      if (member >= members) return;
      const std::int64_t begin = blocks * member / members * grain;
      const std::int64_t end = std::min(count, blocks * (member + 1) / members * grain);
      if (begin < end) body(begin, end);
    });
  }

  /// The same for a long walk through memory: a member takes its own range a grain at a time from the front, and, once
  /// it is through, what others have left from the back. A member whose processor is slowed down, as a shared machine's
  /// are, then holds nobody up, and each still reads its own part in order. body() is called for at most `grain`
  /// elements. At most 2^32 - 1 grains.
  template <class Body>
  void for_shared_ranges(std::int64_t count, std::int64_t grain, Body&& body) {
    const std::int64_t blocks = (count + grain - 1) / grain;
    const auto call = [&](std::int64_t block) { body(block * grain, std::min(count, (block + 1) * grain)); };
    if (size() == 1 || blocks <= 1) {
      for (std::int64_t block = 0; block < blocks; ++block) call(block);
      return;
    }
    share(blocks);
    run([&](int member) {
      for (std::int64_t block = take(member); block >= 0; block = take(member)) call(block);
    });
  }

 private:
  void run_erased(void (*call)(void*, int), void* object);
  /// Deals [0, blocks) out to the members.
  void share(std::int64_t blocks);
  /// A block for a member, -1 if none is left.
  std::int64_t take(int member);

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qpn8
