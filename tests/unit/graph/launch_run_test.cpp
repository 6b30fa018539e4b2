// Launches on more threads than the machine has cores, which sleep while they wait for each other.
#include "graph/launch_run.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backend/team.hpp"
#include "graph_programs.hpp"

namespace weir::rt {
namespace {

/// A thread for each member and function.
class ThreadTeam final : public weir_team {
 public:
  explicit ThreadTeam(std::size_t size) : size_(size) {}
  std::size_t size() const noexcept override { return size_; }
  void for_each(std::size_t count, std::size_t, weir_team_body body, void* payload) override {
    body(0, count, 0, payload);
  }
  void run(weir_team_function function, void* payload) override {
    std::vector<std::jthread> threads;
    for (std::size_t member = 0; member < size_; ++member)
      threads.emplace_back([=, this] { function(this, member, payload); });
  }
  void barrier() override {}

 private:
  const std::size_t size_;
};

using Cells = std::vector<std::vector<std::uint64_t>>;

/// Mixes all that it reads into what it writes.
weir_status mix(const weir_call* call) {
  std::uint64_t seen = call->operand_count;
  const auto each = [&](weir_access access, const auto& visit) {
    for (std::size_t use = 0; use < call->operand_count; ++use) {
      const weir_view& view = call->operands[use];
      if ((view.access & access) == 0) continue;
      auto* const cells = static_cast<std::uint64_t*>(view.address);
      for (std::size_t i = 0; i < view.extent[0] / 8; ++i) visit(cells[i]);
    }
  };
  each(WEIR_ACCESS_READ, [&](const std::uint64_t& cell) { seen = seen * 31 + cell; });
  each(WEIR_ACCESS_WRITE, [&](std::uint64_t& cell) { cell = ++seen; });
  return WEIR_STATUS_OK;
}

/// The arguments of a launch on some cells.
struct Launch {
  Launch(const CallList& list, Cells& cells, weir_team* team) {
    for (const CallList::UsedBuffer& used : list.buffers()) {
      weir_view view{};
      view.address = reinterpret_cast<std::byte*>(cells[used.id - 1].data()) + used.begin;
      views.push_back(view);
    }
    call.operands = views.data();
    call.operand_count = views.size();
    call.team = team;
  }
  std::vector<weir_view> views;
  weir_call call{};
};

TEST(LaunchRuns, ManyThreadsGetTheSequentialResult) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const RandomCalls program(random, mix);
    const Dependences dependences(program.list());
    Cells cells(3, std::vector<std::uint64_t>(8, 1)), expected = cells;
    ThreadTeam many(8);
    SingleTeam one;
    LaunchRun sequential(program.list(), dependences, 1), run(program.list(), dependences, 8);
    for (int launch = 0; launch < 3; ++launch) {
      EXPECT_TRUE(sequential.run(Launch(program.list(), expected, &one).call, {}).ok());
      EXPECT_TRUE(run.run(Launch(program.list(), cells, &many).call, {}).ok());
      ASSERT_EQ(cells, expected);
    }
  }
}

}  // namespace
}  // namespace weir::rt
