#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace qpn8 {

/// What a JSON text may cost before it is refused. `values` bounds the memory of the result (about 100 bytes a value,
/// beside the strings), `depth` the nesting of arrays and objects.
struct JsonLimits {
  std::size_t bytes = std::size_t{128} << 20;
  std::size_t values = 8'000'000;
  std::size_t depth = 64;
};

/// Parses one JSON text strictly: RFC 8259 and UTF-8, no comments, no NaN, nothing after the value, and no key twice in
/// an object. Error::bad_file "NAME:LINE:COLUMN: ..." where it is not; column counts bytes, from 1.
/// Needs no stack in proportion to the nesting. Thread-safe.
nlohmann::json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits = {});

/// The same for a file; Error::bad_file naming it if it cannot be read.
nlohmann::json read_json_file(const std::filesystem::path& path, const JsonLimits& limits = {});

}  // namespace qpn8
