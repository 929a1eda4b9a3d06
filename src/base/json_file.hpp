#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace qpn8 {

/// What a JSON text may cost before it is refused. `values` bounds the memory of the result (about 100 bytes a value,
/// beside the strings), `depth` the nesting of arrays and objects, and with it the stack that whoever walks, copies or
/// prints the result takes.
struct JsonLimits {
  std::size_t bytes = std::size_t{128} << 20;
  std::size_t values = 8'000'000;
  std::size_t depth = 64;
};

/// Parses one JSON text strictly: RFC 8259 and UTF-8, no comments, no NaN, nothing after the value, and no key twice in
/// an object. Error::bad_file "NAME:LINE:COLUMN: ..." where it is not; column counts bytes, from 1, and LINE starts
/// with `first_line`. Needs no stack in proportion to the nesting. Thread-safe.
///
/// Json is nlohmann::json, or nlohmann::ordered_json where the order of keys matters.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text, const std::string& name, const JsonLimits& limits = {},
                std::int64_t first_line = 1);

/// The same for a file, which must be a regular one; Error::bad_file naming it if it cannot be read.
template <class Json = nlohmann::json>
Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits = {});

/// The same for a text that may be anything: nothing if it is not JSON within the limits.
std::optional<nlohmann::ordered_json> try_parse_json(std::string_view text, const JsonLimits& limits = {});

/// A value of untrusted JSON as a one-line message shows it: "an object", "an array", a text in quotes, or the scalar.
std::string describe(const nlohmann::json& value);
std::string describe(const nlohmann::ordered_json& value);

/// A value of untrusted JSON as its text, in one line of at most 80 bytes.
std::string json_in_message(const nlohmann::json& value);

}  // namespace qpn8
