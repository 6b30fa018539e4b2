#include "fabric/inproc.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/log.hpp"
#include "base/thread_role.hpp"
#include "base/threads.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kBoxBytes = 1u << 20;  ///< maximum from one sender that is not received yet

// How long a rank may make no call of the fabric while others wait for packets that the seed holds.
// Counted in checks, not in time, so that a stop in a debugger counts as one check.
constexpr std::int64_t kBetweenAbsentChecks = 1'000'000'000;
constexpr unsigned kMostAbsentChecks = 60;

using ThreadLife = std::weak_ptr<const void>;

bool same(const ThreadLife& one, const ThreadLife& other) noexcept {
  return !one.owner_before(other) && !other.owner_before(one);
}

struct Packet {
  std::vector<std::byte> bytes;
  bool counts = true;  ///< occupies the sender's room
};

}  // namespace

/// Packets that were sent to a rank.
struct InprocHub::Box {
  Box(Rank ranks, std::uint64_t seed) : from(ranks), random(seed) {}

  /// Packets of one sender that the rank has not received.
  struct Sender {
    std::deque<Packet> packets;
    std::size_t bytes = 0;  ///< of the packets that count
    std::size_t held = 0;   ///< number of packets at the end that wait for the seed's decision
    /// The first packet was sent; it is not held, because the ranks join with it.
    bool introduced = false;
  };

  sys::Mutex mutex;
  std::vector<Sender> from WEIR_GUARDED_BY(mutex);
  /// Senders of the packets that are not held.
  std::deque<Rank> arrivals WEIR_GUARDED_BY(mutex);
  /// Sender of the packet that the seed has released.
  std::optional<Rank> next WEIR_GUARDED_BY(mutex);
  bool closed WEIR_GUARDED_BY(mutex) = false;  ///< the rank has left
  std::mt19937_64 random WEIR_GUARDED_BY(mutex);
  sys::Atomic<std::size_t> held{0};  ///< packets of all senders
  /// Changes when a thread of the rank may have something to do.
  sys::Atomic<std::uint64_t> activity{0};
  sys::Atomic<std::uint32_t> ended{0};  ///< number of waits that must be notified of their end
  sys::Atomic<std::uint32_t> bell{0};

  void ring() noexcept {
    bell.fetch_add(1);
    sys::wake_all(bell);
  }
  void announce() noexcept {
    activity.fetch_add(1);
    ring();
  }
  void close(State& state) noexcept;
};

struct InprocHub::State {
  /// The threads of a rank.
  struct Threads {
    std::vector<IdleWait*> waits;
    std::vector<ThreadLife> known;  ///< threads that have used the rank
    bool others = false;            ///< some threads are not in `known`
    bool has_left = false;          ///< the rank has left
  };

  std::vector<std::unique_ptr<Box>> boxes;
  bool draws = false;

  sys::Atomic<bool> decides{false};  ///< only the seed orders packets
  sys::Atomic<bool> reports_stalls{false};
  sys::Atomic<std::uint64_t> in_flight{0};  ///< packets that have not been processed

  sys::Mutex mutex;                               // may be locked before that of a box
  std::mt19937_64 random WEIR_GUARDED_BY(mutex);  ///< for the decisions of the seed
  std::vector<Threads> threads WEIR_GUARDED_BY(mutex);
  std::int64_t absent_checked_ns WEIR_GUARDED_BY(mutex) = 0;
  /// Checks since the last decision of the seed.
  unsigned absent_checks WEIR_GUARDED_BY(mutex) = 0;

  void enter(Rank rank, IdleWait& wait, std::uint64_t since) WEIR_REQUIRES(mutex);
  void settle() WEIR_REQUIRES(mutex);
  void go_on() noexcept WEIR_REQUIRES(mutex);
  bool is_idle(Rank rank) const noexcept WEIR_REQUIRES(mutex);
  bool all_wait(Rank rank) const noexcept WEIR_REQUIRES(mutex);
  bool waits_for_ever(Rank rank) const noexcept WEIR_REQUIRES(mutex);
  bool stalls() const noexcept WEIR_REQUIRES(mutex);
  std::string describe_stall() const WEIR_REQUIRES(mutex);
  void note_stall() WEIR_REQUIRES(mutex);
  void end(Rank rank, IdleWait& wait, std::string how) noexcept;
  void release(Rank to, std::size_t held) noexcept;
  void check_absent(Rank rank) noexcept WEIR_REQUIRES(mutex);
  void release_all();
};

/// Closes the box. Packets of other ranks occupy the sender's room until the sender learns of the
/// end.
void InprocHub::Box::close(State& state) noexcept {
  const sys::Lock lock(mutex);
  closed = true;
  held.store(0);
  for (Sender& sender : from) {
    state.in_flight.fetch_sub(sender.packets.size());
    sender.packets.clear();
    sender.held = 0;
  }
}

// ---- Threads that wait --------------------------------------------------------------------------

/// Adds or updates a wait. A new wait makes the other waits of its rank outdated: before it, its
/// thread may have done what they wait for.
void InprocHub::State::enter(Rank rank, IdleWait& wait, std::uint64_t since) {
  Box& box = *boxes[rank];
  std::vector<IdleWait*>& waits = threads[rank].waits;
  if (!wait.known) {
    waits.push_back(&wait);
    wait.known = true;
    std::uint64_t expected = since;
    if (box.activity.compare_exchange_strong(expected, since + 1)) ++since;
  }
  wait.since = since;
  const bool others_are_old = std::any_of(waits.begin(), waits.end(), [&](const IdleWait* each) {
    return each != &wait && each->since != since;
  });
  if (others_are_old && all_wait(rank)) box.ring();
}

/// Takes the next decision when all ranks wait.
void InprocHub::State::settle() {
  if (decides.load()) go_on();
  if (reports_stalls.load() && stalls()) note_stall();
}

/// Returns whether a thread of a rank waits until something new arrives. Other threads may run:
/// what they send arrives later, so that an early decision changes only the order and is never a
/// stall.
bool InprocHub::State::is_idle(Rank rank) const noexcept {
  const Threads& own = threads[rank];
  if (own.has_left) return true;
  const std::uint64_t activity = boxes[rank]->activity.load();
  const auto is_current = [activity](const IdleWait* wait) { return wait->since == activity; };
  return boxes[rank]->ended.load() == 0 &&
         std::any_of(own.waits.begin(), own.waits.end(), is_current);
}

/// Returns whether all threads of a rank wait without a time limit; false in doubt.
bool InprocHub::State::all_wait(Rank rank) const noexcept {
  const Threads& own = threads[rank];
  const auto lives = [](const ThreadLife& life) { return !life.expired(); };
  const auto alive = std::count_if(own.known.begin(), own.known.end(), lives);
  return !own.others && !own.waits.empty() && std::cmp_equal(own.waits.size(), alive) &&
         std::all_of(own.waits.begin(), own.waits.end(),
                     [](const IdleWait* wait) { return wait->patience == Patience::endless; });
}

/// Returns whether all threads of a rank wait and none has had anything to do since the last
/// change.
bool InprocHub::State::waits_for_ever(Rank rank) const noexcept {
  const Threads& own = threads[rank];
  if (own.has_left) return true;
  const std::uint64_t activity = boxes[rank]->activity.load();
  return all_wait(rank) &&
         std::all_of(own.waits.begin(), own.waits.end(), [activity](const IdleWait* wait) {
           return !wait->end && wait->since == activity;
         });
}

/// Returns whether nothing will happen any more. Called before each sleep: does not allocate.
bool InprocHub::State::stalls() const noexcept {
  if (in_flight.load() != 0) return false;
  for (Rank rank = 0; rank < threads.size(); ++rank) {
    if (!waits_for_ever(rank)) return false;
  }
  return true;
}

/// Returns which rank waits for what.
std::string InprocHub::State::describe_stall() const {
  std::string text = "all ranks wait for each other:";
  for (std::size_t rank = 0; rank < threads.size(); ++rank) {
    text += fmt::format("{} rank {} ", rank == 0 ? "" : ",", rank);
    std::string things;
    for (const IdleWait* const wait : threads[rank].waits) {
      if (things.find(wait->what) != std::string::npos) continue;
      things += fmt::format("{}{}", things.empty() ? "waits for " : " and ", wait->what);
    }
    text += threads[rank].has_left ? "has left" : things;
  }
  return text;
}

/// Ends all waits with a description of the stall, each once: their threads may continue.
void InprocHub::State::note_stall() {
  const std::string found = describe_stall();
  for (Rank rank = 0; rank < threads.size(); ++rank) {
    for (IdleWait* const wait : threads[rank].waits) end(rank, *wait, found);
  }
}

void InprocHub::State::end(Rank rank, IdleWait& wait, std::string how) noexcept {
  wait.end = std::move(how);
  boxes[rank]->ended.fetch_add(1);
  boxes[rank]->ring();
}

// ---- Decisions of the seed ----------------------------------------------------------------------

/// Takes the next decision when all ranks wait: a packet arrives, or a poll ends without a result.
/// The choices depend on the program alone, not on the timing of its threads.
void InprocHub::State::go_on() noexcept {
  std::size_t choices = 0;
  const auto polls = [](const IdleWait* wait) { return wait->patience == Patience::none; };
  for (Rank rank = 0; rank < threads.size(); ++rank) {
    if (!is_idle(rank)) return check_absent(rank);
    const std::vector<IdleWait*>& waits = threads[rank].waits;
    choices += boxes[rank]->held.load();
    choices += static_cast<std::size_t>(std::count_if(waits.begin(), waits.end(), polls));
  }
  if (choices == 0) return;
  absent_checks = 0;
  std::size_t chosen = random() % choices;
  for (Rank rank = 0; rank < threads.size(); ++rank) {
    const std::size_t held = boxes[rank]->held.load();
    if (chosen < held) return release(rank, chosen);
    chosen -= held;
    for (IdleWait* const wait : threads[rank].waits) {
      if (polls(wait) && chosen-- == 0) return end(rank, *wait, {});
    }
  }
}

/// Releases the oldest packet of the sender that has the held packet with index `held`.
void InprocHub::State::release(Rank to, std::size_t held) noexcept {
  Box& box = *boxes[to];
  Rank from = 0;
  bool was_full = false;
  {
    const sys::Lock lock(box.mutex);
    while (held >= box.from[from].held) held -= box.from[from++].held;
    Box::Sender& sender = box.from[from];
    Packet& packet = sender.packets[sender.packets.size() - sender.held];
    was_full = sender.bytes + kLinkPacketBytes > kBoxBytes;
    packet.counts = false;
    sender.bytes -= packet.bytes.size();
    --sender.held;
    box.held.fetch_sub(1);
    box.next = from;
  }
  box.announce();
  if (was_full) boxes[from]->announce();
}

/// Detects a rank that makes no call for long: it may wait elsewhere for a rank that receives
/// nothing meanwhile. Releases all packets in that case, so that the program can continue.
void InprocHub::State::check_absent(Rank rank) noexcept {
  if (!threads[rank].waits.empty()) return;
  const std::int64_t now = sys::now_ns();
  if (now - absent_checked_ns < kBetweenAbsentChecks) return;
  absent_checked_ns = now;
  if (++absent_checks <= kMostAbsentChecks) return;
  decides.store(false);
  try {
    release_all();
  } catch (...) {  // no memory: tried again at the next check
    return decides.store(true);
  }
  log::warning(
      "rank {} has been in no call of the fabric for {} s, in which other ranks have waited: from "
      "now on messages arrive as they come, not as the seed decides; let ranks wait for each other "
      "in the fabric only",
      rank, kMostAbsentChecks);
}

void InprocHub::State::release_all() {
  for (const auto& box : boxes) {
    {
      const sys::Lock lock(box->mutex);
      for (Rank from = 0; from < box->from.size(); ++from) {
        for (std::size_t& held = box->from[from].held; held > 0; --held) {
          box->arrivals.push_back(from);
          box->held.fetch_sub(1);
        }
      }
    }
    box->announce();
  }
}

class InprocHub::InprocLink final : public Link {
 public:
  InprocLink(std::shared_ptr<State> state, Rank rank)
      : state_(std::move(state)), own_(*state_->boxes[rank]) {
    info_ = {.name = "inproc",
             .rank = rank,
             .ranks = static_cast<Rank>(state_->boxes.size()),
             .packet_bytes = kLinkPacketBytes,
             .can_sleep = true,
             .sees_stalls = state_->reports_stalls.load(),
             .seeded = state_->decides.load()};
  }

  ~InprocLink() override {
    const sys::Lock lock(state_->mutex);
    own_.close(*state_);
    state_->threads[info_.rank].has_left = true;
    if (state_->decides.load()) state_->go_on();
  }

  const LinkInfo& info() const noexcept override { return info_; }

  bool send(Rank to, Parts parts) noexcept override {
    Packet packet;
    try {
      std::size_t bytes = 0;
      for (const auto& part : parts) bytes += part.size();
      packet.bytes.reserve(bytes);
      for (const auto& part : parts) {
        packet.bytes.insert(packet.bytes.end(), part.begin(), part.end());
      }
    } catch (...) {
      return false;
    }
    return deliver(to, std::move(packet));
  }

  bool receive(PacketSink& sink) noexcept override {
    bool any = false;
    for (unsigned i = 0; i < kLinkBurst; ++i) {
      Rank from = 0;
      Packet packet;
      if (!take(from, packet)) break;
      sink.packet(from, packet.bytes);
      state_->in_flight.fetch_sub(1);
      any = true;
    }
    return any;
  }

  std::string why_lost(Rank rank) noexcept override {
    if (is_owed_by(rank)) return {};
    Box& box = *state_->boxes[rank];
    const sys::Lock lock(box.mutex);
    return box.closed ? "has ended" : "";
  }

  std::uint64_t activity() const noexcept override { return own_.activity.load(); }
  void note_activity() noexcept override { own_.activity.fetch_add(1); }
  void note_thread() noexcept override {
    const sys::Lock lock(state_->mutex);
    State::Threads& own = state_->threads[info_.rank];
    try {
      const ThreadLife life = thread_lifetime();
      std::erase_if(own.known, [](const ThreadLife& each) { return each.expired(); });
      const auto is_it = [&](const ThreadLife& each) { return same(each, life); };
      if (std::none_of(own.known.begin(), own.known.end(), is_it)) own.known.push_back(life);
    } catch (...) {  // no memory
      own.others = true;
    }
  }

  std::optional<std::string> idle(IdleWait& wait, std::uint64_t since) override {
    const bool polls = wait.patience == Patience::none;
    if (!state_->reports_stalls.load() && !state_->decides.load() && !polls) return std::nullopt;
    const sys::Lock lock(state_->mutex);
    state_->enter(info_.rank, wait, since);
    if (!wait.end) state_->settle();
    if (wait.end) return std::exchange(*wait.end, {});
    return polls && !state_->decides.load() ? std::optional(std::string()) : std::nullopt;
  }
  void resumed(IdleWait& wait) noexcept override {
    if (!wait.known) return;
    const sys::Lock lock(state_->mutex);
    wait.known = false;
    if (wait.end) own_.ended.fetch_sub(1);
    std::vector<IdleWait*>& waits = state_->threads[info_.rank].waits;
    std::erase(waits, &wait);
    // another thread of the rank waits while this one continues
    const bool others_wait = !waits.empty();
    if (others_wait && state_->decides.load()) state_->go_on();
  }

  std::uint32_t bell() const noexcept override { return own_.bell.load(); }
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override {
    if (anything() || own_.ended.load() > 0) return sys::yield();
    sys::wait(own_.bell, bell, deadline_ns);
  }
  void wake() noexcept override { own_.ring(); }

 private:
  bool deliver(Rank to, Packet packet) noexcept {
    Box& box = *state_->boxes[to];
    bool holds = false;
    try {
      sys::Lock lock(box.mutex);
      const bool decides = state_->decides.load();
      if (box.closed && !decides) return true;
      Box::Sender& own = box.from[info_.rank];
      const std::size_t size = packet.bytes.size();
      if (own.bytes > 0 && own.bytes + size > kBoxBytes) return false;
      if (box.closed) {
        own.bytes += size;
        return true;
      }
      holds = decides && own.introduced;
      own.packets.emplace_back();
      try {
        if (!holds) box.arrivals.push_back(info_.rank);
      } catch (...) {
        own.packets.pop_back();
        throw;
      }
      own.packets.back() = std::move(packet);
      own.introduced = true;
      state_->in_flight.fetch_add(1);
      own.bytes += size;
      if (holds) {
        ++own.held;
        box.held.fetch_add(1);
      } else {
        box.activity.fetch_add(1);
      }
    } catch (...) {
      return false;
    }
    if (!holds) {
      box.ring();
    } else {  // another thread of this rank may be waiting
      const sys::Lock lock(state_->mutex);
      if (state_->decides.load()) state_->go_on();
    }
    return true;
  }

  bool anything() const noexcept {
    const sys::Lock lock(own_.mutex);
    return !own_.arrivals.empty() || own_.next;
  }

  /// Returns whether packets of a rank are held by the seed or not received yet.
  bool is_owed_by(Rank rank) const noexcept {
    const sys::Lock lock(own_.mutex);
    return state_->decides.load() && !own_.from[rank].packets.empty();
  }

  bool take(Rank& from, Packet& packet) noexcept {
    bool was_full = false;
    {
      sys::Lock lock(own_.mutex);
      if (own_.next) {
        from = *std::exchange(own_.next, std::nullopt);
      } else if (own_.arrivals.empty()) {
        return false;
      } else {
        // A draw among packets, not senders: a rank that has sent more is drawn more often.
        const bool draws = state_->draws && !state_->decides.load();
        const std::size_t drawn = draws ? own_.random() % own_.arrivals.size() : 0;
        from = own_.arrivals[drawn];
        own_.arrivals.erase(own_.arrivals.begin() + static_cast<std::ptrdiff_t>(drawn));
      }
      Box::Sender& sender = own_.from[from];
      packet = std::move(sender.packets.front());
      sender.packets.pop_front();
      if (packet.counts) {
        was_full = sender.bytes + kLinkPacketBytes > kBoxBytes;
        sender.bytes -= packet.bytes.size();
      }
    }
    if (was_full) state_->boxes[from]->announce();
    return true;
  }

  const std::shared_ptr<State> state_;
  Box& own_;
  LinkInfo info_;
};

InprocHub::InprocHub(Rank ranks, std::uint64_t seed) : state_(std::make_shared<State>()) {
  state_->threads.resize(ranks);
  state_->draws = seed != 0;
  state_->random.seed(seed);
  for (Rank rank = 0; rank < ranks; ++rank) {
    state_->boxes.push_back(std::make_unique<Box>(ranks, seed * 0x9E3779B97F4A7C15u + rank));
  }
}

std::unique_ptr<Link> InprocHub::link(Rank rank) {
  return std::make_unique<InprocLink>(state_, rank);
}

void InprocHub::decide_by_seed() noexcept { state_->decides.store(true); }

void InprocHub::report_stalls() noexcept { state_->reports_stalls.store(true); }

}  // namespace weir::rt
