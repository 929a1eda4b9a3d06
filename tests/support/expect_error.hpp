#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "qpn8/error.hpp"

namespace qpn8::test {

/// The action must throw an Error of this kind in one line that holds every one of the texts; a matcher may stand in a
/// text's place.
template <class Action, class... Expectations>
void expect_error(Error::Kind kind, Action&& action, const Expectations&... expectations) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), kind) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    const auto expect = [&](const auto& expectation) {
      if constexpr (std::is_convertible_v<decltype(expectation), std::string>) {
        EXPECT_THAT(message, ::testing::HasSubstr(std::string(expectation)));
      } else {
        EXPECT_THAT(message, expectation);
      }
    };
    (expect(expectations), ...);
    return;
  }
  ADD_FAILURE() << "expected an Error, but nothing was thrown";
}

}  // namespace qpn8::test
