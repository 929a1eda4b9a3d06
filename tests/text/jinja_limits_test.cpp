#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "text/jinja/template.hpp"

// A template is as untrusted as the checkpoint it comes with: whatever it does ends, in bounded memory.

namespace qpn8::jinja {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

// Small enough that each test is quick in a build with sanitizers.
Limits small_limits() {
  Limits limits;
  limits.work = 300'000;
  limits.memory = std::int64_t{8} << 20U;
  limits.text = std::int64_t{1} << 20U;
  return limits;
}

std::string failure(const std::string& source, const Limits& limits = small_limits(),
                    const Json& variables = Json::object()) {
  try {
    const std::string text = Template(source, limits).render(variables, limits);
    ADD_FAILURE() << "gave a text of " << text.size() << " bytes";
  } catch (const TemplateError& error) {
    return error.what();
  }
  return "";
}

TEST(JinjaLimits, EndlessWorkEnds) {
  const std::string nested =
      "{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) %}{% endfor %}"
      "{% endfor %}{% endfor %}";
  EXPECT_THAT(failure(nested), HasSubstr("does not end within"));
}

TEST(JinjaLimits, ARangeIsNoLongerThanTheSandboxAdmits) {
  EXPECT_EQ(Template("{{ range(100000) | length }}").render(Json::object()), "100000");
  EXPECT_THAT(failure("{{ range(100001) }}"), HasSubstr("Range too big"));
  EXPECT_THAT(failure("{{ range(-9223372036854775807, 9223372036854775807) }}"), HasSubstr("Range too big"));
  EXPECT_THAT(failure("{{ range(0, 10, 0) }}"), HasSubstr("must not be zero"));
}

TEST(JinjaLimits, RepetitionIsBounded) {
  for (const char* source :
       {"{{ 'a' * 10**9 }}", "{{ 'ab' * 9223372036854775807 }}", "{{ 10**9 * 'a' }}", "{{ 'a'.ljust(10**9) }}",
        "{{ 'a'.zfill(10**9) }}", "{{ 'a' | center(10**9) }}", "{{ 'a' | indent(10**9) }}",
        "{{ [1] | tojson(indent=10**9) }}", "{{ '%1000000000d' % 1 }}", "{{ '%.1000000000f' % 1 }}",
        "{{ '%*d' % (10**10, 1) }}", "{{ '{:1000000000}'.format('a') }}", "{{ '{:.1000000f}'.format(1.5) }}"}) {
    EXPECT_NE(failure(source), "") << source;
  }
  for (const char* source :
       {"{{ [0] * 10**9 }}", "{{ [1] | batch(10**9, 0) | list }}", "{{ [1] | slice(10**9) | list }}"}) {
    EXPECT_NE(failure(source), "") << source;
  }
}

TEST(JinjaLimits, ATextThatDoublesIsBounded) {
  EXPECT_THAT(failure("{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
                      "{% endfor %}"),
              HasSubstr("a text of more than"));
  EXPECT_NE(
      failure("{% set ns = namespace(s='a') %}{% for i in range(99) %}{% set ns.s = ns.s | replace('a', 'aaaa') %}"
              "{% endfor %}"),
      "");
}

TEST(JinjaLimits, OutputIsBounded) {
  EXPECT_THAT(failure("{% set s = 'a' * 100000 %}{% for i in range(1000) %}{{ s }}{% endfor %}"),
              HasSubstr("a text of more than"));
}

TEST(JinjaLimits, LiveMemoryIsBounded) {
  EXPECT_THAT(failure("{% set ns = namespace(l=[]) %}{% for i in range(1000) %}"
                      "{% set ns.l = [ns.l[:9], 'a' * 100000 ~ i] + ns.l[:50] %}{% endfor %}"),
              HasSubstr("more than"));
  EXPECT_THAT(failure("{% for i in range(100000) %}{% set n = namespace(a=i) %}{% endfor %}"),
              HasSubstr("values take more than"));
}

TEST(JinjaLimits, AListInItselfOverAndOverPrintsNoMoreThanTheBound) {
  const std::string doubling =
      "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}"
      "{% endfor %}";
  EXPECT_NE(failure(doubling + "{{ ns.l }}"), "");
  EXPECT_NE(failure(doubling + "{{ ns.l | tojson }}"), "");
  const std::string twice =
      "{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(60) %}"
      "{% set a.l = [a.l, a.l] %}{% set b.l = [b.l, b.l] %}{% endfor %}";
  EXPECT_NE(failure(twice + "{{ a.l == b.l }}"), "");
  EXPECT_NE(failure("{% set a = namespace(l=(1,)) %}{% for i in range(60) %}{% set a.l = (a.l, a.l) %}{% endfor %}"
                    "{{ {a.l: 1} }}"),
            "");
}

TEST(JinjaLimits, ValuesNestNoDeeperThanTheBound) {
  EXPECT_THAT(failure("{% set ns = namespace(l=[]) %}{% for i in range(10000) %}{% set ns.l = [ns.l] %}{% endfor %}"),
              HasSubstr("nested more than"));
  EXPECT_THAT(failure("{% set ns = namespace(f=[]) %}{% for i in range(10000) %}{% set ns.f = [[ns.f].index] %}"
                      "{% endfor %}"),
              HasSubstr("nested more than"));
  Json deep = 1;
  for (int i = 0; i < 5000; ++i) deep = Json::array({std::move(deep)});
  EXPECT_NE(failure("x", small_limits(), {{"deep", std::move(deep)}}), "");
}

TEST(JinjaLimits, RecursionEnds) {
  EXPECT_THAT(failure("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", Limits{}), HasSubstr("recursion"));
  EXPECT_THAT(failure("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", Limits{}), HasSubstr("recursion"));
  EXPECT_THAT(failure("{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}"
                      "{% endmacro %}{{ n() }}",
                      Limits{}),
              HasSubstr("recursion"));
}

TEST(JinjaLimits, SyntaxNestsNoDeeperThanTheBound) {
  const std::string deep(5000, '(');
  EXPECT_THAT(failure("{{ " + deep), HasSubstr("nested"));
  EXPECT_THAT(failure("{{ " + std::string(5000, '[')), HasSubstr("nested"));
  EXPECT_THAT(failure("{{ " + std::string(5000, '-') + "1 }}"), HasSubstr("nested"));
  EXPECT_THAT(failure("{{ " + repeated("not ", 5000) + "1 }}"), HasSubstr("nested"));
  EXPECT_THAT(failure("{{ 1 " + repeated("if 1 else 1 ", 5000) + "}}"), HasSubstr("nested"));
  EXPECT_THAT(failure(repeated("{% if 1 %}", 5000)), HasSubstr("nested"));
  EXPECT_THAT(failure("{% set " + deep), HasSubstr("nested"));
  EXPECT_THAT(failure("{{ 1" + repeated(" + 1", 5000) + " }}"), HasSubstr("chained"));
  EXPECT_THAT(failure("{{ x" + repeated(".a", 5000) + " }}"), HasSubstr("chained"));
  EXPECT_THAT(failure("{{ x" + repeated("|trim", 5000) + " }}"), HasSubstr("chained"));
  EXPECT_THAT(failure("{{ x" + repeated("()", 5000) + " }}"), HasSubstr("chained"));
}

TEST(JinjaLimits, LongFlatTemplatesAreFine) {
  EXPECT_EQ(Template("{{ 1" + repeated(" + 1", 200) + " }}").render(Json::object()), "201");
  EXPECT_EQ(Template(repeated("{{ 1 }}", 5000)).render(Json::object()), std::string(5000, '1'));
  EXPECT_EQ(Template("{% if 0 %}" + repeated("{% elif 0 %}", 5000) + "{% else %}e{% endif %}").render(Json::object()),
            "e");
  EXPECT_EQ(Template("{{ 'a'" + repeated(" ~ 'a'", 5000) + " }}").render(Json::object()), std::string(5001, 'a'));
}

TEST(JinjaLimits, IntegersBeyond64BitsAreAnError) {
  for (const char* source :
       {"{{ 10 ** 19 }}", "{{ 2 ** 10**9 }}", "{{ 9223372036854775807 + 1 }}", "{{ -9223372036854775807 - 2 }}",
        "{{ 9223372036854775807 * 2 }}", "{{ (-9223372036854775807 - 1) // -1 }}", "{{ -(-9223372036854775807 - 1) }}",
        "{{ (-9223372036854775807 - 1) | abs }}", "{{ 1e300 | int }}", "{{ '99999999999999999999' | int }}",
        "{{ 99999999999999999999 }}"}) {
    EXPECT_THAT(failure(source), HasSubstr("64 bits")) << source;
  }
  EXPECT_EQ(Template("{{ (-9223372036854775807 - 1) % -1 }}").render(Json::object()), "0");
}

TEST(JinjaLimits, SearchesOfHostileTextsTakeLinearTime) {
  Limits limits = small_limits();
  limits.work = 5'000'000;
  const Json variables = {{"a", std::string(500'000, 'a')}, {"b", std::string(250'000, 'a') + "b"}};
  EXPECT_EQ(Template("{{ b in a }}{{ a.find(b) }}{{ a.count(b) }}{{ a.split(b) | length }}").render(variables, limits),
            "False-101");
  EXPECT_NE(failure("{{ a.rfind(b) }}{{ a.rsplit(b) }}{{ a.strip(b) }}", small_limits(), variables), "");
}

TEST(JinjaLimits, CyclesThroughNamespacesAreFreedAndCannotBePrinted) {
  const std::string cycle =
      "{% set ns = namespace() %}{% set ns.self = [ns] %}{% macro m() %}{{ ns }}{% endmacro %}"
      "{% set ns.m = m %}{% for x in [1] if true %}{% set ns.loop = loop %}"
      "{{ loop.changed(loop) }}{% set l = ns.loop %}{% endfor %}";
  EXPECT_EQ(Template(cycle).render(Json::object()), "True");
  EXPECT_THAT(failure(cycle + "{{ ns }}"), HasSubstr("recursion"));
  EXPECT_THAT(failure(cycle + "{{ ns.self == [ns.self] }}{{ ns.self | tojson }}"), HasSubstr("not JSON serializable"));
}

TEST(JinjaLimits, AMillionCharactersOfChatStayFarBelowTheDefaults) {
  Json messages = Json::array();
  for (int i = 0; i < 1000; ++i) messages.push_back({{"role", "user"}, {"content", std::string(1000, 'x')}});
  const std::string text = Template(
                               "{% set ns = namespace(out='') %}{% for m in messages %}"
                               "{% set ns.out = ns.out ~ m.role ~ ': ' ~ (m.content | trim) %}{% endfor %}"
                               "{{ ns.out }}")
                               .render({{"messages", std::move(messages)}});
  EXPECT_EQ(text.size(), 1006U * 1000U);
}

}  // namespace
}  // namespace qpn8::jinja
