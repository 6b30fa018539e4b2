// The one-sided half of a port: windows, and operations on windows of other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "base/error.hpp"
#include "base/spin_lock.hpp"
#include "base/threads.hpp"
#include "fabric/lost_ranks.hpp"
#include "fabric/port_progress.hpp"
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

/// Counts the operations of each thread, and executes those on this rank itself.
class PortOperations {
 public:
  PortOperations(Transport& transport, const LostRanks& lost_ranks, PortProgress& progress);

  // See Port.
  WindowId expose(void* memory, std::size_t bytes, std::int64_t deadline_ns);
  void withdraw(WindowId window) noexcept;
  void* allocate(std::size_t bytes, std::int64_t deadline_ns);
  void release(void* memory) noexcept;
  Outcome flush(Rank to, std::int64_t timeout_ns);
  /// Starts an operation; sets its token.
  void start(OneSided operation, Completion* done);

  /// Returns whether other threads have submitted operations. Any thread.
  bool has_submissions() const noexcept { return submissions_.load() > 0; }

  // By the holder of the progress lock.
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
  static constexpr std::uint32_t kMost = 1024;  ///< of a thread to one rank, before it blocks
  static constexpr std::uint32_t kMostInside = 64u << 10;  ///< of a listener, which cannot block

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

  Account& account();
  Account& find_account();
  static void check_room_inside(Rank to, std::uint32_t pending);
  void start_here(const Started& started) noexcept;
  bool start_now(Operations& some) noexcept;
  void submit(Operations some) noexcept;
  bool push_to(Rank to);
  void finish(const Started& started, std::int64_t old, Outcome outcome) noexcept;

  Transport& transport_;
  const TransportInfo& info_;
  const LostRanks& lost_ranks_;
  PortProgress& progress_;
  const std::uint64_t serial_;  ///< unique in the process

  sys::Mutex mutex_;  // held briefly, never during a callback
  Operations submitted_ WEIR_GUARDED_BY(mutex_);
  std::map<const void*, std::unique_ptr<Account>> accounts_ WEIR_GUARDED_BY(mutex_);
  sys::Atomic<std::uint32_t> submissions_{0};

  // By the holder of the progress lock.
  std::vector<Operations> waiting_;  ///< by rank
  Operations under_way_;             ///< started by the transport
  WindowId next_window_ = 0;
};

}  // namespace weir::rt
