// Stencils of pipelines: exact, each value copied once, and nothing forgotten.
#include <weir/pipeline.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "thrown.hpp"

namespace stencils {
namespace {

using weir::Call;
using weir::into;
using weir::Outlet;
using weir::Pipeline;
using weir::Runtime;
using weir::thrown_by;
using Region = weir_stencil_region;
using Out = Outlet<Region>;

/// Mean of a cross, at the edge the value itself.
float five(float c, float n, float s, float w, float e) { return ((((c + n) + s) + w) + e) * 0.2F; }

struct Matrix {
  Matrix(std::size_t of_rows, std::size_t of_columns)
      : rows(of_rows), columns(of_columns), values(rows * columns) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>((i * 2654435761u) % 1000) / 7;
    }
  }
  float at(std::size_t r, std::size_t c) const { return values[r * columns + c]; }
  Matrix next() const {
    Matrix made = *this;
    for (std::size_t r = 1; r + 1 < rows; ++r) {
      for (std::size_t c = 1; c + 1 < columns; ++c) {
        made.values[r * columns + c] =
            five(at(r, c), at(r - 1, c), at(r + 1, c), at(r, c - 1), at(r, c + 1));
      }
    }
    return made;
  }
  std::size_t rows, columns;
  std::vector<float> values;
};

void cross(const Call& call) {
  const auto scalar = [&](std::size_t i) { return call.scalar<std::size_t>(i); };
  auto* const to = static_cast<float*>(call.operand(0).address);
  const auto* const from = static_cast<const float*>(call.operand(1).address);
  const std::size_t rows = scalar(0), columns = scalar(1), stride = scalar(2);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const float* const x = from + (r + scalar(3)) * stride + c + scalar(4);
      const std::size_t row = scalar(5) + r, column = scalar(6) + c;
      const bool edge = row == 0 || column == 0 || row + 1 == scalar(7) || column + 1 == scalar(8);
      const auto s = static_cast<std::ptrdiff_t>(stride);
      to[r * stride + c] = edge ? *x : five(*x, x[-s], x[s], x[-1], x[1]);
    }
  }
}

struct Rig {
  explicit Rig(const std::string& domains, Matrix given, std::size_t edge, std::size_t sweeps,
               bool keep_going = false)
      : runtime(domains),
        start(std::move(given)),
        place(runtime.domain(runtime.domain_count() - 1).place(1)),
        kernel(runtime.kernel("cross", cross)),
        result(runtime.buffer(start.values.size() * sizeof(float))),
        pipeline(runtime, {.keep_going = keep_going, .batch = 1}),
        regions(pipeline.tunnel<Region>("regions", {.capacity = 4})),
        tiles(pipeline.tunnel<Region>("tiles")),
        stencil(pipeline.stencil<float>("cross", regions, tiles, kernel, place, result,
                                        {.rows = start.rows,
                                         .columns = start.columns,
                                         .region_rows = edge,
                                         .region_columns = edge,
                                         .sweeps = sweeps,
                                         .batch = 4,
                                         .in_flight = 2})) {
    pipeline.stage("note", tiles, [this](const Region& tile) {
      ++tiles_seen;
      values_seen += std::size_t{tile.rows} * tile.columns;
    });
  }

  Runtime runtime;
  Matrix start;
  weir::Place place;
  weir::Kernel kernel;
  weir::Buffer result;
  Pipeline pipeline;
  weir::Tunnel<Region> regions, tiles;
  weir::Stencil<float> stencil;
  std::atomic<std::size_t> tiles_seen{0}, values_seen{0};
};

struct Stencils : testing::TestWithParam<const char*> {};

TEST_P(Stencils, Sweeps_EqualTheSequentialResultAndCopyEachValueOnce) {
  for (const std::size_t sweeps : {1u, 2u, 5u}) {
    Rig rig(GetParam(), Matrix(470, 210), 32, sweeps);
    // Row by row, some values at a time.
    rig.pipeline.source("values", into(rig.regions),
                        [&, at = std::size_t{0}](const Out& out) mutable {
                          const std::size_t row = at / 210, column = at % 210;
                          const std::size_t count = std::min<std::size_t>(29, 210 - column);
                          rig.stencil.set(out, row, column, 1, count, &rig.start.values[at], count);
                          at += count;
                          return at < rig.start.values.size();
                        });
    const weir_stats before = rig.runtime.stats();
    rig.pipeline.run();
    Matrix expected = rig.start;
    for (std::size_t sweep = 0; sweep < sweeps; ++sweep) expected = expected.next();
    const float* const found = rig.result.data<float>();
    EXPECT_TRUE(std::equal(expected.values.begin(), expected.values.end(), found));
    const weir_stencil_info info = rig.stencil.info();
    EXPECT_EQ(info.regions, 15u * 7u);
    EXPECT_EQ(info.regions_copied, info.regions);
    EXPECT_EQ(info.tiles_made, info.regions * sweeps);
    EXPECT_EQ(rig.tiles_seen, info.regions);
    EXPECT_EQ(rig.values_seen, rig.start.values.size());
    // Each value there once, and back once.
    const weir_stats after = rig.runtime.stats();
    EXPECT_EQ(after.bytes_h2d - before.bytes_h2d, rig.start.values.size() * sizeof(float));
    EXPECT_EQ(after.bytes_d2h - before.bytes_d2h, rig.start.values.size() * sizeof(float));
    // Memory is used again: regions are in a row that is being set, kept, in the tunnel, or moved.
    EXPECT_LE(info.regions_at_once, 7u + 7 * rig.pipeline.info().workers + 4 + 2 * 4);
  }
}

TEST_P(Stencils, ValuesSetInAnyOrder_EqualTheSequentialResult) {
  Rig rig(GetParam(), Matrix(61, 77), 16, 3);
  std::vector<std::uint32_t> order(61 * 77);
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = static_cast<std::uint32_t>(i * 1009 % order.size());
  }
  // Many workers of a stage set single values.
  const auto places = rig.pipeline.tunnel<std::uint32_t>("places");
  rig.pipeline.source("order", into(places),
                      [&, next = std::size_t{0}](const Outlet<std::uint32_t>& out) mutable {
                        out.put(order[next++]);
                        return next < order.size();
                      });
  rig.pipeline.stage("set", places, into(rig.regions), [&](std::uint32_t at, const Out& out) {
    rig.stencil.set(out, at / 77, at % 77, rig.start.values[at]);
  });
  rig.pipeline.run();
  const Matrix expected = rig.start.next().next().next();
  EXPECT_TRUE(std::equal(expected.values.begin(), expected.values.end(), rig.result.data<float>()));
}

TEST_P(Stencils, RegionsIncompleteAtTheEnd_AreReported) {
  Rig rig(GetParam(), Matrix(64, 64), 16, 2);
  rig.pipeline.source("values", into(rig.regions), [&](const Out& out) {
    rig.stencil.set(out, 0, 0, 40, 64, rig.start.values.data(), 64);
    return false;
  });
  const std::string why = thrown_by([&] { rig.pipeline.run(); });
  EXPECT_NE(
      why.find("8 of 16 regions are incomplete at the end: that at (32, 0) misses 128 of 256"),
      std::string::npos)
      << why;
}

/// Values that are to be set when tiles are made that need them: nothing can happen any more.
TEST_P(Stencils, LoopThatWaitsForItsOwnTiles_IsReported) {
  const Rig rig(GetParam(), Matrix(64, 64), 16, 2);
  const Pipeline pipeline(rig.runtime);
  const auto regions = pipeline.tunnel<Region>("regions");
  const auto tiles = pipeline.tunnel<Region>("tiles");
  const auto loop = pipeline.stencil<float>(
      "loop", regions, tiles, rig.kernel, rig.place, rig.result,
      {.rows = 64, .columns = 64, .region_rows = 16, .region_columns = 16, .sweeps = 2});
  pipeline.source("values", into(regions), [&](const Out& out) {
    loop.set(out, 0, 0, 16, 64, rig.start.values.data(), 64);
    return false;
  });
  pipeline.stage("more", tiles, into(regions), [&](const Region&, const Out& out) {
    loop.set(out, 16, 0, 48, 64, &rig.start.values[16 * 64], 64);
  });
  const std::string why = thrown_by([&] { pipeline.run(); });
  EXPECT_NE(why.find("12 of 16 regions are incomplete at the end: that at (16, 0) misses 256"),
            std::string::npos)
      << why;
}

/// A region that was set, and then left out on its way.
TEST_P(Stencils, RegionsSetButNotPut_AreReported) {
  Rig rig(GetParam(), Matrix(64, 64), 16, 2);
  const auto all = rig.pipeline.tunnel<Region>("all");
  rig.pipeline.source("values", into(all), [&](const Out& out) {
    rig.stencil.set(out, 0, 0, 64, 64, rig.start.values.data(), 64);
    return false;
  });
  rig.pipeline.stage("most", all, into(rig.regions), [](const Region& region, const Out& out) {
    if (region.row != region.column) out.put(region);
  });
  const std::string why = thrown_by([&] { rig.pipeline.run(); });
  EXPECT_NE(why.find("4 of 16 regions were set, but did not come"), std::string::npos) << why;
}

TEST_P(Stencils, ValuesSetTwiceOrOutOfRange_AreRefused) {
  Rig rig(GetParam(), Matrix(64, 64), 16, 1, true);
  rig.pipeline.source("values", into(rig.regions), [&](const Out& out) {
    rig.stencil.set(out, 0, 0, 32, 64, rig.start.values.data(), 64);
    EXPECT_THROW(rig.stencil.set(out, 31, 63, 1.0F), weir::Error);
    EXPECT_THROW(rig.stencil.set(out, 20, 0, 20, 64, rig.start.values.data(), 64), weir::Error);
    EXPECT_THROW(rig.stencil.set(out, 60, 60, 5, 1, rig.start.values.data(), 1), weir::Error);
    EXPECT_THROW(rig.stencil.set(out, 40, 40, 2, 3, rig.start.values.data(), 2), weir::Error);
    EXPECT_THROW(rig.stencil.set(out, 40, 40, 1, 1, nullptr, 1), weir::Error);
    rig.stencil.set(out, 32, 0, 32, 64, &rig.start.values[32 * 64], 64);
    return false;
  });
  rig.pipeline.run();
  const Matrix expected = rig.start.next();
  EXPECT_TRUE(std::equal(expected.values.begin(), expected.values.end(), rig.result.data<float>()));
}

/// Of very many sweeps only some are enqueued when the program has had enough.
TEST_P(Stencils, CancelDuringManySweeps_StopsBeforeAllTilesAreMade) {
  Rig rig(GetParam(), Matrix(64, 64), 16, 1'000'000);
  rig.pipeline.source("values", into(rig.regions), [&](const Out& out) {
    rig.stencil.set(out, 0, 0, 64, 64, rig.start.values.data(), 64);
    return false;
  });
  rig.pipeline.start();
  while (rig.stencil.info().tiles_made < 1'000) {
    try {
      rig.pipeline.wait(std::chrono::milliseconds(1));
    } catch (const weir::Error& error) {
      ASSERT_EQ(error.status(), WEIR_STATUS_TIMEOUT) << error.what();
    }
  }
  rig.pipeline.cancel();
  EXPECT_THROW(rig.pipeline.wait(), weir::Error);
  EXPECT_LT(rig.stencil.info().tiles_made, 16'000'000u);
}

TEST_P(Stencils, RegionPutWithoutItsValues_FailsThePipeline) {
  Rig rig(GetParam(), Matrix(64, 64), 16, 1);
  rig.pipeline.source("values", into(rig.regions), [&](const Out& out) {
    out.put({0, 0, 16, 16});
    return false;
  });
  const std::string why = thrown_by([&] { rig.pipeline.run(); });
  EXPECT_NE(why.find("(0, 0) is not a complete region"), std::string::npos) << why;
}

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  return std::vector<std::string>{"Sim", "Ordered", "Virtual"}[info.index];
}
INSTANTIATE_TEST_SUITE_P(Domains, Stencils,
                         testing::Values("host:cores=1,sim",
                                         "host:cores=1,sim:order=device,cores=1",
                                         "sim:clock=virtual,gbps=6"),
                         name_of);

TEST(StencilsOfAKernelForOthers, KernelWithoutCodeForThePlace_IsRefused) {
  const Rig rig("host:cores=1,sim", Matrix(64, 64), 16, 1);
  const weir_implementation code = {"cuda", [](const weir_call*) { return WEIR_STATUS_OK; },
                                    nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = "gpu.only";
  options.implementations = &code;
  options.implementation_count = 1;
  weir_kernel* elsewhere = nullptr;
  weir::check(weir_kernel_register(rig.runtime.handle(), &options, &elsewhere));
  const Pipeline pipeline(rig.runtime);
  const auto regions = pipeline.tunnel<Region>("regions");
  weir_stencil_options wanted = WEIR_STENCIL_OPTIONS_INIT;
  wanted.name = "cross";
  wanted.input = regions.handle();
  wanted.place = rig.place.handle();
  wanted.kernel = elsewhere;
  wanted.result = rig.result.handle();
  wanted.rows = wanted.columns = 64;
  wanted.value_bytes = sizeof(float);
  weir_stencil* made = nullptr;
  EXPECT_EQ(weir_pipeline_add_stencil(pipeline.handle(), &wanted, &made), WEIR_STATUS_UNSUPPORTED);
  EXPECT_NE(std::string(weir_last_error()).find("has no code for domain 'sim:0'; it has: cuda"),
            std::string::npos)
      << weir_last_error();
}

/// A lost device costs the tiles, and is reported; nothing waits for them.
TEST(StencilsOfABrokenCard, DeviceLostOrCopyFails_FailsThePipeline) {
  for (const char* const domains :
       {"host,sim:lost_at=9", "host,sim:fail_copy=5", "sim:clock=virtual,lost_at=9"}) {
    for (const bool keep_going : {false, true}) {
      Rig rig(domains, Matrix(128, 128), 16, 3, keep_going);
      rig.pipeline.source("values", into(rig.regions), [&](const Out& out) {
        rig.stencil.set(out, 0, 0, 128, 128, rig.start.values.data(), 128);
        return false;
      });
      EXPECT_THROW(rig.pipeline.run(), weir::Error) << domains;
      EXPECT_EQ(rig.pipeline.info().at_end, keep_going) << domains;
    }
  }
}

}  // namespace
}  // namespace stencils
