// Buffers in host memory through which messages from and to devices go.
#pragma once

#include <algorithm>
#include <bit>
#include <compare>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "base/threads.hpp"
#include "stream/completion_listener.hpp"
#include "stream/registry.hpp"
#include "stream/stream.hpp"

namespace weir::rt {

/// Keeps buffers for use again, by their size, a power of two. A stream has at most kMostOfStream
/// of a size at once, however many of its actions are in flight: further actions use these again,
/// and the stream orders them. Any thread.
class StagingPool {
 private:
  struct Entry;

 public:
  static constexpr std::size_t kMostOfStream = 4;

  /// The registry owns the buffers and outlives the pool.
  explicit StagingPool(Registry& registry) noexcept : registry_(registry) {}

  /// Actions of a stream that use a buffer. Listens to the event of the last one; without that the
  /// stream keeps the buffer.
  class Use final : public CompletionListener {
   public:
    explicit Use(StagingPool& pool) noexcept
        : CompletionListener(pool.registry_.listeners()), pool_(pool) {}

    weir_buffer& buffer() const noexcept { return *entry_->buffer; }
    void completed(weir_status, const FailureRef&) noexcept override { pool_.end_use(*entry_); }

   private:
    friend class StagingPool;
    StagingPool& pool_;
    Entry* entry_ = nullptr;
  };

  /// Returns a buffer of at least `bytes` bytes for the next actions of a stream. `is_pinned`: in
  /// page-locked memory, for copies of devices. Throws Error.
  std::unique_ptr<Use> take(Stream& stream, std::size_t bytes, bool is_pinned) {
    auto use = std::make_unique<Use>(*this);
    const Kind kind{std::bit_ceil(std::max(bytes, kSmallest)), is_pinned};
    use->entry_ = &find(stream.serial(), kind);
    // Failures of earlier actions that have used it are not those of the next ones.
    stream.clear_poison_on_host(
        {&use->buffer(), weir_region_range(0, kind.bytes), WEIR_ACCESS_READ_WRITE});
    return use;
  }

 private:
  static constexpr std::size_t kSmallest = 4096;
  struct Kind {
    std::size_t bytes;
    bool is_pinned;
    auto operator<=>(const Kind&) const = default;
  };
  struct Entry {
    weir_buffer* buffer;
    Kind kind;
    std::uint64_t stream = 0;  ///< its serial number
    std::size_t uses = 0;      ///< that are not complete
  };
  using Ring = std::pair<std::uint64_t, Kind>;

  Entry& find(std::uint64_t stream, Kind kind) {
    {
      const sys::Lock lock(mutex_);
      std::vector<Entry*>& ring = rings_[{stream, kind}];
      ring.reserve(kMostOfStream);
      if (ring.size() == kMostOfStream) {
        std::rotate(ring.begin(), ring.begin() + 1, ring.end());
        ++ring.back()->uses;
        return *ring.back();
      }
      std::vector<Entry*>& free = free_[kind];
      if (!free.empty()) {
        Entry& entry = *free.back();
        free.pop_back();
        return begin_use(ring, entry, stream);
      }
    }
    weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
    options.name = "staging";
    if (kind.is_pinned) options.kind = WEIR_MEMORY_KIND_PINNED;
    weir_buffer& made = *registry_.buffers().create(kind.bytes, options);
    const sys::Lock lock(mutex_);
    std::vector<Entry*>& ring = rings_[{stream, kind}];
    ring.reserve(ring.size() + 1);
    free_[kind].reserve(entries_.size() + 1);  // end_use() needs no memory
    return begin_use(ring, entries_.emplace_back(Entry{&made, kind}), stream);
  }
  static Entry& begin_use(std::vector<Entry*>& ring, Entry& entry, std::uint64_t stream) {
    ring.push_back(&entry);
    entry.stream = stream;
    entry.uses = 1;
    return entry;
  }
  void end_use(Entry& entry) noexcept {
    const sys::Lock lock(mutex_);
    if (--entry.uses > 0) return;
    const auto ring = rings_.find({entry.stream, entry.kind});
    std::erase(ring->second, &entry);
    if (ring->second.empty()) rings_.erase(ring);
    free_[entry.kind].push_back(&entry);
  }

  Registry& registry_;
  sys::Mutex mutex_;
  std::list<Entry> entries_ WEIR_GUARDED_BY(mutex_);
  std::map<Ring, std::vector<Entry*>> rings_ WEIR_GUARDED_BY(mutex_);  ///< in use, by stream
  std::map<Kind, std::vector<Entry*>> free_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
