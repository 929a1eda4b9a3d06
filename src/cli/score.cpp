#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/input_stream.hpp"
#include "base/json_lines.hpp"
#include "cli/commands.hpp"
#include "cli/not_empty.hpp"
#include "cli/output.hpp"
#include "evidence/answer_parser.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cli {
namespace {

using Json = nlohmann::ordered_json;

/// A stored output: what was answered, and what would have been right.
struct StoredOutput {
  const std::string* text;
  const char* expected_key;
};

/// {"text", "answer"}, or the form of ab's items.jsonl, {"answer", "expected"}, where "answer" is the model's text. A
/// line with "text" is of the first form, whatever else it has.
StoredOutput stored_output(const Json& row, const std::string& where) {
  const bool of_ab = !row.contains("text") && row.contains("expected");
  const char* key = of_ab ? "answer" : "text";
  const auto text = row.find(key);
  if (text == row.end() || !text->is_string()) {
    throw Error(Error::bad_file,
                fmt::format(R"({}: no "{}" that is a text; expected {{"text": ..., "answer": ...}}, or a line of )"
                            R"(items.jsonl: {{"answer": ..., "expected": ...}})",
                            where, key));
  }
  return {&text->get_ref<const std::string&>(), of_ab ? "expected" : "answer"};
}

/// A row without a right answer, or with null, expects nothing and is never correct.
std::optional<std::int64_t> expected_answer(const Json& row, const char* key, const std::string& where) {
  const auto answer = row.find(key);
  if (answer == row.end() || answer->is_null()) return std::nullopt;
  const std::optional<std::int64_t> expected = parse_gold(*answer);
  if (!expected) {
    throw Error(Error::bad_file,
                fmt::format(R"({}: "{}" has no integer that can be read; expected an integer, or a text with "#### N")",
                            where, key));
  }
  return expected;
}

std::string score_line(const Json& row, const std::string& where) {
  const StoredOutput output = stored_output(row, where);
  const std::optional<std::int64_t> value = parse_answer(*output.text);
  const std::optional<std::int64_t> expected = expected_answer(row, output.expected_key, where);
  const Json line = {{"value", value ? Json(*value) : Json()},
                     {"expected", expected ? Json(*expected) : Json()},
                     {"correct", value && value == expected}};
  return line.dump() + "\n";
}

void score_lines(InputStream& input) {
  for_each_json_line(input, input.name(), [&](const Json& row, std::int64_t line) {
    write_output(score_line(row, line_name(input.name(), line)));
  });
}

void score(const std::string& file) {
  if (file == "-") {
    InputStream input(STDIN_FILENO, "stdin");
    score_lines(input);
  } else {
    InputStream input(file);
    score_lines(input);
  }
}

}  // namespace

void add_score(CLI::App& program) {
  const auto file = std::make_shared<std::string>();
  CLI::App& command = *program.add_subcommand("score", "Score stored outputs again");
  command.add_option("file", *file, R"(JSON lines with "text" and "answer", or items.jsonl of ab; - is stdin)")
      ->required()
      ->check(not_empty("a JSON lines file, or - for stdin"))
      ->type_name("FILE");
  command.callback([file] { score(*file); });
}

}  // namespace qpn8::cli
