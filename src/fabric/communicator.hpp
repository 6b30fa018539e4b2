// Groups of ranks and their collective operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fabric/collective_mailbox.hpp"

namespace weir::rt {

/// Combines numbers: into[i] = into[i] OP from[i]. `into` has those of lower ranks.
using Combine = std::function<void(std::byte* into, const std::byte* from, std::size_t count)>;

/// Numbers that a reduction combines.
struct Numbers {
  std::span<std::byte> bytes;
  std::size_t size = 1;  ///< of a number
  std::uint8_t type = 0, operation = 0;
  Combine combine{};

  std::size_t count() const noexcept { return bytes.size() / size; }
};

/// A group of ranks. All of its ranks call the same operations in the same order, one thread at a
/// time. An operation throws Error; a failure makes all later operations of all ranks fail, but a
/// rank may have completed the operation already.
///
/// Reductions combine numbers in the order of the ranks, so that every rank gets the same bits.
/// Short vectors: each rank gathers all of them and combines. Long vectors: each rank combines a
/// segment of them, and then all gather the segments, so that a rank sends 2 (n - 1) / n of the
/// vector.
class Communicator {
 public:
  static constexpr std::uint32_t kAllRanks = CollectiveCall::kAllRanks;

  Communicator(CollectiveHub& hub, std::uint32_t number, std::vector<Rank> ranks)
      : mailbox_(hub, number, std::move(ranks)) {}

  unsigned rank() const noexcept { return mailbox_.rank(); }
  unsigned size() const noexcept { return mailbox_.size(); }
  /// Returns the ranks of the fabric that are in the group, by their rank in the group.
  const std::vector<Rank>& ranks() const noexcept { return mailbox_.ranks(); }

  void barrier(std::int64_t timeout_ns);
  /// Copies the data of rank `root` to all ranks.
  void broadcast(unsigned root, std::span<std::byte> data, std::int64_t timeout_ns);
  /// Copies `own` of each rank to `all` of rank `root`, or of all ranks, in the order of the ranks.
  /// `all` is used on ranks that receive only.
  void gather(std::uint32_t root, std::span<const std::byte> own, std::span<std::byte> all,
              std::int64_t timeout_ns);
  /// Copies the parts of `all` of rank `root` to `own` of each rank.
  void scatter(unsigned root, std::span<const std::byte> all, std::span<std::byte> own,
               std::int64_t timeout_ns);
  /// Copies parts[i] to received[r] of rank i, where r is this rank. Sizes may differ and may be 0.
  void all_to_all(std::span<const std::span<const std::byte>> parts,
                  std::span<const std::span<std::byte>> received, std::int64_t timeout_ns);
  /// Combines the numbers of all ranks in place. `root`: the rank that gets the result, or
  /// kAllRanks. The numbers of the other ranks are unspecified afterwards.
  void reduce(std::uint32_t root, const Numbers& numbers, std::int64_t timeout_ns);
  /// Combines the numbers of the ranks up to this one.
  void scan(const Numbers& numbers, std::int64_t timeout_ns) {
    scan(Collective::scan, numbers, timeout_ns);
  }
  /// Combines the numbers of the ranks below this one. Rank 0 keeps its numbers.
  void exclusive_scan(const Numbers& numbers, std::int64_t timeout_ns) {
    scan(Collective::exclusive_scan, numbers, timeout_ns);
  }

  /// What each rank contributes to a split.
  struct Choice {
    std::int64_t color = 0;    ///< ranks of one color form a group; negative: none
    std::int64_t key = 0;      ///< orders the ranks of a group, then their rank does
    std::uint32_t number = 0;  ///< for the hub; that of the group's first rank counts
  };
  struct Part {
    static constexpr std::uint32_t kNone = UINT32_MAX;
    std::uint32_t number = kNone;
    std::vector<Rank> ranks{};  ///< empty: this rank is in no group
  };
  /// Divides the group. Collective. If it throws after the ranks have agreed, part.number is set:
  /// other ranks may have the group.
  void split(const Choice& choice, std::int64_t timeout_ns, Part& part);
  /// Determines the ranks that are left. Collective for them; this group fails. `number`: see
  /// Choice. After {timeout} the next call continues.
  void shrink(std::uint32_t number, std::int64_t timeout_ns, Part& part) {
    auto survivors = mailbox_.agree(number, timeout_ns);
    part = {survivors.number, std::move(survivors.ranks)};
  }
  /// Makes the operations of all ranks fail, except shrink(). Any thread.
  void revoke();
  /// Makes all later operations fail, on all ranks.
  void give_up(const Outcome& why) noexcept { mailbox_.give_up(mailbox_.operation(), why); }

 private:
  /// Calls act(), which sends and receives the messages of the operation.
  void run(const CollectiveCall& call, std::int64_t timeout_ns, const std::function<void()>& act);
  void check_root(std::uint32_t root, bool may_be_all) const;
  void exchange(unsigned to, std::span<const std::byte> data, unsigned from,
                std::span<std::byte> into, std::uint32_t round);
  void gather_blocks(std::span<std::byte> blocks, std::size_t block);
  void gather_ring(std::span<std::byte> data, const std::vector<std::size_t>& bounds,
                   std::uint32_t round);
  void scan(Collective kind, const Numbers& numbers, std::int64_t timeout_ns);
  void reduce_short(std::uint32_t root, const Numbers& numbers);
  void reduce_long(std::uint32_t root, const Numbers& numbers);
  std::span<std::byte> scratch(std::size_t bytes);

  CollectiveMailbox mailbox_;
  std::vector<std::byte> scratch_;
};

}  // namespace weir::rt
