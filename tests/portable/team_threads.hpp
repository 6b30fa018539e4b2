// Groups of a device that are made of threads of the host.
#pragma once

#include <weir/device_tunnel.hpp>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

namespace weir::device {

/// Threads of the host that stand for the lanes of a warp.
struct Team {
  explicit Team(unsigned size) : barrier(size), takes_part(size) {}
  std::barrier<> barrier;
  std::vector<unsigned char> takes_part;
  Claim claim = {};
};
struct TeamThread {
  Team& team;
  unsigned index;

  Standing gather(bool takes_part) const {
    team.takes_part[index] = takes_part;
    team.barrier.arrive_and_wait();
    const auto first = team.takes_part.begin();
    const Standing standing = {
        static_cast<unsigned>(std::count(first, first + static_cast<std::ptrdiff_t>(index), 1)),
        static_cast<unsigned>(std::count(first, team.takes_part.end(), 1)), index == 0};
    team.barrier.arrive_and_wait();
    return standing;
  }
  Claim share(const Claim& claim) const {
    if (index == 0) team.claim = claim;
    team.barrier.arrive_and_wait();
    const Claim shared = team.claim;
    team.barrier.arrive_and_wait();
    return shared;
  }
};

/// Runs code(group, number of the thread) on teams of threads; of one thread each: without a team.
template <class Code>
void run_team_threads(unsigned teams, unsigned team_size, const Code& code) {
  std::vector<std::unique_ptr<Team>> made;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < teams * team_size; ++i) {
    if (i % team_size == 0) made.push_back(std::make_unique<Team>(team_size));
    threads.emplace_back([&code, &team = *made.back(), i, team_size] {
      if (team_size == 1) return code(Thread(), i);
      code(TeamThread{team, i % team_size}, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace weir::device
