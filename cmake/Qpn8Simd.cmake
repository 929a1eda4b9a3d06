# qpn8_simd: what a library with Highway kernels links.
add_library(qpn8_simd INTERFACE)
target_link_libraries(qpn8_simd INTERFACE PkgConfig::HWY)
target_compile_definitions(qpn8_simd INTERFACE
  # One compiled copy of each kernel for AVX-512, AVX2 and plain C++ on x86, for NEON on Arm: every further copy costs
  # build time, and the processors that only the ones left out would serve are few.
  "HWY_DISABLED_TARGETS=(HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)"
  # Highway 1.0 falls back to one lane a vector under GCC < 12.3, whose vectoriser miscompiles 16-bit MulHigh (GCC bug
  # 106322). No kernel here multiplies 16-bit lanes, and one lane is too few for the transposes of the GEMM.
  HWY_BROKEN_EMU128=0)
if(QPN8_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # Highway's plain C++ target converts a lane that is NaN to an integer, which C++ leaves undefined; the kernels that
  # let NaN through (so that it shows) do not use the integer of such a lane. g++ has no such check in "undefined".
  target_compile_options(qpn8_simd INTERFACE -fno-sanitize=float-cast-overflow)
endif()
