#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qpn8/contract.hpp"

namespace qpn8 {

/// What was said about QPN8 as a whole, by --qpn8 or by the variable QPN8.
enum class Qpn8Mode : std::uint8_t {
  automatic,  ///< each contract's own default
  on,         ///< contracts are on, whatever their default
  off,        ///< everything is dense
  require,    ///< as automatic, and a fallback that no contract foresaw is an error
};

using Environment = std::map<std::string, std::string>;

/// What turns contracts on and off, with the words that said so. The precedence is the design's:
/// off > QPN8_CONTRACT_<NAME> > on > the contract's default. The flag, where it is given, replaces the variable QPN8;
/// it does not touch QPN8_CONTRACT_<NAME>, which has no flag of its own.
struct Rollback {
  Qpn8Mode mode = Qpn8Mode::automatic;
  std::string mode_source;                ///< "--qpn8 off", "QPN8=off"; empty if nothing was said
  std::map<std::string, bool> contracts;  ///< by name, what QPN8_CONTRACT_<NAME> says
};

/// Reads the flag's value, if it was given, and the variables QPN8 and QPN8_CONTRACT_*.
///
/// Error::bad_argument names the flag or the variable and its legal values: a value that is not one of them (also of a
/// QPN8 that the flag replaces), and a QPN8_CONTRACT_* of which no contract is the name.
Rollback read_rollback(const std::optional<std::string>& flag, const Environment& environment,
                       const std::vector<Contract>& contracts);

/// Whether a contract is on, and what decided it ("QPN8_CONTRACT_CPU_AVX2=off", "its default").
struct ContractSwitch {
  bool on = false;
  std::string decided_by;
};

ContractSwitch decide(const Rollback& rollback, const Contract& contract);

/// The variables of this process whose names begin with QPN8. Call it before threads that change the environment.
Environment process_environment();

}  // namespace qpn8
