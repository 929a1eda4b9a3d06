// block_fp8 MODEL OUT: a deepseek_v4 folder again, as DeepSeek publishes it: FP8 by blocks, experts in FP8 or FP4.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "block_fp8/block_fp8.hpp"
#include "qpn8/error.hpp"

namespace {

struct Command {
  std::string model;
  std::string out;
  std::optional<std::string> dequantised;
  qpn8::BlockFp8Options options;
};

int run(Command& command, int argc, char** argv) {
  CLI::App app("Quantise a deepseek_v4 folder by blocks of 128 x 128");
  const std::map<std::string, qpn8::DType> scales = {{"f32", qpn8::DType::f32}, {"e8m0", qpn8::DType::f8_e8m0}};
  const std::map<std::string, qpn8::ExpertForm> experts = {
      {"fp8", qpn8::ExpertForm::fp8}, {"fp4", qpn8::ExpertForm::fp4}, {"keep", qpn8::ExpertForm::kept}};
  app.add_option("model", command.model, "the folder to read")->required();
  app.add_option("out", command.out, "the folder to write")->required();
  app.add_option_function<std::string>(
         "--scales", [&](const std::string& name) { command.options.scales = scales.at(name); }, "f32 or e8m0")
      ->check(CLI::IsMember(scales));
  app.add_option_function<std::string>(
         "--experts", [&](const std::string& name) { command.options.experts = experts.at(name); }, "fp8, fp4 or keep")
      ->check(CLI::IsMember(experts));
  app.add_option("--dequantised", command.dequantised, "also write what the codes stand for, in FP32, to this folder");
  CLI11_PARSE(app, argc, argv);
  qpn8::write_block_fp8(command.model, command.out, command.options);
  if (command.dequantised) qpn8::write_dequantised(command.out, *command.dequantised);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Command command;
    return run(command, argc, argv);
  } catch (const qpn8::Error& error) {
    std::fprintf(stderr, "block_fp8: %s\n", error.what());
    return error.exit_status();
  }
}
