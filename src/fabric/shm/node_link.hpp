// The link of a rank that shares memory with the ranks of its node, and reaches the others by
// another link.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fabric/link.hpp"
#include "fabric/shm/node.hpp"

namespace weir::rt {

/// Carries the packets of each pair of ranks by one of two links: shared memory within the node,
/// the outer link between nodes. Windows, memory and sleeping are those of the shared memory.
///
/// Where the node has all ranks, the outer link is used only to find the node and to leave.
/// Otherwise a thread waits for the outer link and wakes those that sleep here; where the outer
/// link cannot end a wait when a packet arrives, they sleep for a bounded time.
class NodeLink final : public Link {
 public:
  /// Takes the node that find_node() has found. Throws Error if the system refuses the thread.
  NodeLink(std::unique_ptr<Link> outer, Node node);
  NodeLink(const NodeLink&) = delete;
  NodeLink& operator=(const NodeLink&) = delete;
  ~NodeLink() override;

  const LinkInfo& info() const noexcept override { return info_; }
  PeerInfo peer_info(Rank rank) const noexcept override;
  bool send(Rank to, Parts parts) noexcept override;
  std::byte* reserve(Rank to, std::size_t bytes) noexcept override;
  void unreserve(std::byte* memory) noexcept override { outer_->unreserve(memory); }
  bool send_reserved(Rank to, Parts parts) noexcept override;
  bool receive(PacketSink& sink) noexcept override;
  bool drained() noexcept override { return outer_->drained(); }
  void call_before_end(void (*call)()) noexcept override { outer_->call_before_end(call); }
  void leave() noexcept override { outer_->leave(); }
  std::string why_lost(Rank rank) noexcept override;
  void cut(Rank rank, bool announced) noexcept override;

  std::optional<Outcome> direct(const OneSided& operation, std::uint64_t& cursor,
                                std::int64_t& old) noexcept override;
  void expose(WindowId window, void* memory, std::size_t bytes) noexcept override;
  bool withdraw(WindowId window) noexcept override { return near().withdraw(window); }
  void settle(WindowId window) noexcept override { near().settle(window); }
  void* allocate(std::size_t bytes) noexcept override { return near().allocate(bytes); }
  weir_status commit(void* memory, std::size_t bytes, std::int64_t deadline_ns) noexcept override;
  bool release(void* memory) noexcept override { return near().release(memory); }
  bool move_runs(OneSidedKind kind, Rank target, WindowId window,
                 std::span<const WindowRun> runs) noexcept override;
  std::optional<std::uint64_t> offset_of(const void* memory) const noexcept override;
  const std::byte* memory_of(Rank owner, std::uint64_t offset,
                             std::uint64_t bytes) const noexcept override;

  std::uint32_t bell() const noexcept override { return near().bell(); }
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override;
  void wake() noexcept override { near().wake(); }

 private:
  class FromNode;
  class OuterWatch;

  /// The link that has the windows and the bell of this rank.
  Link& near() const noexcept { return node_.link ? *node_.link : *outer_; }
  bool receive_early(PacketSink& sink) noexcept;
  void note_near(Rank rank) noexcept;

  const std::unique_ptr<Link> outer_;
  Node node_;
  LinkInfo info_;
  std::vector<Rank> ranks_;   ///< of the node, by their numbers in its link
  std::vector<bool> joined_;  ///< by rank: it has sent a packet in the node
  std::size_t to_join_ = 0;   ///< other ranks of the node that have not
  bool has_outer_ranks_ = true;
  std::unique_ptr<OuterWatch> watch_;  ///< null: not needed, or the outer link cannot sleep
};

}  // namespace weir::rt
