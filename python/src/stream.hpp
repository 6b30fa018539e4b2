// Streams, task queues, and their events.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "array.hpp"
#include "kernel.hpp"
#include "session.hpp"

namespace weir::py {

struct Parameter;

/// How a kernel uses a part, which is found in the session of the stream that gets it.
struct Operand {
  nb::object part;
  weir_access access;
};

struct Place {
  Place(SessionRef session, weir_place* handle) : session(std::move(session)), handle(handle) {}
  ~Place() { close(); }
  void close();

  SessionRef session;
  weir_place* handle;
  std::size_t uses = 0;  ///< by queues, shares and pipelines
};
using PlaceRef = std::shared_ptr<Place>;

/// Returns a reference during which the place cannot be closed. With the GIL.
PlaceRef used(const PlaceRef& place);

/// The completion of an action. A value.
struct Event {
  SessionRef session;
  weir_event handle;

  void wait(const Timeout& timeout) const;
  weir_event_info info() const;
  /// Calls code(status name, message) when the action is complete.
  void on_complete(nb::handle code) const;
  /// Returns the exception of an action that failed.
  static nb::object exception_of(const std::string& status, const std::string& message);
};

std::vector<weir_event> handles_of(nb::handle events, const Session& session);

/// A call of a kernel, ready to be enqueued.
struct Action {
  /// graph: that records it, or null.
  Action(Session& session, nb::handle kernel, nb::handle operands, nb::handle scalars,
         const Graph* graph);

  const weir_kernel* kernel;
  const Kernel* python = nullptr;   ///< the kernel, if it is a function of Python
  const Layout* reduced = nullptr;  ///< of the operands that tasks reduce into
  std::vector<weir_operand> operands;
  std::vector<weir_scalar> scalars;
  std::vector<Parameter> parameters;             ///< among the scalars
  std::vector<std::shared_ptr<Buffer>> buffers;  ///< until it is enqueued

 private:
  void fill_scalars(nb::handle values, const Graph* graph);
};

struct Stream {
  Stream(PlaceRef place, weir_stream* handle) : place(std::move(place)), handle(handle) {}
  ~Stream() { close(); }
  void close();

  Session& session() const { return *place->session; }
  Event compute(nb::handle kernel, nb::handle operands, nb::handle scalars, const char* name) const;
  Event upload(nb::handle part) const;
  Event download(nb::handle part) const;
  Event transfer(nb::handle source, nb::handle target, weir_domain* from, weir_domain* to) const;
  Event sync(nb::handle events, nb::handle parts, weir_sync_scope scope) const;
  Event send(weir_communicator* group, unsigned to, std::uint32_t tag, nb::handle part) const;
  Event receive(weir_communicator* group, unsigned from, std::uint32_t tag, nb::handle part) const;
  Event put(weir_window* window, unsigned to, std::size_t offset, nb::handle part) const;
  Event get(weir_window* window, unsigned from, std::size_t offset, nb::handle part) const;
  /// `call` without its regions; `all` may be None.
  Event collective(weir_communicator* group, weir_collective call, nanobind::handle part,
                   nanobind::handle all) const;
  void synchronize(const Timeout& timeout) const;
  void cancel() const;

  PlaceRef place;
  weir_stream* handle;
  mutable InUse in_use{"the stream"};
  std::weak_ptr<Graph> recording;

 private:
  template <class Enqueue>
  Event enqueue(Enqueue&& enqueue) const;
};

struct TaskOptions {
  const char* name = nullptr;
  int priority = 0;
  std::uint64_t domains = 0;
  PlaceRef place;
  nb::handle combine, init;  ///< kernels or names, or None
};

struct Queue {
  Queue(SessionRef session, std::vector<PlaceRef> places, weir_queue* handle)
      : session(std::move(session)), places(std::move(places)), handle(handle) {}
  ~Queue() { close(); }
  void close();

  Event submit(nb::handle kernel, nb::handle operands, nb::handle scalars,
               const TaskOptions& wanted) const;
  void acquire(nb::handle part, weir_access access, const Timeout& timeout) const;
  Event flush(nb::handle part) const;
  void synchronize(const Timeout& timeout) const;
  void cancel() const;
  weir_queue_info info() const;
  nb::list shares() const;

  SessionRef session;
  std::vector<PlaceRef> places;
  weir_queue* handle;
  mutable InUse in_use{"the queue"};
  std::weak_ptr<Graph> recording;
};

}  // namespace weir::py
