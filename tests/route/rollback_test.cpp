#include "route/rollback.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "route/contract_samples.hpp"
#include "support/error_of.hpp"

namespace qpn8 {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The precedence of the design, written down a second time as a list of rules.
bool expected_on(const std::string& flag, const std::string& variable, const std::string& contract_variable,
                 bool default_on) {
  const std::string whole = flag.empty() ? variable : flag;
  if (whole == "off") return false;
  if (!contract_variable.empty()) return contract_variable == "on";
  if (whole == "on") return true;
  return default_on;
}

TEST(Rollback, EveryCombinationOfFlagVariablesAndDefaultFollowsThePrecedence) {
  for (const std::string flag : {"", "auto", "on", "off", "require"}) {
    for (const std::string variable : {"", "on", "off"}) {
      for (const std::string contract_value : {"", "on", "off"}) {
        for (const bool default_on : {true, false}) {
          Contract contract = test::small_contract("my-box");
          contract.default_on = default_on;
          Environment environment;
          if (!variable.empty()) environment["QPN8"] = variable;
          if (!contract_value.empty()) environment["QPN8_CONTRACT_MY_BOX"] = contract_value;
          const Rollback rollback =
              read_rollback(flag.empty() ? std::nullopt : std::optional(flag), environment, {contract});
          EXPECT_EQ(decide(rollback, contract).on, expected_on(flag, variable, contract_value, default_on))
              << "--qpn8 '" << flag << "' QPN8='" << variable << "' QPN8_CONTRACT_MY_BOX='" << contract_value
              << "' default " << default_on;
          EXPECT_EQ(rollback.mode == Qpn8Mode::require, flag == "require");
        }
      }
    }
  }
}

TEST(Rollback, WhatDecidedIsSaidInTheUsersWords) {
  Contract contract = test::small_contract("my-box");
  const auto decided_by = [&](const std::optional<std::string>& flag, const Environment& environment) {
    return decide(read_rollback(flag, environment, {contract}), contract).decided_by;
  };
  EXPECT_EQ(decided_by(std::nullopt, {}), "its default");
  EXPECT_EQ(decided_by("auto", {{"QPN8", "off"}}), "its default");
  EXPECT_EQ(decided_by(std::nullopt, {{"QPN8", "off"}}), "QPN8=off");
  EXPECT_EQ(decided_by("off", {{"QPN8", "on"}}), "--qpn8 off");
  EXPECT_EQ(decided_by(std::nullopt, {{"QPN8", "on"}}), "QPN8=on");
  EXPECT_EQ(decided_by("on", {{"QPN8_CONTRACT_MY_BOX", "off"}}), "QPN8_CONTRACT_MY_BOX=off");
}

TEST(Rollback, AVariableTurnsItsOwnContractAlone) {
  const std::vector<Contract> contracts = {test::small_contract("a"), test::small_contract("b")};
  const Rollback rollback = read_rollback(std::nullopt, {{"QPN8_CONTRACT_A", "off"}}, contracts);
  EXPECT_FALSE(decide(rollback, contracts[0]).on);
  EXPECT_TRUE(decide(rollback, contracts[1]).on);
}

TEST(Rollback, ValuesThatAreNotLegalAreRefusedWithTheLegalOnes) {
  const std::vector<Contract> contracts = {test::small_contract("my-box")};
  const auto refusal = [&](const std::optional<std::string>& flag, const Environment& environment) {
    return test::error_of([&] { read_rollback(flag, environment, contracts); });
  };
  EXPECT_EQ(refusal(std::nullopt, {{"QPN8", "maybe"}}), "QPN8 is \"maybe\"; legal values: on, off");
  EXPECT_EQ(refusal(std::nullopt, {{"QPN8", ""}}), "QPN8 is \"\"; legal values: on, off");
  EXPECT_EQ(refusal(std::nullopt, {{"QPN8", "OFF"}}), "QPN8 is \"OFF\"; legal values: on, off");
  EXPECT_EQ(refusal("off", {{"QPN8", "maybe"}}), "QPN8 is \"maybe\"; legal values: on, off")
      << "a flag replaces the variable, it does not excuse it";
  EXPECT_EQ(refusal(std::nullopt, {{"QPN8_CONTRACT_MY_BOX", "1"}}),
            "QPN8_CONTRACT_MY_BOX is \"1\"; legal values: on, off");
  EXPECT_EQ(refusal("maybe", {}), "--qpn8 maybe: legal values: auto, on, off, require");
  EXPECT_EQ(refusal("", {}), "--qpn8 : legal values: auto, on, off, require");
  EXPECT_EQ(refusal(std::nullopt, {{"QPN8_CONTRACT_UNKNOWN", "on"}}),
            "QPN8_CONTRACT_UNKNOWN: no contract has this variable; those that have one: QPN8_CONTRACT_MY_BOX");
}

TEST(Rollback, OtherVariablesAreNotItsBusiness) {
  EXPECT_EQ(test::error_of([] {
              read_rollback(std::nullopt, {{"QPN8_SHARED", "x"}, {"QPN", "y"}}, {});
            }),
            "(no error)");
}

TEST(Rollback, VariablesAreNamedAfterTheContractsAndDiffer) {
  EXPECT_EQ(contract_variable("sm70-tp4-online"), "QPN8_CONTRACT_SM70_TP4_ONLINE");
  std::set<std::string> variables;
  for (const Contract& contract : shipped_contracts()) variables.insert(contract_variable(contract.name));
  EXPECT_EQ(variables.size(), shipped_contracts().size());
}

TEST(ProcessEnvironment, HoldsTheVariablesThatBeginWithQpn8) {
  ASSERT_EQ(setenv("QPN8_CONTRACT_OF_THIS_TEST", "a=b", 1), 0);
  const Environment environment = process_environment();
  ASSERT_EQ(unsetenv("QPN8_CONTRACT_OF_THIS_TEST"), 0);
  EXPECT_EQ(environment.at("QPN8_CONTRACT_OF_THIS_TEST"), "a=b");
  EXPECT_EQ(environment.count("PATH"), 0U);
}

}  // namespace
}  // namespace qpn8
