#pragma once

#include <string_view>

namespace qpn8::cli {

/// Writes a result to stdout, unbuffered: text that streams is seen as it comes. Error::bad_file names stdout and the
/// reason if it is closed, full, or read by nobody any more.
void write_output(std::string_view text);

}  // namespace qpn8::cli
