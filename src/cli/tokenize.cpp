#include "cli/tokenize.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/json_lines.hpp"
#include "cli/commands.hpp"
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
  CLI::Option_group* const source = command->add_option_group("tokenizer");
  source->add_option("--model", arguments->model, "Folder of a checkpoint, whose tokenizer.json is read");
  source->add_option("--tokenizer", arguments->tokenizer, "A tokenizer.json");
  source->require_option(1);
  command->add_flag("--decode", arguments->options.decode, R"(Decode "ids" even where a line has "text" too)");
  command->add_flag("--special", arguments->options.special, "Encode with BOS and the like");
  command->callback([arguments] {
    const bool has_file = !arguments->tokenizer.empty();
    const Tokenizer tokenizer(has_file ? arguments->tokenizer : arguments->model / "tokenizer.json");
    tokenize_lines(tokenizer, arguments->options, std::cin, "standard input", write_output);
  });
}

}  // namespace qpn8::cli
