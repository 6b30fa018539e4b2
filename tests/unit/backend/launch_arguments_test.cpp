#include "backend/launch_arguments.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <vector>

namespace weir::rt {
namespace {

template <class T>
T argument(LaunchArguments& arguments, std::size_t index) {
  EXPECT_EQ(arguments.size(index), sizeof(T));
  T value;
  std::memcpy(&value, arguments.addresses()[index], sizeof value);
  return value;
}

TEST(LaunchArguments, AreInTheOrderOfTheParametersAndInTheirTypes) {
  int memory[2] = {};
  const std::vector<weir_view> views = {{&memory[0], {4, 1, 1}, {}, WEIR_ACCESS_READ},
                                        {&memory[1], {4, 1, 1}, {}, WEIR_ACCESS_WRITE}};
  const std::vector<weir_scalar> scalars = {weir_scalar_i64(-3),       weir_scalar_f64(0.5),
                                            weir_scalar_u64(7),        weir_scalar_i64(-5),
                                            weir_scalar_u64(1u << 31), weir_scalar_f32(0.25F)};
  weir_call call{};
  call.operands = views.data();
  call.operand_count = views.size();
  call.scalars = scalars.data();
  call.scalar_count = scalars.size();
  const std::string letters = "pifpmlud";
  ASSERT_EQ(launch_complaint(letters, views.size(), scalars), "");
  LaunchArguments arguments(letters, call);
  EXPECT_EQ(arguments.count(), letters.size());
  EXPECT_TRUE(arguments.is_operand(3));
  EXPECT_FALSE(arguments.is_operand(4));
  EXPECT_EQ(arguments.operand(3), &memory[1]);
  EXPECT_EQ(argument<int*>(arguments, 0), &memory[0]);
  EXPECT_EQ(argument<std::int32_t>(arguments, 1), -3);
  EXPECT_EQ(argument<float>(arguments, 2), 0.5F);
  EXPECT_EQ(argument<int*>(arguments, 3), &memory[1]);
  EXPECT_EQ(argument<std::uint64_t>(arguments, 4), 7u);
  EXPECT_EQ(argument<std::int64_t>(arguments, 5), -5);
  EXPECT_EQ(argument<std::uint32_t>(arguments, 6), 1u << 31);
  EXPECT_EQ(argument<double>(arguments, 7), 0.25);
}

TEST(LaunchArguments, IntegerForAFloatingPointParameter_IsConverted) {
  const std::vector<weir_scalar> scalars = {weir_scalar_i64(-2), weir_scalar_u64(3)};
  weir_call call{};
  call.scalars = scalars.data();
  call.scalar_count = scalars.size();
  ASSERT_EQ(launch_complaint("fd", 0, scalars), "");
  LaunchArguments arguments("fd", call);
  EXPECT_EQ(argument<float>(arguments, 0), -2.0F);
  EXPECT_EQ(argument<double>(arguments, 1), 3.0);
}

/// What is wrong with one scalar for a parameter after a pointer.
std::string complaint(char letter, weir_scalar scalar) {
  return launch_complaint(std::string("p") + letter, 1, {&scalar, 1});
}

TEST(LaunchArguments, LimitsOfEachParameterType_AreAccepted) {
  EXPECT_EQ(complaint('i', weir_scalar_i64(std::numeric_limits<std::int32_t>::min())), "");
  EXPECT_EQ(complaint('i', weir_scalar_u64(std::numeric_limits<std::int32_t>::max())), "");
  EXPECT_EQ(complaint('u', weir_scalar_i64(std::numeric_limits<std::uint32_t>::max())), "");
  EXPECT_EQ(complaint('l', weir_scalar_u64(std::numeric_limits<std::int64_t>::max())), "");
  EXPECT_EQ(complaint('l', weir_scalar_i64(std::numeric_limits<std::int64_t>::min())), "");
  EXPECT_EQ(complaint('m', weir_scalar_u64(std::numeric_limits<std::uint64_t>::max())), "");
  EXPECT_EQ(complaint('f', weir_scalar_f64(std::numeric_limits<double>::infinity())), "");
  EXPECT_EQ(complaint('d', weir_scalar_f64(1e300)), "");
}

TEST(LaunchArguments, UnrepresentableScalar_ErrorNamesParameterAndReason) {
  EXPECT_EQ(complaint('i', weir_scalar_i64(1LL << 31)),
            "parameter 1 (scalar 0) is a signed 32-bit integer, which cannot hold 2147483648");
  EXPECT_EQ(complaint('i', weir_scalar_f64(2.5)),
            "parameter 1 (scalar 0) is a signed 32-bit integer, but 2.5 was given as a "
            "floating-point number; give an integer");
  EXPECT_EQ(complaint('u', weir_scalar_i64(-1)),
            "parameter 1 (scalar 0) is an unsigned 32-bit integer, which cannot hold -1");
  EXPECT_NE(complaint('u', weir_scalar_u64(1ULL << 32)), "");
  EXPECT_NE(complaint('l', weir_scalar_u64(1ULL << 63)), "");
  EXPECT_NE(complaint('m', weir_scalar_i64(-1)), "");
  EXPECT_EQ(complaint('f', weir_scalar_f64(1e300)),
            "parameter 1 (scalar 0) is a float, which cannot hold 1e+300");
  weir_scalar strange = weir_scalar_i64(1);
  const int unknown = 9;
  static_assert(sizeof strange.type == sizeof unknown);
  std::memcpy(&strange.type, &unknown, sizeof unknown);
  EXPECT_EQ(complaint('i', strange), "parameter 1 (scalar 0) is a scalar of unknown type 9");
}

TEST(LaunchArguments, WrongNumberOfArguments_ErrorNamesTheExpectedNumber) {
  const weir_scalar one = weir_scalar_i64(1);
  EXPECT_EQ(launch_complaint("ppi", 1, {&one, 1}),
            "it has 2 pointers and 1 value, but was given 1 operand and 1 scalar");
  EXPECT_NE(launch_complaint("pi", 1, {}), "");
  EXPECT_NE(launch_complaint("p", 1, {&one, 1}), "");
}

}  // namespace
}  // namespace weir::rt
