// ActionQueue keeps all actions in order, over the ends of its chunks, and wakes the consumer.
#include "core/action_queue.hpp"

#include "parts.hpp"

namespace weir::rt::checker {
namespace {

/// Producers, and a consumer that goes idle when the queue is empty: the producer that learns this
/// from push() is the consumer from then on.
template <int kProducers, int kEach>
struct Produce : Check<Produce<kProducers, kEach>, kProducers> {
  struct Item : Action {
    sys::Plain<int> producer;
    sys::Plain<int> number;
  };
  ActionQueue queue;
  Item items[kProducers][kEach];
  // The consumer's.
  sys::Plain<int> next[kProducers];
  sys::Plain<int> popped = 0;

  Produce() {
    for (auto& number : next) number = 0;
  }
  void consume() {
    for (;;) {
      while (Action* const action = queue.pop()) {
        auto& item = static_cast<Item&>(*action);
        CHECK_THAT(next[item.producer] == item.number);
        ++next[item.producer];
        ++popped;
      }
      if (queue.poll()) continue;
      if (queue.go_idle()) return;
      sys::yield();
    }
  }
  void thread(unsigned index) {
    for (int i = 0; i < kEach; ++i) {
      bool idle = false;
      {
        ActionQueue::ProducerLock lock(queue);
        lock.reserve();
        Item& item = items[index][i];
        item.producer = static_cast<int>(index);
        item.number = i;
        idle = lock.push(item);
      }
      if (idle) consume();
    }
  }
  void after() {
    CHECK_THAT(popped == kProducers * kEach);
    CHECK_THAT(queue.pushed() == kProducers * kEach);
  }
};

/// A turn that ends without an action.
struct GiveUp : Check<GiveUp, 2> {
  ActionQueue queue;
  Action items[2];
  sys::Plain<int> order = 0;

  void thread(unsigned index) {
    {
      ActionQueue::ProducerLock lock(queue);
      lock.reserve();
      ++order;
    }
    ActionQueue::ProducerLock lock(queue);
    ++order;
    lock.push(items[index]);
  }
  void after() {
    CHECK_THAT(order == 4);
    CHECK_THAT(queue.poll());
    CHECK_THAT(queue.pop() != nullptr && queue.pop() != nullptr);
  }
};

}  // namespace

void check_action_queue(Run& run) {
  run.bounded<Produce<2, 2>>("two producers", 3);
  run.random<Produce<2, 5>>("two producers over two ends of chunks");
  run.random<Produce<3, 3>>("three producers");
  run.full<GiveUp>("turns given up");
}

}  // namespace weir::rt::checker
