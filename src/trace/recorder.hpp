// Collects trace entries from all threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/threads.hpp"
#include "trace/chunk.hpp"
#include "trace/recording.hpp"

namespace weir::rt::trace {

/// Each thread writes into chunks of its own; when the memory limit of the recording is reached,
/// new entries are dropped and counted.
class Recorder {
 public:
  static constexpr std::size_t kDefaultBytes = std::size_t{512} << 20;

  Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  /// Whether actions are to be recorded now. Costs one load.
  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }

  /// Discards the recording and starts a new one of at most max_bytes (0: the default).
  void start(std::size_t max_bytes);
  void stop() noexcept { on_.store(false, std::memory_order_relaxed); }

  /// Register objects that entries refer to. They return the index. Throw std::bad_alloc.
  std::uint32_t add_track(Track track);
  std::uint32_t add_stream(std::string name);

  /// Adds the entry of a complete action. Any thread.
  void record(const Entry& entry) noexcept;
  /// Adds that action `id` waits for others, before its entry is added. Any thread.
  void record_dependences(std::uint64_t id, std::span<const std::uint64_t> earlier) noexcept;

  /// Returns all entries of actions that completed before the call.
  Recording recording() const;

 private:
  static constexpr std::size_t kChunkBytes = 256 << 10;
  template <class Item>
  using ChunkOf = Chunk<Item, kChunkBytes / sizeof(Item)>;
  struct Ring;
  struct Dependence {
    std::uint64_t later, earlier;
  };
  /// A ring for each thread that records, found again through the thread's own memory.
  Ring* ring() noexcept;
  /// A ring by number, null beyond the last.
  Ring* ring_at(std::size_t index) const;
  template <class Item>
  void append(const Item& item) noexcept;
  template <class Item>
  bool add(Ring& ring, const Item& item) noexcept;
  template <class Item>
  ChunkOf<Item>* room(Ring& ring) noexcept;

  const std::uint64_t serial_;  ///< distinguishes recorders at the same address
  sys::Atomic<bool> on_{false};
  sys::Atomic<std::int64_t> budget_{0};
  sys::Atomic<std::uint64_t> dropped_{0};
  mutable sys::Mutex mutex_;  // of the lists below, and of those of chunks in the rings
  std::vector<std::unique_ptr<Ring>> rings_ WEIR_GUARDED_BY(mutex_);
  std::vector<Track> tracks_ WEIR_GUARDED_BY(mutex_);
  std::vector<StreamName> streams_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt::trace
