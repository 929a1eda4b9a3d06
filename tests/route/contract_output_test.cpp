#include <gtest/gtest.h>

#include <string>

#include "route/contract_file.hpp"

namespace qpn8 {
namespace {

TEST(ContractOutput, EveryShippedContractIsReadBackAsItWas) {
  for (const Contract& contract : shipped_contracts()) {
    const std::string text = to_text(contract);
    const Contract read = parse_contract(text, contract.name + ".json");
    EXPECT_EQ(to_text(read), text);
    EXPECT_EQ(read.name, contract.name);
    EXPECT_EQ(read.hardware, contract.hardware);
    EXPECT_EQ(read.tp, contract.tp);
    EXPECT_EQ(read.pp, contract.pp);
    EXPECT_EQ(read.max_sequences, contract.max_sequences);
    EXPECT_EQ(read.types, contract.types);
    EXPECT_EQ(read.scales, contract.scales);
    EXPECT_EQ(read.default_on, contract.default_on);
    EXPECT_EQ(read.workspace_bytes, contract.workspace_bytes);
    EXPECT_EQ(read.evidence.file, contract.evidence.file);
    EXPECT_EQ(read.evidence.note, contract.evidence.note);
    ASSERT_EQ(read.rows.size(), contract.rows.size());
    for (std::size_t i = 0; i < read.rows.size(); ++i) {
      EXPECT_EQ(read.rows[i].role, contract.rows[i].role);
      EXPECT_EQ(read.rows[i].layer_tp, contract.rows[i].layer_tp);
      EXPECT_EQ(read.rows[i].k, contract.rows[i].k);
      EXPECT_EQ(read.rows[i].n, contract.rows[i].n);
      EXPECT_EQ(read.rows[i].groups, contract.rows[i].groups);
      EXPECT_EQ(read.rows[i].padded_n, contract.rows[i].padded_n);
      EXPECT_EQ(read.rows[i].activation, contract.rows[i].activation);
      EXPECT_EQ(read.rows[i].schedule, contract.rows[i].schedule);
    }
    ASSERT_EQ(read.excluded.size(), contract.excluded.size());
    for (std::size_t i = 0; i < read.excluded.size(); ++i) {
      EXPECT_EQ(read.excluded[i].role, contract.excluded[i].role);
      EXPECT_EQ(read.excluded[i].activation, contract.excluded[i].activation);
      EXPECT_EQ(read.excluded[i].reason, contract.excluded[i].reason);
    }
  }
}

TEST(ContractOutput, NewerHardwareKeepsItsPlus) {
  Contract contract = shipped_contracts().front();
  contract.hardware.clear();
  contract.compute_capability_at_least = 80;
  EXPECT_EQ(parse_contract(to_text(contract), "x.json").compute_capability_at_least, 80);
}

}  // namespace
}  // namespace qpn8
