#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <string>
#include <vector>

#include "evidence/html_text.hpp"
#include "evidence/notable_items.hpp"
#include "evidence/report_html.hpp"
#include "evidence/report_markdown.hpp"
#include "evidence/report_text.hpp"
#include "evidence/signed_text.hpp"
#include "evidence/svg_plot.hpp"

namespace qpn8 {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Forty items; item 3 only A gets right, item 5 loops and is slow under B.
AbResult a_result() {
  AbResult result;
  for (std::int64_t i = 0; i < 40; ++i) {
    ItemRecords records;
    for (const ArmName name : kArmNames) {
      ItemRecord& record = records[static_cast<std::size_t>(name)];
      record.arm = name;
      record.index = i;
      record.id = fmt::format("item-{}", i);
      record.answer = "so it is \\boxed{7}";
      record.expected = record.value = record.last_number = 7;
      record.correct = true;
      record.output_tokens = 30;
      record.decode_tokens_per_s = (name == ArmName::b ? 120.0 : 100.0) + static_cast<double>(i % 5);
      record.ttft_ms = 9;
    }
    result.items.push_back(records);
  }
  ItemRecord& wrong = result.items[3][1];
  wrong.value = 8;
  wrong.correct = false;
  wrong.answer = "a | b <script>alert(1)</script> \\boxed{8}";
  ItemRecord& looping = result.items[5][1];
  looping.repeated_4gram = 0.9;
  looping.output_tokens = 256;
  looping.decode_tokens_per_s = 20;
  result.config_a = {{"qpn8", "off"}, {"threads", 2}};
  result.config_b = {{"qpn8", "require"}, {"threads", 2}};
  result.run = {{"model", "models/wordmath-11m"}, {"seeds", {0}}};
  result.plan = {
      {"projections",
       {{{"role", "mlp.down_proj"}, {"k", 64}, {"n", 32}, {"route", "qpn8"}, {"reason", "contract cpu-avx512"}},
        {{"role", "mlp.down_proj"}, {"k", 64}, {"n", 32}, {"route", "qpn8"}, {"reason", "contract cpu-avx512"}}}},
      {"summary", {{"qpn8", 2}, {"dense", 0}}}};
  result.summary = summarise(result.items, {.resamples = 100});
  result.verdict = judge(result.summary, result.limits);
  return result;
}

TEST(NotableItems, AreTheDiscordantAndTheOutlyingByName) {
  const AbResult result = a_result();
  const auto discordant = discordant_items(result.items);
  ASSERT_EQ(discordant.size(), 1U);
  EXPECT_EQ(discordant[0].records->front().id, "item-3");
  EXPECT_EQ(discordant[0].why, "only A is right");
  const auto outlying = outlying_items(result.items);
  ASSERT_EQ(outlying.size(), 1U);
  EXPECT_EQ(outlying[0].records->front().id, "item-5");
  EXPECT_EQ(outlying[0].why, "B is repetitive, decode ratio 0.20, length +226 tokens");
}

TEST(MarkdownReport, HasVerdictTablesAndItemsWithTheirCellsIntact) {
  const std::string text = to_markdown(a_result());
  EXPECT_THAT(text, HasSubstr("# A/B: "));
  EXPECT_THAT(text, HasSubstr("| correct | 40/40 (100.00 %) | 39/40 (97.50 %) | 40/40 (100.00 %) |"));
  EXPECT_THAT(text, HasSubstr("| mlp.down\\_proj | 64 x 32 | qpn8 | contract cpu-avx512 | 2 |"));
  EXPECT_THAT(text, HasSubstr("| only in B | qpn8=require |"));
  EXPECT_THAT(text, HasSubstr("a \\| b \\<script\\>")) << "a text stays in its cell and is no markup";
}

TEST(HtmlReport, NeedsNothingElseAndTakesTextsLiterally) {
  const std::string html = to_html(a_result());
  for (const char* outside : {"<script", "http:", "https:", "src=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, HasSubstr("</html>"));
}

TEST(HtmlReport, HasEveryPlot) {
  const std::string html = to_html(a_result());
  std::size_t plots = 0;
  for (std::size_t at = html.find("<svg"); at != std::string::npos; at = html.find("<svg", at + 1)) ++plots;
  EXPECT_EQ(plots, 5U);
  EXPECT_THAT(html, Not(HasSubstr("nan")));
  EXPECT_THAT(html, Not(HasSubstr("inf\"")));
}

TEST(HtmlText, EscapesMarkupAndShowsControls) {
  EXPECT_EQ(html_text("a<b>&\"c\"\n"), "a&lt;b&gt;&amp;&quot;c&quot;\n");
  EXPECT_EQ(html_text(std::string("\0\x1B", 2)), "\xE2\x90\x80\xE2\x90\x9B");
}

TEST(TextReport, PrintsTableAndVerdict) {
  const std::string text = to_text(a_result());
  EXPECT_THAT(text, HasSubstr("39/40"));
  EXPECT_THAT(text, HasSubstr("verdict     undecided"));
}

TEST(SvgPlot, TicksAreRoundAndInside) {
  EXPECT_THAT(nice_ticks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(nice_ticks(-3, 4, 6), ElementsAre(-2, 0, 2, 4));
  EXPECT_EQ(nice_ticks(96.1, 103.7, 6).front(), 98);
  EXPECT_THAT(nice_ticks(0.011, 0.019, 4), Each(::testing::AllOf(::testing::Ge(0.011), ::testing::Le(0.019))));
}

TEST(SvgPlot, WholeNumbersHaveBinsAndTicksOfTheirOwn) {
  const std::string svg = histogram_plot("t", "x", Values::whole, {{"A", "series-a", {-2, 0, 0, 0}}});
  EXPECT_THAT(svg, HasSubstr("1 of 4 in -2.5 to -1.5<"));
  EXPECT_THAT(svg, HasSubstr("3 of 4 in -0.5 to 0.5<"));
  EXPECT_THAT(svg, HasSubstr(">peak 3<"));
  EXPECT_THAT(svg, Not(HasSubstr(">-1.5<"))) << "no half tokens on the axis";
  const std::string wide = histogram_plot("t", "x", Values::whole, {{"A", "series-a", {0, 99}}});
  EXPECT_THAT(wide, HasSubstr("1 of 2 in -0.5 to 3.5<"));
  EXPECT_THAT(wide, HasSubstr("1 of 2 in 95.5 to 99.5<"));
}

TEST(SignedText, ZeroHasOneSign) {
  EXPECT_EQ(signed_text(-0.0039), "+0.00");
  EXPECT_EQ(signed_text(0.0), "+0.00");
  EXPECT_EQ(signed_text(-0.006), "-0.01");
  EXPECT_EQ(signed_text(12.25), "+12.25");
}

TEST(NotableItems, AChangeOfAFewTokensIsNoOutlier) {
  AbResult result = a_result();
  result.items[7][1].output_tokens += 3;
  EXPECT_EQ(outlying_items(result.items).size(), 1U);
  result.items[7][1].output_tokens += 30;
  EXPECT_EQ(outlying_items(result.items).size(), 2U);
}

TEST(SvgPlot, SurvivesNoValuesAndEqualValues) {
  for (const std::string& svg :
       {histogram_plot("t", "x", Values::whole, {{"A", "series-a", {}}, {"B", "series-b", {}}}),
        histogram_plot("t", "x", Values::whole, {{"A", "series-a", {0, 0, 0}}}),
        histogram_plot("t", "x", Values::real, {{"A", "series-a", {-7}}}), paired_scatter("t", "x", "y", {}),
        paired_scatter("t", "x", "y", {{5, 5, "p", false}})}) {
    EXPECT_THAT(svg, HasSubstr("</svg>"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

}  // namespace
}  // namespace qpn8
