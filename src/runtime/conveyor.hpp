// The public handles of conveyors and producers.
#pragma once

#include <string>

#include <weir/conveyor.h>

#include "base/handle.hpp"
#include "conveyor/conveyor.hpp"
#include "conveyor/producer.hpp"
#include "runtime/owned_list.hpp"

/// The public handles.
struct weir_producer final : weir::rt::Handle<weir_producer> {
  static constexpr const char* kNoun = "producer";

  explicit weir_producer(weir_conveyor& conveyor);
  const std::string& name() const noexcept;

  weir_conveyor& conveyor;
  weir::rt::Producer way;
};

struct weir_conveyor final : weir::rt::Handle<weir_conveyor> {
  static constexpr const char* kNoun = "conveyor";

  /// Collective. Throws Error.
  weir_conveyor(weir::rt::OwnedList<weir_conveyor>& list, weir::rt::ConveyorHub& hub,
                weir::rt::Collectives& collectives, const weir_conveyor_options& options);
  const std::string& name() const noexcept { return conveyor.setup().name; }

  weir_producer* open_producer();
  void close_producer(weir_producer* producer) noexcept { producers_.destroy(producer); }

  weir::rt::OwnedList<weir_conveyor>& owner;
  weir::rt::Conveyor conveyor;

 private:
  weir::rt::OwnedList<weir_producer> producers_;
};
