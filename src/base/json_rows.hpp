#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace qpn8 {

/// Prints a JSON document so that a table in it reads as one: an array of objects or arrays has one element a line, an
/// object that would be long one entry a line; whatever else is printed on the line where it stands, and an element of
/// a table always is, without spaces. Ends with a line break.
std::string dump_rows(const nlohmann::ordered_json& document);

}  // namespace qpn8
