// The one-sided half of a port: operations on windows of other ranks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "base/error.hpp"
#include "base/threads.hpp"
#include "fabric/port_progress.hpp"
#include "fabric/port_queues.hpp"

namespace weir::rt {

/// Counts the operations of each thread, and executes those on this rank itself.
class PortOperations {
 public:
  PortOperations(OperationQueues& queues, Transport& transport, const LostRanks& lost_ranks,
                 PortProgress& progress);

  /// See Port.
  Outcome flush(Rank to, std::int64_t timeout_ns);
  /// Starts an operation; sets its token.
  void start(OneSided operation, Completion* done);

 private:
  static constexpr std::uint32_t kMost = 1024;  ///< of a thread to one rank, before it blocks
  static constexpr std::uint32_t kMostInside = 64u << 10;  ///< of a listener, which cannot block

  using Account = OperationQueues::Account;
  using Started = OperationQueues::Started;
  using Operations = OperationQueues::Operations;

  Account& account();
  Account& find_account();
  static void check_room_inside(Rank to, std::uint32_t pending);
  void start_here(const Started& started) noexcept;
  bool start_now(Operations& some) noexcept;
  void submit(Operations some) noexcept;

  OperationQueues& queues_;
  Transport& transport_;
  const TransportInfo& info_;
  const LostRanks& lost_ranks_;
  PortProgress& progress_;
  const std::uint64_t serial_;  ///< unique in the process

  sys::Mutex mutex_;  // held briefly
  std::map<const void*, std::unique_ptr<Account>> accounts_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace weir::rt
