#include "trace/recorder.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/spin_lock.hpp"
#include "base/threads.hpp"

namespace weir::rt::trace {

namespace {

std::uint64_t next_serial() noexcept {
  static sys::Atomic<std::uint64_t> serial{0};
  return serial.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

/// The entries of one thread, which appends chunks under the recorder's mutex.
struct Recorder::Ring {
  const void* thread =
      nullptr;       ///< address of its thread-local memory; a later thread may reuse it
  SpinLock writing;  ///< held by its thread while it adds an item
  template <class Item>
  using Chunks = std::vector<std::unique_ptr<ChunkOf<Item>>>;
  Chunks<Entry> entries;
  Chunks<Dependence> dependences;

  template <class Item>
  Chunks<Item>& chunks() noexcept {
    if constexpr (std::is_same_v<Item, Entry>) {
      return entries;
    } else {
      return dependences;
    }
  }
};

Recorder::Recorder() : serial_(next_serial()) {}
Recorder::~Recorder() = default;

void Recorder::start(std::size_t max_bytes) {
  for (std::size_t i = 0; Ring* const former = ring_at(i); ++i) {
    const SpinGuard writing(former->writing);
    sys::Lock lock(mutex_);
    former->entries.clear();
    former->dependences.clear();
  }
  sys::Lock lock(mutex_);
  budget_.store(static_cast<std::int64_t>(max_bytes ? max_bytes : kDefaultBytes),
                std::memory_order_relaxed);
  dropped_.store(0, std::memory_order_relaxed);
  on_.store(true, std::memory_order_relaxed);
}

Recorder::Ring* Recorder::ring_at(std::size_t index) const {
  sys::Lock lock(mutex_);
  return index < rings_.size() ? rings_[index].get() : nullptr;
}

std::uint32_t Recorder::add_track(Track track) {
  sys::Lock lock(mutex_);
  tracks_.push_back(std::move(track));
  return static_cast<std::uint32_t>(tracks_.size() - 1);
}

std::uint32_t Recorder::add_stream(std::string name) {
  sys::Lock lock(mutex_);
  streams_.push_back({std::move(name)});
  return static_cast<std::uint32_t>(streams_.size() - 1);
}

Recorder::Ring* Recorder::ring() noexcept {
  // Without a destructor: the C library aborts when it has no memory to register one.
  struct Known {
    std::uint64_t recorder = 0;
    Ring* ring = nullptr;
  };
  constinit thread_local Known known;
  if (known.recorder == serial_) return known.ring;
  try {
    sys::Lock lock(mutex_);
    auto own = std::find_if(rings_.begin(), rings_.end(),
                            [](const auto& ring) { return ring->thread == &known; });
    if (own == rings_.end()) {
      own = rings_.insert(own, std::make_unique<Ring>());
      (*own)->thread = &known;
    }
    known = {serial_, own->get()};
    return known.ring;
  } catch (...) {
    return nullptr;
  }
}

template <class Item>
Recorder::ChunkOf<Item>* Recorder::room(Ring& ring) noexcept {
  auto& chunks = ring.chunks<Item>();
  if (!chunks.empty() && chunks.back()->has_room()) return chunks.back().get();
  constexpr auto size = static_cast<std::int64_t>(sizeof(ChunkOf<Item>));
  if (budget_.fetch_sub(size, std::memory_order_relaxed) < size) {
    budget_.fetch_add(size, std::memory_order_relaxed);
    return nullptr;
  }
  try {
    auto made = std::make_unique<ChunkOf<Item>>();
    sys::Lock lock(mutex_);
    return chunks.emplace_back(std::move(made)).get();
  } catch (...) {
    budget_.fetch_add(size, std::memory_order_relaxed);
    return nullptr;
  }
}

template <class Item>
void Recorder::append(const Item& item) noexcept {
  Ring* const own = ring();
  if (own == nullptr || !add(*own, item)) {
    dropped_.fetch_add(std::is_same_v<Item, Entry> ? 1 : 0, std::memory_order_relaxed);
  }
}

template <class Item>
bool Recorder::add(Ring& ring, const Item& item) noexcept {
  const SpinGuard writing(ring.writing);
  ChunkOf<Item>* const chunk = room<Item>(ring);
  if (chunk == nullptr) return false;
  chunk->append(item);
  return true;
}

void Recorder::record(const Entry& entry) noexcept { append(entry); }

void Recorder::record_dependences(std::uint64_t id,
                                  std::span<const std::uint64_t> earlier) noexcept {
  for (const std::uint64_t other : earlier) append(Dependence{id, other});
}

Recording Recorder::recording() const {
  Recording result;
  std::vector<Dependence> dependences;
  {
    sys::Lock lock(mutex_);
    result.tracks = tracks_;
    result.streams = streams_;
    result.dropped = dropped_.load(std::memory_order_relaxed);
    const auto take = [](const auto& chunks, auto& items) {
      for (const auto& chunk : chunks) {
        const auto some = chunk->items();
        items.insert(items.end(), some.begin(), some.end());
      }
    };
    for (const auto& ring : rings_) {
      take(ring->entries, result.entries);
      take(ring->dependences, dependences);
    }
  }
  const auto by_later = [](const Dependence& a, const Dependence& b) {
    return a.later != b.later ? a.later < b.later : a.earlier < b.earlier;
  };
  std::sort(dependences.begin(), dependences.end(), by_later);
  for (Entry& entry : result.entries) {
    auto at =
        std::lower_bound(dependences.begin(), dependences.end(), Dependence{entry.id, 0}, by_later);
    entry.first_dependence = static_cast<std::uint32_t>(result.dependences.size());
    for (; at != dependences.end() && at->later == entry.id; ++at) {
      const bool repeated = at != dependences.begin() && std::prev(at)->later == at->later &&
                            std::prev(at)->earlier == at->earlier;
      if (!repeated) result.dependences.push_back(at->earlier);
    }
    entry.dependence_count =
        static_cast<std::uint32_t>(result.dependences.size()) - entry.first_dependence;
  }
  std::sort(result.entries.begin(), result.entries.end(), [](const Entry& a, const Entry& b) {
    return a.ended != b.ended ? a.ended < b.ended : a.id < b.id;
  });
  return result;
}

}  // namespace weir::rt::trace
