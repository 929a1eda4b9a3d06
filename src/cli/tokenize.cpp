#include "cli/tokenize.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/input_stream.hpp"
#include "base/json_lines.hpp"
#include "cli/commands.hpp"
#include "cli/model_folder.hpp"
#include "cli/not_empty.hpp"
#include "cli/output.hpp"
#include "qpn8/error.hpp"

namespace qpn8::cli {
namespace {

using json = nlohmann::ordered_json;

struct Item {
  std::string text;
  std::vector<TokenId> ids;
};

TokenId parse_id(const json& value) {
  constexpr auto kHighest = std::uint64_t{std::numeric_limits<TokenId>::max()};
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kHighest) {
    throw Error(Error::bad_value, R"("ids" holds something that is no id; ids are whole numbers from 0)");
  }
  return value.get<TokenId>();
}

Item process(const Tokenizer& tokenizer, const TokenizeOptions& options, const json& value) {
  const auto text = value.find("text");
  const auto ids = value.find("ids");
  Item item;
  if (text != value.end() && !options.decode) {
    if (!text->is_string()) throw Error(Error::bad_value, R"("text" is not a string)");
    item.text = text->get<std::string>();
    item.ids = tokenizer.encode(item.text, options.special);
    return item;
  }
  if (ids == value.end()) {
    throw Error(Error::bad_value, options.decode ? R"(has no "ids" to decode)" : R"(has neither "text" nor "ids")");
  }
  if (!ids->is_array()) throw Error(Error::bad_value, R"("ids" is not an array)");
  for (const json& id : *ids) item.ids.push_back(parse_id(id));
  item.text = tokenizer.decode(item.ids);
  return item;
}

}  // namespace

void tokenize_lines(const Tokenizer& tokenizer, const TokenizeOptions& options, std::istream& input,
                    const std::string& input_name, const std::function<void(std::string_view)>& write) {
  for_each_json_line(input, input_name, [&](const json& value, std::int64_t number) {
    try {
      const Item item = process(tokenizer, options, value);
      write(json{{"text", item.text}, {"ids", item.ids}}.dump() + "\n");
    } catch (const Error& error) {
      throw Error(error.kind(), fmt::format("{}: {}", line_name(input_name, number), error.what()));
    }
  });
}

void add_tokenize(CLI::App& program) {
  struct Arguments {
    std::filesystem::path model;
    std::filesystem::path tokenizer;
    TokenizeOptions options;
  };
  CLI::App* const command =
      program.add_subcommand("tokenize", R"(Encode {"text"} or decode {"ids"}, JSON lines from standard input)");
  const auto arguments = std::make_shared<Arguments>();
  CLI::Option* const model =
      command->add_option("--model", arguments->model, "a Hugging Face folder, whose tokenizer.json is read")
          ->check(model_folder())
          ->type_name("DIR");
  command->add_option("--tokenizer", arguments->tokenizer, "a tokenizer.json, instead of a folder")
      ->check(not_empty("a file"))
      ->type_name("FILE")
      ->excludes(model);
  command->add_flag("--decode", arguments->options.decode, R"(decode "ids" even where a line has "text" too)");
  command->add_flag("--special", arguments->options.special, "encode with BOS and the like");
  command->callback([arguments] {
    const bool has_file = !arguments->tokenizer.empty();
    if (!has_file && arguments->model.empty()) {
      throw Error(Error::bad_argument,
                  "qpn8 tokenize: no tokenizer is given; expected --model DIR or --tokenizer FILE");
    }
    const Tokenizer tokenizer(has_file ? arguments->tokenizer : arguments->model / "tokenizer.json");
    InputStream input(STDIN_FILENO, "stdin");
    tokenize_lines(tokenizer, arguments->options, input, input.name(), write_output);
  });
}

}  // namespace qpn8::cli
