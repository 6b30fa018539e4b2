// The fabric as the program sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <weir/fabric.h>

#include "base/handle.hpp"
#include "base/threads.hpp"
#include "conveyor/conveyor_hub.hpp"
#include "fabric/collectives.hpp"
#include "fabric/communicator.hpp"
#include "fabric/fabric_watchdog.hpp"
#include "fabric/group_hub.hpp"
#include "fabric/port.hpp"
#include "fabric/tagged_messages.hpp"
#include "fabric/window.hpp"
#include "runtime/owned_list.hpp"

struct weir_communicator;
struct weir_conveyor;
struct weir_conveyor_options;
struct weir_halo;
struct weir_window;

namespace weir::rt {

struct HaloRequest;

/// The membership of one rank: its port, and the objects that the program creates on it.
class Fabric : private Listener {
 public:
  Fabric(std::unique_ptr<Transport> transport, ProgressBy progress);
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  /// Destroys its windows, conveyors and halos; rank 0 dismisses the ranks that serve it.
  ~Fabric();

  const std::string& name() const noexcept { return name_; }
  Port& port() noexcept { return *port_; }
  const Port& port() const noexcept { return *port_; }
  Collectives& collectives() noexcept { return collectives_; }

  // Called by the program. They throw Error.
  void barrier(std::int64_t timeout_ns);
  GroupHub& message_hub() noexcept { return message_hub_; }
  /// Returns the communicator of all ranks.
  weir_communicator& communicator() noexcept { return *world_; }
  /// Creates a communicator of the ranks on which agree() agrees within a parent; null: this rank
  /// is in none.
  weir_communicator* create_communicator(
      Communicator& parent,
      const std::function<void(std::uint32_t number, Communicator::Part& part)>& agree);
  void destroy_communicator(weir_communicator* communicator) noexcept;
  void listen(weir_fabric_handler handler, void* payload);
  void send(Rank to, std::span<const std::byte> message);
  /// Returns false at the deadline.
  bool progress(std::int64_t timeout_ns);
  bool all_peers_lost() const noexcept;
  weir_window* create_window(void* memory, std::size_t bytes, std::int64_t timeout_ns);
  void destroy_window(weir_window* window) noexcept;
  ConveyorHub& conveyors() noexcept { return conveyor_hub_; }
  weir_conveyor* create_conveyor(const weir_conveyor_options& options);
  /// Collective, even if read() throws.
  weir_halo* create_halo(const std::function<HaloRequest()>& read);
  GroupHub& share_hub() noexcept { return share_hub_; }

  // Counts the runtimes that use the fabric. It ends when it is closed and no runtime uses it.
  /// Adds a runtime. Throws Error if the fabric is closed.
  void attach();
  /// Removes a runtime. Returns whether the caller must destroy the fabric.
  bool detach() noexcept;
  /// Closes the fabric. Returns whether the caller must destroy it. Throws Error if it is closed
  /// already.
  bool close();
  /// Called when the program has returned on this rank. Closes the fabric even if a runtime uses
  /// it. Returns whether the caller must destroy it.
  bool end_program() noexcept;

  /// Makes the process leave the fabric before it exits, even if it is not closed. Throws Error.
  void leave_before_exit();

 protected:
  /// No message to the program and no loss arrives afterwards.
  void stop_listening() noexcept { port_->listen(Channel::user, nullptr); }

 private:
  void on_message(Rank from, std::span<const std::byte> message) noexcept override;
  void on_rank_lost(Rank, const std::string&) noexcept override {}

  const std::string name_;
  const std::unique_ptr<Port, Port::Close> port_;
  Collectives collectives_;
  CollectiveHub collective_hub_;
  ConveyorHub conveyor_hub_;
  GroupHub halo_hub_, share_hub_, message_hub_;
  FabricWatchdog watchdog_;
  weir_fabric_handler handler_ = nullptr;  ///< written by listen() only
  void* payload_ = nullptr;
  sys::Atomic<std::uint64_t> handled_{0}, seen_{0};
  sys::Mutex mutex_;
  std::size_t runtimes_ WEIR_GUARDED_BY(mutex_) = 0;
  bool closed_ WEIR_GUARDED_BY(mutex_) = false;
  sys::Atomic<std::uint32_t> next_communicator_{1};
  Owned<weir_communicator> world_;
  OwnedList<weir_communicator> communicators_;
  OwnedList<weir_window> windows_;
  OwnedList<weir_conveyor> conveyors_;
  OwnedList<weir_halo> halos_;
};

}  // namespace weir::rt

/// The public handles.
struct weir_communicator final : weir::rt::Handle<weir_communicator>, weir::rt::Communicator {
  static constexpr const char* kNoun = "communicator";
  weir_communicator(weir::rt::Fabric& fabric, weir::rt::CollectiveHub& hub, std::uint32_t number,
                    std::vector<weir::rt::Rank> ranks);
  weir::rt::Fabric& fabric() noexcept { return fabric_; }
  const std::string& name() const noexcept { return name_; }
  /// Makes the operations and messages of all ranks fail, except shrink(). Any thread.
  void revoke();
  /// The messages of streams. They may outlive the communicator.
  const std::shared_ptr<weir::rt::TaggedMessages>& messages() const noexcept { return messages_; }
  /// Returns the number of the next send to a rank, or receive from it, with a tag. Throws
  /// std::bad_alloc.
  std::uint32_t next_message(bool is_send, unsigned peer, std::uint32_t tag);
  /// Returns the number of the next collective operation of streams.
  std::uint32_t next_collective() noexcept { return collectives_.fetch_add(1); }

 private:
  struct Numbered {
    bool is_send;
    unsigned peer;
    std::uint32_t tag;
    auto operator<=>(const Numbered&) const = default;
  };

  weir::rt::Fabric& fabric_;
  const std::string name_;
  const std::shared_ptr<weir::rt::TaggedMessages> messages_;
  weir::rt::sys::Mutex mutex_;
  std::map<Numbered, std::uint32_t> message_numbers_ WEIR_GUARDED_BY(mutex_);
  weir::rt::sys::Atomic<std::uint32_t> collectives_{0};
};

struct weir_window final : weir::rt::Handle<weir_window>, weir::rt::Window {
  static constexpr const char* kNoun = "window";
  weir_window(weir::rt::Fabric& fabric, void* memory, std::size_t bytes, std::int64_t deadline_ns);
  weir::rt::Fabric& fabric() noexcept { return fabric_; }

  const std::string& name() const noexcept { return name_; }

  // They throw Error.
  void put(weir::rt::Rank rank, std::size_t offset, std::span<const std::byte> data);
  void get(weir::rt::Rank rank, std::size_t offset, std::span<std::byte> data);
  std::int64_t fetch_add(weir::rt::Rank rank, std::size_t offset, std::int64_t operand);
  std::int64_t compare_swap(weir::rt::Rank rank, std::size_t offset, std::int64_t expected,
                            std::int64_t desired);
  void flush(weir::rt::Rank rank, std::int64_t timeout_ns);

 private:
  /// Starts an atomic operation on a word by start(port, completion), and waits for it.
  template <class Start>
  std::int64_t change(weir::rt::Rank rank, std::size_t offset, const Start& start);

  weir::rt::Fabric& fabric_;
  const std::string name_;
};

struct weir_fabric final : weir::rt::Handle<weir_fabric>, weir::rt::Fabric {
  static constexpr const char* kNoun = "fabric";
  using Fabric::Fabric;
  ~weir_fabric() override { stop_listening(); }  // before its last virtual functions are the base's
};

namespace weir::rt {

/// A runtime's use of a fabric, if it has one.
class FabricUse {
 public:
  /// Throws Error if the fabric is closed.
  explicit FabricUse(weir_fabric* fabric);
  FabricUse(const FabricUse&) = delete;
  FabricUse& operator=(const FabricUse&) = delete;
  ~FabricUse();

  /// Returns nullptr without a fabric.
  Port* port() const noexcept { return fabric_ != nullptr ? &fabric_->port() : nullptr; }

 private:
  weir_fabric* const fabric_;
};

/// Closes a fabric; the last runtime that uses it destroys it. Throws Error if it is closed
/// already.
void close_fabric(weir_fabric& fabric);

/// Returns the rank as which this process was launched, 0 without a launcher.
std::uint64_t started_rank() noexcept;

/// Opens a fabric from the options and the launcher's environment. Throws Error.
Owned<weir_fabric> open_fabric(const weir_fabric_options& options);
/// Launches ranks as processes on this machine. Throws Error.
int launch_fabric(const weir_launch_options& options, Rank ranks, const char* const* arguments);
/// Runs a program on ranks of this process. With a seed and without a progress thread the seed
/// decides the order. Throws Error.
void simulate_fabric(const weir_fabric_options& options, Rank ranks,
                     const std::function<void(weir_fabric&)>& program);

}  // namespace weir::rt
