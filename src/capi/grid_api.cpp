#include <weir/grid.h>

#include <algorithm>

#include "capi/guard.hpp"
#include "runtime/fabric.hpp"
#include "runtime/grid.hpp"

using namespace weir::rt;
using namespace weir::rt::capi;

extern "C" {

weir_status weir_grid_create(const weir_grid_options* options, weir_grid** out_grid) {
  return guard([&] {
    weir_grid*& result = out(out_grid, "out_grid");
    const weir_grid_options& given = out(const_cast<weir_grid_options*>(options), "options");
    result =
        new weir_grid(read_options(&given, weir_grid_options WEIR_GRID_OPTIONS_INIT, "options"));
  });
}

void weir_grid_destroy(weir_grid* grid) {
  if (grid == nullptr) return;
  guard([&] { weir_grid::bury(&weir_grid::check(grid)); });
}

weir_status weir_grid_get_info(const weir_grid* grid, weir_grid_info* out_info,
                               weir_grid_block* blocks, size_t block_count) {
  return guard([&] {
    const Partition& partition = weir_grid::check(grid).partition;
    weir_grid_info info = WEIR_GRID_INFO_INIT;
    info.dimensions = partition.dimensions;
    info.ranks = partition.ranks;
    for (std::size_t d = 0; d < 3; ++d) {
      info.cells[d] = static_cast<std::size_t>(partition.cells[d]);
      info.periodic[d] = partition.periodic[d];
    }
    info.block_count = partition.blocks.size();
    write_info(out_info, info, "out_info");
    if (blocks == nullptr) return;
    std::copy_n(partition.blocks.begin(), std::min(block_count, info.block_count), blocks);
  });
}

weir_status weir_halo_create(weir_fabric* fabric, const weir_grid* grid,
                             const weir_halo_options* options, weir_halo** out_halo) {
  return guard([&] {
    weir_halo*& result = out(out_halo, "out_halo");
    result = weir_fabric::check(fabric).create_halo([&] {
      return HaloRequest{
          &weir_grid::check(grid).partition,
          read_options(options, weir_halo_options WEIR_HALO_OPTIONS_INIT, "options")};
    });
  });
}

weir_status weir_halo_start(weir_halo* halo) {
  return guard([&] { weir_halo::check(halo).halo->start(); });
}

weir_status weir_halo_finish(weir_halo* halo, int64_t timeout_ns) {
  return guard([&] { weir_halo::check(halo).halo->finish(timeout_ns); });
}

weir_status weir_halo_get_info(const weir_halo* halo, weir_halo_info* out_info) {
  return guard([&] { write_info(out_info, weir_halo::check(halo).halo->info(), "out_info"); });
}

void weir_halo_destroy(weir_halo* halo) {
  if (halo == nullptr) return;
  guard([&] {
    weir_halo& live = weir_halo::check(halo);
    live.owner.destroy(&live);
  });
}
}
