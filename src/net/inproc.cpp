#include "net/inproc.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kBoxBytes = 1u << 20;  ///< from one sender, not received yet

struct Packet {
  std::vector<std::byte> bytes;
  bool counts = true;  ///< takes of the sender's room
};

}  // namespace

/// What has been sent to a rank.
struct InprocHub::Box {
  Box(Rank ranks, std::uint64_t seed) : from(ranks), random(seed) {}

  /// What a sender has sent and the rank has not taken.
  struct Sender {
    std::deque<Packet> packets;
    std::size_t bytes = 0;    ///< of those that count
    std::size_t held = 0;     ///< packets at the end, until the seed decides for them
    bool introduced = false;  ///< its first packet, by which ranks meet, is not held
  };

  sys::Mutex mutex;
  std::vector<Sender> from;
  std::deque<Rank> arrivals;  ///< senders of the packets that are not held
  std::optional<Rank> next;   ///< sender of the one that the seed has decided for
  bool closed = false;        ///< the rank has gone
  std::mt19937_64 random;
  sys::Atomic<std::size_t> held{0};    ///< packets of all senders
  sys::Atomic<std::uint64_t> news{0};  ///< packets that could be taken, and room that was made
  sys::Atomic<bool> poll_over{false};  ///< all others wait
  sys::Atomic<std::uint32_t> bell{0};

  void ring() noexcept {
    bell.fetch_add(1);
    sys::wake_all(bell);
  }
  void announce() noexcept {
    news.fetch_add(1);
    ring();
  }
  void close(State& state) noexcept;
};

struct InprocHub::State {
  struct Fault {
    sys::Atomic<bool> silent{false};
    sys::Atomic<std::size_t> corrupt{SIZE_MAX};
  };

  /// What a rank waits for, if nothing has been sent since.
  struct Wait {
    std::string what;
    std::uint64_t since = 0;
    bool waits = false, left = false;
    std::string stall;                 ///< that it has to be told of
    bool idle = false, polls = false;  ///< it waits, for however long; and only looks
  };

  std::vector<std::unique_ptr<Box>> boxes;
  std::vector<Fault> faults;
  bool draws = false;

  bool decides = false;    ///< the seed, and nothing else
  std::mt19937_64 random;  ///< for that; under the mutex
  sys::Atomic<bool> reports_stalls{false};
  sys::Atomic<std::uint64_t> sent{0};       ///< packets
  sys::Atomic<std::uint64_t> in_flight{0};  ///< those that have not been taken in
  sys::Mutex mutex;
  std::vector<Wait> waits;

  std::uint64_t activity(Rank rank) const noexcept;
  bool is_idle(Rank rank) const noexcept;
  bool stalls() const noexcept;
  std::string describe_stall() const;
  void note_stall();
  // Under the mutex.
  void go_on() noexcept;
  void release(Rank to, std::size_t held) noexcept;
};

/// Nothing comes from now on.
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

std::uint64_t InprocHub::State::activity(Rank rank) const noexcept {
  return decides ? boxes[rank]->news.load() : sent.load();
}

/// Whether nothing will ever happen again. Asked before each sleep: takes no memory.
bool InprocHub::State::stalls() const noexcept {
  if (in_flight.load() != 0) return false;
  for (Rank rank = 0; rank < waits.size(); ++rank) {
    const Wait& wait = waits[rank];
    const bool waits_for_ever = wait.waits && wait.stall.empty() && wait.since == activity(rank);
    if (!wait.left && !waits_for_ever) return false;
  }
  return true;
}

/// Whether a rank does nothing before something new comes.
bool InprocHub::State::is_idle(Rank rank) const noexcept {
  const Wait& wait = waits[rank];
  if (wait.left) return true;
  const Box& box = *boxes[rank];
  return wait.idle && wait.stall.empty() && !box.poll_over.load() && wait.since == box.news.load();
}

/// When no rank does anything the seed decides what happens next: a packet arrives, or a poll has
/// been in vain. What can happen depends on the program alone, not on when its threads ran.
void InprocHub::State::go_on() noexcept {
  if (!decides) return;
  std::size_t choices = 0;
  for (Rank rank = 0; rank < waits.size(); ++rank) {
    if (!is_idle(rank)) return;
    choices += boxes[rank]->held.load() + (waits[rank].polls ? 1 : 0);
  }
  if (choices == 0) return;
  std::size_t chosen = random() % choices;
  for (Rank rank = 0; rank < waits.size(); ++rank) {
    const std::size_t held = boxes[rank]->held.load();
    if (chosen < held) return release(rank, chosen);
    chosen -= held;
    if (!waits[rank].polls || chosen-- > 0) continue;
    waits[rank].polls = false;
    boxes[rank]->poll_over.store(true);
    return boxes[rank]->ring();
  }
}

/// Lets the oldest packet of a sender arrive: that which has the held one of this number.
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

/// Says who waits for what.
std::string InprocHub::State::describe_stall() const {
  std::string text = "all ranks wait for each other:";
  for (std::size_t rank = 0; rank < waits.size(); ++rank) {
    const Wait& wait = waits[rank];
    text += fmt::format("{} rank {} {}", rank == 0 ? "" : ",", rank,
                        wait.left ? "has left" : "waits for " + wait.what);
  }
  return text;
}

/// All whose calls fail by it are to hear of a stall, each once: they may go on.
void InprocHub::State::note_stall() {
  if (!stalls()) return;
  const std::string found = describe_stall();
  for (Wait& wait : waits) wait.stall = found;
  if (!decides) return;
  for (const auto& box : boxes) box->ring();
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
             .seeded = state_->decides};
  }

  ~InprocLink() override {
    const sys::Lock lock(state_->mutex);
    own_.close(*state_);
    state_->waits[info_.rank].left = true;
    state_->go_on();
  }

  const LinkInfo& info() const noexcept override { return info_; }

  bool send(Rank to, Parts parts) noexcept override {
    State::Fault& fault = state_->faults[info_.rank];
    if (fault.silent.load() || state_->faults[to].silent.load()) return true;
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
    const std::size_t wrong =
        fault.corrupt.load() == SIZE_MAX ? SIZE_MAX : fault.corrupt.exchange(SIZE_MAX);
    if (wrong < packet.bytes.size()) packet.bytes[wrong] ^= std::byte{0x40};
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

  std::string gone(Rank rank) noexcept override {
    if (is_owed_by(rank)) return {};
    Box& box = *state_->boxes[rank];
    const sys::Lock lock(box.mutex);
    return box.closed ? "has ended" : "";
  }

  std::uint64_t activity() const noexcept override { return state_->activity(info_.rank); }
  std::optional<std::string> stalled(const char* what, std::uint64_t since,
                                     Patience patience) override {
    const bool reports = state_->reports_stalls.load() && patience == Patience::endless;
    if (!reports && !state_->decides) return std::nullopt;
    sys::Lock lock(state_->mutex);
    State::Wait& wait = state_->waits[info_.rank];
    const bool polls = patience == Patience::none;
    if (!own_.poll_over.load()) {
      wait.what = what;
      wait.since = since;
      wait.idle = true;
      wait.polls = wait.polls || polls;
      wait.waits = reports;
      state_->go_on();
    }
    if (reports && wait.stall.empty()) state_->note_stall();
    wait.waits = reports && wait.stall.empty();
    const bool poll_is_over = polls && own_.poll_over.load();
    if (!poll_is_over && (!reports || wait.stall.empty())) return std::nullopt;
    wait.idle = wait.polls = false;  // from here on, not when it says so
    own_.poll_over.store(false);
    return std::exchange(wait.stall, {});
  }
  void resumed() noexcept override {
    {
      sys::Lock lock(state_->mutex);
      State::Wait& wait = state_->waits[info_.rank];
      wait.waits = wait.idle = wait.polls = false;
      wait.stall.clear();
      own_.poll_over.store(false);
    }
    if (state_->decides) own_.ring();  // other threads that wait say so once more
  }

  std::uint32_t bell() const noexcept override { return own_.bell.load(); }
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override {
    if (anything() || own_.poll_over.load()) return sys::yield();
    sys::wait(own_.bell, bell, deadline_ns);
  }
  void wake() noexcept override { own_.ring(); }

 private:
  bool deliver(Rank to, Packet packet) noexcept {
    Box& box = *state_->boxes[to];
    bool holds = false;
    try {
      sys::Lock lock(box.mutex);
      if (box.closed) return true;
      Box::Sender& own = box.from[info_.rank];
      const std::size_t size = packet.bytes.size();
      if (own.bytes > 0 && own.bytes + size > kBoxBytes) return false;
      holds = state_->decides && own.introduced;
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
      state_->sent.fetch_add(1);
      own.bytes += size;
      if (holds) {
        ++own.held;
        box.held.fetch_add(1);
      }
    } catch (...) {
      return false;
    }
    if (!holds) {
      box.announce();
    } else {  // perhaps by a thread beside one that waits
      const sys::Lock lock(state_->mutex);
      state_->go_on();
    }
    return true;
  }

  bool anything() const noexcept {
    const sys::Lock lock(own_.mutex);
    return !own_.arrivals.empty() || own_.next;
  }

  /// Whether packets of a rank are on their way for longer than it takes to send them.
  bool is_owed_by(Rank rank) const noexcept {
    const sys::Lock lock(own_.mutex);
    return state_->decides && !own_.from[rank].packets.empty();
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
        // A draw among packets, not senders: who sent more is drawn more often.
        const bool draws = state_->draws && !state_->decides;
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
  state_->faults = std::vector<State::Fault>(ranks);
  state_->waits.resize(ranks);
  state_->draws = seed != 0;
  state_->random.seed(seed);
  for (Rank rank = 0; rank < ranks; ++rank) {
    state_->boxes.push_back(std::make_unique<Box>(ranks, seed * 0x9E3779B97F4A7C15u + rank));
  }
}

std::unique_ptr<Link> InprocHub::link(Rank rank) {
  return std::make_unique<InprocLink>(state_, rank);
}

void InprocHub::decide_by_seed() noexcept { state_->decides = true; }

void InprocHub::report_stalls() noexcept { state_->reports_stalls.store(true); }

void InprocHub::silence(Rank rank) noexcept { state_->faults[rank].silent.store(true); }

void InprocHub::corrupt_next_of(Rank rank, std::size_t byte) noexcept {
  state_->faults[rank].corrupt.store(byte);
}

}  // namespace weir::rt
