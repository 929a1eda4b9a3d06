#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <nlohmann/json.hpp>
#include <string>

namespace qpn8 {

/// "data.jsonl:12", where an error of that line is.
std::string line_name(const std::string& file, std::int64_t line);

/// Calls visit(object, line) for every line that is not blank, lines counted from 1; the order of keys is kept. A line
/// that is not a JSON object, as parse_json() reads it, is Error::bad_file "FILE:LINE: ..."; so is a stream that fails
/// while it is read.
void for_each_json_line(std::istream& stream, const std::string& file,
                        const std::function<void(const nlohmann::ordered_json&, std::int64_t)>& visit);

}  // namespace qpn8
