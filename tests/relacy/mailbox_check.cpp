// Mailbox: no message is lost, one owner at a time, and a thread that left touches nothing.
#include "core/mailbox.hpp"

#include "core/action_pool.hpp"
#include "parts.hpp"

namespace weir::rt::checker {
namespace {

/// The parts of a stream that threads share, put together as the stream does it.
struct Actor {
  ActionQueue queue;
  Mailbox mailbox;
  sys::Atomic<int> done{0};
  sys::Atomic<int> returned{0};  ///< producers that are back from their last call
  // The owner's.
  sys::Plain<int> popped = 0;
  sys::Plain<int> read = 0;
  sys::Plain<bool> accepting = true;

  virtual ~Actor() = default;
  virtual void admitted() {}
  virtual void told(Message&) {}

  void handle_messages() {
    while (mailbox.has_messages()) {
      for (Message* list = mailbox.take_messages(); list != nullptr;) {
        Message& message = *list;
        list = list->next_message;
        ++read;
        told(message);
        done.fetch_add(1, std::memory_order_release);
      }
    }
  }
  void own() {
    do {
      handle_messages();
      queue.poll();
      while (accepting && queue.pop() != nullptr) {
        ++popped;
        admitted();
        done.fetch_add(1, std::memory_order_release);
      }
    } while (!mailbox.release_ownership(queue, accepting));
  }
  void enqueue(Action& action) {
    bool idle = false;
    {
      ActionQueue::ProducerLock lock(queue);
      lock.reserve();
      idle = lock.push(action);
    }
    if (idle && mailbox.try_own()) own();
  }
  void post(Message& message) {
    if (mailbox.post(message)) own();
  }
  /// Waits until all is done and then ends the actor's life, as to destroy a stream does. The
  /// program has left its calls by then; those who bring messages may be on their way out.
  void end(int all, int producers) {
    while (returned.load(std::memory_order_acquire) < producers) sys::yield();
    while (done.load(std::memory_order_acquire) < all) sys::yield();
    mailbox.wait_until_no_owner([] { sys::yield(); });
    CHECK_THAT(popped + read == all);
    popped = -1;  // a write: a thread that has not quite left is found
    read = -1;
    accepting = false;
  }
};

/// Producers and senders, and a thread that waits for the end of it all.
template <int kProducers, int kSenders, int kEach>
struct StreamEnd : Check<StreamEnd<kProducers, kSenders, kEach>, kProducers + kSenders + 1> {
  Actor actor;
  Action actions[kProducers + 1][kEach];
  Message messages[kSenders + 1][kEach];

  void thread(unsigned index) {
    if (index < kProducers) {
      for (Action& action : actions[index]) actor.enqueue(action);
      actor.returned.fetch_add(1, std::memory_order_release);
    } else if (index < kProducers + kSenders) {
      for (Message& message : messages[index - kProducers]) actor.post(message);
    } else {
      actor.end((kProducers + kSenders) * kEach, kProducers);
    }
  }
};

/// Without a thread that waits: nothing must be left in queue or mailbox.
template <int kProducers, int kSenders, int kEach>
struct Quiet : Check<Quiet<kProducers, kSenders, kEach>, kProducers + kSenders> {
  Actor actor;
  Action actions[kProducers + 1][kEach];
  Message messages[kSenders + 1][kEach];

  void thread(unsigned index) {
    if (index < kProducers) {
      for (Action& action : actions[index]) actor.enqueue(action);
    } else if constexpr (kSenders > 0) {
      for (Message& message : messages[index - kProducers]) actor.post(message);
    }
  }
  void after() {
    CHECK_THAT(actor.popped == kProducers * kEach);
    CHECK_THAT(actor.read == kSenders * kEach);
    actor.mailbox.wait_until_no_owner([] { sys::yield(); });
  }
};

/// An engine that accepts nothing after an action until a message comes, as behind a barrier: the
/// producers' actions wait, and the message wakes the stream.
struct Barrier : Check<Barrier, 3> {
  struct Closing : Actor {
    sys::Plain<int> pending = 0;
    sys::Atomic<int> owed{0};
    void admitted() override {
      accepting = false;
      owed.fetch_add(1, std::memory_order_release);
    }
    void told(Message&) override { accepting = true; }
  };
  Closing actor;
  Action actions[2];
  Message messages[2];

  void thread(unsigned index) {
    if (index < 2) {
      actor.enqueue(actions[index]);
      return;
    }
    for (int i = 0; i < 2; ++i) {
      while (actor.owed.load(std::memory_order_acquire) <= i) sys::yield();
      actor.post(messages[i]);
    }
  }
  void after() { CHECK_THAT(actor.popped == 2 && actor.read == 2); }
};

}  // namespace

void check_mailbox(Run& run) {
  run.bounded<Quiet<1, 1, 1>>("a producer and a sender", 4);
  run.bounded<Quiet<2, 0, 1>>("two producers", 4);
  run.random<Quiet<1, 1, 3>>("a producer and a sender, often");
  run.random<Quiet<2, 1, 2>>("two producers and a sender");
  run.random<Quiet<2, 2, 1>>("two producers and two senders");
  run.random<Barrier>("an engine that accepts nothing");
  run.random<StreamEnd<1, 1, 1>>("the end of a stream");
  run.random<StreamEnd<1, 2, 1>>("the end of a stream with two senders");
}

}  // namespace weir::rt::checker
