#include "base/json_lines.hpp"

#include <fmt/format.h>

#include "base/json_file.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {

std::string line_name(const std::string& file, std::int64_t line) { return fmt::format("{}:{}", file, line); }

void for_each_json_line(std::istream& stream, const std::string& file,
                        const std::function<void(const nlohmann::ordered_json&, std::int64_t)>& visit) {
  std::string text;
  std::int64_t line = 0;
  while (std::getline(stream, text)) {
    ++line;
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto object = parse_json<nlohmann::ordered_json>(text, file, {}, line);
    if (!object.is_object()) {
      throw Error(Error::bad_file,
                  fmt::format("{}: is {}, expected one JSON object a line", line_name(file, line), describe(object)));
    }
    visit(object, line);
  }
  if (stream.bad()) throw Error(Error::bad_file, file + ": cannot be read to its end");
}

}  // namespace qpn8
