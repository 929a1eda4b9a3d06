#include "evidence/arm.hpp"

#include "qpn8/error.hpp"

namespace qpn8 {

void require_qpn8(const Arm& candidate) {
  const auto plan = candidate.plan();
  if (!plan || plan->at("summary").at("qpn8") != 0) return;
  const auto& projections = plan->at("projections");
  const std::string reason =
      projections.empty() ? "it has no projections" : projections.front().at("reason").get<std::string>();
  throw Error(Error::missing_capability,
              "arm b: no projection of it runs on QPN8 (the first: " + reason + "); see 'qpn8 plan' for the others");
}

}  // namespace qpn8
