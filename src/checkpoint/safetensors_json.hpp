#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qpn8 {

/// A tensor as the header's JSON gives it; nothing but the form is checked.
struct RawTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0;  ///< data_offsets
  std::uint64_t end = 0;
};

/// Reads {"NAME": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}, ..., "__metadata__": {"KEY": "TEXT"}}.
/// Event by event, without a tree of values, so that a hostile header of 100 MB costs no more than the list it gives.
/// Error::bad_file "FILE: ..." naming the tensor. The same name twice is for the caller to find.
std::vector<RawTensor> parse_header_json(std::string_view header, const std::string& file);

}  // namespace qpn8
