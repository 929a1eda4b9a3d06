#include "measure/shapes_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/expect_error.hpp"
#include "support/temporary_folder.hpp"

namespace qpn8 {
namespace {

TEST(ShapesFile, IsAListOfRolesAndSizes) {
  const test::TemporaryFolder folder;
  const auto shapes = load_shapes(folder.write("shapes.json", R"([
    {"role": "mlp.down_proj", "k": 3072, "n": 1024},
    {"role": "self_attn.qkv_proj", "k": 256, "n": 96, "type": "f8_e4m3"}])"));
  ASSERT_EQ(shapes.size(), 2);
  EXPECT_EQ(shapes[0].tensor.role, "mlp.down_proj");
  EXPECT_EQ(shapes[0].tensor.k, 3072);
  EXPECT_EQ(shapes[0].tensor.n, 1024);
  EXPECT_EQ(shapes[0].tensor.type, WeightType::f16);
  EXPECT_EQ(shapes[0].tensor.scales, ScaleKind::channel);
  EXPECT_EQ(shapes[1].tensor.type, WeightType::f8_e4m3);
  EXPECT_EQ(shapes[1].tensor.scales, ScaleKind::block);
  EXPECT_EQ(shapes[1].tensor.block_k, kScaleBlock);
  EXPECT_NE(shapes[0].name, shapes[1].name);
}

TEST(ShapesFile, WhatIsWrongIsNamedWithItsEntry) {
  const test::TemporaryFolder folder;
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c :
       {Case{"{}", "is not a list of shapes"}, Case{"[]", "is not a list of shapes"},
        Case{"[3]", "[0] is not an object"}, Case{R"([{"k": 16, "n": 32}])", "[0].role"},
        Case{R"([{"role": "", "k": 16, "n": 32}])", "[0].role"}, Case{R"([{"role": "a", "k": 16}])", "[0].n"},
        Case{R"([{"role": "a", "k": 0, "n": 32}])", "[0].k"},
        Case{R"([{"role": "a", "k": 16, "n": 99999999}])", "[0].n"},
        Case{R"([{"role": "a", "k": 16, "n": 32}, {"role": "a", "k": "x", "n": 32}])", "[1].k"},
        Case{R"([{"role": "a", "k": 16, "n": 32, "type": "int4"}])", "[0].type"},
        Case{R"([{"role": "a", "k": 16, "n": 32, "groups": 2}])", "[0].groups"}, Case{"[", "shapes.json:1:"}}) {
    SCOPED_TRACE(c.text);
    const auto file = folder.write("shapes.json", c.text);
    test::expect_error(
        Error::bad_file, [&] { load_shapes(file); },
        testing::AllOf(testing::StartsWith(file.string()), testing::HasSubstr(c.message)));
  }
  test::expect_error(
      Error::bad_file, [&] { load_shapes(folder / "missing.json"); }, testing::HasSubstr("missing.json"));
}

}  // namespace
}  // namespace qpn8
