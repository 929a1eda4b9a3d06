#pragma once

#include <span>
#include <string>
#include <vector>

#include "qpn8/contract.hpp"

namespace qpn8 {

/// The contracts of the files, in their order, and then the shipped ones: what a user adds is asked first.
///
/// Error::bad_file names a file that cannot be read, "FILE:LINE: ..." where parse_contract does, and a file whose
/// contract has the name of another.
std::vector<Contract> load_contracts(std::span<const std::string> files);

/// The contract as a file that parse_contract reads back to an equal one.
std::string to_text(const Contract& contract);

}  // namespace qpn8
