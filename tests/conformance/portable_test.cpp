// Kernels of <weir/portable.h>: the same text gives the same result everywhere.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>

#include <weir/portable.h>

#include "suite.hpp"
#include "surroundings.hpp"

namespace weir::conformance {
namespace {

namespace wk {
#include "suite.wk"
}
#include <suite.wk.h>

/// Registers a kernel of the file with its text.
template <class Grid>
Kernel made(const Rig& rig, const weir_portable_kernel& kernel, Grid grid) {
  return rig.runtime.portable_kernel(
      {.kernel = &kernel, .source = suite_wk, .source_name = "suite.wk"}, grid);
}

/// Groups for as many items as the last scalar says.
constexpr auto kByCount = [](const Call& call) {
  const std::size_t count = call.scalar<std::size_t>(call.handle()->scalar_count - 1);
  return Groups{group_count(count, WIDTH)};
};

template <class T>
T* filled(const Buffer& buffer, T first) {
  std::iota(buffer.data<T>(), buffer.data<T>() + buffer.bytes() / sizeof(T), first);
  return buffer.data<T>();
}

CONFORMANCE_TEST(Portable, PartialAndFullGroups_RunEveryItemExactlyOnce) {
  const Rig rig(subject);
  const Kernel axpy = made(rig, wk::axpy, kByCount);
  for (const int count : {1, WIDTH - 1, WIDTH, 10'000}) {
    const std::size_t bytes = static_cast<std::size_t>(count + 8) * sizeof(float);
    const Buffer x = rig.unaliased(bytes), y = rig.unaliased(bytes);
    filled(x, 0.0F);
    filled(y, 1.0F);
    rig.stream.upload(x.all());
    rig.stream.upload(y.all());
    rig.stream.compute(axpy, {readwrite(y.all()), read(x.all())}, {2, count});
    rig.stream.download(y.all());
    rig.stream.synchronize();
    for (int i = 0; i < count + 8; ++i) {
      const auto index = static_cast<float>(i);
      ASSERT_EQ(y.data<float>()[i], i < count ? 1 + 3 * index : 1 + index) << i << " of " << count;
    }
  }
}

CONFORMANCE_TEST(Portable, GroupsWith96KiBOfSharedMemory_ReverseTheirElements) {
  const Rig rig(subject);
  const Kernel reverse = made(rig, wk::reverse, [](const Call&) { return Groups{3}; });
  const Buffer x = rig.unaliased(3 * PART * sizeof(std::int64_t));
  filled(x, std::int64_t{0});
  rig.stream.upload(x.all());
  rig.stream.compute(reverse, {readwrite(x.all())});
  rig.stream.download(x.all());
  rig.stream.synchronize();
  for (std::int64_t i = 0; i < 3 * PART; ++i) {
    ASSERT_EQ(x.data<std::int64_t>()[i], i / PART * PART + PART - 1 - i % PART) << i;
  }
}

CONFORMANCE_TEST(Portable, LaunchWithZeroGroups_SucceedsWithoutEffect) {
  const Rig rig(subject);
  const Kernel axpy = made(rig, wk::axpy, kByCount);
  const Buffer x = rig.unaliased(64), y = rig.unaliased(64);
  filled(y, 1.0F);
  rig.stream.upload(y.all());
  rig.stream.compute(axpy, {readwrite(y.all()), read(x.all())}, {1.0, 0});
  rig.stream.compute(axpy, {readwrite(y.all()), read(y.all())}, {1.0, 16});
  rig.stream.download(y.all());
  rig.stream.synchronize();
  EXPECT_EQ(y.data<float>()[15], 32);
}

CONFORMANCE_TEST(Portable, StencilThroughSharedMemory_SumsAllNeighbours) {
  constexpr std::int64_t kCount = 1000;
  const Rig rig(subject);
  const Kernel stencil = made(rig, wk::stencil, kByCount);
  const Buffer x = rig.numbers(kCount), y = rig.numbers(kCount);
  auto* const in = filled<std::int64_t>(x, 7);
  rig.stream.upload(x.all());
  rig.stream.compute(stencil, {write(y.all()), read(x.all())}, {kCount});
  rig.stream.download(y.all());
  rig.stream.synchronize();
  for (std::int64_t i = 0; i < kCount; ++i) {
    const std::int64_t before = i > 0 ? in[i - 1] : 0, after = i + 1 < kCount ? in[i + 1] : 0;
    ASSERT_EQ(y.data<std::int64_t>()[i], before + in[i] + after) << i;
  }
}

CONFORMANCE_TEST(Portable, SumAndMaximumBySharedMemoryAndAtomics_AreExact) {
  constexpr int kCount = 5000;
  const Rig rig(subject);
  const Kernel reduce = made(rig, wk::reduce, kByCount);
  const Buffer x = rig.unaliased(kCount * sizeof(int)), total = rig.unaliased(8),
               most = rig.unaliased(8);
  auto* const in = filled(x, -2000);
  std::reverse(in, in + kCount / 2);
  for (const Buffer* const buffer : {&x, &total, &most}) rig.stream.upload(buffer->all());
  rig.stream.compute(reduce, {read(x.all()), readwrite(total.all()), readwrite(most.all())},
                     {kCount});
  rig.stream.download(total.all());
  rig.stream.download(most.all());
  rig.stream.synchronize();
  EXPECT_EQ(total.data<int>()[0], std::accumulate(in, in + kCount, 0));
  EXPECT_EQ(most.data<int>()[0], 2999);
}

CONFORMANCE_TEST(Portable, MatrixMultiplyInDoubles_IsExactAndWritesOnlyItsTile) {
  constexpr std::size_t kRows = 4 * TILE, kColumns = 3 * TILE, kInner = 5 * TILE, kLd = 7 * TILE;
  const Rig rig(subject);
  const Kernel multiply = made(rig, wk::multiply, [](const Call& call) {
    const weir_view& c = call.operand(2);
    return Groups{group_count(c.extent[0] / sizeof(double), TILE), group_count(c.extent[1], TILE)};
  });
  const std::size_t bytes = kLd * kLd * sizeof(double);
  const Buffer a = rig.unaliased(bytes), b = rig.unaliased(bytes), c = rig.unaliased(bytes);
  for (std::size_t i = 0; i < kLd * kLd; ++i) {
    a.data<double>()[i] = static_cast<double>(i % 11);
    b.data<double>()[i] = static_cast<double>(i % 7);
    c.data<double>()[i] = static_cast<double>(i);
  }
  const auto tile = [](const Buffer& buffer, std::size_t row, std::size_t column, std::size_t rows,
                       std::size_t columns) {
    return buffer.tile<double>(row, column, rows, columns, kLd);
  };
  for (const Buffer* const buffer : {&a, &b, &c}) rig.stream.upload(buffer->all());
  rig.stream.compute(multiply,
                     {read(tile(a, 3, 1, kRows, kInner)), read(tile(b, 0, 2, kInner, kColumns)),
                      readwrite(tile(c, 5, 6, kRows, kColumns))},
                     {kInner, kLd, kLd, kLd});
  rig.stream.download(c.all());
  rig.stream.synchronize();
  for (std::size_t column = 0; column < kLd; ++column) {
    for (std::size_t row = 0; row < kLd; ++row) {
      auto expected = static_cast<double>(column * kLd + row);
      if (row >= 5 && row < 5 + kRows && column >= 6 && column < 6 + kColumns) {
        for (std::size_t k = 0; k < kInner; ++k) {
          expected += a.data<double>()[(1 + k) * kLd + row - 5 + 3] *
                      b.data<double>()[(column - 6 + 2) * kLd + k];
        }
      }
      ASSERT_EQ(c.data<double>()[column * kLd + row], expected) << row << ", " << column;
    }
  }
}

/// What the kernel `rounds` leaves in three dimensions of groups, for the fifth round.
std::vector<int> rounds_on(const Rig& rig) {
  constexpr std::size_t kItems = (4 * 2) * (2 * 3) * (2 * 2);
  const Kernel rounds = made(rig, wk::rounds, [](const Call&) { return Groups{2, 3, 2}; });
  const Buffer out = rig.unaliased(kItems * sizeof(int));
  rig.stream.compute(rounds, {write(out.all())}, {5});
  rig.stream.download(out.all());
  rig.stream.synchronize();
  return {out.data<int>(), out.data<int>() + kItems};
}

CONFORMANCE_TEST(Portable, PrivateValuesIn3DGroups_PersistAcrossPhases) {
  const std::vector<int> got = rounds_on(Rig(subject));
  for (int z = 0; z < 4; ++z) {
    for (int y = 0; y < 6; ++y) {
      for (int x = 0; x < 8; ++x) {
        const int item = x % 4 + 4 * (y % 2 + 2 * (z % 2)), next = (item + 1) % 16;
        int expected = item + 5 + 100'000 * (x / 4 + y / 2 + z / 2 + 2);
        const int taken[4] = {next + next + 4, next + 1, next + 2, next + 3};
        for (int k = 0, shift = 1; k < 4; ++k, shift *= 10) expected += shift * taken[k];
        ASSERT_EQ(got[static_cast<std::size_t>(x + 8 * (y + 6 * z))], expected)
            << x << ", " << y << ", " << z;
      }
    }
  }
}

CONFORMANCE_TEST(Portable, ReverseItemOrderRequested_ResultIsUnchanged) {
  const std::vector<int> forwards = rounds_on(Rig(subject));
  const EnvironmentVariable backwards("WEIR_PORTABLE_BACKWARDS", "1");
  EXPECT_EQ(rounds_on(Rig(subject)), forwards);
}

CONFORMANCE_TEST(Portable, ContendedAtomicsOnAllTypes_GiveExactResults) {
  constexpr int kGroups = 20, kItems = kGroups * WIDTH;
  const Rig rig(subject);
  const Kernel atomics = made(rig, wk::atomics, [](const Call&) { return Groups{kGroups}; });
  std::vector<Buffer> counts;
  for (int i = 0; i < 6; ++i) counts.push_back(rig.unaliased(64));
  auto* const integers = counts[0].data<std::int32_t>();
  auto* const naturals = counts[1].data<std::uint32_t>();
  integers[1] = kItems;
  naturals[1] = kItems;
  std::vector<Operand> operands;
  for (const Buffer& count : counts) {
    rig.stream.upload(count.all());
    operands.push_back(readwrite(count.all()));
  }
  rig.stream.compute(atomics, operands, {});
  for (const Buffer& count : counts) rig.stream.download(count.all());
  rig.stream.synchronize();
  EXPECT_EQ(counts[2].data<std::int64_t>()[0], kItems);
  EXPECT_EQ(counts[3].data<std::uint64_t>()[0], std::uint64_t{kItems});
  EXPECT_EQ(counts[4].data<float>()[0], kItems);
  EXPECT_EQ(counts[5].data<double>()[0], kItems);
  const std::vector<std::int32_t> expected = {kItems, 0, kItems - 1, 5, 7};
  EXPECT_EQ(std::vector<std::int32_t>(integers, integers + 5), expected);
  const std::vector<std::uint32_t> unsigneds = {kItems, 0, kItems - 1, 5, 0};
  EXPECT_EQ(std::vector<std::uint32_t>(naturals, naturals + 5), unsigneds);
}

CONFORMANCE_TEST(Portable, Float4AndDouble4_LoadComputeAndStoreEachElement) {
  constexpr int kCount = 1000;
  const Rig rig(subject);
  const Kernel vectors = made(rig, wk::vectors, [](const Call& call) {
    return Groups{group_count(call.scalar<std::size_t>(0) / 4, WIDTH)};
  });
  const Buffer x = rig.unaliased(kCount * sizeof(float)),
               y = rig.unaliased(2 * kCount * sizeof(float));
  const Buffer v = rig.unaliased(kCount * sizeof(double)),
               w = rig.unaliased(kCount * sizeof(double));
  filled(x, -10.0F);
  filled(v, -10.0);
  rig.stream.upload(x.all());
  rig.stream.upload(v.all());
  rig.stream.compute(vectors, {read(x.all()), write(y.all()), read(v.all()), write(w.all())},
                     {kCount});
  rig.stream.download(y.all());
  rig.stream.download(w.all());
  rig.stream.synchronize();
  for (int i = 0; i < kCount; ++i) {
    const auto one = static_cast<float>(i - 10);
    ASSERT_EQ(y.data<float>()[i], 2 * one * one - 2 * one) << i;
    ASSERT_EQ(w.data<double>()[i], double{2 * one * one - 2 * one}) << i;
    ASSERT_EQ(y.data<float>()[kCount + i], i % 4 == 0 ? 2 * one + 3 : one) << i;
  }
}

CONFORMANCE_TEST(Portable, ScalarArguments_ConvertToParameterTypesWithoutLoss) {
  const Rig rig(subject);
  const Kernel values = made(rig, wk::values, [](const Call&) { return Groups{}; });
  const Buffer out = rig.unaliased(6 * sizeof(double));
  rig.stream.compute(values, {write(out.all())},
                     {-3, 4'000'000'000U, std::int64_t{-1} << 40, std::uint64_t{1} << 63, 0.5, 7});
  rig.stream.download(out.all());
  rig.stream.synchronize();
  const std::vector<double> expected = {-3, 4e9, -0x1p40, 0x1p63, 0.5, 7};
  EXPECT_EQ(std::vector<double>(out.data<double>(), out.data<double>() + 6), expected);
}

CONFORMANCE_TEST(Portable, ArgumentsThatDoNotFitTheParameters_AreRejectedWithReason) {
  const Rig rig(subject);
  const Kernel axpy = made(rig, wk::axpy, kByCount);
  const Buffer x = rig.unaliased(64), y = rig.unaliased(64);
  const auto refusal = [&](std::initializer_list<Operand> operands,
                           std::initializer_list<Scalar> scalars) {
    try {
      rig.stream.compute(axpy, operands, scalars);
    } catch (const Error& error) {
      return (error.status() == WEIR_STATUS_INVALID_ARGUMENT ? "" : "another status: ") +
             std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(refusal({readwrite(y.all())}, {1.0, 1}),
            "kernel 'axpy': it has 2 pointers and 2 values, but was given 1 operand and 2 "
            "scalars");
  EXPECT_EQ(refusal({readwrite(y.all()), read(x.all())}, {1.0, 1.5}),
            "kernel 'axpy': parameter 3 (scalar 1) is a signed 32-bit integer, but 1.5 was given "
            "as a floating-point number; give an integer");
  EXPECT_EQ(refusal({readwrite(y.all()), read(x.all())}, {1.0, std::int64_t{1} << 31}),
            "kernel 'axpy': parameter 3 (scalar 1) is a signed 32-bit integer, which cannot hold "
            "2147483648");
  rig.stream.synchronize();  // nothing was enqueued
  rig.stream.compute(axpy, {readwrite(y.all()), read(x.all())}, {1.0, 1}).wait();
}

/// Grids must not throw, but what they throw fails the action.
CONFORMANCE_TEST(Portable, TooLargeGridOrThrowingGridFunction_FailsTheActionWithReason) {
  const Rig rig(subject);
  const Kernel axpy = made(rig, wk::axpy, [](const Call& call) {
    return call.scalar<int>(1) == 1 ? Groups{.y = 70'000} : Groups{call.scalar<std::uint32_t>(9)};
  });
  const Buffer x = rig.unaliased(64), y = rig.unaliased(64);
  for (const int which : {1, 2}) {
    const Event event = rig.stream.compute(axpy, {readwrite(y.all()), read(x.all())}, {1.0, which});
    EXPECT_NE(status_of([&] { event.wait(); }), WEIR_STATUS_OK);
    const std::string message = event.info().message;
    const char* const wanted = which == 1 ? "70000 groups in y" : "scalar 9 of 2";
    EXPECT_NE(message.find(wanted), std::string::npos) << message;
    EXPECT_NE(status_of([&] { rig.stream.synchronize(); }), WEIR_STATUS_OK);
  }
}

// ---- Of devices that compile -------------------------------------------------------------------

/// What a device says to a text with the kernel "broken", which has one pointer; "": it compiles
/// none, but runs code of the host.
std::string verdict(const Rig& rig, const char* text, std::uint32_t items = 64,
                    const char* parameters = "p") {
  const weir_portable_kernel kernel = {"broken", {items, 1, 1}, parameters, nullptr, nullptr};
  const Kernel broken =
      rig.runtime.portable_kernel({.kernel = &kernel, .source = text, .source_name = "broken.wk"},
                                  [](const Call&) { return Groups{}; });
  const Buffer x = rig.unaliased(64);
  try {
    const Event event = rig.stream.compute(broken, {readwrite(x.all())});
    try {
      rig.stream.synchronize();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find(event.info().message), 0U) << error.what();
      return error.what();  // the whole text: an event has its first 255 bytes
    }
    ADD_FAILURE() << "a broken kernel ran";
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), WEIR_STATUS_UNSUPPORTED);
    EXPECT_NE(std::string(error.what()).find("it has: source"), std::string::npos) << error.what();
    return {};
  }
}

void expect_in(const std::string& verdict, std::initializer_list<const char*> words) {
  if (verdict.empty()) return;
  for (const char* const word : words) {
    EXPECT_NE(verdict.find(word), std::string::npos) << verdict << "\nlacks: " << word;
  }
}

CONFORMANCE_TEST(Portable, CompileError_NamesKernelFileAndLineAndOtherKernelsRun) {
  const Rig rig(subject);
  std::string said = verdict(rig,
                             "#include <weir/portable.h>\n"
                             "WEIR_KERNEL(broken, 64, 1, 1, WEIR_GLOBAL float* x) {\n"
                             "  WEIR_ITEMS { x[0] = nonsense; }\n"
                             "}\n");
  const std::size_t line = said.find("broken.wk(3)");  // as some write it
  if (line != std::string::npos) said.replace(line, 12, "broken.wk:3");
  expect_in(said, {"'broken'", "broken.wk:3", "nonsense"});
  const Kernel axpy = made(rig, wk::axpy, kByCount);  // it goes on
  const Buffer x = rig.unaliased(64), y = rig.unaliased(64);
  rig.stream.compute(axpy, {readwrite(y.all()), read(x.all())}, {1.0, 1}).wait();
}

CONFORMANCE_TEST(Portable, SourceWithoutTheKernel_ErrorNamesKernelAndFile) {
  expect_in(verdict(Rig(subject), "WEIR_KERNEL(other, 64, 1, 1, WEIR_GLOBAL float* x) {}\n"),
            {"'broken'", "broken.wk"});
}

CONFORMANCE_TEST(Portable, GroupSizeAboveTheLimit_ErrorNamesKernelAndSize) {
  expect_in(verdict(Rig(subject),
                    "WEIR_KERNEL(broken, 1048576, 1, 1, WEIR_GLOBAL float* x) {\n"
                    "  WEIR_ITEMS { x[0] = 1; }\n"
                    "}\n",
                    1 << 20),
            {"'broken'", "1048576"});
}

CONFORMANCE_TEST(Portable, SharedMemoryAboveTheLimit_ErrorNamesKernelAndBytes) {
  std::string said = verdict(Rig(subject),
                             "WEIR_KERNEL(broken, 64, 1, 1, WEIR_GLOBAL float* x) {\n"
                             "  WEIR_SHARED(float, all, 16777216);\n"
                             "  WEIR_ITEMS { all[WEIR_LOCAL_X * 1000] = x[0]; }\n"
                             "  WEIR_ITEMS { x[WEIR_LOCAL_X % 16] = all[WEIR_LOCAL_X]; }\n"
                             "}\n");
  const std::string product = "sizeof(float) * (16777216)";  // as a compiler writes it
  const std::size_t at = said.find(product);
  if (at != std::string::npos) said.replace(at, product.size(), "67108864");
  expect_in(said, {"'broken'", "67108864"});
}

}  // namespace
}  // namespace weir::conformance
