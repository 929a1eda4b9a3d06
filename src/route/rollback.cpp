#include "route/rollback.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <string_view>

#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

constexpr std::string_view kVariable = "QPN8";
constexpr std::string_view kContractPrefix = "QPN8_CONTRACT_";

bool on_or_off(const std::string& variable, const std::string& value) {
  if (value == "on") return true;
  if (value == "off") return false;
  throw Error(Error::bad_argument, fmt::format("{} is \"{}\"; legal values: on, off", variable, value));
}

Qpn8Mode parse_flag(const std::string& value) {
  if (value == "auto") return Qpn8Mode::automatic;
  if (value == "on") return Qpn8Mode::on;
  if (value == "off") return Qpn8Mode::off;
  if (value == "require") return Qpn8Mode::require;
  throw Error(Error::bad_argument, fmt::format("--qpn8 {}: legal values: auto, on, off, require", value));
}

const Contract& find_by_variable(const std::string& variable, const std::vector<Contract>& contracts) {
  std::string variables;
  for (const Contract& contract : contracts) {
    const std::string candidate = contract_variable(contract.name);
    if (candidate == variable) return contract;
    variables += (variables.empty() ? "" : ", ") + candidate;
  }
  throw Error(Error::bad_argument,
              fmt::format("{}: no contract has this variable; those that have one: {}", variable, variables));
}

}  // namespace

std::string contract_variable(const std::string& contract_name) {
  std::string variable(kContractPrefix);
  for (const char c : contract_name) {
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

Rollback read_rollback(const std::optional<std::string>& flag, const Environment& environment,
                       const std::vector<Contract>& contracts) {
  Rollback rollback;
  for (const auto& [variable, value] : environment) {
    if (variable == kVariable) {
      rollback.mode = on_or_off(variable, value) ? Qpn8Mode::on : Qpn8Mode::off;
      rollback.mode_source = fmt::format("{}={}", variable, value);
    } else if (variable.starts_with(kContractPrefix)) {
      const Contract& contract = find_by_variable(variable, contracts);
      rollback.contracts[contract.name] = on_or_off(variable, value);
    }
  }
  if (flag) {
    rollback.mode = parse_flag(*flag);
    rollback.mode_source = fmt::format("--qpn8 {}", *flag);
  }
  return rollback;
}

ContractSwitch decide(const Rollback& rollback, const Contract& contract) {
  if (rollback.mode == Qpn8Mode::off) return {false, rollback.mode_source};
  if (const auto named = rollback.contracts.find(contract.name); named != rollback.contracts.end()) {
    return {named->second, fmt::format("{}={}", contract_variable(contract.name), named->second ? "on" : "off")};
  }
  if (rollback.mode == Qpn8Mode::on) return {true, rollback.mode_source};
  return {contract.default_on, "its default"};
}

Environment process_environment() {
  Environment variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kVariable) || equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace qpn8
