#pragma once

#include <cstdint>
#include <span>

#include "qpn8/half.hpp"

namespace qpn8 {

/// Quantises one output channel (row of a weight) to E4M3 codes and returns its scale: amax / 448 in FP32, or 1 for an
/// all-zero row. codes[i] = encode_e4m3(weight[i] / scale), rounded to nearest even.
/// The scale is never below 2^-126, the least normal FP32 number: amax / 448 would lose its precision or vanish there
/// (amax < 5.3e-36), whereas the codes then only get coarser.
///
/// weight and codes have the same length (check()ed). A value that is not finite is Error::bad_value naming its index;
/// the caller adds the tensor and the row.
/// Pure; thread-safe. Cost: two passes over the row, nothing is allocated.
float quantize_channel(std::span<const Half> weight, std::span<std::uint8_t> codes);
float quantize_channel(std::span<const BFloat16> weight, std::span<std::uint8_t> codes);
float quantize_channel(std::span<const float> weight, std::span<std::uint8_t> codes);

/// Error::bad_value naming the index of the first scale that is not finite and positive, or so large that the largest
/// code (448) times it is not finite in FP32: a zero, a negative number or a sentinel would decode to garbage that
/// nothing later can tell from a result. Pure; thread-safe.
void check_scales(std::span<const float> scales);

/// Error::bad_value naming the index of the first NaN code (0x7f or 0xff). Pure; thread-safe.
void check_codes(std::span<const std::uint8_t> codes);

}  // namespace qpn8
