// A rank that serves its devices to rank 0.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "backends/rank/served_device.hpp"
#include "backends/rank/served_place.hpp"
#include "base/threads.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// What a rank serves; implemented where all backends and kernels are known.
class RankHost {
 public:
  /// Opens the device of a specification. Throws Error.
  virtual std::unique_ptr<Device> open(const std::string& specification) = 0;
  /// Finds the code of a kernel for a device. Throws Error if there is none.
  virtual ServedKernel find_kernel(const std::string& name, const DeviceInfo& device) = 0;
  /// Throws Error{not_found} if no device has such a kernel.
  virtual void expect_kernel(const std::string& name) = 0;

 protected:
  ~RankHost() = default;
};

/// Executes the requests of rank 0. The progress thread handles jobs, copies and memory; serve()
/// handles what may block: opening and closing devices and places.
class RankServer final : private Listener, private CopySink {
 public:
  RankServer(Port& port, RankHost& host);
  RankServer(const RankServer&) = delete;
  RankServer& operator=(const RankServer&) = delete;
  ~RankServer();

  /// Serves until rank 0 leaves. Throws Error{network_error} if rank 0 is lost.
  void serve();

 private:
  using Message = std::vector<std::byte>;

  void on_message(Rank from, std::span<const std::byte> message) noexcept override;
  void on_rank_lost(Rank rank, const std::string& why) noexcept override;
  void copied(void* token, Outcome outcome, std::int64_t started_ns,
              std::int64_t ended_ns) noexcept override;

  // On the thread that makes progress.
  void read(std::span<const std::byte> message);
  void make_copy(WireReader& message);
  void lend(WireReader& message);
  void define(WireReader& message);
  void answer_known_kernels(WireReader& message);
  void queue_request(std::span<const std::byte> message);
  void break_off(const Outcome& why) noexcept;
  void end(Outcome why) noexcept;

  // In serve().
  template <class Condition>
  void wait(Condition&& is_so);
  void await_copies() noexcept;
  void ring() noexcept;
  void perform(const Message& message);
  void open_device(WireReader& message, WireWriter& answer);
  void open_place(WireReader& message);
  void close_place(std::uint32_t number);
  void close_device(std::uint32_t number);
  void send(const WireWriter& message) noexcept;

  ServedDevice& device(std::uint32_t number);
  ServedPlace& place(std::uint32_t number);

  Port& port_;
  RankHost& host_;
  const FindDevice find_ = [this](std::uint32_t number) -> ServedDevice& { return device(number); };

  sys::Mutex mutex_;  // guards the members below
  std::deque<Message> requests_ WEIR_GUARDED_BY(mutex_);
  bool ended_ WEIR_GUARDED_BY(mutex_) = false;
  Outcome outcome_;
  std::map<std::uint32_t, std::unique_ptr<ServedDevice>> devices_ WEIR_GUARDED_BY(mutex_);
  std::map<std::uint32_t, std::unique_ptr<ServedPlace>> places_ WEIR_GUARDED_BY(mutex_);
  std::size_t copies_ WEIR_GUARDED_BY(mutex_) = 0;  ///< in flight, except those of places

  sys::Atomic<std::uint32_t> wakeups_{0};  ///< changes when serve() has something to check
};

}  // namespace weir::rt
