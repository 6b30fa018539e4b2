// Actions of streams that the fabric performs: what messages, collective operations and one-sided
// operations have in common.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <weir/stream.h>

#include "base/error.hpp"
#include "fabric/port.hpp"
#include "runtime/staging_pool.hpp"
#include "stream/completion_listener.hpp"

namespace weir::rt {

class Runtime;

/// Completes one external action, without the progress lock of the fabric: callbacks of the program
/// run, and other external actions start.
class FabricCompletion final : private UnlockedWork {
 public:
  FabricCompletion(Context& context, Port& port) noexcept : context_(context), port_(port) {}
  FabricCompletion(const FabricCompletion&) = delete;
  FabricCompletion& operator=(const FabricCompletion&) = delete;

  /// The event of the action, set when the action starts.
  weir_event event = WEIR_EVENT_INIT;
  /// Call it once. It may destroy this object.
  void complete(const Outcome& outcome) noexcept;

 private:
  void run() noexcept override;

  Context& context_;
  Port& port_;
  Outcome outcome_;
};

/// Enqueues an external action with the copies that it needs: the fabric reads and writes host
/// memory, so regions of a device are copied through page-locked buffers. One thread.
class FabricAction {
 public:
  /// Whether the operation works on rows of host memory as they are.
  enum class Rows : bool { packed, any };

  FabricAction(Stream& stream, Rows rows);

  /// Adds a region of the instance of the stream's domain as the next operand. A copy from a device
  /// is enqueued at once. Throws Error.
  void add(weir_buffer* buffer, const weir_region& region, weir_access access);
  /// Adds memory of the operation as the next operand. Throws Error.
  void add_scratch(std::size_t bytes);
  /// Enqueues the action, which calls start() with `operation` as payload, and listens to its event
  /// with the operation, which is taken over. Returns the event of the last copy. Throws Error.
  template <class Operation>
  weir_event enqueue(const char* name, weir_external_start start,
                     std::unique_ptr<Operation>& operation) {
    weir_external external = WEIR_EXTERNAL_INIT;
    external.start = start;
    external.payload = operation.get();
    external.name = name;
    const weir_event event = enqueue_external(external);
    listen(event, std::move(operation));
    return enqueue_copies(event);
  }

 private:
  weir_event enqueue_external(weir_external& external);
  void listen(const weir_event& event, std::unique_ptr<CompletionListener> listener) noexcept;
  weir_event enqueue_copies(weir_event event);
  weir_buffer& take(std::size_t bytes, bool is_pinned);
  weir_event copy(const weir_endpoint& from, const weir_endpoint& to, bool with_event);

  Stream& stream_;
  Runtime& runtime_;
  const Rows rows_;
  std::vector<weir_operand> operands_;
  std::vector<std::pair<weir_endpoint, weir_endpoint>> copies_;  ///< after the operation
  std::vector<std::unique_ptr<StagingPool::Use>> taken_;
};

/// Throws Error unless the runtime of the stream is in the fabric of this port. `what` names the
/// object of the fabric.
void check_same_fabric(const Stream& stream, const Port& port, const char* what);

}  // namespace weir::rt
