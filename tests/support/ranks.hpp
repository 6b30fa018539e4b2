// Ranks of one process, for tests of what stands on ports.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "fabric/inproc.hpp"
#include "fabric/port.hpp"
#include "fabric/shm/segment.hpp"
#include "fabric/shm/shm_link.hpp"
#include "fabric/transport.hpp"

namespace weir::rt::test {

inline std::vector<Rank> all_of(const Port& port) {
  std::vector<Rank> all(port.ranks());
  std::iota(all.begin(), all.end(), Rank{0});
  return all;
}

inline constexpr std::int64_t kAMinute = 60'000'000'000;

/// Counts messages and checks their order.
class OrderCheck final : public Listener {
 public:
  explicit OrderCheck(Rank ranks) : next_(ranks) {}

  void on_message(Rank from, std::span<const std::byte> message) noexcept override {
    unsigned number = 0;
    std::memcpy(&number, message.data(), sizeof number);
    if (number != next_[from]++) ++wrong;
    ++count;
  }
  void on_rank_lost(Rank, const std::string&) noexcept override {}

  std::atomic<int> count{0}, wrong{0};

 private:
  std::vector<unsigned> next_;
};

inline Membership membership(std::int64_t lost_after_ns = 0) {
  Membership membership;
  membership.build = "of the test";
  membership.lost_after_ns = lost_after_ns;
  membership.join_within_ns = kAMinute;
  return membership;
}

/// Runs a program on each rank, on a thread of its own, and waits for all. What a rank throws must
/// not get out of it.
inline void on_links(std::vector<std::unique_ptr<Link>> links, ProgressBy progress,
                     const std::function<void(Port&)>& program, Membership all) {
  const auto ranks = static_cast<Rank>(links.size());
  all.sends_heartbeats = progress != ProgressBy::caller;
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Port port(std::make_unique<Transport>(std::move(links[rank]), all), progress);
      program(port);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline void on_ranks(InprocHub& hub, Rank ranks, ProgressBy progress,
                     const std::function<void(Port&)>& program, Membership all) {
  std::vector<std::unique_ptr<Link>> links;
  for (Rank rank = 0; rank < ranks; ++rank) links.push_back(hub.link(rank));
  on_links(std::move(links), progress, program, std::move(all));
}

/// The same on ranks that share memory as processes do, each of which has it elsewhere.
inline void on_sharing_ranks(Rank ranks, ProgressBy progress,
                             const std::function<void(Port&)>& program) {
  const Segment segment(ranks);
  std::vector<std::unique_ptr<Link>> links;
  for (Rank rank = 0; rank < ranks; ++rank) {
    links.push_back(
        std::make_unique<ShmLink>(Segment::attach(dup(segment.descriptor()), ranks), rank));
  }
  on_links(std::move(links), progress, program, membership());
}

inline void on_ranks(InprocHub& hub, Rank ranks, ProgressBy progress,
                     const std::function<void(Port&)>& program, std::int64_t lost_after_ns = 0) {
  on_ranks(hub, ranks, progress, program, membership(lost_after_ns));
}

/// Runs a program for each rank.
inline void on_ranks(InprocHub& hub, ProgressBy progress,
                     const std::vector<std::function<void(Port&)>>& programs) {
  on_ranks(hub, static_cast<Rank>(programs.size()), progress,
           [&](Port& port) { programs[port.rank()](port); });
}

}  // namespace weir::rt::test
