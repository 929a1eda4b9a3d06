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
/// The team is persistent; handing a body over allocates nothing and takes no lock while members are spinning. Work is
/// divided by position, never by who comes first, so that results cannot depend on timing.
/// One body at a time: run() is not re-entrant and must be called by one thread at a time.
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

 private:
  void run_erased(void (*call)(void*, int), void* object);

  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qpn8
