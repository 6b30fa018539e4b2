#include "fabric/window.hpp"

#include <atomic>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "committing_link.hpp"
#include "ranks.hpp"

namespace weir::rt {
namespace {

TEST(NetWindow, HandlerRunsOnAnotherThread_CreationTimesOut) {
  constexpr std::int64_t kMillisecond = 1'000'000;
  InprocHub hub(1, 0);
  test::on_ranks(hub, 1, ProgressBy::caller, [](Port& port) {
    Collectives collectives(port);
    std::atomic<bool> entered{false}, over{false};
    std::thread handler([&] {
      const Port::ListenerScope scope(port);
      entered = true;
      while (!over) std::this_thread::yield();
    });
    while (!entered) std::this_thread::yield();
    std::int64_t word = 0;
    for (void* const memory : {static_cast<void*>(nullptr), static_cast<void*>(&word)}) {
      std::optional<Window> window;
      try {
        Window::create_on_all_ranks(collectives, kMillisecond,
                                    [&](std::int64_t deadline) -> Window& {
                                      return window.emplace(port, memory, sizeof word, deadline);
                                    });
        ADD_FAILURE() << "it was made";
      } catch (const Error& error) {
        EXPECT_EQ(error.status(), WEIR_STATUS_TIMEOUT) << error.what();
      }
    }
    over = true;
    handler.join();
  });
}

TEST(NetWindow, MemoryCommitFails_TimeoutIsReportedAndOutOfMemoryFallsBack) {
  for (const weir_status status : {WEIR_STATUS_TIMEOUT, WEIR_STATUS_OUT_OF_MEMORY}) {
    InprocHub hub(1, 0);
    std::vector<std::unique_ptr<Link>> links;
    links.push_back(
        std::make_unique<test::CommittingLink>(hub.link(0), [status] { return status; }));
    const auto program = [status](Port& port) {
      Collectives collectives(port);
      std::optional<Window> window;
      weir_status found = WEIR_STATUS_OK;
      try {
        Window::create_on_all_ranks(collectives, -1, [&](std::int64_t deadline) -> Window& {
          return window.emplace(port, nullptr, 8, deadline);
        });
      } catch (const Error& error) {
        found = error.status();
      }
      // Where the link has none there is other memory.
      EXPECT_EQ(found, status == WEIR_STATUS_TIMEOUT ? status : WEIR_STATUS_OK);
    };
    test::on_links(std::move(links), ProgressBy::caller, program, test::membership());
  }
}

}  // namespace
}  // namespace weir::rt
