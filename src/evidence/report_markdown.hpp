#pragma once

#include <string>

#include "evidence/ab_result.hpp"

namespace qpn8 {

/// The comparison for a pull request: verdict, tables, notable items in short.
std::string to_markdown(const AbResult& result);

}  // namespace qpn8
