// The bundled model on its test problems, greedy, on both routes: what the demo shows, held as a test.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "evidence/answer_parser.hpp"
#include "evidence/dataset.hpp"
#include "support/shared_data.hpp"

namespace qpn8 {
namespace {

// Sanitizers slow a forward pass down by an order of magnitude: there a sample of the problems has to do.
#ifdef QPN8_SANITIZED
constexpr std::size_t kStep = 32;
#else
constexpr std::size_t kStep = 1;
#endif

struct Outcome {
  std::size_t items = 0;
  std::size_t wrong = 0;
  std::size_t other_text = 0;
};

const std::filesystem::path kModel = test::repository() / "models" / "wordmath-11m";

Outcome run_greedy(const std::string& route) {
  EngineOptions options;
  options.threads = 2;
  options.qpn8 = route;
  Engine engine(kModel, options);
  std::ifstream file(kModel / "reference_greedy.json");
  const auto reference = nlohmann::json::parse(file).at("texts").get<std::vector<std::string>>();
  std::vector<DatasetItem> items = load_dataset(test::repository() / "models" / "wordmath_test.jsonl");
  append_instruction(items, kBoxedInstruction);
  if (reference.size() != items.size()) throw std::runtime_error("a reference text for each problem is needed");
  Outcome outcome;
  for (std::size_t i = 0; i < items.size(); i += kStep) {
    GenerationRequest request;
    request.prompt = engine.encode_chat(
        {{"messages", {{{"role", "user"}, {"content", items[i].turns.front()}}}}, {"add_generation_prompt", true}});
    const std::string text = engine.generate(request).text;
    ++outcome.items;
    outcome.wrong += parse_answer(text) == items[i].expected ? 0 : 1;
    outcome.other_text += text == reference[i] ? 0 : 1;
  }
  return outcome;
}

TEST(BundledModel, TheDenseRouteReproducesTheReference) {
  const Outcome outcome = run_greedy("off");
  EXPECT_EQ(outcome.items, (512 + kStep - 1) / kStep);
  EXPECT_LE(outcome.wrong, 2U);
  EXPECT_LE(outcome.other_text * 20, outcome.items) << "at least 95 % of the texts are the reference's";
}

TEST(BundledModel, TheQpn8RouteAnswersAsWell) {
  const Outcome outcome = run_greedy("require");
  EXPECT_EQ(outcome.items, (512 + kStep - 1) / kStep);
  EXPECT_LE(outcome.wrong, 4U);
}

}  // namespace
}  // namespace qpn8
