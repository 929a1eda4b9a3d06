#include "route/contract_file.hpp"

#include <fmt/format.h>

#include <map>
#include <string_view>
#include <utility>

#include "base/embedded_file.hpp"
#include "base/mapped_file.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {

// Written by the build, from contracts/.
std::span<const EmbeddedFile> embedded_contracts();

const std::vector<Contract>& shipped_contracts() {
  static const std::vector<Contract> contracts = [] {
    std::vector<Contract> parsed;
    for (const EmbeddedFile& file : embedded_contracts()) {
      parsed.push_back(parse_contract(file.text, fmt::format("contracts/{}", file.name)));
    }
    return parsed;
  }();
  return contracts;
}

std::vector<Contract> load_contracts(std::span<const std::string> files) {
  std::map<std::string, std::string> owners;
  for (const Contract& contract : shipped_contracts()) owners.emplace(contract.name, "a shipped contract");

  std::vector<Contract> contracts;
  for (const std::string& file : files) {
    const MappedFile mapped(file);
    Contract contract = parse_contract(mapped.text(), file);
    const auto [owner, fresh] = owners.emplace(contract.name, file);
    if (!fresh) {
      throw Error(Error::bad_file, fmt::format(R"({}: "name" is "{}", which is that of {}; it must be one of its own)",
                                               file, contract.name, owner->second));
    }
    contracts.push_back(std::move(contract));
  }
  contracts.insert(contracts.end(), shipped_contracts().begin(), shipped_contracts().end());
  return contracts;
}

}  // namespace qpn8
