#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "qpn8/pack.hpp"
#include "qpn8/schedule.hpp"

// Admission: which projection may run on QPN8, decided by hardware, topology and tensor alone. Nothing in this header
// can carry a model's name, path or architecture, and that is the point.
//
// The types are plain values. Every function is pure and thread-safe; those that can fail on what they are given say
// so, the others throw nothing but std::bad_alloc.

namespace qpn8 {

enum class HardwareKind : std::uint8_t { cpu, cuda };

/// Where a projection would run.
struct Hardware {
  HardwareKind kind = HardwareKind::cpu;
  std::string isa;             ///< cpu: "avx512", "avx2", "neon" or "portable"
  int compute_capability = 0;  ///< cuda: 70 for sm_70

  friend bool operator==(const Hardware&, const Hardware&) = default;
};

/// "cpu-avx512", "sm70"
std::string to_string(const Hardware& hardware);

/// The inverse of to_string; Error::bad_argument lists the known names. What this build can run is not asked.
Hardware parse_hardware(const std::string& name);

/// How the model is spread and how many sequences it serves.
struct Topology {
  int tp = 1;             ///< tensor-parallel ranks
  int pp = 1;             ///< pipeline stages
  int max_sequences = 1;  ///< sequences decoded together
  bool speculation = false;

  friend bool operator==(const Topology&, const Topology&) = default;
};

enum class WeightType : std::uint8_t {
  f32,
  f16,
  bf16,
  f8_e4m3,
  f4_e2m1,  ///< no contract can admit it: it has no packed layout
};
enum class FusedActivation : std::uint8_t { none, silu };

/// One projection y = x W^T as a rank holds it: k inputs, n outputs, `groups` independent (k, n) products.
struct TensorDesc {
  std::string role;  ///< what the projection is in its layer: "self_attn.qkv_proj", "mlp.down_proj", "lm_head"
  int layer_tp = 1;  ///< ranks that share this projection; 1 where it is replicated
  std::int64_t k = 0;
  std::int64_t n = 0;
  std::int64_t groups = 1;
  WeightType type = WeightType::f16;
  ScaleKind scales = ScaleKind::channel;  ///< FP16/BF16/FP32 weights are quantised with channel scales
  std::int64_t block_n = 0;               ///< block scales: the block's edges, 1 x 32 for FP4; 0 with channel scales
  std::int64_t block_k = 0;
  FusedActivation activation = FusedActivation::none;

  friend bool operator==(const TensorDesc&, const TensorDesc&) = default;
};

std::string to_string(WeightType type);             ///< "f8_e4m3"
std::string to_string(FusedActivation activation);  ///< "silu"

/// A row that a contract admits, with the schedule that was measured for it. An absent number means "any legal value".
struct AdmittedRow {
  std::string role;  ///< a `*` in it stands for any run of characters: "*" is every role that is not excluded
  std::optional<int> layer_tp;
  std::optional<std::int64_t> k;
  std::optional<std::int64_t> n;
  std::optional<std::int64_t> groups = 1;
  std::optional<std::int64_t> padded_n;  ///< the weight is padded with zero channels up to here and sliced back
  FusedActivation activation = FusedActivation::none;
  Schedule schedule;
};

/// What a contract keeps off QPN8 on purpose. It wins over every row.
struct ExcludedRole {
  std::string role;                           ///< as in AdmittedRow
  std::optional<FusedActivation> activation;  ///< absent: with any
  std::string reason;
};

/// What justifies a contract's default: at least one of the two.
struct Evidence {
  std::string file;  ///< path in the repository, or empty
  std::string note;  ///< where the numbers come from, or that there are none yet
};

/// A contract as read from `contracts/NAME.json`; docs/contracts.md describes the file.
struct Contract {
  std::string name;                ///< lower-case letters, digits and single dashes
  std::vector<Hardware> hardware;  ///< holds on any of these; compute_capability_at_least widens it
  std::optional<int> compute_capability_at_least;
  std::optional<int> tp;  ///< absent: any
  std::optional<int> pp;
  int max_sequences = 1;     ///< holds for as many and for fewer
  bool speculation = false;  ///< whether it also holds with speculation on
  std::vector<WeightType> types;
  std::vector<ScaleKind> scales;
  std::vector<AdmittedRow> rows;  ///< the first row that fits and whose schedule divides k wins
  std::vector<ExcludedRole> excluded;
  std::int64_t workspace_bytes = kDefaultWorkspaceBytes;
  bool default_on = true;
  Evidence evidence;
};

/// Reads one contract from its text; `file_name` is for messages. Anything wrong is Error::bad_file "FILE:LINE: ..."
/// with the line of the offending key.
Contract parse_contract(std::string_view text, const std::string& file_name);

/// The contracts compiled into the library, parsed by the first call.
const std::vector<Contract>& shipped_contracts();

/// Why this projection is not on QPN8.
struct Refusal {
  std::string reason;     ///< shown by `qpn8 plan` as it is
  bool foreseen = false;  ///< a contract that holds here names the role as excluded
  std::string contract;   ///< whose refusal it is: the contract that came closest; empty if none is for this hardware
};

struct Admission {
  std::string contract;
  Schedule schedule;
  std::int64_t padded_n = 0;  ///< n, or the width to pad to
};

/// Every way in which machine and topology differ from what the contract holds for ("tp is 2, the contract holds for
/// 4; pp is 1, the contract holds for 2"), or nothing if it holds.
std::optional<std::string> contract_refusal(const Contract& contract, const Hardware& hardware,
                                            const Topology& topology);

/// Decides one projection; the first contract that admits it wins. If none does, the refusal is that of the contract
/// that came closest: one that holds and names the role, else one that names it but holds elsewhere, else one that
/// holds and does not name it. Pure; thread-safe.
std::variant<Admission, Refusal> admit(const Hardware& hardware, const Topology& topology, const TensorDesc& tensor,
                                       const std::vector<Contract>& contracts);

/// "QPN8_CONTRACT_SM70_TP4_ONLINE" for "sm70-tp4-online".
std::string contract_variable(const std::string& contract_name);

}  // namespace qpn8
