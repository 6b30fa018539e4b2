#include "net/window.hpp"

#include <atomic>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "ranks.hpp"

namespace weir::rt {
namespace {

TEST(NetWindow, IsNotWaitedForWhileAHandlerIsAtWork) {
  constexpr std::int64_t kMillisecond = 1'000'000;
  InprocHub hub(1, 0);
  test::on_ranks(hub, 1, ProgressBy::caller, [](Port& port) {
    Collectives collectives(port);
    std::atomic<bool> entered{false}, over{false};
    std::thread handler([&] {
      port.as_listener([&] {
        entered = true;
        while (!over) std::this_thread::yield();
      });
    });
    while (!entered) std::this_thread::yield();
    std::int64_t word = 0;
    for (void* const memory : {static_cast<void*>(nullptr), static_cast<void*>(&word)}) {
      std::optional<Window> window;
      try {
        Window::meet(collectives, kMillisecond, [&](std::int64_t deadline) -> Window& {
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

}  // namespace
}  // namespace weir::rt
