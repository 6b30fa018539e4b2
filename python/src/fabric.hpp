// The fabric: ranks, windows and conveyors.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session.hpp"

namespace weir::py {

struct Communicator;
struct Conveyor;
struct Event;
struct Share;
struct Stream;
struct Window;

/// One rank's membership.
struct Fabric : std::enable_shared_from_this<Fabric> {
  explicit Fabric(weir_fabric* handle, bool borrowed = false)
      : handle(handle), borrowed(borrowed) {}
  ~Fabric() { end(); }
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  /// Closes the fabric. Raises BUSY, and closes nothing, when another thread is in a call of it or
  /// of one of its objects.
  void close();
  /// Closes the fabric after waiting for such threads.
  void leave();
  /// Closes all fabrics that no thread is inside of: Python is about to end.
  static void close_all();

  weir_fabric* open() const;
  /// Waits without the GIL, with the used objects held open; raises the exception of a handler, or
  /// the failure.
  void wait(const Timeout& timeout, const std::function<weir_status(std::int64_t)>& wait,
            InUseList used);
  void barrier(const Timeout& timeout);
  /// Reduces in place, after a barrier, which signals can interrupt.
  void reduce(nb::handle values, weir_fabric_op op, const Timeout& timeout);
  void broadcast(unsigned root, nb::handle data, const Timeout& timeout);
  void send(unsigned to, nb::handle message);
  /// code(rank, bytes), or None.
  void listen(nb::object code);

  weir_fabric* handle;
  bool borrowed;  ///< of weir_fabric_simulate()
  nb::object handler;
  Raised raised;
  std::vector<std::weak_ptr<Communicator>> communicators;
  std::vector<std::weak_ptr<Conveyor>> conveyors;
  std::vector<std::weak_ptr<Window>> windows;
  std::vector<std::weak_ptr<Share>> shares;
  /// Operands of copies that were in flight when their window was closed; kept until the fabric
  /// closes.
  std::vector<std::unique_ptr<Bytes>> left;
  InUse in_use{"the fabric"};  ///< also by calls of its objects
  InUse ending{"the fabric"};  ///< by threads that close its objects

 private:
  void end();
  void stop_listening();
  void together(const Timeout& timeout, const std::function<weir_status()>& call);

  InUse closing_{"the fabric"};
};
using FabricRef = std::shared_ptr<Fabric>;

/// For lists of what is used.
inline InUse* in_use_of(const FabricRef& fabric) { return fabric ? &fabric->in_use : nullptr; }

FabricRef open_fabric(const weir_fabric_options& options);
/// Runs program(fabric) on a number of ranks; raises the exception of the lowest rank that raised
/// one.
void simulate(const weir_fabric_options& options, unsigned ranks, nb::handle program);
int launch(unsigned ranks, const std::vector<std::string>& arguments,
           const weir_fabric_options& options);

/// A group of ranks. Ctrl-C ends an operation on all of them.
struct Communicator {
  /// Returns null without a handle.
  static std::shared_ptr<Communicator> make(const FabricRef& fabric, weir_communicator* handle);
  Communicator(FabricRef of, weir_communicator* handle) : fabric(std::move(of)), handle(handle) {}
  ~Communicator() { close(); }
  void close();

  weir_communicator* open() const;
  unsigned fabric_rank(unsigned rank) const;
  /// No color: this rank is in no group.
  std::shared_ptr<Communicator> split(std::optional<std::int64_t> color, std::int64_t key,
                                      const Timeout& timeout);
  std::shared_ptr<Communicator> split_by_node(const Timeout& timeout);
  std::shared_ptr<Communicator> shrink(const Timeout& timeout);
  void revoke();

  // Without a root all ranks are roots. Arrays that this rank does not use are None.
  using Root = std::optional<unsigned>;
  void barrier(const Timeout& timeout);
  void broadcast(unsigned root, nb::handle data, const Timeout& timeout);
  void gather(Root root, nb::handle own, nb::handle all, const Timeout& timeout);
  void scatter(unsigned root, nb::handle all, nb::handle own, const Timeout& timeout);
  void all_to_all(nb::handle parts, nb::handle received, const Timeout& timeout);
  /// The sizes are in bytes.
  void all_to_all_v(nb::handle parts, const std::vector<std::size_t>& sizes, nb::handle received,
                    const std::vector<std::size_t>& received_sizes, const Timeout& timeout);
  /// Of an array, in place.
  void reduce(Root root, nb::handle values, weir_fabric_op op, const Timeout& timeout);
  /// Enqueues an operation; `op`: of a reduction.
  Event enqueue(const Stream& stream, weir_collective_kind kind, Root root, nb::handle part,
                nb::handle all, weir_fabric_op op) const;
  void scan(nb::handle values, weir_fabric_op op, bool exclusive, const Timeout& timeout);

  FabricRef fabric;
  weir_communicator* handle;

 private:
  using Operation = std::function<weir_status(weir_communicator*, std::int64_t timeout_ns)>;
  void call(const Timeout& timeout, const Operation& operation);

  InUse in_use_{"the communicator"};
};

/// Memory of this rank that all ranks may access.
struct Window {
  static std::shared_ptr<Window> make(const FabricRef& fabric, nb::object array,
                                      const Timeout& timeout);
  Window(FabricRef fabric, nb::object array, const Timeout& timeout);
  ~Window() { close(); }
  void close();
  /// Raises if it is closed.
  weir_window* open() const;

  void put(unsigned rank, std::size_t offset, nb::handle data);
  void get(unsigned rank, std::size_t offset, nb::handle into);
  std::int64_t fetch_add(unsigned rank, std::size_t offset, std::int64_t operand);
  std::int64_t compare_swap(unsigned rank, std::size_t offset, std::int64_t expected,
                            std::int64_t desired);
  void flush(unsigned rank, const Timeout& timeout);

  FabricRef fabric;
  nb::object array;  ///< its memory
  std::unique_ptr<Bytes> memory;
  weir_window* handle = nullptr;

 private:
  /// Keeps the array that this thread copies from or to until it flushes.
  void copy(unsigned rank, nb::handle data, bool writable,
            const std::function<weir_status(weir_window*, const Bytes&)>& start);

  /// By thread number and rank.
  std::map<std::pair<std::uint64_t, unsigned>, std::vector<std::unique_ptr<Bytes>>> under_way_;
  InUse in_use_{"the window"};
};

/// The Python function of a handler of a conveyor.
struct ItemsHandler {
  nb::object code, dtype;
  Raised* raised;
  const Fabric* fabric;
};

struct ConveyorOptions {
  const char* name = nullptr;
  nb::object memory;                                        ///< or None
  std::vector<std::pair<nb::object, nb::object>> handlers;  ///< dtypes and functions
  std::size_t block_bytes = 0, block_items = 0, blocks_in_flight = 0;
  std::int64_t age_ns = 0;
  Timeout timeout;
};

struct Conveyor {
  static std::shared_ptr<Conveyor> make(const FabricRef& fabric, const ConveyorOptions& options);
  Conveyor(FabricRef fabric, const ConveyorOptions& options);
  ~Conveyor() { close(); }
  void close();
  void finish(const Timeout& timeout);
  weir_conveyor_info info();

  FabricRef fabric;
  std::unique_ptr<Bytes> memory;
  std::vector<std::unique_ptr<ItemsHandler>> handlers;
  Raised raised;
  weir_conveyor* handle = nullptr;
  InUse in_use{"the conveyor"};  ///< also by calls of its producers
  InUse ending{"the conveyor"};  ///< by threads that close those
};

/// Puts items of one thread into a conveyor.
struct Producer {
  explicit Producer(std::shared_ptr<Conveyor> conveyor);
  ~Producer() { close(); }
  void close();
  /// `offsets`: the bytes of an array of uint64; `items`: the bytes of whole items.
  void put(unsigned rank, nb::handle offsets, nb::handle items);
  void add(unsigned rank, nb::handle offsets, nb::handle values);
  void send(unsigned rank, unsigned handler, nb::handle items, std::size_t item_bytes);
  void flush(const Timeout& timeout);
  weir_producer* open() const;

  std::shared_ptr<Conveyor> conveyor;
  weir_producer* handle = nullptr;

 private:
  template <class Call>
  void call(Call&& call);

  InUse in_use_{"the producer"};
};

}  // namespace weir::py
