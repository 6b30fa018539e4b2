// Items that stages keep beyond their calls: complete once, and not forgotten.
#include <weir/pipeline.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "thrown.hpp"

namespace retained_items {
namespace {

using weir::into;
using weir::Item;
using weir::Outlet;
using weir::Pipeline;
using weir::Runtime;
using weir::StageContext;
using weir::thrown_by;

void expect_in(const char* part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

auto numbers(int count) {
  return [count, next = 0](const Outlet<int>& out) mutable {
    out.put(next++);
    return next < count;
  };
}

/// Where a stage leaves items for a thread of the program.
class ItemStore {
 public:
  void put(Item item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  std::vector<Item> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(items_, {});
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<Item> items_;
};

TEST(RetainedItems, PipelineEnd_WaitsUntilAnotherThreadCompletesThem) {
  constexpr int kCount = 2'000;
  for (const char* domains : {"host", "sim:clock=virtual"}) {
    const Runtime runtime(domains);
    ItemStore store;
    std::atomic<int> completed{0};
    const Pipeline pipeline(runtime);
    const auto items = pipeline.tunnel<int>("items");
    pipeline.source("numbers", into(items), numbers(kCount));
    pipeline.stage("keep", items, [&](int number, StageContext context) {
      if (number % 3 == 0) store.put(context.keep());
    });
    std::thread helper([&] {
      while (completed < (kCount + 2) / 3) {
        for (Item& item : store.take()) {
          ++completed;
          item.complete();
        }
        std::this_thread::yield();
      }
    });
    pipeline.run();
    EXPECT_EQ(completed, (kCount + 2) / 3);
    helper.join();
    EXPECT_EQ(pipeline.stages()[0].complete, static_cast<std::uint64_t>(kCount));
  }
}

TEST(RetainedItems, EpochEnd_WaitsUntilTheyAreComplete) {
  const Runtime runtime("host");
  ItemStore store;
  std::vector<std::uint64_t> over;
  const Pipeline pipeline(runtime, {.epochs = 2, .on_epoch = [&](std::uint64_t epoch) {
                                      EXPECT_EQ(store.size(), 0u);
                                      over.push_back(epoch);
                                    }});
  const auto items = pipeline.tunnel<int>("items");
  pipeline.stage("keep", items, [&](int, StageContext context) { store.put(context.keep()); });
  auto feed = pipeline.feed(items);
  pipeline.start();
  for (int epoch = 0; epoch < 5; ++epoch) {
    feed.put(epoch);
    feed.next_epoch();
    while (store.size() == 0) std::this_thread::yield();
    EXPECT_EQ(pipeline.info().epochs, static_cast<std::uint64_t>(epoch));
    EXPECT_EQ(pipeline.state().stages[0].kept, 1u);
    store.take();  // destroys, and so completes it
    while (pipeline.info().epochs == static_cast<std::uint64_t>(epoch)) std::this_thread::yield();
  }
  feed.close();
  pipeline.wait();
  EXPECT_EQ(over.size(), 5u);
}

TEST(RetainedItems, KeepingOrCompletingTwice_IsRefused) {
  const Runtime runtime("host");
  std::atomic<weir_item*> kept{nullptr};
  {
    const Pipeline pipeline(runtime);
    const auto items = pipeline.tunnel<int>("items");
    pipeline.source("numbers", into(items), numbers(1));
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.name = "write";
    options.input = items.handle();
    options.payload = &kept;
    options.function = [](weir_batch* batch) {
      weir_item *item = nullptr, *other = nullptr;
      EXPECT_EQ(weir_item_keep(batch, 0, &item), WEIR_STATUS_OK);
      EXPECT_EQ(weir_item_keep(batch, 0, &other), WEIR_STATUS_INVALID_ARGUMENT);
      expect_in("cannot keep item 0 of a batch of 1: it does already", weir_last_error());
      EXPECT_EQ(weir_item_keep(batch, 1, &other), WEIR_STATUS_INVALID_ARGUMENT);
      expect_in("stage 'write' cannot keep item 1 of a batch of 1: there is none",
                weir_last_error());
      *static_cast<std::atomic<weir_item*>*>(batch->payload) = item;
      return WEIR_STATUS_OK;
    };
    weir::check(weir_pipeline_add_stage(pipeline.handle(), &options));
    pipeline.start();
    while (kept == nullptr) std::this_thread::yield();
    // What is forgotten has a name.
    std::string message;
    while (message.find("items '0 of write' are kept and not complete") == std::string::npos) {
      message = thrown_by([&] { pipeline.wait(std::chrono::nanoseconds(0)); });
      ASSERT_NE(message, "");
    }
    EXPECT_EQ(weir_item_complete(kept), WEIR_STATUS_OK);
    EXPECT_EQ(weir_item_complete(kept), WEIR_STATUS_INVALID_ARGUMENT);
    expect_in("item '0 of write' is complete already", weir_last_error());
    pipeline.wait();
  }
  EXPECT_EQ(weir_item_complete(kept), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(weir_item_complete(nullptr), WEIR_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(weir_item_keep(nullptr, 0, nullptr), WEIR_STATUS_INVALID_ARGUMENT);
}

/// A pipeline that goes while others complete its items: each is complete, or refused.
TEST(RetainedItems, CompletionDuringPipelineDestruction_SucceedsOrIsRefused) {
  constexpr std::size_t kItems = 64;
  const Runtime runtime("host");
  for (int round = 0; round < 50; ++round) {
    std::mutex mutex;
    std::vector<weir_item*> kept;
    const auto count = [&] {
      const std::lock_guard lock(mutex);
      return kept.size();
    };
    std::thread helper;
    {
      const Pipeline pipeline(runtime);
      const auto items = pipeline.tunnel<int>("items");
      pipeline.source("numbers", into(items), numbers(kItems));
      std::pair<std::mutex*, std::vector<weir_item*>*> store(&mutex, &kept);
      weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
      options.input = items.handle();
      options.payload = &store;
      options.function = [](weir_batch* batch) {
        auto& to = *static_cast<decltype(store)*>(batch->payload);
        for (std::size_t i = 0; i < batch->count; ++i) {
          weir_item* item = nullptr;
          EXPECT_EQ(weir_item_keep(batch, i, &item), WEIR_STATUS_OK);
          const std::lock_guard lock(*to.first);
          to.second->push_back(item);
        }
        return WEIR_STATUS_OK;
      };
      weir::check(weir_pipeline_add_stage(pipeline.handle(), &options));
      pipeline.start();
      while (count() < kItems) std::this_thread::yield();
      helper = std::thread([all = kept] {
        for (weir_item* item : all) {
          const weir_status status = weir_item_complete(item);
          EXPECT_TRUE(status == WEIR_STATUS_OK || status == WEIR_STATUS_INVALID_ARGUMENT);
        }
      });
    }
    helper.join();
  }
}

/// Completed inside the call, before what it has put is known to any thread.
TEST(RetainedItems, CompletedInsideTheCall_ItemsPutLaterStillArrive) {
  const Runtime runtime("host");
  std::atomic<int> seen{0};
  const Pipeline pipeline(runtime, {.batch = 1});
  const auto items = pipeline.tunnel<int>("items");
  const auto children = pipeline.tunnel<int>("children");
  pipeline.source("numbers", into(items), numbers(300));
  pipeline.stage("keep", items, into(children),
                 [](int number, const Outlet<int>& out, StageContext context) {
                   context.keep().complete();
                   std::this_thread::yield();  // others look for the end meanwhile
                   out.put(number);
                 });
  pipeline.stage("count", children, [&](int) { ++seen; });
  pipeline.run();
  EXPECT_EQ(seen, 300);
  EXPECT_EQ(pipeline.stages()[0].complete, 300u);
}

TEST(RetainedItems, StageThrowsAfterKeep_ItemFailsAndIsNotRetained) {
  const Runtime runtime("host");
  ItemStore store;
  const Pipeline pipeline(runtime, {.keep_going = true, .batch = 8});
  const auto items = pipeline.tunnel<int>("items");
  pipeline.source("numbers", into(items), numbers(100));
  pipeline.stage("keep", items, [&](int number, StageContext context) {
    Item item = context.keep();
    if (number % 10 == 3) throw std::runtime_error("three");
    store.put(std::move(item));
  });
  pipeline.start();
  while (store.size() < 90) std::this_thread::yield();
  store.take();
  EXPECT_EQ(thrown_by([&] { pipeline.wait(); }), "stage 'keep': three");
  EXPECT_EQ(pipeline.stages()[0].complete, 100u);
  EXPECT_EQ(pipeline.stages()[0].failed, 10u);
}

TEST(RetainedItems, PipelineDestroyedFirst_CompletionIsRefused) {
  const Runtime runtime("host");
  ItemStore store;
  {
    const Pipeline pipeline(runtime);
    const auto items = pipeline.tunnel<int>("items");
    pipeline.source("numbers", into(items), numbers(1));
    pipeline.stage("keep", items, [&](int, StageContext context) { store.put(context.keep()); });
    pipeline.start();
    while (store.size() == 0) std::this_thread::yield();
  }
  auto left = store.take();
  expect_in("is complete already, or its pipeline has gone",
            thrown_by([&] { left[0].complete(); }));
}

}  // namespace
}  // namespace retained_items
