#include <fmt/format.h>

#include <CLI/App.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/json_lines.hpp"
#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "evidence/answer_parser.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cli {
namespace {

using Json = nlohmann::ordered_json;

/// A row without "answer", or with null, expects nothing and is never correct.
std::optional<std::int64_t> expected_answer(const Json& row, const std::string& where) {
  const auto answer = row.find("answer");
  if (answer == row.end() || answer->is_null()) return std::nullopt;
  const std::optional<std::int64_t> expected = parse_gold(*answer);
  if (!expected) {
    throw Error(Error::bad_file,
                where + R"(: "answer" has no integer that can be read; expected an integer, or a text with "#### N")");
  }
  return expected;
}

std::string score_line(const Json& row, const std::string& where) {
  const auto text = row.find("text");
  if (text == row.end() || !text->is_string()) {
    throw Error(Error::bad_file, where + R"(: no "text"; expected {"text": ..., "answer": ...})");
  }
  const std::optional<std::int64_t> value = parse_answer(text->get_ref<const std::string&>());
  const std::optional<std::int64_t> expected = expected_answer(row, where);
  const Json line = {{"value", value ? Json(*value) : Json()},
                     {"expected", expected ? Json(*expected) : Json()},
                     {"correct", value && value == expected}};
  return line.dump() + "\n";
}

void score(const std::string& file) {
  std::ifstream opened;
  if (file != "-") {
    opened.open(file);
    if (!opened || std::filesystem::is_directory(file)) {
      throw Error(Error::bad_file, file + ": cannot be opened; expected a JSON lines file, or - for stdin");
    }
  }
  const std::string name = file == "-" ? "stdin" : file;
  for_each_json_line(file == "-" ? std::cin : opened, name,
                     [&](const Json& row, std::int64_t line) { write_output(score_line(row, line_name(name, line))); });
}

}  // namespace

void add_score(CLI::App& program) {
  const auto file = std::make_shared<std::string>();
  CLI::App& command = *program.add_subcommand("score", "Score stored outputs again");
  command.add_option("file", *file, R"(JSON lines with "text" and "answer"; - is stdin)")
      ->required()
      ->type_name("FILE");
  command.callback([file] { score(*file); });
}

}  // namespace qpn8::cli
