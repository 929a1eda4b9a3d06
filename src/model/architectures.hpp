#pragma once

#include "model/architecture.hpp"

namespace qpn8 {

// One definition a file: deepseek_v4.cpp, llama.cpp, qwen2.cpp, qwen3.cpp, qwen3_moe.cpp.
extern const Architecture kDeepseekV4;
extern const Architecture kLlama;
extern const Architecture kQwen2;
extern const Architecture kQwen3;
extern const Architecture kQwen3Moe;

}  // namespace qpn8
