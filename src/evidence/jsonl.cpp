#include "evidence/jsonl.hpp"

#include <fmt/format.h>

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
    const auto object = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) {
      throw Error(Error::bad_file, line_name(file, line) + ": not a JSON object; expected one object a line");
    }
    visit(object, line);
  }
  if (stream.bad()) throw Error(Error::bad_file, file + ": cannot be read to its end");
}

}  // namespace qpn8
