#include "backend/invoke.hpp"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace weir::rt {
namespace {

Outcome call(weir_host_function function) {
  Job job;
  job.function = function;
  return invoke(job);
}

TEST(Invoke, KernelThatSucceeds_HasNoMessage) {
  const Outcome outcome = call([](const weir_call*) { return WEIR_STATUS_OK; });
  EXPECT_TRUE(outcome.ok());
  EXPECT_EQ(outcome.message, "");
}

TEST(Invoke, FailureWithoutAMessage_NamesItsStatus) {
  const Outcome outcome = call([](const weir_call*) { return WEIR_STATUS_KERNEL_ERROR; });
  EXPECT_EQ(outcome.status, WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(outcome.message, "the kernel returned kernel_error");
}

TEST(Invoke, MessageSetInACall_AppliesOnlyToThatCall) {
  const auto failing = [](const weir_call*) {
    set_call_failure("pivot 3 is zero");
    return WEIR_STATUS_KERNEL_ERROR;
  };
  EXPECT_EQ(call(failing).message, "pivot 3 is zero");
  EXPECT_EQ(call([](const weir_call*) { return WEIR_STATUS_BUSY; }).message,
            "the kernel returned busy");
}

TEST(Invoke, KernelThatThrows_FailsWithTheStatusOfTheException) {
  const Outcome standard =
      call([](const weir_call*) -> weir_status { throw std::runtime_error("bad tile"); });
  EXPECT_EQ(standard.status, WEIR_STATUS_KERNEL_ERROR);
  EXPECT_EQ(standard.message, "bad tile");
  const Outcome own = call(
      [](const weir_call*) -> weir_status { throw Error(WEIR_STATUS_UNSUPPORTED, "not here"); });
  EXPECT_EQ(own.status, WEIR_STATUS_UNSUPPORTED);
  EXPECT_EQ(own.message, "not here");
  EXPECT_FALSE(call([](const weir_call*) -> weir_status { throw 7; }).ok());
  EXPECT_EQ(call([](const weir_call*) -> weir_status { throw std::bad_alloc(); }).status,
            WEIR_STATUS_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace weir::rt
