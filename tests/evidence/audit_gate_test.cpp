// The gate on the CPU, and with faults planted between it and the CPU: each has to be caught, and named.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu_backend.hpp"
#include "backend/forwarding_backend.hpp"
#include "backend/weight_file.hpp"
#include "evidence/audit_gate.hpp"
#include "qpn8/error.hpp"

namespace qpn8::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

std::unique_ptr<Backend> cpu_with(std::size_t workspace_bytes = Workspace::kDefaultBytes) {
  return make_cpu_backend({.threads = 1, .workspace_bytes = workspace_bytes});
}

/// The CPU with one thing wrong.
class FaultyBackend : public ForwardingBackend {
 public:
  /// What goes wrong; each is called where it is given. `after` sees a product of a packed weight, by its name.
  struct Fault {
    std::function<void(LinearSource&, PlannedProjection&)> before_load = nullptr;
    std::function<void(const std::string& name, const Tensor& x, const Tensor& y)> after = nullptr;
    std::function<bool(const std::string& name)> skips = nullptr;
    bool replays_nothing = false;  ///< a step that comes again
  };

  explicit FaultyBackend(Fault fault) : ForwardingBackend(cpu_with()), fault_(std::move(fault)) {}

  std::unique_ptr<Linear> load_linear(const LinearSource& source) override {
    PlannedProjection plan = *source.plan;
    LinearSource changed = source;
    changed.plan = &plan;
    if (fault_.before_load) fault_.before_load(changed, plan);
    std::unique_ptr<Linear> loaded = inner().load_linear(changed);
    names_[loaded.get()] = source.plan->route == Route::qpn8 ? source.plan->name : "";
    return loaded;
  }

  std::unique_ptr<Linear> share_linear(const Tensor& weight) override {
    std::unique_ptr<Linear> shared = inner().share_linear(weight);
    names_[shared.get()] = "";
    return shared;
  }

  void linear(const Linear& weight, const Tensor& x, const Tensor& y) override {
    const std::string& name = names_.at(&weight);
    if (!name.empty() && fault_.skips && fault_.skips(name)) return;
    inner().linear(weight, x, y);
    if (!name.empty() && fault_.after) fault_.after(name, x, y);
  }

  void run_step(const Batch& /*batch*/, int /*variant*/, const std::function<void()>& step) override {
    if (steps_++ == 0 || !fault_.replays_nothing) step();
  }

 private:
  int steps_ = 0;
  Fault fault_;
  std::map<const Linear*, std::string> names_;
};

class Gate : public testing::Test {
 protected:
  Gate() {
    file_.add("up", DType::f16, gaussian(128, 96, 1, 0.05F));
    file_.add("down", DType::f16, gaussian(64, 160, 2, 0.05F));
    file_.open();
    for (const char* name : {"up", "down"}) {
      const CheckpointTensor& tensor = file_.opened().tensor(name);
      PlannedProjection plan = planned(Route::qpn8, tensor.rows(), tensor.cols(), tensor.rows());
      plan.name = name;
      plans_.push_back(plan);
    }
  }

  GateResult run(Backend& backend) {
    std::vector<LinearSource> sources;
    for (const PlannedProjection& plan : plans_) {
      sources.push_back({.plan = &plan, .checkpoint = &file_.opened(), .parts = {file_.part(plan.name)}, .bias = {}});
    }
    return run_gate({.backend = backend,
                     .with_workspace = with_workspace_,
                     .sources = std::move(sources),
                     .contracts = contracts_,
                     .team = team_});
  }

  std::vector<std::string> failures(FaultyBackend::Fault fault) {
    FaultyBackend backend(std::move(fault));
    return run(backend).failures();
  }

  WeightFile file_;
  std::vector<PlannedProjection> plans_;
  std::vector<Contract> contracts_ = shipped_contracts();
  std::function<std::unique_ptr<Backend>(std::size_t)> with_workspace_ = cpu_with;
  ThreadTeam team_{1};
};

TEST_F(Gate, PassesOnTheCpu) {
  const auto backend = cpu_with();
  const GateResult result = run(*backend);
  EXPECT_THAT(result.failures(), IsEmpty());
  EXPECT_TRUE(result.passed());
  std::vector<std::string> names;
  for (const GateCheck& check : result.checks) names.push_back(check.name + " " + check.subject);
  for (const char* name : {"fp64 up", "fp32 down", "fallback up", "replay down", "grouped up in 2 groups",
                           "excluded shared_experts.gate_up_proj", "excluded indexer.wq_b",
                           "workspace shared 2 projections", "workspace capacity 2 projections"}) {
    EXPECT_THAT(names, Contains(name));
  }
}

TEST_F(Gate, CatchesAWrongScale) {
  const auto found = failures({.after = [](const std::string& name, const Tensor&, const Tensor& y) {
    if (name != "down") return;
    for (std::int64_t t = 0; t < y.rows; ++t) y.host<float>().row(t)[17] *= 1.01F;
  }});
  EXPECT_THAT(found, Contains(AllOf(StartsWith("fp64 down: M = 1: 1 of 64 channels"),
                                    HasSubstr("channel 17 is 1.01 times what it should be: a wrong scale"))));
  EXPECT_THAT(found, Contains(StartsWith("fallback down: M = 1")));
  EXPECT_THAT(found, Not(Contains(HasSubstr("up:"))));
}

TEST_F(Gate, CatchesASwappedColumnPair) {
  // The packer is handed the rows of two channels in the wrong order.
  const auto found = failures({.before_load = [](LinearSource& source, PlannedProjection& plan) {
    if (plan.route != Route::qpn8 || plan.name != "up") return;
    const WeightPart whole = source.parts.front();
    const auto rows = [&](std::int64_t first, std::int64_t count) {
      WeightPart part = whole;
      part.first_row = first;
      part.rows = count;
      return part;
    };
    source.parts = {rows(0, 4), rows(5, 1), rows(4, 1), rows(6, whole.rows - 6)};
  }});
  EXPECT_THAT(found, Contains("fp64 up: M = 1: 2 of 128 channels are wrong: channels 4 and 5 are swapped"));
  EXPECT_THAT(found, Contains(StartsWith("fallback up: M = 1")));
}

TEST_F(Gate, CatchesADroppedGroup) {
  const auto found = failures({.skips = [](const std::string& name) { return name == "up group 1"; }});
  ASSERT_EQ(found.size(), 1U) << testing::PrintToString(found);
  EXPECT_THAT(found.front(), StartsWith("grouped up in 2 groups: M = 1, group 1 of 2: 64 of 64 channels are wrong: "
                                        "channel 0 is not written"));
}

TEST_F(Gate, CatchesAWorkspaceThatIsTooSmall) {
  const auto backend = cpu_with(4096);
  const GateResult result = run(*backend);
  EXPECT_FALSE(result.passed());
  EXPECT_THAT(result.failures(), Contains(AllOf(StartsWith("workspace shared"), HasSubstr("bytes of workspace"),
                                                HasSubstr("there are 4096"))));
}

TEST_F(Gate, CatchesAWorkspaceWhoseCapacityIsNotChecked) {
  with_workspace_ = [](std::size_t) { return cpu_with(); };
  const auto backend = cpu_with();
  EXPECT_THAT(run(*backend).failures(),
              testing::ElementsAre(AllOf(StartsWith("workspace capacity"), HasSubstr("1024 bytes of workspace"))));
}

TEST_F(Gate, CatchesAReplayThatGivesTheOldResult) {
  std::map<std::int64_t, std::vector<float>> first;
  const auto found = failures({.after = [&](const std::string& name, const Tensor&, const Tensor& y) {
    if (name != "down" || y.rows != 1) return;
    auto& kept = first[y.cols];
    const std::span<float> row = y.host<float>().row(0);
    if (kept.empty()) kept.assign(row.begin(), row.end());
    std::copy(kept.begin(), kept.end(), row.begin());
  }});
  EXPECT_THAT(found, Contains(StartsWith("replay down: M = 1: after the inputs changed")));
}

TEST_F(Gate, CatchesAReplayThatWritesNothing) {
  EXPECT_THAT(failures({.replays_nothing = true}),
              Contains(AllOf(StartsWith("replay up: M = 1: after the inputs changed"), HasSubstr("is not written"))));
}

TEST_F(Gate, CatchesAResultThatDependsOnWhatRanBefore) {
  int calls = 0;
  const auto found = failures({.after = [&](const std::string&, const Tensor&, const Tensor& y) {
    if (y.rows == 17 && ++calls > 2) y.host<float>().row(16)[0] += 1e-6F;
  }});
  EXPECT_THAT(found, testing::ElementsAre(AllOf(StartsWith("workspace shared"), HasSubstr("gives other bits"))));
}

TEST_F(Gate, CatchesAnExcludedRoleThatIsPackedAllTheSame) {
  const auto found = failures({.before_load = [](LinearSource&, PlannedProjection& plan) {
    if (plan.tensor.role == "indexer.wq_b") plan.route = Route::qpn8;
  }});
  ASSERT_EQ(found.size(), 1U) << testing::PrintToString(found);
  EXPECT_THAT(found.front(), StartsWith("excluded indexer.wq_b: M = 1: planned dense, but its product is"));
}

TEST_F(Gate, CatchesAContractThatNoLongerExcludesARole) {
  for (Contract& contract : contracts_) {
    std::erase_if(contract.excluded,
                  [](const ExcludedRole& excluded) { return excluded.role == "shared_experts.gate_up_proj"; });
  }
  const auto backend = cpu_with();
  EXPECT_THAT(run(*backend).failures(),
              testing::ElementsAre("excluded shared_experts.gate_up_proj: no contract excludes it by name"));
}

TEST_F(Gate, WithoutAProjectionOnQpn8IsAnError) {
  plans_.clear();
  const auto backend = cpu_with();
  EXPECT_THROW(run(*backend), Error);
}

TEST(GateShapes, AreOneARoleAndShapeAndOnQpn8) {
  std::vector<PlannedProjection> plans = {planned(Route::qpn8, 64, 32), planned(Route::qpn8, 64, 32),
                                          planned(Route::dense, 96, 32), planned(Route::qpn8, 64, 48)};
  EXPECT_EQ(distinct_shapes(plans), (std::vector<std::size_t>{0, 3}));
}

}  // namespace
}  // namespace qpn8::test
