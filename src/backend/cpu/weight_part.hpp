#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/backend.hpp"
#include "qpn8/matrix.hpp"

// Reading the rectangles of checkpoint tensors that a projection is made of.

namespace qpn8::cpu {

/// Throws Error::bad_file naming the projection and the tensor unless the parts, stacked, are the planned matrix, and
/// Error::unsupported for a type that no route reads (I64 weights, FP8 or FP4 without scales).
void check_parts(const LinearSource& source);

/// Throws Error::bad_value naming the projection if a value of its bias is not finite.
void check_bias(const LinearSource& source);

bool is_fp8(const WeightPart& part);

/// E2M1 codes, two a byte.
bool is_fp4(const WeightPart& part);

/// The first byte of a row of the part, which is not FP4.
const std::byte* row_bytes(const WeightPart& part, std::int64_t row);

/// The block scales of the part's whole tensor, decoded: [ceil(rows / 128), ceil(cols / 128)]. Error::bad_file for
/// another shape, unsupported for a type other than F32 and E8M0, bad_value for a scale that is not finite and
/// positive; each names the scales' tensor.
Matrix<float> decode_block_scales(const WeightPart& part);

/// Index of the first value of a row, or FP8 code, that is not finite, or -1.
std::int64_t first_non_finite(DType dtype, const std::byte* values, std::int64_t count);

/// Throws Error::bad_value naming the tensor, the row and the column of the part's first value that is not finite;
/// returns if there is none.
void require_finite(const WeightPart& part);

/// The bytes of rows [first, first + count) will not be read again soon.
void release_rows(const Checkpoint& checkpoint, const WeightPart& part, std::int64_t first, std::int64_t count);

}  // namespace qpn8::cpu
