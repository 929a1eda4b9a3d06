#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

#include "qpn8/contract.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

constexpr std::array<std::string_view, 4> kCpuIsas = {"avx512", "avx2", "neon", "portable"};
// Those with FP16 tensor cores, which the packed kernels are written for.
constexpr std::array<int, 13> kComputeCapabilities = {70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};

std::vector<Hardware> known_hardware() {
  std::vector<Hardware> known;
  for (const std::string_view isa : kCpuIsas) known.push_back({HardwareKind::cpu, std::string(isa), 0});
  for (const int capability : kComputeCapabilities) known.push_back({HardwareKind::cuda, "", capability});
  return known;
}

}  // namespace

std::string to_string(const Hardware& hardware) {
  if (hardware.kind == HardwareKind::cpu) return "cpu-" + hardware.isa;
  return fmt::format("sm{}", hardware.compute_capability);
}

Hardware parse_hardware(const std::string& name) {
  std::string names;
  for (const Hardware& hardware : known_hardware()) {
    if (to_string(hardware) == name) return hardware;
    names += names.empty() ? "" : ", ";
    names += to_string(hardware);
  }
  throw Error(Error::bad_argument, fmt::format("hardware \"{}\" is not known; known: {}", name, names));
}

}  // namespace qpn8
