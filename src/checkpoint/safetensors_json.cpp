#include "checkpoint/safetensors_json.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/printable.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDimensions = 8;

/// The events of the JSON parser, and where in the header's fixed form they fall. Returning false ends the parse.
class HeaderHandler {
 public:
  bool null() { return unexpected("null"); }
  bool boolean(bool value) { return unexpected(value ? "true" : "false"); }
  bool number_integer(json::number_integer_t value) { return unexpected(std::to_string(value)); }
  bool number_float(json::number_float_t, const std::string& text) { return unexpected(text); }
  bool binary(json::binary_t&) { return unexpected("binary data"); }

  bool number_unsigned(json::number_unsigned_t value) {
    if (place_ == Place::shape) return dimension(value);
    if (place_ == Place::offsets) return offset(value);
    return unexpected(std::to_string(value));
  }

  bool string(std::string& value) {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::tensor || member_ != kDtype) return unexpected("\"" + value + "\"");
    tensors_.back().dtype = std::move(value);
    return true;
  }

  bool start_object(std::size_t) {
    if (place_ == Place::outside) {
      place_ = Place::top;
      return true;
    }
    if (place_ != Place::top) return unexpected("an object");
    place_ = in_metadata_ ? Place::metadata : Place::tensor;
    members_.clear();
    return true;
  }

  bool key(std::string& name) {
    if (place_ == Place::top) return top_key(name);
    if (!members_.insert(name).second) return fail(fmt::format("key \"{}\" stands twice", printable(name)));
    if (place_ == Place::tensor && name != kDtype && name != kShape && name != kOffsets) {
      return fail(fmt::format("key \"{}\" is not one of dtype, shape and data_offsets", printable(name)));
    }
    member_ = name;
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor && members_.size() != 3) {
      return fail("expected all of dtype, shape and data_offsets");
    }
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }

  bool start_array(std::size_t) {
    if (place_ == Place::tensor && member_ == kShape) {
      place_ = Place::shape;
    } else if (place_ == Place::tensor && member_ == kOffsets) {
      place_ = Place::offsets;
    } else {
      return unexpected("an array");
    }
    return true;
  }

  bool end_array() {
    if (place_ == Place::offsets && offsets_ != 2) return fail("data_offsets: expected two numbers, begin and end");
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) {
    fault_ = fmt::format("the header is not valid JSON at its byte {}", position);
    return false;
  }

  std::vector<RawTensor> take() { return std::move(tensors_); }
  const std::string& fault() const { return fault_; }

 private:
  enum class Place { outside, top, metadata, tensor, shape, offsets };
  static constexpr std::string_view kDtype = "dtype";
  static constexpr std::string_view kShape = "shape";
  static constexpr std::string_view kOffsets = "data_offsets";

  bool top_key(std::string& name) {
    in_metadata_ = name == "__metadata__";
    if (in_metadata_) {
      if (std::exchange(metadata_seen_, true)) return fail("stands twice in the header");
      return true;
    }
    tensors_.push_back({std::move(name), {}, {}, 0, 0});
    offsets_ = 0;
    return true;
  }

  bool dimension(std::uint64_t value) {
    std::vector<std::int64_t>& shape = tensors_.back().shape;
    if (shape.size() == kMaxDimensions) {
      return fail(fmt::format("shape: more than {} dimensions", kMaxDimensions));
    }
    if (!std::in_range<std::int64_t>(value)) return fail(fmt::format("shape: {} is larger than any file", value));
    shape.push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool offset(std::uint64_t value) {
    if (++offsets_ > 2) return fail("data_offsets: expected two numbers, begin and end");
    (offsets_ == 1 ? tensors_.back().begin : tensors_.back().end) = value;
    return true;
  }

  bool unexpected(const std::string& value) {
    switch (place_) {
      case Place::shape:
        return fail(fmt::format("shape: {} is not a non-negative integer", printable(value)));
      case Place::offsets:
        return fail(fmt::format("data_offsets: {} is not a non-negative integer", printable(value)));
      case Place::tensor:
        return fail(fmt::format("{} is {}, expected {}", member_, printable(value),
                                member_ == kDtype ? "a string" : "a list of non-negative integers"));
      case Place::metadata:
        return fail(fmt::format("\"{}\" is {}, expected a string", printable(member_), printable(value)));
      default:
        return fail(fmt::format("is {}, expected an object", printable(value)));
    }
  }

  bool fail(const std::string& what) {
    if (place_ == Place::outside) {
      fault_ = "header: " + what;
    } else if (in_metadata_) {
      fault_ = "__metadata__: " + what;
    } else {
      fault_ = fmt::format("tensor {}: {}", printable(tensors_.back().name), what);
    }
    return false;
  }

  Place place_ = Place::outside;
  std::vector<RawTensor> tensors_;
  std::set<std::string> members_;  // of the object that is open
  std::string member_;
  bool in_metadata_ = false;
  bool metadata_seen_ = false;
  int offsets_ = 0;
  std::string fault_;
};

}  // namespace

std::vector<RawTensor> parse_header_json(std::string_view header, const std::string& file) {
  // The parser takes a NUL for the end of its input, and would not see what stands behind it.
  if (const auto nul = header.find('\0'); nul != std::string_view::npos) {
    throw Error(Error::bad_file, fmt::format("{}: the header holds a NUL at its byte {}", file, nul + 1));
  }
  HeaderHandler handler;
  if (!json::sax_parse(header, &handler)) throw Error(Error::bad_file, file + ": " + handler.fault());
  return handler.take();
}

}  // namespace qpn8
