#include "fabric/shm/node_link.hpp"

#include <algorithm>
#include <utility>

#include "base/threads.hpp"

namespace weir::rt {

namespace {

constexpr std::int64_t kLongestSleep = 2'000'000;  ///< beside an outer link

}  // namespace

/// Receives the packets of the node, whose ranks have other numbers there.
class NodeLink::FromNode final : public PacketSink {
 public:
  FromNode(NodeLink& link, PacketSink& sink) noexcept : link_(link), sink_(sink) {}

  void packet(Rank from, std::span<const std::byte> bytes) noexcept override {
    const Rank rank = link_.ranks_[from];
    link_.note_near(rank);
    sink_.packet(rank, bytes);
  }

 private:
  NodeLink& link_;
  PacketSink& sink_;
};

/// A thread that waits for packets of the outer link, from begin() on, and wakes the near one.
///
/// It announces the end of its wait before it wakes the near link. A thread that goes to sleep has
/// read the near bell before begin(): if the watch still waits, so will the wake-up come later.
class NodeLink::OuterWatch {
 public:
  /// Throws Error.
  OuterWatch(Link& outer, Link& near) : outer_(outer), near_(near) {
    thread_.emplace("weir-watch", [this] { run(); });
  }
  OuterWatch(const OuterWatch&) = delete;
  OuterWatch& operator=(const OuterWatch&) = delete;
  ~OuterWatch() {
    state_.store(kStopped);
    sys::wake_all(state_);
    outer_.wake();
    thread_.reset();
  }

  void begin() noexcept {
    std::uint32_t expected = kIdle;
    if (state_.load() == kIdle && state_.compare_exchange_strong(expected, kWaits)) {
      sys::wake_one(state_);
    }
  }

 private:
  static constexpr std::uint32_t kIdle = 0, kWaits = 1, kStopped = 2;

  void run() noexcept {
    for (;;) {
      const std::uint32_t bell = outer_.bell();
      const std::uint32_t state = state_.load();
      if (state == kStopped) return;
      if (state == kIdle) {
        sys::wait(state_, kIdle);
        continue;
      }
      outer_.wait(bell, sys::kNever);
      std::uint32_t expected = kWaits;
      state_.compare_exchange_strong(expected, kIdle);
      near_.wake();
    }
  }

  Link& outer_;
  Link& near_;
  sys::Atomic<std::uint32_t> state_{kIdle};
  std::optional<sys::Thread> thread_;
};

NodeLink::NodeLink(std::unique_ptr<Link> outer, Node node)
    : outer_(std::move(outer)),
      node_(std::move(node)),
      info_(outer_->info()),
      joined_(info_.ranks) {
  if (node_.link == nullptr) return;
  const LinkInfo& inside = node_.link->info();
  ranks_.resize(inside.ranks);
  std::size_t count = 0;
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    if (const auto local = node_.local[rank]) {
      ranks_[*local] = rank;
      ++count;
    }
  }
  to_join_ = count - 1;
  has_outer_ranks_ = count < info_.ranks;
  if (has_outer_ranks_ && outer_->info().can_sleep) {
    watch_ = std::make_unique<OuterWatch>(*outer_, *node_.link);
  }
  info_.name = has_outer_ranks_ ? inside.name + ", " + info_.name : inside.name;
  info_.packet_bytes = std::min(info_.packet_bytes, inside.packet_bytes);
  if (!has_outer_ranks_) info_.reserved_bytes = 0;
  info_.shares_memory = true;
  info_.can_sleep = !has_outer_ranks_ || watch_ != nullptr;
}

NodeLink::~NodeLink() = default;

PeerInfo NodeLink::peer_info(Rank rank) const noexcept {
  const auto local = node_.local[rank];
  return local ? node_.link->peer_info(*local) : outer_->peer_info(rank);
}

// ---- Packets ------------------------------------------------------------------------------------

bool NodeLink::send(Rank to, Parts parts) noexcept {
  const auto local = node_.local[to];
  return local ? node_.link->send(*local, parts) : outer_->send(to, parts);
}

std::byte* NodeLink::reserve(Rank to, std::size_t bytes) noexcept {
  return node_.local[to] ? nullptr : outer_->reserve(to, bytes);
}

bool NodeLink::send_reserved(Rank to, Parts parts) noexcept {
  return outer_->send_reserved(to, parts);
}

bool NodeLink::receive(PacketSink& sink) noexcept {
  bool any = receive_early(sink);
  if (node_.link != nullptr) {
    FromNode from_node(*this, sink);
    any |= node_.link->receive(from_node);
  }
  // The outer link may have to make progress until other ranks have what find_node() sent them.
  if (has_outer_ranks_ || to_join_ > 0) any |= outer_->receive(sink);
  return any;
}

bool NodeLink::receive_early(PacketSink& sink) noexcept {
  const bool any = !node_.early.empty();
  while (!node_.early.empty()) {
    const auto [from, bytes] = std::move(node_.early.front());
    node_.early.pop_front();
    sink.packet(from, bytes);
  }
  return any;
}

void NodeLink::note_near(Rank rank) noexcept {
  if (joined_[rank]) return;
  joined_[rank] = true;
  --to_join_;
  outer_->note_joined(rank);
}

// ---- Liveness -----------------------------------------------------------------------------------

std::string NodeLink::why_lost(Rank rank) noexcept {
  const auto local = node_.local[rank];
  return local ? node_.link->why_lost(*local) : outer_->why_lost(rank);
}

void NodeLink::cut(Rank rank, bool announced) noexcept {
  if (const auto local = node_.local[rank]) {
    node_.link->cut(*local, announced);
    note_near(rank);
  }
  outer_->cut(rank, announced);
}

// ---- Windows ------------------------------------------------------------------------------------

std::optional<Outcome> NodeLink::direct(const OneSided& operation, std::uint64_t& cursor,
                                        std::int64_t& old) noexcept {
  const auto local = node_.local[operation.target];
  if (!local) return outer_->direct(operation, cursor, old);
  OneSided inside = operation;
  inside.target = *local;
  return node_.link->direct(inside, cursor, old);
}

void NodeLink::expose(WindowId window, void* memory, std::size_t bytes) noexcept {
  near().expose(window, memory, bytes);
}

weir_status NodeLink::commit(void* memory, std::size_t bytes, std::int64_t deadline_ns) noexcept {
  return near().commit(memory, bytes, deadline_ns);
}

bool NodeLink::move_runs(OneSidedKind kind, Rank target, WindowId window,
                         std::span<const WindowRun> runs) noexcept {
  const auto local = node_.local[target];
  return local ? node_.link->move_runs(kind, *local, window, runs)
               : outer_->move_runs(kind, target, window, runs);
}

std::optional<std::uint64_t> NodeLink::offset_of(const void* memory) const noexcept {
  return near().offset_of(memory);
}

const std::byte* NodeLink::memory_of(Rank owner, std::uint64_t offset,
                                     std::uint64_t bytes) const noexcept {
  const auto local = node_.local[owner];
  return local ? node_.link->memory_of(*local, offset, bytes) : nullptr;
}

// ---- Sleeping -----------------------------------------------------------------------------------

void NodeLink::wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept {
  if (watch_ != nullptr) {
    watch_->begin();
  } else if (node_.link != nullptr && has_outer_ranks_) {
    deadline_ns = std::min(deadline_ns, sys::now_ns() + kLongestSleep);
  }
  near().wait(bell, deadline_ns);
}

}  // namespace weir::rt
