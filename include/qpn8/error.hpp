#pragma once

#include <stdexcept>
#include <string>

namespace qpn8 {

/// What the caller or a user did wrong, in one line: the culprit first (file, tensor or flag), what would be right
/// last. Faults of qpn8 itself are not Errors; those end in check() of src/base/check.hpp.
class Error : public std::runtime_error {
 public:
  enum Kind {
    bad_argument,        ///< a flag, an environment variable or an argument of the library
    bad_file,            ///< a file that is missing, truncated or malformed
    bad_value,           ///< data of the right form with a value that cannot be used (NaN codes, zero scales)
    unsupported,         ///< well-formed, but something qpn8 does not implement; the message names it
    unsupported_shape,   ///< a shape that no layout or schedule serves
    missing_capability,  ///< the machine lacks something that was required
    check_failed,        ///< a check that was asked for did not hold
  };

  Error(Kind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}

  Kind kind() const { return kind_; }

  /// The process's exit status for this error: 1 check_failed, 3 missing_capability, 2 everything else.
  int exit_status() const { return exit_status(kind_); }
  static int exit_status(Kind kind);

 private:
  Kind kind_;
};

}  // namespace qpn8
