// The public handles of grids and halos.
#pragma once

#include <functional>
#include <memory>

#include <weir/grid.h>

#include "base/handle.hpp"
#include "grid/grid.hpp"
#include "grid/halo.hpp"
#include "runtime/owned_list.hpp"

struct weir_grid final : weir::rt::Handle<weir_grid> {
  static constexpr const char* kNoun = "grid";
  explicit weir_grid(const weir_grid_options& options)
      : partition(weir::rt::make_partition(options)) {}

  const char* name() const noexcept { return kNoun; }

  const weir::rt::Partition partition;
};

/// Owned by the list of its fabric, which destroys it when it is closed.
struct weir_halo final : weir::rt::Handle<weir_halo> {
  static constexpr const char* kNoun = "halo";
  weir_halo(weir::rt::OwnedList<weir_halo>& list, weir::rt::GroupHub& hub,
            const std::function<weir::rt::HaloRequest()>& read)
      : owner(list), port(hub.port()), halo(std::make_shared<weir::rt::Halo>(hub, read)) {}
  ~weir_halo() override { halo->close(); }

  const char* name() const noexcept { return kNoun; }

  weir::rt::OwnedList<weir_halo>& owner;
  weir::rt::Port& port;
  const std::shared_ptr<weir::rt::Halo> halo;  ///< also of steps in streams that have not started
};
