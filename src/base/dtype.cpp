#include "base/dtype.hpp"

#include <array>

#include "base/check.hpp"

namespace qpn8 {
namespace {

struct Entry {
  DType type;
  std::string_view name;
  std::size_t size;
};

constexpr std::array kTypes = {
    Entry{DType::f32, "F32", 4},         Entry{DType::f16, "F16", 2},         Entry{DType::bf16, "BF16", 2},
    Entry{DType::f8_e4m3, "F8_E4M3", 1}, Entry{DType::f8_e8m0, "F8_E8M0", 1}, Entry{DType::i64, "I64", 8},
    Entry{DType::i32, "I32", 4},         Entry{DType::u8, "U8", 1},           Entry{DType::i8, "I8", 1},
};

const Entry& entry(DType type) {
  for (const Entry& candidate : kTypes) {
    if (candidate.type == type) return candidate;
  }
  check(false, "every DType has a row in kTypes");
  return kTypes.front();
}

}  // namespace

std::size_t size_of(DType type) { return entry(type).size; }

std::string_view to_string(DType type) { return entry(type).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const Entry& candidate : kTypes) {
    if (candidate.name == name) return candidate.type;
  }
  return std::nullopt;
}

}  // namespace qpn8
