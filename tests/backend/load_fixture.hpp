#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu_backend.hpp"
#include "backend/weight_file.hpp"

namespace qpn8::test {

/// Loads projections from a file that the test writes: add tensors, open(), load().
class LoadFixture : public testing::Test {
 protected:
  std::unique_ptr<Linear> load(const PlannedProjection& plan, std::vector<WeightPart> parts,
                               std::vector<float> bias = {}) {
    return backend_->load_linear(
        {.plan = &plan, .checkpoint = checkpoint_, .parts = std::move(parts), .bias = std::move(bias)});
  }

  void open() { checkpoint_ = &file_.open(); }

  WeightFile file_;
  const Checkpoint* checkpoint_ = nullptr;
  std::unique_ptr<Backend> backend_ = make_cpu_backend({.threads = 2});
};

}  // namespace qpn8::test
