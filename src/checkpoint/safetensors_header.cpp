#include "checkpoint/safetensors_header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <tuple>

#include "base/printable.hpp"
#include "checkpoint/safetensors_json.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeader = 100'000'000;
constexpr std::string_view kSupported = "F32, F16, BF16, F8_E4M3, F8_E8M0, I64, I32 or U8";

static_assert(std::endian::native == std::endian::little, "tensors are used as they lie in the file");

[[noreturn]] void fail(const std::string& file, const std::string& what) {
  throw Error(Error::bad_file, file + ": " + what);
}

[[noreturn]] void fail(const std::string& file, const std::string& tensor, const std::string& what) {
  fail(file, fmt::format("tensor {}: {}", printable(tensor), what));
}

std::string_view header_text(std::span<const std::byte> file, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.starts_with("version https://git-lfs")) {
    fail(name, "is a Git LFS pointer, expected the weights themselves (git lfs pull fetches them)");
  }
  if (file.size() < kLengthBytes) {
    fail(name, fmt::format("is {} bytes long, expected a header of at least 8 (truncated download?)", file.size()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), kLengthBytes);
  if (length > kMaxHeader) {
    fail(name, fmt::format("header length is {}, expected at most {} (not a safetensors file?)", length, kMaxHeader));
  }
  if (length > file.size() - kLengthBytes) {
    fail(name, fmt::format("header ends at byte {}, the file at {} (truncated download?)", kLengthBytes + length,
                           file.size()));
  }
  const std::string_view header = text.substr(kLengthBytes, length);
  if (!header.starts_with('{')) fail(name, "the header does not begin with '{' (not a safetensors file?)");
  return header;
}

/// The tensor's size in bytes by dtype and shape. Dimensions of zero count as one in the check for overflow, so that
/// the product of any of them can be formed safely later.
std::size_t bytes_needed(const SafetensorsEntry& entry, const std::string& file) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 56;
  auto product = static_cast<std::int64_t>(size_of(entry.dtype));
  bool empty = false;
  for (const std::int64_t size : entry.shape) {
    empty = empty || size == 0;
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(size, 1), &product) || product > kLimit) {
      fail(file, entry.name, fmt::format("shape [{}] has more elements than any file", fmt::join(entry.shape, ", ")));
    }
  }
  return empty ? 0 : static_cast<std::size_t>(product);
}

SafetensorsEntry checked_entry(RawTensor&& raw, std::size_t data_begin, const std::string& file) {
  const auto dtype = parse_dtype(raw.dtype);
  if (!dtype) {
    throw Error(Error::unsupported, fmt::format("{}: tensor {}: dtype {} is not supported, expected {}", file,
                                                printable(raw.name), printable(raw.dtype), kSupported));
  }
  SafetensorsEntry entry{std::move(raw.name), *dtype, std::move(raw.shape), 0, 0};
  if (raw.begin > raw.end) {
    fail(file, entry.name, fmt::format("data_offsets [{}, {}] end before they begin", raw.begin, raw.end));
  }
  const std::size_t needed = bytes_needed(entry, file);
  if (raw.end - raw.begin != needed) {
    fail(file, entry.name,
         fmt::format("data_offsets [{}, {}] hold {} bytes, {} of shape [{}] needs {}", raw.begin, raw.end,
                     raw.end - raw.begin, to_string(entry.dtype), fmt::join(entry.shape, ", "), needed));
  }
  std::uint64_t end = 0;
  if (__builtin_add_overflow(raw.end, std::uint64_t{data_begin}, &end)) {
    fail(file, entry.name, fmt::format("data_offsets [{}, {}] lie beyond any file", raw.begin, raw.end));
  }
  entry.begin = data_begin + raw.begin;
  entry.end = end;
  return entry;
}

/// In file order: the end of each entry is the begin of the next, and the last ends where the file does.
void check_coverage(const std::vector<SafetensorsEntry>& entries, std::size_t data_begin, std::size_t file_size,
                    const std::string& file) {
  std::size_t reached = data_begin;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const SafetensorsEntry& entry = entries[i];
    if (entry.end > file_size) {
      fail(file, entry.name,
           fmt::format("ends at byte {}, the file at {} (truncated download?)", entry.end, file_size));
    }
    if (entry.begin < reached) {
      fail(file, entry.name,
           fmt::format("begins at byte {}, tensor {} ends at {}: they overlap", entry.begin,
                       printable(entries[i - 1].name), reached));
    }
    if (entry.begin > reached) {
      fail(file, entry.name, fmt::format("begins at byte {}, expected {}: a hole before it", entry.begin, reached));
    }
    if (entry.begin != entry.end && entry.begin % size_of(entry.dtype) != 0) {
      fail(file, entry.name,
           fmt::format("begins at byte {}, {} needs a multiple of {} (saving the file anew aligns it)", entry.begin,
                       to_string(entry.dtype), size_of(entry.dtype)));
    }
    reached = entry.end;
  }
  if (reached != file_size) {
    fail(file, fmt::format("the last tensor ends at byte {}, the file at {}: bytes that belong to no tensor", reached,
                           file_size));
  }
}

void check_names(const std::vector<SafetensorsEntry>& entries, const std::string& file) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const SafetensorsEntry& entry : entries) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) fail(file, std::string(*twice), "stands twice in the header");
}

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors_header(std::span<const std::byte> file, const std::string& name) {
  const std::string_view header = header_text(file, name);
  const std::size_t data_begin = kLengthBytes + header.size();
  std::vector<SafetensorsEntry> entries;
  for (RawTensor& raw : parse_header_json(header, name)) {
    entries.push_back(checked_entry(std::move(raw), data_begin, name));
  }
  check_names(entries, name);
  std::sort(entries.begin(), entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  check_coverage(entries, data_begin, file.size(), name);
  return entries;
}

}  // namespace qpn8
