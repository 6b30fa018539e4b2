// Kernels: what they are given and what they may change.
#include <algorithm>

#include "suite.hpp"

namespace weir::conformance {
namespace {

CONFORMANCE_TEST(Compute, IntegerAndFloatingPointScalars_ReachTheKernelUnchanged) {
  const Rig rig(subject);
  const Buffer x = rig.unaliased(4 * sizeof(double));
  rig.stream.compute(rig.kernels.scalars, {write(x.all())},
                     {std::int64_t{-5}, std::uint64_t{1} << 40, 0.25f, 1e-300});
  rig.stream.download(x.all());
  rig.stream.synchronize();
  const auto* const seen = x.data<double>();
  EXPECT_EQ(seen[0], -5);
  EXPECT_EQ(seen[1], static_cast<double>(std::uint64_t{1} << 40));
  EXPECT_EQ(seen[2], 0.25);
  EXPECT_EQ(seen[3], 1e-300);
}

CONFORMANCE_TEST(Compute, KernelWith13Operands_ReceivesThemInOrder) {
  constexpr std::size_t kMany = 12;
  const Rig rig(subject);
  const Buffer x = rig.numbers(kMany), y = rig.numbers(kMany);
  for (std::size_t i = 0; i < kMany; ++i) x.data<std::int64_t>()[i] = static_cast<int>(i * i);
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < kMany; ++i) {
    operands.push_back(read(x.elements<std::int64_t>(i, 1)));
  }
  operands.push_back(write(y.all()));
  rig.stream.upload(x.all());
  rig.stream.compute(rig.kernels.gather, operands, {});
  rig.stream.download(y.all());
  rig.stream.synchronize();
  EXPECT_TRUE(
      std::equal(x.data<std::int64_t>(), x.data<std::int64_t>() + kMany, y.data<std::int64_t>()));
}

CONFORMANCE_TEST(Compute, KernelOnAStridedTile_WritesAllOfTheTileAndNothingElse) {
  constexpr std::size_t kRows = 40, kColumns = 30;
  const Rig rig(subject);
  const Buffer x = rig.numbers(kRows * kColumns);
  auto* const numbers = x.data<std::int64_t>();
  std::fill_n(numbers, kRows * kColumns, -1);
  rig.stream.upload(x.all());
  rig.stream.compute(rig.kernels.number, {write(x.tile<std::int64_t>(3, 5, 20, 10, kRows))});
  rig.stream.download(x.all());
  rig.stream.synchronize();
  for (std::size_t column = 0; column < kColumns; ++column) {
    for (std::size_t row = 0; row < kRows; ++row) {
      const bool inside = row >= 3 && row < 23 && column >= 5 && column < 15;
      const auto expected = inside ? static_cast<std::int64_t>(1000 * (column - 5) + row - 3) : -1;
      ASSERT_EQ(numbers[column * kRows + row], expected) << "at " << row << ", " << column;
    }
  }
}

CONFORMANCE_TEST(Compute, OneElementOperandsAtManyOffsets_WriteOnlyTheirElement) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(100);
  auto* const numbers = x.data<std::int64_t>();
  rig.stream.upload(x.all());
  for (std::size_t i = 0; i < 100; i += 7) {
    rig.stream.compute(rig.kernels.fill, {write(x.elements<std::int64_t>(i, 1))}, {i});
  }
  rig.stream.download(x.all());
  rig.stream.synchronize();
  for (std::size_t i = 0; i < 100; ++i) {
    ASSERT_EQ(numbers[i], i % 7 == 0 ? static_cast<std::int64_t>(i) : 0);
  }
}

CONFORMANCE_TEST(Compute, ParallelKernelCalledTwice_AddsToEachElementOncePerCall) {
  const Rig rig(subject);
  const Buffer x = rig.numbers(10'000);
  rig.stream.compute(rig.kernels.parallel, {readwrite(x.all())});
  rig.stream.compute(rig.kernels.parallel, {readwrite(x.all())});
  rig.stream.download(x.all());
  rig.stream.synchronize();
  for (std::int64_t i = 0; i < 10'000; ++i) ASSERT_EQ(x.data<std::int64_t>()[i], 2 * i);
}

}  // namespace
}  // namespace weir::conformance
