#include "net/port.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/spin_lock.hpp"
#include "base/thread_role.hpp"
#include "base/threads.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kChannels = 7;
constexpr std::size_t kQueuedBytes = 512u << 10;  ///< to one rank, before send() blocks
constexpr std::size_t kKeptBytes = 64u << 20;     ///< of a channel that nobody listens to
constexpr std::uint32_t kOperations = 1024;       ///< of a thread to one rank, before it blocks
constexpr std::int64_t kHybridNap = 1'000'000;
constexpr std::int64_t kShortestSpin = 1'000;
constexpr std::int64_t kLongestClose = 5'000'000'000;

enum class Fragment : std::uint8_t { whole, first, middle, last };

struct FrameHeader {
  Channel channel;
  Fragment piece;
  std::uint16_t unused = 0;
  std::uint32_t unused_too = 0;
  std::uint64_t bytes = 0;  ///< of the whole message
};

using Bytes = std::vector<std::byte>;

/// A thread, as long as it lives.
const void* this_thread() noexcept {
  static thread_local const char mark = 0;
  return &mark;
}

/// How long to look for news before sleeping: longer while that pays, shorter while it does not.
class Spin {
 public:
  explicit Spin(std::int64_t most_ns) noexcept : most_ns_(most_ns), limit_ns_(most_ns) {}

  /// Returns whether to look once more.
  bool again() noexcept {
    if (looks_++ == 0) since_ns_ = sys::now_ns();
    if (sys::now_ns() - since_ns_ >= limit_ns_) return false;
    if (looks_ % 16 == 0) {
      sys::yield();
    } else {
      sys::pause();
    }
    return true;
  }
  void found() noexcept {
    if (looks_ > 0) limit_ns_ = std::min(most_ns_, 2 * limit_ns_);
    looks_ = 0;
  }
  void in_vain() noexcept {
    limit_ns_ = std::max(std::min(kShortestSpin, most_ns_), limit_ns_ / 2);
    looks_ = 0;
  }

 private:
  const std::int64_t most_ns_;
  std::int64_t limit_ns_, since_ns_ = 0;
  unsigned looks_ = 0;
};

}  // namespace

class Port::Body final : private TransportSink {
 public:
  Body(std::unique_ptr<Transport> transport, ProgressBy progress);
  ~Body();

  const TransportInfo& info() const noexcept { return info_; }
  ProgressBy progress_by() const noexcept { return progress_by_; }
  bool alive(Rank rank) const noexcept { return rank < info_.ranks && !peers_[rank].gone.load(); }
  std::string why_gone(Rank rank) const;

  void listen(Channel channel, Listener* listener);
  void send(Rank to, Channel channel, std::span<const std::byte> head,
            std::span<const std::byte> body);
  WindowId expose(void* memory, std::size_t bytes);
  void withdraw(WindowId window) noexcept;
  void* allocate(std::size_t bytes);
  void release(void* memory) noexcept;
  void start(OneSided operation, Completion* done);
  Outcome flush(Rank to, std::int64_t timeout_ns);
  Outcome barrier(std::int64_t timeout_ns);
  bool wait_until(const std::function<bool()>& done, std::int64_t timeout_ns, const char* what);
  bool progress() noexcept;
  bool holds() const noexcept { return holder_.load() == this_thread(); }
  void drop(Rank rank, const std::string& why) noexcept;

 private:
  struct Message {
    Rank rank;  ///< to which it goes, or that it is from
    Channel channel;
    Bytes bytes;
    std::size_t sent = 0;
  };
  using Messages = std::list<Message>;  ///< these go from list to list without memory
  /// What a thread has started.
  struct Account {
    explicit Account(Rank ranks) : pending(ranks), failures(ranks) {}
    std::vector<sys::Atomic<std::uint32_t>> pending;
    SpinLock lock;
    std::vector<Outcome> failures;  ///< the first of each rank
  };
  /// An operation that a thread has started.
  struct Started {
    Account* account;
    Completion* done;
    OneSided operation;
    std::list<Started>::iterator self;
  };
  using Operations = std::list<Started>;
  struct Peer {
    sys::Atomic<bool> gone{false};
    sys::Atomic<std::size_t> queued{0};      ///< bytes that wait for room
    sys::Atomic<std::uint64_t> barriers{0};  ///< that it has reached
    Messages messages;
    Operations operations;
    Bytes partial;  ///< of the message that is arriving
    std::uint64_t partial_bytes = 0;
  };
  struct Window {
    std::byte* memory;
    std::size_t bytes;
  };

  bool try_take() noexcept;
  void take() noexcept;
  void give() noexcept;
  void rouse() noexcept;
  /// Holds the turn, also within itself.
  class Turn;

  void arrived(Rank from, std::span<const std::byte> frame) noexcept override;
  void completed(void* token, std::int64_t old, Outcome outcome) noexcept override;
  void lost(Rank rank, const std::string& why) noexcept override;
  void assemble(Rank from, const FrameHeader& header, std::span<const std::byte> piece);
  void deliver(Rank from, Channel channel, std::span<const std::byte> message);

  void check_target(Rank rank, const char* verb) const;
  void check_may_wait(const char* what) const;
  void check_room_here(Channel channel, std::size_t bytes) const;
  Outcome gone_outcome(Rank rank) const noexcept;
  void submit(Messages one) noexcept;
  bool adopt_submitted() noexcept;
  bool push(Rank to);
  void finish(const Started& started, std::int64_t old, Outcome outcome) noexcept;
  bool push_message(Message& message);
  bool push_all() noexcept;
  bool deliver_own() noexcept;
  bool step() noexcept;
  void wait_for_room(const sys::Atomic<std::size_t>& queued);
  void start_here(const Started& started) noexcept;
  Account& account();
  bool look_for_stall(const std::function<bool()>& done, const char* what);
  void rest(const std::function<bool()>& done, std::int64_t deadline);
  void run_thread() noexcept;

  std::unique_ptr<Transport> transport_;
  const TransportInfo info_;
  const ProgressBy progress_by_;
  const std::int64_t spin_ns_ = config::spin_ns();

  sys::Atomic<const void*> holder_{nullptr};
  sys::Atomic<std::uint32_t> sleepers_{0};
  sys::Atomic<std::uint32_t> callers_{0};  ///< passes of threads in wait_until(), for the hybrid
  sys::Atomic<std::uint32_t> stop_{0};

  mutable sys::Mutex mutex_;  // short, never across a call of others
  Messages submitted_;
  Operations submitted_operations_;
  std::vector<std::string> reasons_;
  std::map<const void*, std::unique_ptr<Account>> accounts_;
  sys::Atomic<std::uint32_t> submissions_{0};

  // Whoever holds the turn.
  std::vector<Peer> peers_;
  std::array<Listener*, kChannels> listeners_{};
  std::array<Messages, kChannels> kept_;  ///< for listeners that are to come
  std::array<sys::Atomic<std::size_t>, kChannels> kept_bytes_{};
  Messages own_;          ///< to this rank
  Operations under_way_;  ///< that the transport has
  WindowId next_window_ = 0;

  SpinLock windows_lock_;
  std::map<WindowId, Window> windows_;
  std::uint64_t barriers_ = 0;  ///< that this rank has reached
  bool barrier_open_ = false;   ///< the last one has not been seen to be over
  std::optional<sys::Thread> thread_;
};

// ---- The turn -----------------------------------------------------------------------------------

bool Port::Body::try_take() noexcept {
  const void* nobody = nullptr;
  return holder_.load(std::memory_order_relaxed) == nullptr &&
         holder_.compare_exchange_strong(nobody, this_thread());
}

void Port::Body::take() noexcept {
  while (!try_take()) sys::yield();
}

/// What has been submitted to a holder that was about to go must not stay.
void Port::Body::give() noexcept {
  holder_.store(nullptr);
  while (submissions_.load() > 0 && try_take()) {
    adopt_submitted();
    push_all();
    holder_.store(nullptr);
    rouse();
  }
}

/// Those who sleep are to look for what others have done for them.
void Port::Body::rouse() noexcept {
  if (sleepers_.load() > 0) transport_->wake();
}

class Port::Body::Turn {
 public:
  explicit Turn(Body& body) noexcept : body_(body), nested_(body.holds()) {
    if (!nested_) body_.take();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!nested_) body_.give();
  }

 private:
  Body& body_;
  const bool nested_;
};

// ---- Life ---------------------------------------------------------------------------------------

Port::Body::Body(std::unique_ptr<Transport> transport, ProgressBy progress)
    : transport_(std::move(transport)),
      info_(transport_->info()),
      progress_by_(progress),
      reasons_(info_.ranks),
      peers_(info_.ranks) {
  if (progress_by_ != ProgressBy::caller) {
    thread_.emplace("weir-fabric", [this] { run_thread(); });
  }
}

Port::Body::~Body() {
  stop_.store(1);
  sys::wake_all(stop_);
  transport_->wake();
  thread_.reset();
  const std::int64_t deadline = sys::deadline_after(kLongestClose);
  const auto empty = [&] {
    return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
      return peer.messages.empty() && peer.operations.empty();
    });
  };
  take();
  listeners_ = {};
  while (step(), !empty() && sys::now_ns() < deadline) sys::yield();
  holder_.store(nullptr);
}

std::string Port::Body::why_gone(Rank rank) const {
  sys::Lock lock(mutex_);
  return reasons_[rank];
}

Outcome Port::Body::gone_outcome(Rank rank) const noexcept {
  sys::Lock lock(mutex_);
  return failed_outcome(WEIR_STATUS_NETWORK_ERROR, reasons_[rank].c_str());
}

void Port::Body::check_target(Rank rank, const char* verb) const {
  if (rank >= info_.ranks) {
    fail_argument("cannot {} rank {}: the fabric has the ranks 0 to {}", verb, rank,
                  info_.ranks - 1);
  }
  if (!alive(rank)) fail(WEIR_STATUS_NETWORK_ERROR, "cannot {}: {}", verb, why_gone(rank));
}

// ---- Messages -----------------------------------------------------------------------------------

void Port::Body::listen(Channel channel, Listener* listener) {
  Turn turn(*this);
  const auto index = static_cast<std::size_t>(channel);
  listeners_[index] = listener;
  if (listener == nullptr) return;
  NoWaitScope scope;
  while (!kept_[index].empty()) {
    Messages one;
    one.splice(one.begin(), kept_[index], kept_[index].begin());
    const Message& kept = one.front();
    kept_bytes_[index].fetch_sub(kept.bytes.size());
    listener->arrived(kept.rank, kept.bytes);
    if (listeners_[index] != listener) return;
  }
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    if (peers_[rank].gone.load()) listener->lost(rank, why_gone(rank));
  }
}

void Port::Body::send(Rank to, Channel channel, std::span<const std::byte> head,
                      std::span<const std::byte> body) {
  check_target(to, "send to");
  if (to == info_.rank) check_room_here(channel, head.size() + body.size());
  Peer& peer = peers_[to];
  const bool inside = holds();
  if (!inside && peer.queued.load() > kQueuedBytes) wait_for_room(peer.queued);
  const bool alone = !inside && try_take();
  if (to != info_.rank && (inside || alone) && head.size() + body.size() <= kFrameBytes) {
    if (adopt_submitted()) push_all();
    const FrameHeader header{channel, Fragment::whole, 0, 0, head.size() + body.size()};
    const std::array<std::span<const std::byte>, 3> parts = {std::as_bytes(std::span(&header, 1)),
                                                             head, body};
    bool sent = false;
    try {
      sent = peer.messages.empty() && transport_->send(to, parts);
    } catch (...) {
      if (alone) give();
      throw;
    }
    if (sent) {
      if (alone) give();
      return;
    }
  }
  if (alone) give();
  Messages one;
  Bytes& bytes = one.emplace_back(to, channel, Bytes(), std::size_t{0}).bytes;
  bytes.reserve(head.size() + body.size());
  bytes.insert(bytes.end(), head.begin(), head.end());
  bytes.insert(bytes.end(), body.begin(), body.end());
  submit(std::move(one));
}

/// Throws Error when there is too much for a listener already.
void Port::Body::check_room_here(Channel channel, std::size_t bytes) const {
  const auto index = static_cast<std::size_t>(channel);
  const std::size_t kept = kept_bytes_[index].load();
  if (kept == 0 || kept + bytes <= kKeptBytes) return;
  fail(WEIR_STATUS_BUSY,
       "cannot keep {} B more for a handler of rank {}: {} of {} MiB are full; set a handler first",
       bytes, info_.rank, kept >> 20, kKeptBytes >> 20);
}

void Port::Body::submit(Messages one) noexcept {
  peers_[one.front().rank].queued.fetch_add(one.front().bytes.size());
  {
    sys::Lock lock(mutex_);
    submitted_.splice(submitted_.end(), one);
  }
  submissions_.fetch_add(1);
  if (holds()) {
    adopt_submitted();
    push_all();
  } else if (try_take()) {
    adopt_submitted();
    push_all();
    give();
  }
  rouse();
}

bool Port::Body::adopt_submitted() noexcept {
  if (submissions_.load() == 0) return false;
  sys::Lock lock(mutex_);
  submissions_.store(0);
  while (!submitted_.empty()) {
    const Rank to = submitted_.front().rank;
    Messages& queue = to == info_.rank ? own_ : peers_[to].messages;
    queue.splice(queue.end(), submitted_, submitted_.begin());
  }
  while (!submitted_operations_.empty()) {
    Operations& queue = peers_[submitted_operations_.front().operation.target].operations;
    queue.splice(queue.end(), submitted_operations_, submitted_operations_.begin());
  }
  return true;
}

/// Returns whether all of it is out.
bool Port::Body::push_message(Message& message) {
  const std::size_t bytes = message.bytes.size();
  const std::size_t most = std::min(kFrameBytes, info_.frame_bytes - sizeof(FrameHeader));
  do {
    const std::size_t piece = std::min(bytes - message.sent, most);
    const bool first = message.sent == 0, last = message.sent + piece == bytes;
    const FrameHeader header{message.channel,
                             first ? (last ? Fragment::whole : Fragment::first)
                                   : (last ? Fragment::last : Fragment::middle),
                             0, 0, bytes};
    const std::array<std::span<const std::byte>, 2> parts = {
        std::as_bytes(std::span(&header, 1)),
        std::span<const std::byte>(message.bytes).subspan(message.sent, piece)};
    if (!transport_->send(message.rank, parts)) return false;
    message.sent += piece;
  } while (message.sent < bytes);
  return true;
}

/// Returns whether something went out.
bool Port::Body::push(Rank to) {
  Peer& peer = peers_[to];
  bool moved = false;
  while (!peer.messages.empty()) {
    Message& message = peer.messages.front();
    const std::size_t before = message.sent;
    const bool over = peer.gone.load() || push_message(message);
    moved |= over || message.sent != before;
    if (!over) break;
    peer.queued.fetch_sub(message.bytes.size());
    peer.messages.pop_front();
  }
  while (!peer.operations.empty()) {
    const auto first = peer.operations.begin();
    const bool gone = peer.gone.load();
    if (!gone && !transport_->start(first->operation)) break;
    under_way_.splice(under_way_.end(), peer.operations, first);
    moved = true;
    if (gone) completed(first->operation.token, 0, gone_outcome(to));
  }
  return moved;
}

bool Port::Body::push_all() noexcept {
  bool moved = false;
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    if (rank == info_.rank) continue;
    try {
      moved |= push(rank);
    } catch (...) {  // no memory: the next pass tries again
    }
  }
  return moved;
}

bool Port::Body::deliver_own() noexcept {
  bool any = false;
  for (std::size_t left = own_.size(); left > 0 && !own_.empty(); --left) {
    Messages one;
    one.splice(one.begin(), own_, own_.begin());
    const Message& message = one.front();
    const std::size_t bytes = message.bytes.size();
    const auto index = static_cast<std::size_t>(message.channel);
    if (Listener* const listener = listeners_[index]) {
      NoWaitScope scope;
      listener->arrived(info_.rank, message.bytes);
    } else {
      kept_bytes_[index].fetch_add(bytes);
      kept_[index].splice(kept_[index].end(), one);
    }
    peers_[info_.rank].queued.fetch_sub(bytes);
    any = true;
  }
  return any;
}

void Port::Body::arrived(Rank from, std::span<const std::byte> frame) noexcept {
  FrameHeader header{};
  try {
    if (frame.size() < sizeof header) fail(WEIR_STATUS_NETWORK_ERROR, "it is cut short");
    std::memcpy(&header, frame.data(), sizeof header);
    if (static_cast<std::size_t>(header.channel) >= kChannels) {
      fail(WEIR_STATUS_NETWORK_ERROR, "there is no channel {}",
           static_cast<unsigned>(header.channel));
    }
    assemble(from, header, frame.subspan(sizeof header));
  } catch (const Error& error) {
    transport_->drop(from, reason("sent a frame that is refused: ", error.what()));
  } catch (...) {
    transport_->drop(from, reason("sent a message that there is no memory for"));
  }
}

void Port::Body::assemble(Rank from, const FrameHeader& header, std::span<const std::byte> piece) {
  Peer& peer = peers_[from];
  const bool begins = header.piece == Fragment::whole || header.piece == Fragment::first;
  if (begins != (peer.partial_bytes == 0) || header.bytes - peer.partial.size() < piece.size() ||
      (!begins && header.bytes != peer.partial_bytes) ||
      (header.piece == Fragment::whole && header.bytes != piece.size())) {
    fail(WEIR_STATUS_NETWORK_ERROR, "it is no part of a message of {} bytes", header.bytes);
  }
  if (header.piece == Fragment::whole) return deliver(from, header.channel, piece);
  peer.partial_bytes = header.bytes;
  peer.partial.insert(peer.partial.end(), piece.begin(), piece.end());
  if (header.piece != Fragment::last) return;
  const Bytes message = std::exchange(peer.partial, {});
  peer.partial_bytes = 0;
  deliver(from, header.channel, message);
}

void Port::Body::deliver(Rank from, Channel channel, std::span<const std::byte> message) {
  const auto index = static_cast<std::size_t>(channel);
  if (channel == Channel::control) {
    if (message.size() == sizeof(std::uint64_t)) {
      std::uint64_t reached = 0;
      std::memcpy(&reached, message.data(), sizeof reached);
      peers_[from].barriers.store(reached);
    }
    return;
  }
  if (Listener* const listener = listeners_[index]) {
    NoWaitScope scope;
    return listener->arrived(from, message);
  }
  if (kept_bytes_[index].load() + message.size() > kKeptBytes) {
    fail(WEIR_STATUS_NETWORK_ERROR, "nobody listens to channel {}, and {} MiB are waiting there",
         index, kKeptBytes >> 20);
  }
  kept_[index].push_back({from, channel, Bytes(message.begin(), message.end())});
  kept_bytes_[index].fetch_add(message.size());
}

void Port::Body::lost(Rank rank, const std::string& why) noexcept {
  Peer& peer = peers_[rank];
  {
    sys::Lock lock(mutex_);
    reasons_[rank] = reason(why.c_str());
  }
  peer.gone.store(true);
  peer.partial.clear();
  push(rank);
  NoWaitScope scope;
  for (Listener* const listener : listeners_) {
    if (listener != nullptr) listener->lost(rank, why);
  }
}

void Port::Body::drop(Rank rank, const std::string& why) noexcept {
  Turn turn(*this);
  transport_->drop(rank, why);
}

// ---- One-sided operations -----------------------------------------------------------------------

WindowId Port::Body::expose(void* memory, std::size_t bytes) {
  if (memory == nullptr && bytes > 0) fail_argument("the memory of a window is NULL");
  Turn turn(*this);
  const WindowId window = next_window_;
  {
    SpinGuard guard(windows_lock_);
    windows_[window] = {static_cast<std::byte*>(memory), bytes};
  }
  try {
    transport_->expose(window, memory, bytes);
  } catch (...) {
    SpinGuard guard(windows_lock_);
    windows_.erase(window);
    throw;
  }
  ++next_window_;
  return window;
}

void Port::Body::withdraw(WindowId window) noexcept {
  Turn turn(*this);
  transport_->withdraw(window);
  SpinGuard guard(windows_lock_);
  windows_.erase(window);
}

void* Port::Body::allocate(std::size_t bytes) {
  Turn turn(*this);
  if (void* const memory = transport_->allocate(bytes)) return memory;
  void* const memory = std::calloc(std::max<std::size_t>(bytes, 1), 1);
  if (memory == nullptr) fail(WEIR_STATUS_OUT_OF_MEMORY, "no memory for a window of {} B", bytes);
  return memory;
}

void Port::Body::release(void* memory) noexcept {
  Turn turn(*this);
  if (!transport_->release(memory)) std::free(memory);
}

Port::Body::Account& Port::Body::account() {
  sys::Lock lock(mutex_);
  auto& found = accounts_[this_thread()];
  if (!found) found = std::make_unique<Account>(info_.ranks);
  return *found;
}

void Port::Body::start_here(const Started& started) noexcept {
  const OneSided& operation = started.operation;
  std::byte* at = nullptr;
  {
    SpinGuard guard(windows_lock_);
    const auto found = windows_.find(operation.window);
    if (found != windows_.end() && operation.offset <= found->second.bytes &&
        operation.bytes <= found->second.bytes - operation.offset) {
      at = found->second.memory + operation.offset;
    }
  }
  std::int64_t old = operation.expected;
  if (at == nullptr && operation.bytes > 0) {
    return finish(
        started, 0,
        failed_outcome(WEIR_STATUS_INVALID_ARGUMENT, "this rank has no window with these bytes"));
  }
  if (operation.kind == OneSidedKind::put) {
    std::memcpy(at, operation.local, operation.bytes);
  } else if (operation.kind == OneSidedKind::get) {
    std::memcpy(operation.local, at, operation.bytes);
  } else if (reinterpret_cast<std::uintptr_t>(at) % sizeof old != 0) {
    return finish(
        started, 0,
        failed_outcome(WEIR_STATUS_INVALID_ARGUMENT, "an atomic operation needs an aligned word"));
  } else {
    std::atomic_ref<std::int64_t> word(*reinterpret_cast<std::int64_t*>(at));
    if (operation.kind == OneSidedKind::fetch_add) {
      old = word.fetch_add(operation.operand);
    } else {
      word.compare_exchange_strong(old, operation.operand);
    }
  }
  finish(started, old, {});
}

void Port::Body::start(OneSided operation, Completion* done) {
  const Rank to = operation.target;
  check_target(to, "reach");
  Account& mine = account();
  if (!holds() && mine.pending[to].load() >= kOperations) {
    wait_until([&] { return mine.pending[to].load() < kOperations / 2; }, -1, "earlier operations");
  }
  Operations one;
  Started& started = one.emplace_back(&mine, done, operation, Operations::iterator());
  started.operation.token = &started;
  started.self = one.begin();
  mine.pending[to].fetch_add(1);
  if (to == info_.rank) return start_here(started);
  {
    sys::Lock lock(mutex_);
    submitted_operations_.splice(submitted_operations_.end(), one);
  }
  submissions_.fetch_add(1);
  const bool inside = holds();
  if (inside || try_take()) {
    adopt_submitted();
    push_all();
    const bool happened = !inside && info_.shares_memory && step();
    if (!inside) give();
    if (happened || !info_.can_sleep) rouse();
  }
}

void Port::Body::completed(void* token, std::int64_t old, Outcome outcome) noexcept {
  const Started& started = *static_cast<const Started*>(token);
  Operations one;
  one.splice(one.begin(), under_way_, started.self);
  finish(started, old, std::move(outcome));
}

void Port::Body::finish(const Started& started, std::int64_t old, Outcome outcome) noexcept {
  Account& account = *started.account;
  const Rank to = started.operation.target;
  if (started.done != nullptr) {
    NoWaitScope scope;
    started.done->completed(old, outcome);
  } else if (!outcome.ok()) {
    SpinGuard guard(account.lock);
    if (account.failures[to].ok()) account.failures[to] = std::move(outcome);
  }
  account.pending[to].fetch_sub(1);
}

Outcome Port::Body::flush(Rank to, std::int64_t timeout_ns) {
  if (to >= info_.ranks) check_target(to, "flush");
  Account& mine = account();
  const auto over = [&] { return mine.pending[to].load() == 0; };
  if (!wait_until(over, timeout_ns, "operations that are under way")) {
    return failed_outcome(
        WEIR_STATUS_TIMEOUT,
        fmt::format("{} operations on rank {} are still under way", mine.pending[to].load(), to)
            .c_str());
  }
  SpinGuard guard(mine.lock);
  return std::exchange(mine.failures[to], {});
}

// ---- Barrier ------------------------------------------------------------------------------------

Outcome Port::Body::barrier(std::int64_t timeout_ns) {
  check_may_wait("a barrier");
  if (!barrier_open_) {
    ++barriers_;
    barrier_open_ = true;
    const auto reached = std::as_bytes(std::span(&barriers_, 1));
    for (Rank rank = 0; rank < info_.ranks; ++rank) {
      if (rank == info_.rank || !alive(rank)) continue;
      try {
        send(rank, Channel::control, reached, {});
      } catch (const Error& error) {
        if (error.status() != WEIR_STATUS_NETWORK_ERROR) throw;
      }
    }
  }
  Rank late = 0;
  const auto over = [&] {
    for (Rank rank = 0; rank < info_.ranks; ++rank) {
      late = rank;
      const Peer& peer = peers_[rank];
      if (rank != info_.rank && !peer.gone.load() && peer.barriers.load() < barriers_) return false;
    }
    return true;
  };
  if (!wait_until(over, timeout_ns, "a barrier")) {
    return failed_outcome(WEIR_STATUS_TIMEOUT,
                          fmt::format("rank {} has not reached the barrier", late).c_str());
  }
  barrier_open_ = false;
  return {};
}

// ---- Progress -----------------------------------------------------------------------------------

/// One pass of the holder.
bool Port::Body::step() noexcept {
  bool happened = adopt_submitted();
  happened |= transport_->progress(*this);
  happened |= adopt_submitted();
  happened |= push_all();
  happened |= deliver_own();
  return happened;
}

bool Port::Body::progress() noexcept {
  if (!try_take()) return false;
  const bool happened = step();
  give();
  if (happened) rouse();
  return happened;
}

/// Sleeps, unless something happens first.
void Port::Body::rest(const std::function<bool()>& done, std::int64_t deadline) {
  const std::uint32_t bell = transport_->bell();
  sleepers_.fetch_add(1);
  if (!done() && !progress()) transport_->wait(bell, deadline);
  sleepers_.fetch_sub(1);
}

void Port::Body::check_may_wait(const char* what) const {
  if (holds()) fail(WEIR_STATUS_BUSY, "a handler of messages must not wait for {}", what);
}

bool Port::Body::wait_until(const std::function<bool()>& done, std::int64_t timeout_ns,
                            const char* what) {
  check_may_wait(what);
  const std::int64_t deadline = sys::deadline_after(timeout_ns);
  Spin spin(spin_ns_);
  bool registered = false;
  while (!done()) {
    callers_.fetch_add(1, std::memory_order_relaxed);
    if (progress()) {
      spin.found();
    } else if (!spin.again()) {
      if (sys::now_ns() >= deadline) return done();
      if (deadline == sys::kNever) registered |= look_for_stall(done, what);
      rest(done, deadline);
      spin.in_vain();
    }
    if (timeout_ns >= 0 && sys::now_ns() >= deadline) return done();
  }
  if (registered) transport_->resumed();
  return true;
}

/// Throws Error when nobody will ever end this wait. Returns whether the transport knows of it.
bool Port::Body::look_for_stall(const std::function<bool()>& done, const char* what) {
  if (!try_take()) return false;
  const std::uint64_t since = transport_->activity();
  const bool idle = !step() && !done();
  std::string stall;
  try {
    if (idle) stall = transport_->stalled(what, since);
  } catch (...) {
    give();
    throw;
  }
  give();
  if (!stall.empty()) fail(WEIR_STATUS_NETWORK_ERROR, "{}", stall);
  return idle;
}

void Port::Body::wait_for_room(const sys::Atomic<std::size_t>& queued) {
  wait_until([&] { return queued.load() <= kQueuedBytes; }, -1, "room to send");
}

void Port::Body::run_thread() noexcept {
  Spin spin(spin_ns_);
  std::uint32_t seen = 0;
  const auto stopped = [this] { return stop_.load() != 0; };
  while (!stopped()) {
    if (progress_by_ == ProgressBy::hybrid) {
      const std::uint32_t callers = callers_.load(std::memory_order_relaxed);
      if (std::exchange(seen, callers) != callers) {
        sys::wait(stop_, 0, sys::now_ns() + kHybridNap);
        continue;
      }
    }
    if (progress()) {
      spin.found();
    } else if (!spin.again()) {
      rest(stopped, sys::kNever);
      spin.in_vain();
    }
  }
}

// ---- Port ---------------------------------------------------------------------------------------

namespace {

/// `local` is written by gets only.
OneSided operation(OneSidedKind kind, Rank target, WindowId window, std::uint64_t offset,
                   const std::byte* local, std::size_t bytes) {
  return {.kind = kind,
          .target = target,
          .window = window,
          .offset = offset,
          .local = const_cast<std::byte*>(local),
          .bytes = bytes};
}

}  // namespace

Port::Port(std::unique_ptr<Transport> transport, ProgressBy progress)
    : body_(std::make_unique<Body>(std::move(transport), progress)) {}
Port::~Port() = default;

const TransportInfo& Port::info() const noexcept { return body_->info(); }
ProgressBy Port::progress_by() const noexcept { return body_->progress_by(); }
Rank Port::rank() const noexcept { return body_->info().rank; }
Rank Port::ranks() const noexcept { return body_->info().ranks; }
bool Port::alive(Rank rank) const noexcept { return body_->alive(rank); }
std::string Port::why_gone(Rank rank) const { return body_->why_gone(rank); }

void Port::listen(Channel channel, Listener* listener) { body_->listen(channel, listener); }
void Port::send(Rank to, Channel channel, std::span<const std::byte> head,
                std::span<const std::byte> body) {
  body_->send(to, channel, head, body);
}

WindowId Port::expose(void* memory, std::size_t bytes) { return body_->expose(memory, bytes); }
void Port::withdraw(WindowId window) noexcept { body_->withdraw(window); }
void* Port::allocate(std::size_t bytes) { return body_->allocate(bytes); }
void Port::release(void* memory) noexcept { body_->release(memory); }

void Port::put(Rank to, WindowId window, std::uint64_t offset, std::span<const std::byte> from,
               Completion* done) {
  body_->start(operation(OneSidedKind::put, to, window, offset, from.data(), from.size()), done);
}

void Port::get(Rank from, WindowId window, std::uint64_t offset, std::span<std::byte> to,
               Completion* done) {
  body_->start(operation(OneSidedKind::get, from, window, offset, to.data(), to.size()), done);
}

void Port::fetch_add(Rank to, WindowId window, std::uint64_t offset, std::int64_t operand,
                     Completion* done) {
  OneSided add = operation(OneSidedKind::fetch_add, to, window, offset, nullptr, sizeof operand);
  add.operand = operand;
  body_->start(add, done);
}

void Port::compare_swap(Rank to, WindowId window, std::uint64_t offset, std::int64_t expected,
                        std::int64_t desired, Completion* done) {
  OneSided swap =
      operation(OneSidedKind::compare_swap, to, window, offset, nullptr, sizeof desired);
  swap.operand = desired;
  swap.expected = expected;
  body_->start(swap, done);
}

Outcome Port::flush(Rank to, std::int64_t timeout_ns) { return body_->flush(to, timeout_ns); }
Outcome Port::barrier(std::int64_t timeout_ns) { return body_->barrier(timeout_ns); }
bool Port::wait_until(const std::function<bool()>& done, std::int64_t timeout_ns,
                      const char* what) {
  return body_->wait_until(done, timeout_ns, what);
}
bool Port::inside_listener() const noexcept { return body_->holds(); }
bool Port::progress() noexcept { return body_->progress(); }
void Port::drop(Rank rank, const std::string& why) noexcept { body_->drop(rank, why); }

}  // namespace weir::rt
