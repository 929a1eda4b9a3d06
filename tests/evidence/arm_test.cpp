#include "evidence/arm.hpp"

#include <gtest/gtest.h>

#include "qpn8/error.hpp"
#include "support/expect_error.hpp"

namespace qpn8 {
namespace {

using Json = nlohmann::ordered_json;

class PlannedArm : public Arm {
 public:
  explicit PlannedArm(std::optional<Json> plan) : plan_(std::move(plan)) {}
  ArmOutput generate(std::span<const ChatMessage>, std::uint64_t) override { return {}; }
  Json config() const override { return Json::object(); }
  std::optional<Json> plan() const override { return plan_; }

 private:
  std::optional<Json> plan_;
};

TEST(RequireQpn8, RefusesACandidateWithoutAProjectionOnItAndSaysWhy) {
  const Json dense = {{"projections", {{{"route", "dense"}, {"reason", "QPN8=off"}}}},
                      {"summary", {{"qpn8", 0}, {"dense", 1}}}};
  test::expect_error(
      Error::missing_capability, [&] { require_qpn8(PlannedArm(dense)); }, "arm b", "QPN8=off");
}

TEST(RequireQpn8, AcceptsACandidateWithOneAndAServerThatShowsNoPlan) {
  require_qpn8(PlannedArm(Json{{"projections", Json::array()}, {"summary", {{"qpn8", 1}, {"dense", 9}}}}));
  require_qpn8(PlannedArm(std::nullopt));
}

}  // namespace
}  // namespace qpn8
