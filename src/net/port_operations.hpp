// The one-sided half of a port: windows, and operations on those of other ranks.
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
#include "net/lost_ranks.hpp"
#include "net/port_progress.hpp"
#include "net/transport.hpp"

namespace weir::rt {

/// Takes the end of an operation.
class Completion {
 public:
  /// `old` is what an atomic operation found. On the thread that makes progress; must not wait.
  virtual void completed(std::int64_t old, const Outcome& outcome) noexcept = 0;

 protected:
  ~Completion() = default;
};

/// Keeps account of what each thread has started, and does what is for this rank itself.
class PortOperations {
 public:
  PortOperations(Transport& transport, const LostRanks& lost_ranks, PortProgress& progress);

  // As in Port.
  WindowId expose(void* memory, std::size_t bytes, std::int64_t deadline_ns);
  void withdraw(WindowId window) noexcept;
  void* allocate(std::size_t bytes, std::int64_t deadline_ns);
  void release(void* memory) noexcept;
  Outcome flush(Rank to, std::int64_t timeout_ns);
  /// Starts an operation. The token is for this class.
  void start(OneSided operation, Completion* done);

  /// Whether other threads have left operations. Any thread.
  bool has_submissions() const noexcept { return submissions_.load() > 0; }

  // Whoever holds the turn.
  /// Takes over what others have left. Returns whether there was something.
  bool take_submissions() noexcept;
  /// Starts what the transport takes, and ends what is for a rank that is gone. Returns whether
  /// something moved.
  bool push() noexcept;
  /// The transport has ended an operation.
  void completed(void* token, std::int64_t old, Outcome outcome) noexcept;
  /// Whether an operation is under way that goes on without its target.
  bool unfinished() const noexcept { return info_.shares_memory && transport_.unfinished(); }
  /// Whether nothing waits to be started.
  bool empty() const noexcept;

 private:
  static constexpr std::uint32_t kMost = 1024;  ///< of a thread to one rank, before it blocks
  static constexpr std::uint32_t kMostInside = 64u << 10;  ///< where it cannot wait

  /// What a thread has started.
  struct Account {
    explicit Account(Rank ranks) : pending(ranks), failures(ranks) {}
    std::uint64_t thread = 0;  ///< the number of that which has it: addresses come again
    std::vector<sys::Atomic<std::uint32_t>> pending;
    SpinLock lock;
    std::vector<Outcome> failures WEIR_GUARDED_BY(lock);  ///< the first of each rank
  };
  struct Started {
    Account* account;
    Completion* done;
    OneSided operation;
    std::list<Started>::iterator self;
  };
  using Operations = std::list<Started>;  ///< these go from list to list without memory
  struct Window {
    std::byte* memory;
    std::size_t bytes;
  };

  Account& account();
  Account& find_account();
  std::byte* find_here(const OneSided& operation) noexcept;
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
  const std::uint64_t serial_;  ///< of this among all of the process

  sys::Mutex mutex_;  // short, never across a call of others
  Operations submitted_ WEIR_GUARDED_BY(mutex_);
  std::map<const void*, std::unique_ptr<Account>> accounts_ WEIR_GUARDED_BY(mutex_);
  sys::Atomic<std::uint32_t> submissions_{0};

  // Whoever holds the turn.
  std::vector<Operations> waiting_;  ///< of each rank
  Operations under_way_;             ///< that the transport has
  WindowId next_window_ = 0;

  SpinLock windows_lock_;
  std::map<WindowId, Window> windows_ WEIR_GUARDED_BY(windows_lock_);
};

}  // namespace weir::rt
