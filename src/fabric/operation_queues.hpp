// The one-sided operations of a port that are not complete.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "base/error.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "fabric/lost_ranks.hpp"
#include "fabric/transport.hpp"

namespace weir::rt {

/// Receives the completion of an operation.
class Completion {
 public:
  /// `old` is the previous value of an atomic operation. Called on the thread that makes progress;
  /// must not wait.
  virtual void completed(std::int64_t old, const Outcome& outcome) noexcept = 0;

 protected:
  ~Completion() = default;
};

/// Starts operations when the transport takes them, and completes them.
class OperationQueues {
 public:
  /// The operations of a thread.
  struct Account {
    explicit Account(Rank ranks) : pending(ranks), failures(ranks) {}
    std::uint64_t thread = 0;  ///< number of the owning thread: thread-local addresses are reused
    std::vector<sys::Atomic<std::uint32_t>> pending;
    SpinLock lock;
    std::vector<Outcome> failures WEIR_GUARDED_BY(lock);  ///< by rank: the first failure
  };
  struct Started {
    Account* account;
    Completion* done;
    OneSided operation;
    std::list<Started>::iterator self;
  };
  using Operations = std::list<Started>;  ///< nodes move between lists without allocation

  OperationQueues(Transport& transport, const LostRanks& lost_ranks)
      : transport_(transport),
        info_(transport.info()),
        lost_ranks_(lost_ranks),
        waiting_(info_.ranks) {}

  // Any thread.
  /// Leaves operations to the holder of the progress lock.
  void submit(Operations& some) noexcept;
  bool has_submissions() const noexcept { return submissions_.load() > 0; }
  /// Delivers the completion of an operation, or its failure to the account.
  static void finish(const Started& started, std::int64_t old, Outcome outcome) noexcept;

  // By the holder of the progress lock.
  /// Adds operations on one rank to its queue.
  void add(Operations& some) noexcept;
  /// Moves submitted operations to the queues. Returns whether there were any.
  bool take_submissions() noexcept;
  /// Starts operations as far as the transport takes them, and completes those on lost ranks.
  /// Returns whether something moved.
  bool push() noexcept;
  /// Called when the transport has completed an operation.
  void completed(void* token, std::int64_t old, Outcome outcome) noexcept;
  /// Returns whether an operation is in flight that progresses without its target.
  bool unfinished() const noexcept { return info_.shares_memory && transport_.unfinished(); }
  /// Returns whether no operations are queued.
  bool empty() const noexcept;

 private:
  bool push_to(Rank to);

  Transport& transport_;
  const TransportInfo& info_;
  const LostRanks& lost_ranks_;

  sys::Mutex mutex_;  // held briefly
  Operations submitted_ WEIR_GUARDED_BY(mutex_);
  sys::Atomic<std::uint32_t> submissions_{0};

  // By the holder of the progress lock.
  std::vector<Operations> waiting_;  ///< by rank
  Operations under_way_;             ///< started by the transport
};

}  // namespace weir::rt
