#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "qpn8/error.hpp"

namespace qpn8::test {

/// Expects that `act` throws an Error of that kind whose message is one line and matches.
template <class Act, class Matcher>
void expect_error(Act act, Error::Kind kind, const Matcher& message) {
  try {
    act();
    ADD_FAILURE() << "expected an Error, but nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(std::string(error.what()), message);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

}  // namespace qpn8::test
