#include "net/inproc.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/threads.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kBoxBytes = 1u << 20;  ///< from one sender, not received yet

using Packet = std::vector<std::byte>;

}  // namespace

/// What has been sent to a rank.
struct InprocHub::Box {
  Box(Rank ranks, std::uint64_t seed) : from(ranks), bytes(ranks), random(seed) {}

  sys::Mutex mutex;
  std::vector<std::deque<Packet>> from;
  std::vector<std::size_t> bytes;
  std::deque<Rank> arrivals;  ///< senders of the packets
  bool closed = false;        ///< the rank has gone
  std::mt19937_64 random;
  sys::Atomic<std::uint32_t> bell{0};

  void ring() noexcept {
    bell.fetch_add(1);
    sys::wake_all(bell);
  }
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
    std::string stall;  ///< that it has to be told of
  };

  std::vector<std::unique_ptr<Box>> boxes;
  std::vector<Fault> faults;
  bool draws = false;

  sys::Atomic<bool> reports_stalls{false};
  sys::Atomic<std::uint64_t> sent{0};       ///< packets
  sys::Atomic<std::uint64_t> in_flight{0};  ///< those that have not been taken in
  sys::Mutex mutex;
  std::vector<Wait> waits;

  bool stalls() const noexcept;
  std::string describe_stall() const;
  void note_stall();
};

/// Whether nothing will ever happen again. Asked before each sleep: takes no memory.
bool InprocHub::State::stalls() const noexcept {
  if (in_flight.load() != 0) return false;
  return std::all_of(waits.begin(), waits.end(), [this](const Wait& wait) {
    return wait.left || (wait.waits && wait.stall.empty() && wait.since == sent.load());
  });
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
             .sees_stalls = state_->reports_stalls.load()};
  }

  ~InprocLink() override {
    {
      sys::Lock lock(own_.mutex);
      own_.closed = true;
      state_->in_flight.fetch_sub(own_.arrivals.size());
    }
    sys::Lock lock(state_->mutex);
    state_->waits[info_.rank].left = true;
  }

  const LinkInfo& info() const noexcept override { return info_; }

  bool send(Rank to, Parts parts) noexcept override {
    State::Fault& fault = state_->faults[info_.rank];
    if (fault.silent.load() || state_->faults[to].silent.load()) return true;
    Packet packet;
    try {
      std::size_t bytes = 0;
      for (const auto& part : parts) bytes += part.size();
      packet.reserve(bytes);
      for (const auto& part : parts) packet.insert(packet.end(), part.begin(), part.end());
    } catch (...) {
      return false;
    }
    const std::size_t wrong =
        fault.corrupt.load() == SIZE_MAX ? SIZE_MAX : fault.corrupt.exchange(SIZE_MAX);
    if (wrong < packet.size()) packet[wrong] ^= std::byte{0x40};
    return deliver(to, std::move(packet));
  }

  bool receive(PacketSink& sink) noexcept override {
    bool any = false;
    for (unsigned i = 0; i < kLinkBurst; ++i) {
      Rank from = 0;
      Packet packet;
      if (!take(from, packet)) break;
      sink.packet(from, packet);
      state_->in_flight.fetch_sub(1);
      any = true;
    }
    return any;
  }

  std::string gone(Rank rank) noexcept override {
    Box& box = *state_->boxes[rank];
    const sys::Lock lock(box.mutex);
    return box.closed ? "has ended" : "";
  }

  std::uint64_t activity() const noexcept override { return state_->sent.load(); }
  std::string stalled(const char* what, std::uint64_t since) override {
    if (!state_->reports_stalls.load()) return {};
    sys::Lock lock(state_->mutex);
    State::Wait& wait = state_->waits[info_.rank];
    wait.what = what;
    wait.since = since;
    wait.waits = true;
    if (wait.stall.empty()) state_->note_stall();
    wait.waits = wait.stall.empty();
    return std::exchange(wait.stall, {});
  }
  void resumed() noexcept override {
    sys::Lock lock(state_->mutex);
    state_->waits[info_.rank].waits = false;
    state_->waits[info_.rank].stall.clear();
  }

  std::uint32_t bell() const noexcept override { return own_.bell.load(); }
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override {
    if (anything()) return sys::yield();
    sys::wait(own_.bell, bell, deadline_ns);
  }
  void wake() noexcept override { own_.ring(); }

 private:
  bool deliver(Rank to, Packet packet) noexcept {
    Box& box = *state_->boxes[to];
    try {
      sys::Lock lock(box.mutex);
      if (box.closed) return true;
      std::size_t& bytes = box.bytes[info_.rank];
      if (bytes > 0 && bytes + packet.size() > kBoxBytes) return false;
      const std::size_t size = packet.size();
      box.from[info_.rank].emplace_back();
      try {
        box.arrivals.push_back(info_.rank);
      } catch (...) {
        box.from[info_.rank].pop_back();
        throw;
      }
      box.from[info_.rank].back() = std::move(packet);
      state_->in_flight.fetch_add(1);
      state_->sent.fetch_add(1);
      bytes += size;
    } catch (...) {
      return false;
    }
    box.ring();
    return true;
  }

  bool anything() const noexcept {
    const sys::Lock lock(own_.mutex);
    return !own_.arrivals.empty();
  }

  bool take(Rank& from, Packet& packet) noexcept {
    bool was_full = false;
    {
      sys::Lock lock(own_.mutex);
      if (own_.arrivals.empty()) return false;
      // A draw among packets, not senders: who sent more is drawn more often.
      const std::size_t drawn = state_->draws ? own_.random() % own_.arrivals.size() : 0;
      from = own_.arrivals[drawn];
      own_.arrivals.erase(own_.arrivals.begin() + static_cast<std::ptrdiff_t>(drawn));
      packet = std::move(own_.from[from].front());
      own_.from[from].pop_front();
      was_full = own_.bytes[from] + kLinkPacketBytes > kBoxBytes;
      own_.bytes[from] -= packet.size();
    }
    if (was_full) state_->boxes[from]->ring();
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
  for (Rank rank = 0; rank < ranks; ++rank) {
    state_->boxes.push_back(std::make_unique<Box>(ranks, seed * 0x9E3779B97F4A7C15u + rank));
  }
}

std::unique_ptr<Link> InprocHub::link(Rank rank) {
  return std::make_unique<InprocLink>(state_, rank);
}

void InprocHub::report_stalls() noexcept { state_->reports_stalls.store(true); }

void InprocHub::silence(Rank rank) noexcept { state_->faults[rank].silent.store(true); }

void InprocHub::corrupt_next_of(Rank rank, std::size_t byte) noexcept {
  state_->faults[rank].corrupt.store(byte);
}

}  // namespace weir::rt
