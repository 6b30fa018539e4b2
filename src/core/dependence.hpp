// The dependence table: earlier accesses of a stream that conflict with a new one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/action.hpp"

namespace weir::rt {

/// The accesses of one stream that later actions may conflict with, by instance and region.
///
/// Programs use the same regions again and again. Each distinct region of an instance has one entry
/// with its last writer, the readers since, and links to the entries that it overlaps. A lookup of
/// a known region reads only these and allocates nothing. The table names accesses by the sequence
/// number of their action; the caller knows which of them are in flight.
///
/// Example: one instance, with the entries E = [0, 100) and F = [50, 150), which overlap:
///
///     action               collect() finds   entry after enter()
///     1 writes [0, 100)    -                 E: writer 1
///     2 reads  [0, 100)    1                 E: writer 1, readers 2
///     3 reads  [50, 150)   1                 F: no writer, readers 3
///     4 writes [0, 100)    1, 2, 3           E: writer 4
///     5 writes [50, 150)   3, 4              F: writer 5
///     6 reads  [0, 100)    4, 5              E: writer 4, readers 6
class DependenceTable {
 public:
  DependenceTable();
  DependenceTable(const DependenceTable&) = delete;
  DependenceTable& operator=(const DependenceTable&) = delete;
  ~DependenceTable();

  /// Finds the earlier accesses that conflict with those of `action`. Calls found(sequence,
  /// ignores_failure) for each; a pair that another one implies may be missing, and one may be
  /// reported twice. Merges the poison of conflicting failed accesses into `poison`. A non-ordering
  /// action ignores failures of readers and is recorded as a reader. The table may drop accesses
  /// for which matters(sequence) is false. Reserves the memory that enter() needs. Throws
  /// std::bad_alloc and then changes nothing.
  template <class Matters, class Found>
  void collect(const Action& action, Matters&& matters, Found&& found, FailureRef& poison);

  /// Records the accesses of the action that was last passed to collect().
  void enter(const Action& action) noexcept;

  /// Poisons the regions that a failed or skipped action accessed: later actions that conflict with
  /// it are poisoned. Throws std::bad_alloc.
  void poison(const Action& action, const FailureRef& failure);
  void clear_poison() noexcept;
  /// Clears the poison of all regions within those that the action writes, so that failures of
  /// earlier actions do not propagate through them.
  void clear_poison_of(const Action& action) noexcept;
  bool poisoned() const noexcept { return !poisoned_.empty(); }
  /// Merges into `poison` what the action would inherit, without allocating. Slower than collect().
  void find_poison(const Action& action, FailureRef& poison) const noexcept;

  /// Drops entries without an access that matters, when there are many entries.
  template <class Matters>
  void trim(Matters&& matters) noexcept;

 private:
  /// First the fields that every lookup reads: they are one cache line.
  struct alignas(64) Entry {
    Region region;
    std::uint64_t writer = 0;  ///< sequence number of the last write; 0: none
    bool poisoned = false;     ///< whether any of its accesses is poisoned
    bool idle = false;
    std::uint64_t search_mark = 0;        ///< mark of the last search that visited it
    std::uint64_t poison_cleared_at = 0;  ///< sequence of the last clear_poison
    std::vector<std::uint64_t> readers;   ///< readers since the last write
    std::vector<Entry*> peers;            ///< entries of the same instance that overlap this one
    FailureRef poisoned_write, poisoned_read;
  };
  /// The entries of an instance by region, with open addressing: a lookup usually reads one slot
  /// and the entry.
  class Index {
   public:
    Entry* find(const Region& region) const noexcept;
    /// Makes room for one more entry. Throws std::bad_alloc.
    void reserve();
    Entry& add(std::unique_ptr<Entry> entry) noexcept;
    template <class Remove>
    void remove_if(Remove&& remove) noexcept;

    std::size_t size() const noexcept { return entries_.size(); }
    auto begin() const noexcept { return entries_.begin(); }
    auto end() const noexcept { return entries_.end(); }

   private:
    struct Slot {
      std::uint64_t hash = 0;
      Entry* entry = nullptr;
    };

    static std::uint64_t hash_of(const Region& region) noexcept;
    static void insert(std::vector<Slot>& slots, Entry& entry) noexcept;

    std::vector<std::unique_ptr<Entry>> entries_;
    std::vector<Slot> slots_;  ///< 2^n slots, at most half of them occupied
  };
  /// All entries of one instance.
  struct InstanceIndex {
    Index entries;
    /// Entries by the bins of the buffer that they overlap; empty while there are few entries.
    std::vector<std::vector<Entry*>> bins;
    unsigned bin_shift = 0;
    std::size_t bins_full_at = kFewEntries;  ///< entries from which smaller bins are faster
  };
  struct Key {
    std::uint64_t buffer;
    std::uint16_t memory;
    bool operator==(const Key&) const noexcept = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return (key.buffer * kHashFactor) ^ key.memory;
    }
    static constexpr std::uint64_t kHashFactor = 0x9E3779B97F4A7C15u;
  };

  static constexpr std::size_t kFewEntries = 16;
  static constexpr std::size_t kTrimAbove = 16384;
  static constexpr std::size_t kManyReaders = 64;

  InstanceIndex& index_of(const Operand& operand);
  Entry& entry_of(const Operand& operand);
  Entry& make_entry(InstanceIndex& shadow, const Operand& operand);
  void fill_bins(InstanceIndex& shadow, std::uint64_t bytes) noexcept;
  void add_to_bins(InstanceIndex& shadow, Entry& entry);
  template <class Visit>
  void each_candidate(InstanceIndex& shadow, const Region& region, Visit&& visit);
  template <class Found>
  static void find_conflicts(const Entry& entry, bool writes, bool ignores_failure,
                             bool non_ordering, std::uint64_t since, Found&& found,
                             FailureRef& poison);
  static void merge_poison(const Entry& entry, bool writes, FailureRef& poison) noexcept;
  void remove_idle(InstanceIndex& shadow) noexcept;

  std::unordered_map<Key, InstanceIndex, KeyHash> instances_;
  Key last_key_{0, 0};
  InstanceIndex* last_index_ = nullptr;
  std::vector<Entry*> collected_;  ///< entries of the operands of the action last collected
  std::vector<Entry*> poisoned_;
  std::uint64_t searches_ = 0;
  std::size_t entry_count_ = 0;
  std::size_t trim_at_ = kTrimAbove;
};

template <class Found>
void DependenceTable::find_conflicts(const Entry& entry, bool writes, bool ignores_failure,
                                     bool non_ordering, std::uint64_t since, Found&& found,
                                     FailureRef& poison) {
  if (entry.writer > since) found(entry.writer, ignores_failure);
  if (entry.poisoned && !ignores_failure) [[unlikely]]
    merge_poison(entry, writes && !non_ordering, poison);
  if (!writes) return;
  for (const std::uint64_t reader : entry.readers) {
    if (reader > since) found(reader, ignores_failure || non_ordering);
  }
}

template <class Matters, class Found>
void DependenceTable::collect(const Action& action, Matters&& matters, Found&& found,
                              FailureRef& poison) {
  collected_.clear();
  for (const Operand& operand : action.operands()) {
    Entry& entry = entry_of(operand);
    collected_.push_back(&entry);
    if (operand.writes() && !action.traits.non_ordering) continue;
    auto& readers = entry.readers;
    const auto wanted = [&] { return readers.size() + action.operand_count; };
    if (wanted() <= readers.capacity()) continue;
    if (wanted() > kManyReaders) {
      std::erase_if(readers, [&](std::uint64_t reader) { return !matters(reader); });
    }
    // Half of the capacity is then free, so that such trimming stays rare.
    if (2 * wanted() > readers.capacity()) readers.reserve(std::max<std::size_t>(8, 2 * wanted()));
  }
  for (std::size_t i = 0; i < collected_.size(); ++i) {
    const bool writes = action.operands()[i].writes();
    const bool ignores_failure = action.traits.clears_poison && writes;
    const Entry& own = *collected_[i];
    find_conflicts(own, writes, ignores_failure, action.traits.non_ordering, 0, found, poison);
    // The last writer of this entry already depends on what preceded it.
    for (const Entry* peer : own.peers) {
      find_conflicts(*peer, writes, ignores_failure, action.traits.non_ordering, own.writer, found,
                     poison);
    }
  }
}

template <class Matters>
void DependenceTable::trim(Matters&& matters) noexcept {
  if (entry_count_ < trim_at_) return;
  for (auto at = instances_.begin(); at != instances_.end();) {
    InstanceIndex& shadow = at->second;
    for (const auto& entry : shadow.entries) {
      bool idle = !matters(entry->writer) && !entry->poisoned;
      for (const std::uint64_t reader : entry->readers) idle = idle && !matters(reader);
      entry->idle = idle;
    }
    remove_idle(shadow);
    at = shadow.entries.size() == 0 ? instances_.erase(at) : std::next(at);
  }
  last_index_ = nullptr;
  trim_at_ = std::max(kTrimAbove, 2 * entry_count_);
}

}  // namespace weir::rt
