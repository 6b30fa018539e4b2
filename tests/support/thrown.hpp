// The messages of the errors that tests provoke.
#pragma once

#include <string>

#include <gtest/gtest.h>
#include <weir/weir.hpp>

namespace weir {

/// Calls code() and returns the message of the Thrown that it throws, or "".
template <class Thrown = Error, class Code>
std::string thrown_by(Code code) {
  try {
    code();
    return "";
  } catch (const Thrown& error) {
    return error.what();
  }
}

/// The same; expects the Thrown to have this status.
template <class Thrown = Error, class Code>
std::string thrown_by(Code code, weir_status status) {
  try {
    code();
    return "";
  } catch (const Thrown& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    return error.what();
  }
}

}  // namespace weir
