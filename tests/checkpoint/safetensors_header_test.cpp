#include "checkpoint/safetensors_header.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "checkpoint/craft.hpp"
#include "qpn8/error.hpp"
#include "support/error_of.hpp"

namespace qpn8 {
namespace {

using test::bytes_of;
using test::error_of;
using test::safetensors;

std::vector<SafetensorsEntry> parse(const std::string& file) { return parse_safetensors_header(bytes_of(file), "f"); }

// Two tensors, one of them empty, padding and metadata: the smallest file with every part of the format.
const std::string kSmall =
    safetensors(R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]},)"
                R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[12,12]}} )",
                12);

TEST(SafetensorsHeader, GivesTheTensorsInFileOrderWithTheirPlaceInTheFile) {
  const std::string header = R"({"b":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[8,11]},)"
                             R"("a":{"data_offsets":[0,8],"shape":[1,2,1],"dtype":"F32"}})";
  const auto entries = parse(safetensors(header, 11));
  ASSERT_EQ(entries.size(), 2);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].dtype, DType::f32);
  EXPECT_EQ(entries[0].shape, (std::vector<std::int64_t>{1, 2, 1}));
  EXPECT_EQ(entries[0].begin, 8 + header.size());
  EXPECT_EQ(entries[0].end, 16 + header.size());
  EXPECT_EQ(entries[1].name, "b");
  EXPECT_EQ(entries[1].end, 19 + header.size());
}

TEST(SafetensorsHeader, EmptyTensorsAndScalarsAndNoTensorsAtAllAreFine) {
  const auto small = parse(kSmall);
  ASSERT_EQ(small.size(), 2);
  EXPECT_EQ(small[1].name, "e");
  EXPECT_EQ(small[1].begin, small[1].end);
  EXPECT_EQ(parse(safetensors(R"({"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}   )", 8)).size(), 1);
  EXPECT_TRUE(parse(safetensors("{}", 0)).empty());
}

TEST(SafetensorsHeader, EveryDtypeOfTheEngineIsRead) {
  for (const auto& [name, size] :
       {std::pair("F32", 4), std::pair("F16", 2), std::pair("BF16", 2), std::pair("F8_E4M3", 1),
        std::pair("F8_E8M0", 1), std::pair("I64", 8), std::pair("I32", 4), std::pair("U8", 1)}) {
    const std::string end = std::to_string(size * 3);
    const std::string header =
        std::string(R"({"x":{"dtype":")") + name + R"(","shape":[3],"data_offsets":[0,)" + end + "]}}";
    const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
    const auto entries = parse(safetensors(padded, static_cast<std::size_t>(size) * 3));
    ASSERT_EQ(entries.size(), 1) << name;
    EXPECT_EQ(to_string(entries[0].dtype), name);
  }
}

struct BadFile {
  std::string what;
  std::string file;
  std::string message;
  Error::Kind kind = Error::bad_file;
};

std::string one(const std::string& members) { return "{\"x\":{" + members + "}}"; }

std::vector<BadFile> bad_lengths() {
  const std::string length_of_2_to_40("\0\0\0\0\0\1\0\0", 8);
  return {
      {"empty", "", "f: is 0 bytes long, expected a header of at least 8 (truncated download?)"},
      {"short", "1234567", "f: is 7 bytes long, expected a header of at least 8 (truncated download?)"},
      {"length beyond the limit", length_of_2_to_40 + "{}",
       "f: header length is 1099511627776, expected at most 100000000 (not a safetensors file?)"},
      {"length beyond the file", safetensors("{}      ", 0).substr(0, 12),
       "f: header ends at byte 16, the file at 12 (truncated download?)"},
      {"zero length", safetensors("", 8), "f: the header does not begin with '{' (not a safetensors file?)"},
      {"leading space", safetensors(" {}", 0), "f: the header does not begin with '{' (not a safetensors file?)"},
      {"Git LFS pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n",
       "f: is a Git LFS pointer, expected the weights themselves (git lfs pull fetches them)"},
  };
}

std::vector<BadFile> bad_json() {
  const std::string offsets = R"("data_offsets":[0,4])";
  const std::string good = R"("dtype":"F32","shape":[1],)" + offsets;
  return {
      {"not JSON", safetensors("{x}", 0), "f: the header is not valid JSON at its byte 2"},
      {"unterminated", safetensors("{", 0), "f: the header is not valid JSON at its byte 2"},
      {"text behind", safetensors("{}{}", 0), "f: the header is not valid JSON at its byte 3"},
      {"NUL padding", safetensors(std::string_view("{}\0\0", 4), 0), "f: the header holds a NUL at its byte 3"},
      {"NUL inside", safetensors(std::string_view("{\"\0\":{}}", 8), 0), "f: the header holds a NUL at its byte 3"},
      {"invalid UTF-8", safetensors("{\"\xff\":{}}", 0), "f: the header is not valid JSON at its byte 3"},
      {"tensor twice", safetensors("{\"x\":{" + good + "},\"x\":{" + good + "}}", 4),
       "f: tensor x: stands twice in the header"},
      {"key twice", safetensors(one(good + "," + offsets), 4), "f: tensor x: key \"data_offsets\" stands twice"},
      {"metadata twice", safetensors(R"({"__metadata__":{},"__metadata__":{}})", 0),
       "f: __metadata__: stands twice in the header"},
      {"metadata key twice", safetensors(R"({"__metadata__":{"a":"","a":""}})", 0),
       "f: __metadata__: key \"a\" stands twice"},
      {"metadata not a map", safetensors(R"({"__metadata__":[]})", 0),
       "f: __metadata__: is an array, expected an object"},
      {"metadata of numbers", safetensors(R"({"__metadata__":{"a":1}})", 0),
       "f: __metadata__: \"a\" is 1, expected a string"},
      {"metadata nested", safetensors(R"({"__metadata__":{"a":{}}})", 0),
       "f: __metadata__: \"a\" is an object, expected a string"},
      {"tensor not an object", safetensors(R"({"x":null})", 0), "f: tensor x: is null, expected an object"},
      {"tensor a list", safetensors(R"({"x":[1]})", 0), "f: tensor x: is an array, expected an object"},
      {"unknown key", safetensors(one(good + R"(,"strides":[1])"), 4),
       "f: tensor x: key \"strides\" is not one of dtype, shape and data_offsets"},
      {"missing key", safetensors(one(R"("dtype":"F32","shape":[1])"), 4),
       "f: tensor x: expected all of dtype, shape and data_offsets"},
      {"no keys", safetensors(one(""), 4), "f: tensor x: expected all of dtype, shape and data_offsets"},
      {"newline in a name", safetensors(R"({"x\ny":{}})", 0),
       "f: tensor x\\x0ay: expected all of dtype, shape and data_offsets"},
  };
}

std::vector<BadFile> bad_members() {
  const auto dtype = [](const std::string& value) {
    return safetensors(one("\"dtype\":" + value + R"(,"shape":[1],"data_offsets":[0,4])"), 4);
  };
  const auto shape = [](const std::string& value, const std::string& end = "4") {
    return safetensors(one(R"("dtype":"U8","shape":)" + value + R"(,"data_offsets":[0,)" + end + "]"), 4);
  };
  const auto offsets = [](const std::string& value) {
    return safetensors(one(R"("dtype":"U8","shape":[4],"data_offsets":)" + value), 4);
  };
  return {
      {"dtype not a string", dtype("4"), "f: tensor x: dtype is 4, expected a string"},
      {"unknown dtype", dtype("\"F64\""),
       "f: tensor x: dtype F64 is not supported, expected F32, F16, BF16, F8_E4M3, F8_E8M0, I64, I32 or U8",
       Error::unsupported},
      {"negative size", shape("[-4]"), "f: tensor x: shape: -4 is not a non-negative integer"},
      {"fractional size", shape("[4.0]"), "f: tensor x: shape: 4.0 is not a non-negative integer"},
      {"text size", shape("[\"4\"]"), "f: tensor x: shape: \"4\" is not a non-negative integer"},
      {"shape a number", shape("4"), "f: tensor x: shape is 4, expected a list of non-negative integers"},
      {"shape nested", shape("[[4]]"), "f: tensor x: shape: an array is not a non-negative integer"},
      {"size beyond int64", shape("[9223372036854775808]"),
       "f: tensor x: shape: 9223372036854775808 is larger than any file"},
      {"size beyond uint64", shape("[18446744073709551616]"),
       "f: tensor x: shape: 18446744073709551616 is not a non-negative integer"},
      {"product wraps to 4", shape("[4294967296,4294967296,4]"),
       "f: tensor x: shape [4294967296, 4294967296, 4] has more elements than any file"},
      {"product wraps beside a zero", shape("[0,4294967296,4294967296]", "0"),
       "f: tensor x: shape [0, 4294967296, 4294967296] has more elements than any file"},
      {"too many dimensions", shape("[1,1,1,1,1,1,1,1,4]"), "f: tensor x: shape: more than 8 dimensions"},
      {"one offset", offsets("[4]"), "f: tensor x: data_offsets: expected two numbers, begin and end"},
      {"three offsets", offsets("[0,4,4]"), "f: tensor x: data_offsets: expected two numbers, begin and end"},
      {"negative offset", offsets("[-1,3]"), "f: tensor x: data_offsets: -1 is not a non-negative integer"},
      {"offsets not a list", offsets("{}"),
       "f: tensor x: data_offsets is an object, expected a list of non-negative integers"},
      {"end before begin", offsets("[4,0]"), "f: tensor x: data_offsets [4, 0] end before they begin"},
      {"bytes unlike shape", offsets("[0,3]"),
       "f: tensor x: data_offsets [0, 3] hold 3 bytes, U8 of shape [4] needs 4"},
      {"offsets near 2^64", offsets("[18446744073709551611,18446744073709551615]"),
       "f: tensor x: data_offsets [18446744073709551611, 18446744073709551615] lie beyond any file"},
  };
}

std::vector<BadFile> bad_coverage() {
  // Headers padded to 56 and 112 bytes, so that the data begins at 64 and 120.
  const auto x = [](const std::string& dtype, int begin, int end) {
    std::string text = R"("x":{"dtype":")" + dtype + R"(","shape":[4],"data_offsets":[)" + std::to_string(begin) + "," +
                       std::to_string(end) + "]}";
    return text;
  };
  const auto padded = [](std::string header, std::size_t size, std::size_t data) {
    header.resize(size, ' ');
    return safetensors(header, data);
  };
  const std::string y = R"(,"y":{"dtype":"U8","shape":[4],"data_offsets":[)";
  return {
      {"truncated", padded("{" + x("U8", 0, 4) + "}", 56, 3),
       "f: tensor x: ends at byte 68, the file at 67 (truncated download?)"},
      {"longer than its tensors", padded("{" + x("U8", 0, 4) + "}", 56, 5),
       "f: the last tensor ends at byte 68, the file at 69: bytes that belong to no tensor"},
      {"data without tensors", safetensors("{}", 1),
       "f: the last tensor ends at byte 10, the file at 11: bytes that belong to no tensor"},
      {"hole in front", padded("{" + x("U8", 1, 5) + "}", 56, 5),
       "f: tensor x: begins at byte 65, expected 64: a hole before it"},
      {"hole between", padded("{" + x("U8", 0, 4) + y + "5,9]}}", 112, 9),
       "f: tensor y: begins at byte 125, expected 124: a hole before it"},
      {"overlap", padded("{" + x("U8", 0, 4) + y + "3,7]}}", 112, 7),
       "f: tensor y: begins at byte 123, tensor x ends at 124: they overlap"},
      {"same bytes twice", padded("{" + x("U8", 0, 4) + y + "0,4]}}", 112, 4),
       "f: tensor y: begins at byte 120, tensor x ends at 124: they overlap"},
      {"unaligned", padded("{" + x("F16", 0, 8) + "}", 57, 8),
       "f: tensor x: begins at byte 65, F16 needs a multiple of 2 (saving the file anew aligns it)"},
  };
}

TEST(SafetensorsHeader, RefusesEachKindOfBadFileAndNamesTheCulprit) {
  for (const auto& cases : {bad_lengths(), bad_json(), bad_members(), bad_coverage()}) {
    for (const BadFile& bad : cases) {
      std::optional<Error::Kind> kind;
      EXPECT_EQ(error_of([&] { parse(bad.file); }, &kind), bad.message) << bad.what;
      EXPECT_EQ(kind, bad.kind) << bad.what;
    }
  }
}

TEST(SafetensorsHeader, DeepNestingIsRefusedWithoutAStackInProportion) {
  for (const std::string& open : {std::string("["), std::string("{\"a\":")}) {
    std::string header = "{\"x\":";
    while (header.size() < 10'000'000) header += open;
    EXPECT_THROW(parse(safetensors(header, 0)), Error);
  }
}

TEST(SafetensorsHeader, EveryTruncationIsAnError) {
  for (std::size_t size = 0; size < kSmall.size(); ++size) {
    EXPECT_THROW(parse(kSmall.substr(0, size)), Error) << size;
  }
}

TEST(SafetensorsHeader, WhateverBytesAreFlippedTheEntriesStayInTheFileOrItIsAnError) {
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string file = kSmall;
    for (std::size_t flips = 1 + random() % 3; flips > 0; --flips) {
      file[random() % file.size()] = static_cast<char>(random());
    }
    try {
      for (const SafetensorsEntry& entry : parse(file)) {
        ASSERT_LE(entry.begin, entry.end) << round;
        ASSERT_LE(entry.end, file.size()) << round;
      }
    } catch (const Error& error) {
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace qpn8
