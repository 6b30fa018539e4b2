#include "fabric/shm/shm_link.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/threads.hpp"
#include "fabric/one_sided.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kAlign =
    16;  ///< size of a packet's length field, so that its bytes are aligned
constexpr std::uint32_t kWrap = UINT32_MAX;  ///< the next packet is at the begin of the ring
/// Maximum of one copy, so that nothing else waits long.
constexpr std::size_t kSlice = 4u << 20;

constexpr std::size_t room_of(std::size_t bytes) noexcept {
  return (kAlign + bytes + kAlign - 1) / kAlign * kAlign;
}

/// Rounds up to whole pages, at least one; in bytes.
constexpr std::uint64_t pages_of(std::size_t bytes) noexcept {
  return std::max<std::uint64_t>(1, (bytes + Segment::kPage - 1) / Segment::kPage) * Segment::kPage;
}

/// Works between processes, unlike sys::wait().
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
  return syscall(SYS_futex, &word, operation, value, timeout, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

ShmLink::ShmLink(std::unique_ptr<Segment> segment, Rank rank, std::int64_t longest_use_ns)
    : segment_(std::move(segment)),
      longest_use_ns_(longest_use_ns),
      own_(segment_->rank(rank)),
      peers_(segment_->ranks()) {
  info_ = {.name = "shm",
           .rank = rank,
           .ranks = segment_->ranks(),
           .packet_bytes = kLinkPacketBytes,
           .shares_memory = true,
           .can_sleep = true};
  std::int32_t owner = 0;
  if (!own_.process.compare_exchange_strong(owner, getpid())) {
    fail(WEIR_STATUS_BUSY, "process {} is or was rank {} already: a rank joins once", owner, rank);
  }
  for (Rank other = 0; other < info_.ranks; ++other) ring_bell(other);
}

ShmLink::~ShmLink() {
  for (const Peer& peer : peers_) {
    if (peer.process >= 0) close(peer.process);
  }
}

// ---- Packets ------------------------------------------------------------------------------------

bool ShmLink::send(Rank to, Parts parts) noexcept {
  ShmRing& ring = segment_->ring(info_.rank, to);
  std::size_t bytes = 0;
  for (const auto& part : parts) bytes += part.size();
  std::uint64_t tail = ring.tail.load(std::memory_order_relaxed);
  const std::size_t at = tail % ShmRing::kBytes, room = room_of(bytes);
  const std::size_t skipped = at + room > ShmRing::kBytes ? ShmRing::kBytes - at : 0;
  const auto full = [&] { return tail + skipped + room - ring.head.load() > ShmRing::kBytes; };
  if (full()) {
    ring.starving.store(1);
    if (full()) return false;
  }
  if (skipped > 0) std::memcpy(&ring.bytes[at], &kWrap, sizeof kWrap);
  std::byte* to_byte = &ring.bytes[skipped > 0 ? 0 : at];
  const auto size = static_cast<std::uint32_t>(bytes);
  std::memcpy(to_byte, &size, sizeof size);
  to_byte += kAlign;
  for (const auto& part : parts) {
    if (!part.empty()) std::memcpy(to_byte, part.data(), part.size());
    to_byte += part.size();
  }
  ring.tail.store(tail + skipped + room);
  ring_bell(to);
  return true;
}

/// Threads that do not sleep poll by themselves.
void ShmLink::ring_bell(Rank rank) noexcept {
  if (segment_->rank(rank).sleepers.load() > 0) ring_surely(rank);
}

void ShmLink::ring_surely(Rank rank) noexcept {
  ShmRank& other = segment_->rank(rank);
  other.bell.fetch_add(1);
  futex(other.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

bool ShmLink::receive_one(Rank from, PacketSink& sink) noexcept {
  ShmRing& ring = segment_->ring(from, info_.rank);
  std::uint64_t head = ring.head.load(std::memory_order_relaxed);
  const std::uint64_t tail = ring.tail.load(std::memory_order_acquire);
  if (head == tail || peers_[from].cut.load(std::memory_order_relaxed)) return false;
  const auto size_at = [&] {
    std::uint32_t size = 0;
    std::memcpy(&size, &ring.bytes[head % ShmRing::kBytes], sizeof size);
    return size;
  };
  std::uint32_t size = size_at();
  if (size == kWrap) {
    head += ShmRing::kBytes - head % ShmRing::kBytes;
    size = size_at();
  }
  const std::size_t at = head % ShmRing::kBytes + kAlign;
  const bool sound = size <= kLinkPacketBytes && at + size <= ShmRing::kBytes &&
                     tail - head >= room_of(size) && tail - head <= ShmRing::kBytes;
  // A corrupt ring becomes an empty packet, which the transport rejects.
  sink.packet(from, {&ring.bytes[sound ? at : 0], sound ? size : 0});
  ring.head.store(sound ? head + room_of(size) : tail);
  // A writer that is about to sleep does not check for room again.
  if (ring.starving.load() != 0 && ring.starving.exchange(0) != 0) ring_surely(from);
  return true;
}

bool ShmLink::receive(PacketSink& sink) noexcept {
  bool any = false;
  for (Rank i = 0; i < info_.ranks; ++i) {
    const Rank from = (first_ + i) % info_.ranks;
    for (unsigned remaining = kLinkBurst; remaining > 0 && receive_one(from, sink); --remaining)
      any = true;
  }
  first_ = (first_ + 1) % info_.ranks;
  return any;
}

bool ShmLink::anything() const noexcept {
  for (Rank from = 0; from < info_.ranks; ++from) {
    const ShmRing& ring = segment_->ring(from, info_.rank);
    if (ring.head.load() != ring.tail.load() && !peers_[from].cut.load()) return true;
  }
  return false;
}

// ---- Liveness -----------------------------------------------------------------------------------

void ShmLink::watch(Rank rank) noexcept {
  const std::int32_t process = segment_->rank(rank).process.load();
  if (peers_[rank].process < 0 && process > 0) {
    peers_[rank].process = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
    if (peers_[rank].process < 0 && errno == ESRCH) segment_->rank(rank).ended.store(1);
  }
}

std::string ShmLink::why_lost(Rank rank) noexcept {
  watch(rank);
  pollfd question{peers_[rank].process, POLLIN, 0};
  const bool ended = question.fd >= 0 && poll(&question, 1, 0) == 1;
  if (!ended && segment_->rank(rank).ended.load() == 0) return {};
  try {
    return fmt::format("has died (process {})", segment_->rank(rank).process.load());
  } catch (...) {
    return "has died";
  }
}

void ShmLink::cut(Rank rank, bool) noexcept { peers_[rank].cut.store(true); }

// ---- One-sided operations -----------------------------------------------------------------------

ShmWindow& ShmLink::window_of(Rank rank, WindowId window) const noexcept {
  return segment_->rank(rank).windows[window % ShmRank::kWindows];
}

void ShmLink::expose(WindowId window, void* memory, std::size_t bytes) noexcept {
  ShmWindow& slot = window_of(info_.rank, window);
  if (slot.id.load() != 0 || slot.users.load() != 0) return;  // reachable by packets
  slot.address = reinterpret_cast<std::uintptr_t>(memory);
  slot.bytes = bytes;
  slot.offset = offset_of(memory).value_or(0);
  slot.id.store(std::uint64_t{window} + 1);
}

bool ShmLink::withdraw(WindowId window) noexcept {
  ShmWindow& slot = window_of(info_.rank, window);
  if (slot.id.load() != std::uint64_t{window} + 1) return false;
  slot.id.store(0);
  if (slot.users.load() == 0) return false;
  empty_copies(window);
  return true;
}

void ShmLink::settle(WindowId window) noexcept {
  const ShmWindow& slot = window_of(info_.rank, window);
  const std::int64_t deadline = sys::deadline_after(longest_use_ns_);
  // If another window has the slot, all operations have left it.
  const auto entered = [&slot] { return slot.id.load() == 0 && slot.users.load() != 0; };
  while (entered() && sys::now_ns() < deadline) sys::yield();
}

/// Returns whether operations of other processes may use a part of the heap.
bool ShmLink::entered(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  return std::any_of(own_.windows.begin(), own_.windows.end(), [&](const ShmWindow& window) {
    return window.users.load() != 0 && window.offset < offset + bytes &&
           offset < window.offset + window.bytes;
  });
}

std::optional<Outcome> ShmLink::direct(const OneSided& operation, std::uint64_t& cursor,
                                       std::int64_t& old) noexcept {
  ShmWindow& window = window_of(operation.target, operation.window);
  std::optional<Outcome> outcome;
  window.users.fetch_add(1);
  const bool fits = window.id.load() == std::uint64_t{operation.window} + 1 &&
                    operation.offset <= window.bytes &&
                    operation.bytes <= window.bytes - operation.offset;
  if (fits) {
    outcome =
        window.offset != 0 ? in_segment(operation, window, cursor, old) : across(operation, cursor);
  }
  window.users.fetch_sub(1);
  return outcome;
}

std::optional<Outcome> ShmLink::in_segment(const OneSided& operation, const ShmWindow& window,
                                           std::uint64_t& cursor, std::int64_t& old) noexcept {
  std::byte* const at = segment_->base() + window.offset + operation.offset;
  const std::size_t piece = std::min<std::uint64_t>(kSlice, operation.bytes - cursor);
  if (operation.kind == OneSidedKind::put) {
    std::memcpy(at + cursor, operation.local + cursor, piece);
  } else if (operation.kind == OneSidedKind::get) {
    std::memcpy(operation.local + cursor, at + cursor, piece);
  } else if (!change_word(operation, at, old)) {
    return std::nullopt;
  }
  cursor += piece;
  return Outcome{};
}

std::optional<Outcome> ShmLink::across(const OneSided& operation, std::uint64_t& cursor) noexcept {
  const bool copies = operation.kind == OneSidedKind::put || operation.kind == OneSidedKind::get;
  if (!may_copy_across_ || !copies) return std::nullopt;
  const std::size_t piece = std::min<std::uint64_t>(kSlice, operation.bytes - cursor);
  if (piece == 0) return Outcome{};
  const WindowRun run{operation.offset + cursor, operation.local + cursor, piece};
  const std::size_t copied =
      copy_across(operation.kind, operation.target, operation.window, {&run, 1});
  if (copied == 0) return std::nullopt;
  cursor += copied;
  return Outcome{};
}

/// Returns null if too many threads are copying.
ShmCopy* ShmLink::begin_copy(Rank target, WindowId window) noexcept {
  for (ShmCopy& copy : own_.copies) {
    std::uint64_t none = 0;
    if (copy.window.load() == 0 &&
        copy.window.compare_exchange_strong(none, ShmCopy::id_of(target, window))) {
      return &copy;
    }
  }
  return nullptr;
}

/// Sets the run lengths of all ranks' copies to or from a window of this rank to 0.
void ShmLink::empty_copies(WindowId window) noexcept {
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    for (ShmCopy& copy : segment_->rank(rank).copies) {
      if (copy.window.load() != ShmCopy::id_of(info_.rank, window)) continue;
      for (iovec& run : copy.there) std::atomic_ref(run.iov_len).store(0);
    }
  }
}

/// Returns how many bytes, from the first one on, the system has copied.
std::size_t ShmLink::copy_across(OneSidedKind kind, Rank target, WindowId number,
                                 std::span<const WindowRun> runs) noexcept {
  ShmCopy* const copy = begin_copy(target, number);
  if (copy == nullptr) return 0;
  const ShmWindow& window = window_of(target, number);
  std::array<iovec, ShmCopy::kRuns> here;
  const std::size_t count = std::min(runs.size(), ShmCopy::kRuns);
  for (std::size_t i = 0; i < count; ++i) {
    here[i] = {runs[i].local, runs[i].bytes};
    copy->there[i].iov_base = reinterpret_cast<void*>(window.address + runs[i].offset);
    std::atomic_ref(copy->there[i].iov_len).store(runs[i].bytes);
  }
  ssize_t copied = 0;
  // If the window is withdrawn later, its owner finds the copy and empties its runs.
  if (window.id.load() == std::uint64_t{number} + 1) {
    const pid_t process = segment_->rank(target).process.load();
    const auto move = kind == OneSidedKind::put ? process_vm_writev : process_vm_readv;
    copied = move(process, here.data(), count, copy->there.data(), count, 0);
    if (copied < 0 && (errno == EPERM || errno == ENOSYS)) may_copy_across_ = false;
  }
  copy->window.store(0);
  return copied > 0 ? static_cast<std::size_t>(copied) : 0;
}

/// Copies many runs with one system call.
bool ShmLink::move_runs(OneSidedKind kind, Rank target, WindowId number,
                        std::span<const WindowRun> runs) noexcept {
  ShmWindow& window = window_of(target, number);
  const auto inside = [&](const WindowRun& run) {
    return run.offset <= window.bytes && run.bytes <= window.bytes - run.offset;
  };
  bool moved = may_copy_across_;
  window.users.fetch_add(1);
  while (moved && !runs.empty()) {
    const auto some = runs.first(std::min(runs.size(), ShmCopy::kRuns));
    std::size_t bytes = 0;
    for (const WindowRun& run : some) bytes += run.bytes;
    moved = window.id.load() == std::uint64_t{number} + 1 && window.offset == 0 &&
            std::all_of(some.begin(), some.end(), inside) &&
            copy_across(kind, target, number, some) == bytes;
    runs = runs.subspan(some.size());
  }
  window.users.fetch_sub(1);
  return moved;
}

void* ShmLink::allocate(std::size_t bytes) noexcept {
  if (bytes > segment_->heap_bytes()) return nullptr;  // which also avoids an overflow below
  discard_released();
  const std::uint64_t needed = pages_of(bytes);
  std::uint64_t offset = segment_->heap(info_.rank);
  const std::uint64_t end = offset + segment_->heap_bytes();
  for (const auto& [begin, block] : used_) {
    if (begin - offset >= needed) break;
    offset = begin + block.bytes;
  }
  if (needed > end - offset) return nullptr;
  try {
    used_[offset] = {needed};
  } catch (...) {
    return nullptr;
  }
  return segment_->base() + offset;
}

weir_status ShmLink::commit(void* memory, std::size_t bytes, std::int64_t deadline_ns) noexcept {
  const auto offset =
      static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - segment_->base());
  return segment_->reserve(offset, pages_of(bytes), deadline_ns);
}

bool ShmLink::release(void* memory) noexcept {
  const auto offset =
      static_cast<std::uint64_t>(static_cast<std::byte*>(memory) - segment_->base());
  const auto found = used_.find(offset);
  if (found == used_.end() || found->second.released) return false;
  found->second.released = true;
  discard_released();
  return true;
}

void ShmLink::discard_released() noexcept {
  std::erase_if(used_, [this](const auto& each) {
    const auto& [offset, block] = each;
    if (!block.released || entered(offset, block.bytes)) return false;
    segment_->discard(offset, block.bytes);
    return true;
  });
}

std::optional<std::uint64_t> ShmLink::offset_of(const void* memory) const noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const auto base = reinterpret_cast<std::uintptr_t>(segment_->base());
  const std::uint64_t heap = segment_->heap(info_.rank);
  if (address < base + heap || address - base - heap >= segment_->heap_bytes()) return std::nullopt;
  return address - base;
}

const std::byte* ShmLink::memory_of(Rank owner, std::uint64_t offset,
                                    std::uint64_t bytes) const noexcept {
  const std::uint64_t heap = segment_->heap(owner), size = segment_->heap_bytes();
  const bool inside = offset >= heap && offset - heap <= size && bytes <= size - (offset - heap);
  return inside ? segment_->base() + offset : nullptr;
}

// ---- Sleeping -----------------------------------------------------------------------------------

std::uint32_t ShmLink::bell() const noexcept { return own_.bell.load(); }

void ShmLink::wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const timespec time{deadline_ns / kSecond, deadline_ns % kSecond};
  own_.sleepers.fetch_add(1);
  if (!anything()) {
    futex(own_.bell, FUTEX_WAIT_BITSET, bell, deadline_ns == sys::kNever ? nullptr : &time);
  }
  own_.sleepers.fetch_sub(1);
}

void ShmLink::wake() noexcept {
  own_.bell.fetch_add(1);
  futex(own_.bell, FUTEX_WAKE, INT_MAX, nullptr);
}

}  // namespace weir::rt
