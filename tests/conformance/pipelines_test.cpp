// Stages of pipelines on every kind of device: kernels and stencils, of one portable text.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/portable.h>
#include <weir/pipeline.hpp>

#include "suite.hpp"

namespace weir::conformance {
namespace {

namespace stages_wk {
#include "suite.wk"
}
#include <suite.wk.h>

using Number = std::int64_t;

/// The device, and a core of the host for workers where time is real.
std::string with_workers(const Subject& subject) {
  const bool in_virtual_time = subject.domain.find("virtual") != std::string::npos;
  return subject.domain + (in_virtual_time ? "" : ",host:cores=1");
}

template <class Grid>
Kernel made(const Rig& rig, const weir_portable_kernel& kernel, Grid grid) {
  return rig.runtime.portable_kernel(
      {.kernel = &kernel, .source = suite_wk, .source_name = "suite.wk"}, grid);
}

constexpr auto kByFirst = [](const Call& call) {
  return Groups{group_count(call.scalar<std::size_t>(0), WIDTH)};
};
constexpr auto kByTile = [](const Call& call) {
  return Groups{group_count(call.scalar<std::size_t>(1), WIDTH), call.scalar<std::uint32_t>(0)};
};

CONFORMANCE_TEST(Portable, KernelsAsPipelineStages_ProduceEachExpectedItemOnce) {
  constexpr Number kCount = 5'000;
  const Rig rig(subject, with_workers(subject));
  const Kernel repeat = made(rig, stages_wk::repeat, kByFirst);
  const Kernel pick = made(rig, stages_wk::pick, kByFirst);
  const Pipeline pipeline(rig.runtime);
  const auto numbers = pipeline.tunnel<Number>("numbers");
  const auto some = pipeline.tunnel<Number>("some");
  const auto few = pipeline.tunnel<Number>("few");
  pipeline.source("count", into(numbers), [next = Number{0}](const Outlet<Number>& out) mutable {
    out.put(next++);
    return next < kCount;
  });
  pipeline.kernel("repeat", numbers, into(some), repeat, rig.place,
                  {.outputs = {{2, WEIR_STAGE_COUNTING_PER_ITEM}}, .batch = 300});
  pipeline.kernel(
      "pick", some, into(few), pick, rig.place,
      {.scalars = {Number{7}}, .outputs = {{1, WEIR_STAGE_COUNTING_PER_TUNNEL}}, .batch = 500});
  std::vector<Number> found, expected;
  pipeline.stage("keep", few, [&](Number x) { found.push_back(x); }, {.workers = 1});
  pipeline.run();
  for (Number i = 0; i < kCount; ++i) {
    for (Number k = 0; k < i % 3; ++k) {
      if ((2 * i + k) % 7 == 0) expected.push_back(2 * i + k);
    }
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

CONFORMANCE_TEST(Portable, KernelAsPipelineStencil_ThreeSweepsMatchTheReference) {
  constexpr std::size_t kRows = 75, kColumns = 130, kSweeps = 3;
  const Rig rig(subject, with_workers(subject));
  const Kernel kernel = made(rig, stages_wk::weigh_five, kByTile);
  std::vector<Number> values(kRows * kColumns);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Number>(i * i % 101);
  const Buffer result = rig.runtime.buffer(values.size() * sizeof(Number));
  const Pipeline pipeline(rig.runtime);
  const auto regions = pipeline.tunnel<weir_stencil_region>("regions");
  const auto tiles = pipeline.tunnel<weir_stencil_region>("tiles");
  const auto stencil = pipeline.stencil<Number>("weigh", regions, tiles, kernel, rig.place, result,
                                                {.rows = kRows,
                                                 .columns = kColumns,
                                                 .region_rows = 16,
                                                 .region_columns = 32,
                                                 .sweeps = kSweeps});
  pipeline.source("rows", into(regions),
                  [&, row = std::size_t{0}](const Outlet<weir_stencil_region>& out) mutable {
                    stencil.set(out, row, 0, 1, kColumns, &values[row * kColumns], kColumns);
                    return ++row < kRows;
                  });
  std::atomic<std::size_t> seen{0};
  pipeline.stage("see", tiles, [&](const weir_stencil_region& tile) {
    seen += std::size_t{tile.rows} * tile.columns;
  });
  pipeline.run();
  std::vector<Number> next = values;
  for (std::size_t sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t r = 1; r + 1 < kRows; ++r) {
      for (std::size_t c = 1; c + 1 < kColumns; ++c) {
        const Number* const x = &values[r * kColumns + c];
        next[r * kColumns + c] = x[0] + x[-static_cast<std::ptrdiff_t>(kColumns)] +
                                 2 * x[kColumns] + 3 * x[-1] + 5 * x[1];
      }
    }
    values = next;
  }
  EXPECT_EQ(seen, values.size());
  EXPECT_TRUE(std::equal(values.begin(), values.end(), result.data<Number>()));
}

}  // namespace
}  // namespace weir::conformance
