#include "kernels/cpu/isa.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "hwy/highway.h"
#include "qpn8/error.hpp"

namespace qpn8::cpu {
namespace {

struct Entry {
  Isa isa;
  std::string_view name;
  std::int64_t hwy_target;
};

// Best first. Highway's baseline of plain C++ is compiled into every build.
constexpr std::array kIsas = {
    Entry{Isa::avx512, "avx512", HWY_AVX3},
    Entry{Isa::avx2, "avx2", HWY_AVX2},
    Entry{Isa::neon, "neon", HWY_NEON},
    Entry{Isa::portable, "portable", HWY_BASELINE_SCALAR},
};

const Entry& entry_of(Isa isa) {
  return *std::find_if(kIsas.begin(), kIsas.end(), [isa](const Entry& entry) { return entry.isa == isa; });
}

/// What this build holds and the machine can run, whatever use_isa() has restricted Highway to since.
std::int64_t machine_targets() {
  static const std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return targets;
}

std::vector<Isa> isas_in(std::int64_t targets) {
  std::vector<Isa> isas;
  for (const Entry& entry : kIsas) {
    if ((targets & entry.hwy_target) != 0) isas.push_back(entry.isa);
  }
  return isas;
}

}  // namespace

std::string_view to_string(Isa isa) { return entry_of(isa).name; }

Isa parse_isa(std::string_view name) {
  for (const Entry& entry : kIsas) {
    if (entry.name == name) return entry.isa;
  }
  throw Error(Error::bad_argument,
              fmt::format("cpu_isa: \"{}\" is no instruction set; legal: avx512, avx2, neon, portable", name));
}

std::vector<Isa> available_isas() { return isas_in(machine_targets()); }

Isa current_isa() { return isas_in(hwy::SupportedTargets() & machine_targets()).front(); }

void use_isa(std::optional<Isa> isa) {
  const std::int64_t wanted = isa ? entry_of(*isa).hwy_target : machine_targets();
  if ((wanted & machine_targets()) == 0) {
    std::vector<std::string_view> names;
    for (const Isa available : available_isas()) names.push_back(to_string(available));
    throw Error(Error::missing_capability,
                fmt::format("cpu_isa: this machine has no {}; it has {}", to_string(*isa), fmt::join(names, ", ")));
  }
  hwy::SetSupportedTargetsForTest(wanted);
}

}  // namespace qpn8::cpu
