#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "qpn8/error.hpp"

namespace qpn8::test {

/// The action must throw an Error of this kind whose message holds every one of the texts.
template <class Action, class... Texts>
void expect_error(Error::Kind kind, Action&& action, const Texts&... texts) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& text : {std::string(texts)...}) EXPECT_THAT(error.what(), ::testing::HasSubstr(text));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("\n"))) << "an error is one line";
    return;
  }
  ADD_FAILURE() << "no error";
}

}  // namespace qpn8::test
