#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qpn8::cpu {

/// The instruction sets the CPU kernels are compiled for. `portable` is plain C++ and runs everywhere.
enum class Isa : std::uint8_t { avx512, avx2, neon, portable };

/// "avx512", "avx2", "neon", "portable": the names in contracts (cpu-avx512) and of the engine argument cpu_isa.
std::string_view to_string(Isa isa);

/// The inverse of to_string; Error::bad_argument with the legal names for anything else.
Isa parse_isa(std::string_view name);

/// What this machine and this build can run, best first; never empty.
std::vector<Isa> available_isas();

/// The instruction set the next kernel call uses: available_isas().front() unless use_isa() said otherwise.
Isa current_isa();

/// Makes every kernel of the process use `isa`, or the machine's best for nullopt. Error::missing_capability naming the
/// available ones if the machine lacks it. Not to be called while a kernel runs.
void use_isa(std::optional<Isa> isa);

}  // namespace qpn8::cpu
