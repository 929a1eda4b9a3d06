#pragma once

#include "model/architecture.hpp"

namespace qpn8 {

// deepseek_v4.cpp, llama.cpp, qwen2.cpp, qwen3.cpp, qwen3_moe.cpp define one each, hybrid.cpp the last four.
extern const Architecture kDeepseekV4;
extern const Architecture kLlama;
extern const Architecture kQwen2;
extern const Architecture kQwen3;
extern const Architecture kQwen3Moe;
extern const Architecture kQwen3Next;
extern const Architecture kQwen35Text;
extern const Architecture kQwen35MoeText;
extern const Architecture kQwen4ExpText;

}  // namespace qpn8
