#include "backend/launch_arguments.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace weir::rt {
namespace {

template <class T>
T value_of(LaunchArguments& arguments, std::size_t parameter) {
  EXPECT_EQ(arguments.size(parameter), sizeof(T));
  T value;
  std::memcpy(&value, arguments.addresses()[parameter], sizeof value);
  return value;
}

struct Made {
  explicit Made(const char* parameters) {
    source = {.entry = "k", .text = "", .file = "k.cu", .parameters = parameters};
  }
  Outcome pack() {
    weir_call call{};
    call.operands = views.data();
    call.operand_count = views.size();
    call.scalars = scalars.data();
    call.scalar_count = scalars.size();
    return arguments.pack(source, call);
  }
  KernelSource source;
  std::vector<weir_view> views;
  std::vector<weir_scalar> scalars;
  LaunchArguments arguments;
};

TEST(LaunchArguments, HaveTheTypesOfTheParameters) {
  Made made("piulmfdp");
  int x = 0, y = 0;
  made.views = {{&x, {4, 1, 1}, {}, WEIR_ACCESS_READ}, {&y, {4, 1, 1}, {}, WEIR_ACCESS_WRITE}};
  made.scalars = {weir_scalar_i64(-5),  weir_scalar_u64(7),     weir_scalar_i64(-9),
                  weir_scalar_u64(~0u), weir_scalar_f64(0.125), weir_scalar_f32(2.5F)};
  ASSERT_TRUE(made.pack().ok());
  ASSERT_EQ(made.arguments.count(), 8u);
  EXPECT_EQ(value_of<void*>(made.arguments, 0), &x);
  EXPECT_EQ(value_of<std::int32_t>(made.arguments, 1), -5);
  EXPECT_EQ(value_of<std::uint32_t>(made.arguments, 2), 7u);
  EXPECT_EQ(value_of<std::int64_t>(made.arguments, 3), -9);
  EXPECT_EQ(value_of<std::uint64_t>(made.arguments, 4), ~0u);
  EXPECT_EQ(value_of<float>(made.arguments, 5), 0.125F);
  EXPECT_EQ(value_of<double>(made.arguments, 6), 2.5);
  EXPECT_EQ(value_of<void*>(made.arguments, 7), &y);
}

TEST(LaunchArguments, SayWhatIsMissingOrWrong) {
  Made missing("pi");
  missing.scalars = {weir_scalar_i64(1)};
  EXPECT_EQ(missing.pack().message,
            "kernel 'k' has 2 parameters, and was given 0 operands and 1 scalars");
  Made wrong("d");
  wrong.scalars = {weir_scalar_i64(1)};
  const Outcome outcome = wrong.pack();
  EXPECT_EQ(outcome.status, WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(outcome.message,
            "parameter 0 of kernel 'k' takes a real number, and was given an integer");
}

}  // namespace
}  // namespace weir::rt
