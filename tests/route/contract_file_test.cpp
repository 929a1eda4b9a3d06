#include "route/contract_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "route/contract_samples.hpp"
#include "support/error_of.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

using ::testing::HasSubstr;

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

class ContractFile : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("qpn8-contracts-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The shipped avx2 contract under another name.
  std::string write(const std::string& file, const std::string& contract_name) const {
    std::string text = read(test::repository() / "contracts/cpu-avx2.json");
    text.replace(text.find("cpu-avx2"), std::string("cpu-avx2").size(), contract_name);
    const std::filesystem::path path = folder_ / file;
    std::ofstream(path) << text;
    return path.string();
  }

  std::filesystem::path folder_;
};

TEST(ShippedContracts, AreThoseOfTheDesignEachInTheFileOfItsName) {
  std::vector<std::string> names;
  for (const Contract& contract : shipped_contracts()) {
    names.push_back(contract.name);
    EXPECT_TRUE(contract.default_on) << contract.name;
    EXPECT_EQ(contract.workspace_bytes, 16 << 20) << contract.name;
    EXPECT_TRUE(std::filesystem::exists(test::repository() / "contracts" / (contract.name + ".json")));
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("cpu-avx2", "cpu-avx512", "cpu-neon", "cpu-portable",
                                                     "sm70-pp2tp4", "sm70-tp4-online"));
}

TEST(ShippedContracts, NameNoEvidenceThatIsNotInTheRepository) {
  for (const Contract& contract : shipped_contracts()) {
    if (contract.evidence.file.empty()) {
      EXPECT_THAT(contract.evidence.note, ::testing::AnyOf(HasSubstr("Not measured yet"), HasSubstr("not re-measured")))
          << contract.name;
    } else {
      EXPECT_TRUE(std::filesystem::exists(test::repository() / contract.evidence.file)) << contract.name;
    }
  }
}

TEST_F(ContractFile, AddedContractsComeBeforeTheShippedOnes) {
  const std::vector<std::string> files = {write("b.json", "second"), write("a.json", "first")};
  const std::vector<Contract> contracts = load_contracts(files);
  ASSERT_EQ(contracts.size(), shipped_contracts().size() + 2);
  EXPECT_EQ(contracts[0].name, "second");
  EXPECT_EQ(contracts[1].name, "first");
  EXPECT_EQ(load_contracts({}).size(), shipped_contracts().size());
}

TEST_F(ContractFile, ANameThatIsTakenIsRefused) {
  const std::vector<std::string> shipped = {write("a.json", "sm70-pp2tp4")};
  EXPECT_THAT(test::error_of([&] { load_contracts(shipped); }),
              ::testing::AllOf(::testing::StartsWith(shipped[0] + ":"), HasSubstr("that of a shipped contract")));
  const std::vector<std::string> twice = {write("a.json", "mine"), write("b.json", "mine")};
  EXPECT_THAT(test::error_of([&] { load_contracts(twice); }),
              ::testing::AllOf(::testing::StartsWith(twice[1] + ":"), HasSubstr("that of " + twice[0])));
}

TEST_F(ContractFile, AFileThatCannotBeReadOrIsTooLargeIsNamed) {
  const std::vector<std::string> missing = {(folder_ / "missing.json").string()};
  EXPECT_THAT(test::error_of([&] { load_contracts(missing); }), HasSubstr("missing.json"));
  const std::vector<std::string> large = {(folder_ / "large.json").string()};
  std::ofstream(large[0]) << std::string((1 << 20) + 1, ' ');
  EXPECT_EQ(test::error_of([&] { load_contracts(large); }), large[0] + ": is 1048577 bytes long, expected at most 1048576");
  const std::vector<std::string> empty = {(folder_ / "empty.json").string()};
  std::ofstream(empty[0]) << "";
  EXPECT_THAT(test::error_of([&] { load_contracts(empty); }), ::testing::StartsWith(empty[0] + ":1:1: not valid JSON: "));
}

// docs/contracts.md shows a whole contract; a reader who copies it must get one that loads.
TEST(ContractDocumentation, ItsExampleIsAContract) {
  const std::string page = read(test::repository() / "docs/contracts.md");
  const std::string fence = "```json\n";
  const std::size_t begin = page.find(fence);
  ASSERT_NE(begin, std::string::npos);
  const std::size_t end = page.find("```", begin + fence.size());
  ASSERT_NE(end, std::string::npos);
  const Contract contract =
      parse_contract(page.substr(begin + fence.size(), end - begin - fence.size()), "docs/contracts.md");
  EXPECT_EQ(contract.name, "my-workstation");
}

}  // namespace
}  // namespace qpn8
