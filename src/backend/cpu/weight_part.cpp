#include "backend/cpu/weight_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "qpn8/e4m3.hpp"
#include "qpn8/error.hpp"
#include "qpn8/pack.hpp"
#include "qpn8/quantize.hpp"
#include "quant/e2m1.hpp"

namespace qpn8::cpu {
namespace {

std::int64_t blocks_of(std::int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; }

template <class Bits, Bits kExponent>
std::int64_t first_with_full_exponent(const std::byte* values, std::int64_t count) {
  const auto bits_at = [values](std::int64_t i) {
    Bits bits = 0;
    std::memcpy(&bits, values + i * static_cast<std::int64_t>(sizeof(Bits)), sizeof(Bits));
    return bits;
  };
  // One pass without an exit is a vector loop; the search is for the rare bad row.
  bool any = false;
  for (std::int64_t i = 0; i < count; ++i) any |= (bits_at(i) & kExponent) == kExponent;
  if (!any) return -1;
  std::int64_t i = 0;
  while ((bits_at(i) & kExponent) != kExponent) ++i;
  return i;
}

void check_fp4(const WeightPart& part) {
  const std::string& name = part.weight->name;
  if (part.block_scales == nullptr) {
    throw Error(Error::unsupported, fmt::format("{}: {} without scales; FP4 codes need one a row and {} inputs", name,
                                                to_string(part.weight->dtype), kFp4Group));
  }
  const CheckpointTensor& scales = *part.block_scales;
  const std::int64_t needed = 2 * part.weight->cols() / kFp4Group;
  if (scales.dtype != DType::f8_e8m0) {
    throw Error(Error::unsupported,
                fmt::format("{}: scales of FP4 codes are {}; F8_E8M0 is needed", scales.name, to_string(scales.dtype)));
  }
  if (2 * part.weight->cols() % kFp4Group != 0 || scales.rows() != part.weight->rows() || scales.cols() != needed) {
    throw Error(Error::bad_file,
                fmt::format("{}: shape [{}, {}], one scale a row and {} inputs of {} is [{}, {}]", scales.name,
                            scales.rows(), scales.cols(), kFp4Group, name, part.weight->rows(), needed));
  }
}

void check_type(const WeightPart& part) {
  switch (part.weight->dtype) {
    case DType::f32:
    case DType::f16:
    case DType::bf16:
      return;
    case DType::f8_e4m3:
      if (part.block_scales != nullptr) return;
      throw Error(Error::unsupported, fmt::format("{}: F8_E4M3 without block scales; \"{}_scale_inv\" is needed",
                                                  part.weight->name, part.weight->name));
    case DType::u8:
    case DType::i8:
      check_fp4(part);
      return;
    default:
      throw Error(Error::unsupported, fmt::format("{}: a weight of type {}; F32, F16, BF16 or F8_E4M3 is needed",
                                                  part.weight->name, to_string(part.weight->dtype)));
  }
}

/// Columns of the part's whole matrix.
std::int64_t all_cols(const WeightPart& part) { return part.weight->cols() * (is_fp4(part) ? 2 : 1); }

}  // namespace

void check_parts(const LinearSource& source) {
  const TensorDesc& planned = source.plan->tensor;
  std::int64_t rows = 0;
  for (const WeightPart& part : source.parts) {
    check_type(part);
    check(part.first_row >= 0 && part.rows >= 0 && part.first_row + part.rows <= part.weight->rows() &&
              part.first_col >= 0 && part.first_col + part.cols <= all_cols(part),
          "a part lies within its tensor");
    if (part.cols != planned.k) {
      throw Error(Error::bad_file, fmt::format("{}: {} inputs, {} needs {}", part.weight->name, part.cols,
                                               source.plan->name, planned.k));
    }
    rows += part.rows;
  }
  const auto fp4 = std::count_if(source.parts.begin(), source.parts.end(), is_fp4);
  if (fp4 != 0 && fp4 != static_cast<std::ptrdiff_t>(source.parts.size())) {
    throw Error(Error::unsupported,
                fmt::format("{}: some of its tensors are FP4 and some are not; one kind is needed", source.plan->name));
  }
  rows += source.zero_rows;
  if (rows != planned.n * planned.groups) {
    throw Error(Error::bad_file, fmt::format("{}: its tensors have {} rows together, {} are needed", source.plan->name,
                                             rows, planned.n * planned.groups));
  }
}

void check_bias(const LinearSource& source) {
  const std::vector<float>& bias = source.bias;
  check(bias.empty() || static_cast<std::int64_t>(bias.size()) == source.plan->tensor.n * source.plan->tensor.groups,
        "a bias for every output");
  const auto* values = reinterpret_cast<const std::byte*>(bias.data());
  const std::int64_t bad = first_non_finite(DType::f32, values, static_cast<std::int64_t>(bias.size()));
  if (bad < 0) return;
  throw Error(Error::bad_value, fmt::format("{}: value {} of its bias is not a finite number", source.plan->name, bad));
}

bool is_fp8(const WeightPart& part) { return part.weight->dtype == DType::f8_e4m3; }

bool is_fp4(const WeightPart& part) { return part.weight->dtype == DType::u8 || part.weight->dtype == DType::i8; }

const std::byte* row_bytes(const WeightPart& part, std::int64_t row) {
  const std::int64_t element = (part.first_row + row) * part.weight->cols() + part.first_col;
  return part.weight->bytes.data() + element * static_cast<std::int64_t>(size_of(part.weight->dtype));
}

Matrix<float> decode_block_scales(const WeightPart& part) {
  const CheckpointTensor& tensor = *part.block_scales;
  Matrix<float> scales(blocks_of(part.weight->rows()), blocks_of(part.weight->cols()));
  if (tensor.rows() != scales.rows() || tensor.cols() != scales.cols()) {
    throw Error(Error::bad_file,
                fmt::format("{}: shape [{}, {}], one scale a block of 128 x 128 of {} is [{}, {}]", tensor.name,
                            tensor.rows(), tensor.cols(), part.weight->name, scales.rows(), scales.cols()));
  }
  const std::span<float> values = scales.values();
  if (tensor.dtype == DType::f32) {
    std::memcpy(values.data(), tensor.bytes.data(), values.size_bytes());
  } else if (tensor.dtype == DType::f8_e8m0) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = decode_e8m0(std::to_integer<std::uint8_t>(tensor.bytes[i]));
  } else {
    throw Error(Error::unsupported, fmt::format("{}: block scales of type {}; F32 or F8_E8M0 is needed", tensor.name,
                                                to_string(tensor.dtype)));
  }
  try {
    check_scales(values);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", tensor.name, error.what()));
  }
  return scales;
}

std::int64_t first_non_finite(DType dtype, const std::byte* values, std::int64_t count) {
  switch (dtype) {
    case DType::f32:
      return first_with_full_exponent<std::uint32_t, 0x7f800000U>(values, count);
    case DType::f16:
      return first_with_full_exponent<std::uint16_t, 0x7c00U>(values, count);
    case DType::bf16:
      return first_with_full_exponent<std::uint16_t, 0x7f80U>(values, count);
    case DType::f8_e4m3:
      return first_with_full_exponent<std::uint8_t, 0x7fU>(values, count);
    default:
      check(false, "a type of floats");
      return -1;
  }
}

void require_finite(const WeightPart& part) {
  for (std::int64_t row = 0; row < part.rows; ++row) {
    const std::int64_t column = first_non_finite(part.weight->dtype, row_bytes(part, row), part.cols);
    if (column < 0) continue;
    throw Error(Error::bad_value, fmt::format("{}: row {} column {} is not a finite number", part.weight->name,
                                              part.first_row + row, part.first_col + column));
  }
}

void release_rows(const Checkpoint& checkpoint, const WeightPart& part, std::int64_t first, std::int64_t count) {
  if (count == 0 || part.cols == 0) return;
  const std::byte* begin = row_bytes(part, first);
  const std::byte* end =
      row_bytes(part, first + count - 1) + part.cols * static_cast<std::int64_t>(size_of(part.weight->dtype));
  checkpoint.release(*part.weight, {begin, end});
}

}  // namespace qpn8::cpu
