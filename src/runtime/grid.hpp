// The public handles of grids and halos.
#pragma once

#include <weir/grid.h>

#include "base/handle.hpp"
#include "grid/grid.hpp"
#include "grid/halo.hpp"
#include "runtime/fabric.hpp"

struct weir_grid final : weir::rt::Handle<weir_grid> {
  static constexpr const char* kNoun = "grid";
  explicit weir_grid(const weir_grid_options& options)
      : partition(weir::rt::make_partition(options)) {}

  const char* name() const noexcept { return kNoun; }

  const weir::rt::Partition partition;
};

/// Owned by its fabric, which destroys it when it is closed.
struct weir_halo final : weir::rt::Handle<weir_halo> {
  static constexpr const char* kNoun = "halo";
  weir_halo(weir::rt::Fabric& owner, const std::function<weir::rt::HaloRequest()>& read)
      : fabric(owner), halo(owner.halo_hub(), read) {}

  const char* name() const noexcept { return kNoun; }

  weir::rt::Fabric& fabric;
  weir::rt::Halo halo;
};
