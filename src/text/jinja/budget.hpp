#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace qpn8::jinja {

/// What a template raises or what Jinja would refuse; the message alone. Whoever runs the template adds its name and
/// the line.
class TemplateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Bounds of one compilation or rendering. The defaults are far above what a chat of a million characters needs.
struct Limits {
  std::int64_t work = 20'000'000;                  ///< evaluated nodes, visited items, and shares of texts
  std::int64_t memory = std::int64_t{256} << 20U;  ///< bytes of live values and of text being built
  std::int64_t text = std::int64_t{64} << 20U;     ///< bytes of one text, the output included
  int nesting = 800;                               ///< nested evaluations: expressions, statements and macro calls
};

/// What counts as one unit of work: bytes that are copied or searched at once, and bytes that are looked at one by one.
inline constexpr std::int64_t kBytesPerWork = 128;
inline constexpr std::int64_t kCharactersPerWork = 8;

/// Deepest nesting of lists, tuples and dicts in each other.
inline constexpr int kMaxValueDepth = 200;

/// Counts what a template uses and throws TemplateError where a limit is passed. Used by one thread; must outlive the
/// values that were charged to it.
class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  void work(std::int64_t units = 1) {
    work_ += units;
    if (work_ > limits_.work) [[unlikely]]
      fail_work();
  }
  void work_bytes(std::size_t bytes) { work(static_cast<std::int64_t>(bytes) / kBytesPerWork); }
  void work_characters(std::size_t bytes) { work(static_cast<std::int64_t>(bytes) / kCharactersPerWork); }

  void reserve(std::int64_t bytes) {
    if (bytes > limits_.memory - memory_) [[unlikely]]
      fail_memory();
    memory_ += bytes;
  }
  void release(std::int64_t bytes) { memory_ -= bytes; }

  /// For a text whose size is known before it is built.
  void check_text_size(std::int64_t bytes) const {
    if (bytes > limits_.text) [[unlikely]]
      fail_text();
  }

  void enter() {
    if (nesting_ >= limits_.nesting) [[unlikely]]
      fail_nesting();
    ++nesting_;
  }
  void leave() { --nesting_; }

 private:
  [[noreturn]] void fail_work() const;
  [[noreturn]] void fail_memory() const;
  [[noreturn]] void fail_text() const;
  [[noreturn]] void fail_nesting() const;

  Limits limits_;
  std::int64_t work_ = 0;
  std::int64_t memory_ = 0;
  int nesting_ = 0;
};

/// One level of nesting, for the lifetime of the object.
class Nesting {
 public:
  explicit Nesting(Budget& budget) : budget_(budget) { budget_.enter(); }
  ~Nesting() { budget_.leave(); }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  Budget& budget_;
};

/// Bytes that count against a budget for the lifetime of the object.
class Charge {
 public:
  Charge(Budget& budget, std::int64_t bytes) : budget_(&budget), bytes_(bytes) { budget.reserve(bytes); }
  ~Charge() {
    if (budget_ != nullptr) budget_->release(bytes_);
  }
  Charge(Charge&& other) noexcept
      : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  Charge& operator=(Charge&&) = delete;

  void grow(std::int64_t bytes) {
    budget_->reserve(bytes);
    bytes_ += bytes;
  }

 private:
  Budget* budget_;
  std::int64_t bytes_;
};

/// A text under construction, charged as it grows.
class TextBuilder {
 public:
  explicit TextBuilder(Budget& budget) : budget_(budget), charge_(budget, 0) {}

  void append(std::string_view part) {
    grow(part.size());
    text_.append(part);
  }
  void append(std::size_t count, char c) {
    grow(count);
    text_.append(count, c);
  }

  Budget& budget() const { return budget_; }
  const std::string& text() const { return text_; }
  std::string take() { return std::move(text_); }

 private:
  void grow(std::size_t bytes) {
    budget_.check_text_size(static_cast<std::int64_t>(text_.size() + bytes));
    budget_.work_bytes(bytes);
    charge_.grow(static_cast<std::int64_t>(bytes));
  }

  Budget& budget_;
  Charge charge_;
  std::string text_;
};

}  // namespace qpn8::jinja
