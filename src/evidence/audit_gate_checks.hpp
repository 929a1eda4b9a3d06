#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "evidence/audit_gate.hpp"

// The checks of the gate, one function each: what is wrong, or an empty text. They may throw what the device throws.

namespace qpn8 {

/// Roles that stay on the fallback wherever a contract names them, and why is in the contract.
inline constexpr std::array kExcludedRoles = {"shared_experts.gate_up_proj", "indexer.wq_b"};

std::string fp64_fault(const GateSubject& subject, const LinearSource& source);
std::string fp32_fault(const GateSubject& subject, const LinearSource& source);
std::string fallback_fault(const GateSubject& subject, const LinearSource& source);

/// Of the source of that index.
std::string replay_fault(const GateSubject& subject, std::size_t index);

/// The projection that is cut into groups: the first whose channels can be.
std::string grouped_subject(const GateSubject& subject);
std::string grouped_fault(const GateSubject& subject);

std::string excluded_fault(const GateSubject& subject, const std::string& role);
std::string shared_workspace_fault(const GateSubject& subject);
std::string small_workspace_fault(const GateSubject& subject);

}  // namespace qpn8
