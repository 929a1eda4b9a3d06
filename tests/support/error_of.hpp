#pragma once

#include <optional>
#include <string>

#include "qpn8/error.hpp"

namespace qpn8::test {

/// The message of the Error that `action` throws; "(no error)" if it throws none. The kind goes to `kind` if asked for.
template <class Action>
std::string error_of(Action&& action, std::optional<Error::Kind>* kind = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (kind != nullptr) *kind = error.kind();
    return error.what();
  }
  return "(no error)";
}

}  // namespace qpn8::test
