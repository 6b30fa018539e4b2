// The module weir._weir: classes, names and documentation. The other files implement them.

#include "module.hpp"
#include "array.hpp"
#include "fabric.hpp"
#include "graph.hpp"
#include "kernel.hpp"
#include "policy.hpp"
#include "session.hpp"
#include "stream.hpp"

namespace weir::py {

namespace {

struct Domain {
  SessionRef session;
  weir_domain* handle;

  weir_domain_info info() const {
    session->require_open();
    weir_domain_info found = WEIR_DOMAIN_INFO_INIT;
    check(weir_domain_get_info(handle, &found));
    return found;
  }
};

weir_access access_of(const std::string& name) {
  if (name == "read") return WEIR_ACCESS_READ;
  if (name == "write") return WEIR_ACCESS_WRITE;
  if (name == "readwrite") return WEIR_ACCESS_READ_WRITE;
  raise_value("access '" + name + "' is not 'read', 'write' or 'readwrite'");
}

weir_dependence_policy policy_of(const std::string& name) {
  if (name == "operands") return WEIR_DEPENDENCE_POLICY_OPERANDS;
  if (name == "fifo") return WEIR_DEPENDENCE_POLICY_FIFO;
  if (name == "none") return WEIR_DEPENDENCE_POLICY_NONE;
  raise_value("policy '" + name + "' is not 'operands', 'fifo' or 'none'");
}

// ---- Making things -----------------------------------------------------------------------------

PlaceRef make_place(const Domain& domain, std::size_t cores, const Text& name, bool oversubscribe) {
  domain.session->require_open();
  weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
  options.core_count = cores;
  options.name = c_str(name);
  options.oversubscribe = oversubscribe;
  weir_place* made = nullptr;
  call_released({&domain.session->in_use},
                [&] { return weir_place_create(domain.handle, &options, &made); });
  return make_waiting<Place>(domain.session, made);
}

std::vector<PlaceRef> partition(const Domain& domain, std::size_t count, bool oversubscribe) {
  domain.session->require_open();
  std::vector<weir_place*> made(count > 0 ? count : 1);
  call_released({&domain.session->in_use}, [&] {
    return weir_domain_partition(domain.handle, count, oversubscribe, made.data());
  });
  std::vector<PlaceRef> places;
  for (weir_place* each : made) places.push_back(make_waiting<Place>(domain.session, each));
  return places;
}

std::shared_ptr<Stream> make_stream(const PlaceRef& place, const Text& name,
                                    const std::string& policy, int priority,
                                    std::size_t max_in_flight) {
  place->session->require_open();
  weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
  options.name = c_str(name);
  options.policy = policy_of(policy);
  options.priority = priority;
  options.max_in_flight = max_in_flight;
  weir_stream* made = nullptr;
  call_released({&place->session->in_use},
                [&] { return weir_stream_create(place->handle, &options, &made); });
  auto stream = make_waiting<Stream>(place, made);
  place->session->streams.push_back(stream);
  return stream;
}

std::shared_ptr<Queue> make_queue(const Runtime& runtime, const Text& policy,
                                  std::vector<PlaceRef> places, const Text& name, bool models,
                                  std::size_t max_in_flight) {
  runtime.session->require_open();
  std::vector<weir_place*> handles;
  for (const PlaceRef& place : places) handles.push_back(place->handle);
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.policy = c_str(policy);
  options.places = handles.data();
  options.place_count = handles.size();
  options.name = c_str(name);
  options.no_models = !models;
  options.max_in_flight = max_in_flight;
  weir_queue* made = nullptr;
  call_released({&runtime.session->in_use},
                [&] { return weir_queue_create(runtime.session->handle(), &options, &made); });
  for (PlaceRef& place : places) place = used(place);
  auto queue = make_waiting<Queue>(runtime.session, std::move(places), made);
  runtime.session->queues.push_back(queue);
  return queue;
}

Domain find_domain(const Runtime& runtime, nb::handle key) {
  Session& session = *runtime.session;
  session.require_open();
  weir_domain* found = nullptr;
  if (PyUnicode_Check(key.ptr())) {
    const auto name = nb::cast<std::string>(key);
    check(weir_runtime_find_domain(session.handle(), name.c_str(), &found));
    return {runtime.session, found};
  }
  const auto index = nb::cast<long long>(key);
  const std::size_t count = weir_runtime_domain_count(session.handle());
  if (index >= 0)
    found = weir_runtime_get_domain(session.handle(), static_cast<std::size_t>(index));
  if (found == nullptr) {
    raise_status(WEIR_STATUS_NOT_FOUND, "there is no domain " + std::to_string(index) +
                                            ": the runtime has " + std::to_string(count));
  }
  return {runtime.session, found};
}

// ---- Properties --------------------------------------------------------------------------------

nb::dict stats_of(const Runtime& runtime) {
  runtime.session->require_open();
  weir_stats found = WEIR_STATS_INIT;
  check(weir_runtime_get_stats(runtime.session->handle(), &found));
  nb::dict stats;
  stats["actions_enqueued"] = found.actions_enqueued;
  stats["actions_completed"] = found.actions_completed;
  stats["actions_failed"] = found.actions_failed;
  stats["bytes_h2d"] = found.bytes_h2d;
  stats["bytes_d2h"] = found.bytes_d2h;
  stats["bytes_d2d"] = found.bytes_d2d;
  stats["bytes_evicted"] = found.bytes_evicted;
  stats["transfers_elided"] = found.transfers_elided;
  return stats;
}

nb::dict summary_of(const Runtime& runtime) {
  runtime.session->require_open();
  weir_trace_summary found = WEIR_TRACE_SUMMARY_INIT;
  check(weir_trace_summarize(runtime.session->handle(), &found));
  nb::dict summary;
  summary["actions"] = found.actions;
  summary["dropped"] = found.dropped;
  summary["measured_s"] = found.measured_s;
  summary["compute_s"] = found.compute_s;
  summary["transfer_s"] = found.transfer_s;
  summary["busiest_place"] = text_from(found.busiest_place);
  summary["busiest_place_s"] = found.busiest_place_s;
  summary["busiest_link"] = text_from(found.busiest_link);
  summary["busiest_link_s"] = found.busiest_link_s;
  summary["ideal_s"] = found.ideal_s;
  summary["overlap_ratio"] = found.overlap_ratio;
  summary["hidden_s"] = found.hidden_s;
  summary["idle_share"] = found.idle_share;
  summary["critical_path_s"] = found.critical_path_s;
  return summary;
}

std::string describe(const Runtime& runtime) {
  runtime.session->require_open();
  std::string text(std::size_t{1} << 16, '\0');
  for (;;) {
    std::size_t size = 0;
    check(weir_runtime_describe(runtime.session->handle(), text.data(), text.size(), &size));
    const bool whole = size <= text.size();
    text.resize(whole ? size - 1 : size);
    if (whole) return text;
  }
}

std::size_t wait_any(const Runtime& runtime, nb::handle events, const Timeout& timeout) {
  const std::vector<weir_event> handles = handles_of(events, *runtime.session);
  if (handles.empty()) raise_value("there are no events to wait for");
  std::size_t index = 0;
  weir_runtime* const live = runtime.session->handle();
  const auto wait = [&](std::int64_t ns) {
    return weir_event_wait(live, handles.data(), handles.size(), WEIR_WAIT_MODE_ANY, ns, &index);
  };
  check(wait_for(timeout, wait, {&runtime.session->in_use}));
  return index;
}

void wait_all(const Runtime& runtime, nb::handle events, const Timeout& timeout) {
  const std::vector<weir_event> handles = handles_of(events, *runtime.session);
  weir_runtime* const live = runtime.session->handle();
  const auto wait = [&](std::int64_t ns) {
    return weir_event_wait(live, handles.data(), handles.size(), WEIR_WAIT_MODE_ALL, ns, nullptr);
  };
  check(wait_for(timeout, wait, {&runtime.session->in_use}));
}

std::string status_name(const Event& event) {
  const weir_event_info info = event.info();
  return info.complete ? weir_status_name(info.status) : "pending";
}

// ---- Classes -----------------------------------------------------------------------------------

void define_data(nb::module_& m) {
  m.def("_array_of", &array_of, "given"_a);
  m.def("_open_dlpack", &open_dlpack, "given"_a);
  nb::class_<Part>(m, "Region", "Part of a buffer, with shape and dtype: what indexing one gives.")
      .def_prop_ro("buffer", [](const Part& part) { return part.buffer; })
      .def_prop_ro("shape",
                   [](const Part& part) {
                     nb::list shape;
                     for (const auto& axis : part.layout->axes) shape.append(axis.length);
                     return nb::tuple(shape);
                   })
      .def_prop_ro(
          "dtype", [](const Part& part) { return nb::borrow(part.layout->dtype); },
          nb::sig("def dtype(self) -> numpy.dtype"))
      .def("__repr__", [](nb::handle part) {
        return text_of(part, "<weir.Region of '{0.buffer.name}': {0.dtype} {0.shape}>");
      });

  nb::class_<Operand>(m, "Operand", "A part of a buffer and how a kernel uses it.");
  const auto operand = [&m](const char* name, weir_access access, const char* text) {
    const std::string signature = std::string("def ") + name + "(part: Part) -> Operand";
    m.def(
        name,
        [access](nb::object part) {
          return Operand{std::move(part), access};
        },
        "part"_a, text, nb::sig(signature.c_str()));
  };
  operand("read", WEIR_ACCESS_READ,
          "An operand that a kernel reads. A part is a Buffer, a Region of one, or an array that "
          "lies in a wrapped one.");
  operand("write", WEIR_ACCESS_WRITE, "An operand that a kernel writes, all of it.");
  operand("readwrite", WEIR_ACCESS_READ_WRITE, "An operand that a kernel reads and writes.");
  operand(
      "commute", WEIR_ACCESS_COMMUTE,
      "An operand that tasks of a queue read and write, in any order with others that commute.");
  operand("reduce", WEIR_ACCESS_REDUCE,
          "An operand that tasks of a queue reduce into: each gets a partial result instead. See "
          "Queue.submit().");

  nb::class_<Buffer>(m, "Buffer",
                     "An array as the memory of a buffer. It holds the array; closing or deleting "
                     "it waits for the actions that use it.")
      .def_ro("array", &Buffer::array, "The array, as numpy.ndarray over the same memory.",
              nb::sig("def array(self) -> numpy.ndarray"))
      .def_prop_ro("name", &Buffer::name)
      .def_prop_ro(
          "nbytes", [](const Buffer& buffer) { return nb::object(buffer.array.attr("nbytes")); },
          nb::sig("def nbytes(self) -> int"))
      .def_prop_ro(
          "shape", [](const Buffer& buffer) { return nb::object(buffer.array.attr("shape")); },
          nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro(
          "dtype", [](const Buffer& buffer) { return nb::object(buffer.array.attr("dtype")); },
          nb::sig("def dtype(self) -> numpy.dtype"))
      .def("__getitem__", &part_at, "index"_a, "The region that an index of NumPy means.",
           nb::sig("def __getitem__(self, index: object) -> Region"))
      .def(
          "__array__",
          [](const Buffer& buffer, nb::handle dtype, nb::handle copy) {
            const bool copies = !copy.is_none() && nb::cast<bool>(copy);
            const nb::object array = nb::module_::import_("numpy").attr(
                copies ? "array" : "asarray")(buffer.array, dtype);
            return array;
          },
          "dtype"_a = nb::none(), "copy"_a = nb::none(),
          nb::sig("def __array__(self, dtype: numpy.typing.DTypeLike = None, copy: bool | None = "
                  "None) -> numpy.ndarray"))
      .def("close", &Buffer::close, "Waits for the actions that use the buffer, and ends it.")
      .def("__enter__", [](std::shared_ptr<Buffer> buffer) { return buffer; })
      .def("__exit__",
           [](Buffer& buffer, nb::args ended) {
             note_exit(ended[0]);
             buffer.close();
           })
      .def("_repr_html_", &html_of, nb::sig(kHtmlSignature))
      .def("__repr__", [](nb::handle buffer) {
        if (nb::cast<const Buffer&>(buffer).handle == nullptr)
          return nb::str("<weir.Buffer, closed>");
        return text_of(buffer, "<weir.Buffer '{0.name}': {0.dtype} {0.shape}>");
      });

  nb::class_<Kernel>(m, "Kernel", "A kernel of a runtime.")
      .def_ro("name", &Kernel::name)
      .def("__repr__",
           [](nb::handle kernel) { return text_of(kernel, "<weir.Kernel '{0.name}'>"); });
}

void define_events(nb::module_& m) {
  nb::class_<Event>(m, "Event",
                    "The completion of an action: a value. In asyncio one may await it.")
      .def("wait", &Event::wait, "timeout"_a = nb::none(),
           "Waits until the action is over; raises its failure.")
      .def_prop_ro(
          "done", [](const Event& event) { return event.info().complete; },
          "Whether the action is over.")
      .def_prop_ro("status", &status_name, "'pending', 'ok', or what went wrong: 'poisoned'.")
      .def("on_complete", &Event::on_complete, "function"_a,
           "Calls function(status, message) when the action is over, on the thread that completed "
           "it. It may enqueue, but not wait.",
           nb::sig("def on_complete(self, function: "
                   "collections.abc.Callable[[str, str], object]) -> None"))
      .def_prop_ro(
          "_virtual_time",
          [](const Event& event) {
            event.session->require_open();
            weir_runtime* const runtime = event.session->handle();
            return Domain{event.session, weir_runtime_get_domain(runtime, 0)}.info().virtual_time;
          })
      .def(
          "future",
          [](nb::handle event) {
            return nb::object(nb::module_::import_("weir._events").attr("future_of")(event));
          },
          "A future of the action.", nb::sig("def future(self) -> concurrent.futures.Future[None]"))
      .def(
          "__await__",
          [](nb::handle event) {
            return nb::object(nb::module_::import_("weir._events").attr("wait_of")(event));
          },
          nb::sig("def __await__(self) -> collections.abc.Generator[typing.Any, None, None]"))
      .def("_repr_html_", &html_of, nb::sig(kHtmlSignature))
      .def("__repr__", [](nb::handle event) { return text_of(event, "<weir.Event: {0.status}>"); });
  m.def("_exception_of", &Event::exception_of);
}

constexpr const char* kRecordSignature =
    "def record(self, name: str | None = None, record_only: bool = False) -> Recording";
constexpr const char* kRecordText =
    "Records the calls of submit() inside a with statement, whose target is the Graph: `with "
    "queue.record() as graph:`. Calls from all threads are recorded, code of the program between "
    "them is not. Functions of Python work as kernels; those of one launch run one at a time as "
    "far as they hold Python's lock, so that graphs of native kernels gain most. An exception in "
    "the block discards the graph and passes. The queue must have one place, in host memory: "
    "otherwise, and for weir.reduce(), this raises UnsupportedError. It raises BusyError when the "
    "queue is being recorded already, and InvalidArgumentError at the end of a block that has "
    "submitted nothing. name: of the graph and its launches; None: \"graph N\". record_only: the "
    "calls do not run while they are recorded, and their events are complete.";

void define_streams(nb::module_& m) {
  nb::class_<Place>(m, "Place", "A set of a domain's cores. Streams hold it.")
      .def_prop_ro("name",
                   [](const Place& place) {
                     weir_place_info info = WEIR_PLACE_INFO_INIT;
                     check(weir_place_get_info(open(*place.session, place.handle, "place"), &info));
                     return std::string(info.name);
                   })
      .def_prop_ro("cores",
                   [](const Place& place) {
                     weir_place_info info = WEIR_PLACE_INFO_INIT;
                     check(weir_place_get_info(open(*place.session, place.handle, "place"), &info));
                     return info.core_count;
                   })
      .def(
          "stream", &make_stream, "name"_a = nb::none(), "policy"_a = "operands", "priority"_a = 0,
          "max_in_flight"_a = 0,
          "Makes a stream. The policy 'operands' orders what overlaps, 'fifo' everything. "
          "max_in_flight: actions from which on the program waits to enqueue; 0: the usual number.")
      .def("close", &Place::close,
           "Ends the streams of the place, and the place. Raises BusyError while a queue, a share "
           "or a pipeline uses it: close that first.")
      .def("__enter__", [](PlaceRef place) { return place; })
      .def("__exit__",
           [](Place& place, nb::args ended) {
             note_exit(ended[0]);
             place.close();
           })
      .def("__repr__", [](nb::handle place) {
        return text_of(place, "<weir.Place '{0.name}': {0.cores} cores>");
      });

  const char* const compute_sig =
      "def compute(self, kernel: Kernel | str, operands: collections.abc.Iterable[Operand], "
      "scalars: collections.abc.Iterable[Argument] = (), name: str | None = None) -> Event";
  nb::class_<Stream>(m, "Stream",
                     "A queue of actions bound to a place. They run out of order wherever their "
                     "operands allow, with the result of running them in order.")
      .def(
          "compute",
          [](const Stream& stream, nb::handle kernel, nb::handle operands, nb::handle scalars,
             const Text& name) { return stream.compute(kernel, operands, scalars, c_str(name)); },
          "kernel"_a, "operands"_a, "scalars"_a = nb::tuple(), "name"_a = nb::none(),
          "Enqueues a call of a kernel and returns at once.", nb::sig(compute_sig))
      .def("upload", &Stream::upload, "part"_a,
           "Enqueues a copy from host memory to the stream's domain.",
           nb::sig("def upload(self, part: Part) -> Event"))
      .def("download", &Stream::download, "part"_a,
           "Enqueues a copy from the stream's domain to host memory.",
           nb::sig("def download(self, part: Part) -> Event"))
      .def(
          "transfer",
          [](const Stream& stream, nb::handle source, nb::handle target, const Domain* from,
             const Domain* to) {
            return stream.transfer(source, target, from ? from->handle : nullptr,
                                   to ? to->handle : nullptr);
          },
          "source"_a, "target"_a, "source_domain"_a = nb::none(), "target_domain"_a = nb::none(),
          "Enqueues a copy between the memories of two domains; None is host memory.",
          nb::sig("def transfer(self, source: Part, target: Part, source_domain: Domain | None = "
                  "None, target_domain: Domain | None = None) -> Event"))
      .def(
          "wait",
          [](const Stream& stream, nb::handle events, nb::handle parts) {
            return parts.is_none() ? stream.sync(events, nb::tuple(), WEIR_SYNC_SCOPE_STREAM)
                                   : stream.sync(events, parts, WEIR_SYNC_SCOPE_OPERANDS);
          },
          "events"_a, "parts"_a = nb::none(),
          "Enqueues a wait for events of other streams, on the stream and not on the program. It "
          "orders what touches the parts; without parts it is a barrier.",
          nb::sig("def wait(self, events: Event | collections.abc.Iterable[Event], parts: "
                  "collections.abc.Iterable[Part] | None = None) -> Event"))
      .def(
          "barrier",
          [](const Stream& stream) {
            return stream.sync(nb::tuple(), nb::tuple(), WEIR_SYNC_SCOPE_STREAM);
          },
          "Enqueues a barrier: later actions wait for all earlier ones.",
          nb::sig("def barrier(self) -> Event"))
      .def(
          "mark",
          [](const Stream& stream) {
            return stream.sync(nb::tuple(), nb::tuple(), WEIR_SYNC_SCOPE_NOTHING);
          },
          "An event for everything enqueued so far, which orders nothing.",
          nb::sig("def mark(self) -> Event"))
      .def("synchronize", &Stream::synchronize, "timeout"_a = nb::none(),
           "Waits for everything enqueued so far; raises the first failure and forgets it.")
      .def("cancel", &Stream::cancel, "Cancels the actions that have not started.")
      .def(
          "record",
          [](std::shared_ptr<Stream> stream, const Text& name, bool record_only) {
            return std::make_shared<Recording>(Graph::Target{{}, std::move(stream)}, name,
                                               record_only);
          },
          "name"_a = nb::none(), "record_only"_a = false,
          "The same as Queue.record(), for the calls of compute(). The place must be on a domain "
          "'host' or 'sim'. The recording refuses transfers that copy, and waits for events.",
          nb::sig(kRecordSignature))
      .def("close", &Stream::close,
           "Waits for the actions, whatever their outcome, and ends the stream.")
      .def("__enter__", [](std::shared_ptr<Stream> stream) { return stream; })
      .def(
          "__exit__",
          [](Stream& stream, nb::handle type, nb::handle, nb::handle) {
            note_exit(type);
            type.is_none() ? stream.synchronize({}) : stream.cancel();
            stream.close();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none())
      .def("__repr__", [](const Stream& stream) {
        return stream.handle == nullptr
                   ? nb::str("<weir.Stream, closed>")
                   : text_of(nb::cast(stream.place), "<weir.Stream on '{0.name}'>");
      });
}

void define_queues(nb::module_& m) {
  nb::class_<Queue>(m, "Queue",
                    "One sequential program of tasks over all places: weir chooses places and "
                    "copies. Operands name host memory.")
      .def(
          "submit",
          [](const Queue& queue, nb::handle kernel, nb::handle operands, nb::handle scalars,
             const Text& name, int priority, nb::handle domains, PlaceRef place, nb::handle combine,
             nb::handle init) {
            TaskOptions options{c_str(name), priority, 0, std::move(place), combine, init};
            for (const nb::handle domain : domains) {
              options.domains |= std::uint64_t{1}
                                 << (nb::cast<const Domain&>(domain).info().index & 63);
            }
            return queue.submit(kernel, operands, scalars, options);
          },
          "kernel"_a, "operands"_a, "scalars"_a = nb::tuple(), "name"_a = nb::none(),
          "priority"_a = 0, "domains"_a = nb::tuple(), "place"_a = nb::none(),
          "combine"_a = nb::none(), "init"_a = nb::none(),
          "Submits a call of a kernel and returns at once. domains: those that may run it; none: "
          "all. place: the one that runs it. combine(result, partial) adds a partial result of "
          "weir.reduce() to another, init(partial) sets one to what changes nothing; none: zeros.",
          nb::sig(
              "def submit(self, kernel: Kernel | str, operands: "
              "collections.abc.Iterable[Operand], scalars: collections.abc.Iterable[Argument] = "
              "(), name: str | None = None, priority: int = 0, domains: "
              "collections.abc.Iterable[Domain] = (), place: Place | None = None, combine: "
              "Kernel | str | None = None, init: Kernel | str | None = None) -> Event"))
      .def(
          "acquire",
          [](const Queue& queue, nb::handle part, const std::string& access,
             const Timeout& timeout) { queue.acquire(part, access_of(access), timeout); },
          "part"_a, "access"_a = "read", "timeout"_a = nb::none(),
          "Waits until the program may use a part: 'read', 'write' or 'readwrite'.",
          nb::sig("def acquire(self, part: Part, access: str = 'read', timeout: float | None = "
                  "None) -> None"))
      .def("flush", &Queue::flush, "part"_a, "Begins to write a part back to host memory.",
           nb::sig("def flush(self, part: Part) -> Event"))
      .def("synchronize", &Queue::synchronize, "timeout"_a = nb::none(),
           "Waits for all tasks and their results; raises the first failure and forgets it.")
      .def("cancel", &Queue::cancel, "Cancels the tasks that have not started.")
      .def(
          "record",
          [](std::shared_ptr<Queue> queue, const Text& name, bool record_only) {
            return std::make_shared<Recording>(Graph::Target{std::move(queue), {}}, name,
                                               record_only);
          },
          "name"_a = nb::none(), "record_only"_a = false, kRecordText, nb::sig(kRecordSignature))
      .def_prop_ro("name", [](const Queue& queue) { return std::string(queue.info().name); })
      .def_prop_ro("policy", [](const Queue& queue) { return std::string(queue.info().policy); })
      .def_prop_ro("submitted", [](const Queue& queue) { return queue.info().submitted; })
      .def_prop_ro("completed", [](const Queue& queue) { return queue.info().completed; })
      .def_prop_ro(
          "remarks",
          [](const Queue& queue) {
            const char* const said = queue.info().remarks;
            return std::string(said != nullptr ? said : "");
          },
          "Why places have got no task, a line each.")
      .def("shares", &Queue::shares, "What each place did: tasks, seconds, bytes.",
           nb::sig("def shares(self) -> list[dict[str, typing.Any]]"))
      .def("close", &Queue::close,
           "Waits for the tasks, whatever their outcome, and ends the queue.")
      .def("__enter__", [](std::shared_ptr<Queue> queue) { return queue; })
      .def(
          "__exit__",
          [](Queue& queue, nb::handle type, nb::handle, nb::handle) {
            note_exit(type);
            type.is_none() ? queue.synchronize({}) : queue.cancel();
            queue.close();
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none())
      .def("_repr_html_", &html_of, nb::sig(kHtmlSignature))
      .def("__repr__", [](nb::handle queue) {
        if (nb::cast<const Queue&>(queue).handle == nullptr) return nb::str("<weir.Queue, closed>");
        return text_of(queue, "<weir.Queue '{0.name}': {0.completed} of {0.submitted} tasks done>");
      });
}

void define_domains(nb::module_& m) {
  nb::class_<Domain>(m, "Domain", "One memory with the cores that compute on it.")
      .def_prop_ro("name", [](const Domain& domain) { return std::string(domain.info().name); })
      .def_prop_ro("backend",
                   [](const Domain& domain) { return std::string(domain.info().backend); })
      .def_prop_ro("description",
                   [](const Domain& domain) { return std::string(domain.info().description); })
      .def_prop_ro("index", [](const Domain& domain) { return domain.info().index; })
      .def_prop_ro("cores", [](const Domain& domain) { return domain.info().cores; })
      .def_prop_ro("memory_bytes", [](const Domain& domain) { return domain.info().memory_bytes; })
      .def_prop_ro("memory_used", [](const Domain& domain) { return domain.info().memory_used; })
      .def_prop_ro(
          "aliases_host", [](const Domain& domain) { return domain.info().aliases_host; },
          "Whether it shares memory with the host: transfers cost nothing.")
      .def_prop_ro("virtual_time", [](const Domain& domain) { return domain.info().virtual_time; })
      .def_prop_ro(
          "skips_kernels", [](const Domain& domain) { return domain.info().skips_kernels; },
          "Whether only modelled time passes there: results are invalid.")
      .def("place", &make_place, "cores"_a = 0, "name"_a = nb::none(), "oversubscribe"_a = false,
           "Makes a place of so many free cores, 0: of all of them.")
      .def("partition", &partition, "count"_a, "oversubscribe"_a = false,
           "Divides the free cores evenly over places.")
      .def("__repr__", [](nb::handle domain) {
        return text_of(domain, "<weir.Domain '{0.name}': {0.cores} cores>");
      });
}

void define_runtime(nb::module_& m) {
  nb::class_<Runtime>(m, "_Runtime")
      .def(
          "__init__",
          [](Runtime* self, const Text& domains, const Text& blas, const FabricRef& fabric) {
            weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
            options.domains = c_str(domains);
            options.blas = c_str(blas);
            new (self) Runtime{Session::open(options, fabric)};
          },
          "domains"_a.none(), "blas"_a.none(), "fabric"_a.none())
      .def_prop_ro("closed", [](const Runtime& runtime) { return runtime.session->closed(); })
      .def_prop_ro("domains",
                   [](const Runtime& runtime) {
                     runtime.session->require_open();
                     std::vector<Domain> domains;
                     const std::size_t count = weir_runtime_domain_count(runtime.session->handle());
                     for (std::size_t i = 0; i < count; ++i) {
                       domains.push_back({runtime.session,
                                          weir_runtime_get_domain(runtime.session->handle(), i)});
                     }
                     return domains;
                   })
      .def("domain", &find_domain, "key"_a = 0,
           "The domain with an index or a name: 'sim:0', or 'sim' when there is only one.",
           nb::sig("def domain(self, key: int | str = 0) -> Domain"))
      .def(
          "wrap",
          [](const Runtime& runtime, nb::handle array, const Text& name, bool alias,
             const Domain* domain) {
            if (domain != nullptr && domain->session != runtime.session) {
              raise_status(WEIR_STATUS_INVALID_ARGUMENT, "the domain is one of another runtime");
            }
            return wrap(runtime.session, array, c_str(name), alias,
                        domain ? domain->handle : nullptr);
          },
          "array"_a, "name"_a = nb::none(), "alias"_a = true, "domain"_a = nb::none(),
          "Makes a buffer of an array, without copying: a NumPy array, something with the buffer "
          "protocol or DLPack, or an array on a CUDA device, by its interface or DLPack. alias="
          "False: domains that could share the memory of the host get their own. domain: the one "
          "in whose memory the array is; None: the host, or the device that has it. The buffer of "
          "an array on a device has a new array of the host beside it, for what is downloaded.",
          nb::sig("def wrap(self, array: object, name: str | None = None, alias: bool = True, "
                  "domain: Domain | None = None) -> Buffer"))
      .def(
          "buffer",
          [](const Runtime& runtime, nb::handle shape, nb::handle dtype, const std::string& order,
             const Text& name, bool alias) {
            return make_buffer(runtime.session, shape, dtype, order.c_str(), c_str(name), alias);
          },
          "shape"_a, "dtype"_a = "float64", "order"_a = "C", "name"_a = nb::none(),
          "alias"_a = true, "Makes a buffer over a new array of zeros.",
          nb::sig("def buffer(self, shape: int | tuple[int, ...], dtype: "
                  "numpy.typing.DTypeLike = 'float64', order: str = 'C', name: str | None = None, "
                  "alias: bool = True) -> Buffer"))
      .def("_queue", &make_queue, "policy"_a.none(), "places"_a, "name"_a.none(), "models"_a,
           "max_in_flight"_a)
      .def(
          "_add_policy",
          [](const Runtime& runtime, const std::string& name, nb::handle choose) {
            add_policy(*runtime.session, name, choose);
          },
          "name"_a, "choose"_a)
      .def(
          "_find_kernel",
          [](const Runtime& runtime, const std::string& name) -> Kernel& {
            return runtime.session->kernel(name);
          },
          nb::rv_policy::reference_internal)
      .def("_keep", [](const Runtime& runtime,
                       nb::handle object) { runtime.session->kept.push_back(nb::borrow(object)); })
      .def(
          "_add_function",
          [](const Runtime& runtime, const std::string& name, nb::handle function) -> Kernel& {
            return add_function(*runtime.session, name, function);
          },
          nb::rv_policy::reference_internal)
      .def(
          "_add_native",
          [](const Runtime& runtime, const std::string& name, std::uintptr_t address, bool flat,
             bool parallel) -> Kernel& {
            return add_native(*runtime.session, name, address, flat, parallel);
          },
          nb::rv_policy::reference_internal)
      .def(
          "_add_portable",
          [](const Runtime& runtime, const std::string& name, std::uintptr_t kernel,
             std::uintptr_t grid, const std::string& source, bool parallel) -> Kernel& {
            return add_portable(*runtime.session, name, kernel, grid, source, parallel);
          },
          nb::rv_policy::reference_internal)
      .def(
          "synchronize",
          [](const Runtime& runtime, const Timeout& timeout) {
            runtime.session->synchronize(timeout);
          },
          "timeout"_a = nb::none(),
          "Waits for all queues and streams; raises the first failure and forgets all of them.")
      .def(
          "cancel", [](const Runtime& runtime) { runtime.session->cancel(); },
          "Cancels everything that has not started.")
      .def("wait", &wait_all, "events"_a, "timeout"_a = nb::none(),
           "Waits for all of the events; raises the failure of the first that failed.",
           nb::sig("def wait(self, events: Event | collections.abc.Iterable[Event], timeout: float "
                   "| None = None) -> None"))
      .def("wait_any", &wait_any, "events"_a, "timeout"_a = nb::none(),
           "Waits for one of the events; returns its index, or raises its failure.",
           nb::sig("def wait_any(self, events: collections.abc.Iterable[Event], timeout: float | "
                   "None = None) -> int"))
      .def(
          "now",
          [](const Runtime& runtime) {
            runtime.session->require_open();
            return static_cast<double>(weir_runtime_now(runtime.session->handle())) * 1e-9;
          },
          "The clock of the platform in seconds: simulated, if time is. Differences mean "
          "something.")
      .def(
          "pass_time",
          [](const Runtime& runtime, double seconds) {
            runtime.session->require_open();
            check(weir_runtime_pass_time(runtime.session->handle(),
                                         nanoseconds(seconds, "the time")));
          },
          "seconds"_a,
          "In virtual time: lets time pass, as if the calling thread worked. Otherwise it does "
          "nothing.")
      .def("stats", &stats_of, "Actions and bytes since the runtime was made.",
           nb::sig("def stats(self) -> dict[str, int]"))
      .def("_describe", &describe)
      .def(
          "serve",
          [](const Runtime& runtime) {
            runtime.session->require_open();
            bool served = false;
            call_released({&runtime.session->in_use},
                          [&] { return weir_rank_serve(runtime.session->handle(), &served); });
            return served;
          },
          "Rank 0, and a runtime without a fabric: returns False at once. Others: runs what rank 0 "
          "asks for, with kernels of the same name, which no function of Python is; returns True "
          "when rank 0 closes its fabric.")
      .def(
          "start_trace",
          [](const Runtime& runtime, std::size_t max_bytes) {
            runtime.session->require_open();
            check(weir_trace_start(runtime.session->handle(), max_bytes));
          },
          "max_bytes"_a = 0, "Begins to record actions; forgets an earlier recording.")
      .def(
          "stop_trace",
          [](const Runtime& runtime) {
            runtime.session->require_open();
            check(weir_trace_stop(runtime.session->handle()));
          },
          "Stops recording; the recording stays.")
      .def(
          "write_trace",
          [](const Runtime& runtime, const std::string& path) {
            runtime.session->require_open();
            check(weir_trace_write(runtime.session->handle(), path.c_str()));
          },
          "path"_a, "Writes the recording: Perfetto's format to *.pftrace, else Chrome's JSON.")
      .def("trace_summary", &summary_of, "What the recording says; times in seconds.",
           nb::sig("def trace_summary(self) -> dict[str, typing.Any]"))
      .def(
          "close", [](const Runtime& runtime) { runtime.session->close(); },
          "Waits for all work and ends the runtime with everything made from it. An unreported "
          "failure is printed: synchronize() raises it. After KeyboardInterrupt it cancels what "
          "has "
          "not started instead, interrupts kernels of Python, and does not wait for kernels that "
          "go "
          "on for more than half a second.");
}

}  // namespace

NB_MODULE(_weir, m) {
  m.doc() = "The classes of weir: import weir instead.";
  m.attr("__version__") = WEIR_VERSION_STRING;
  note_main_thread();
  nb::module_::import_("traceback");  // a first import while Python ends would hide an interrupt
  define_data(m);
  define_events(m);
  define_domains(m);
  define_streams(m);
  define_queues(m);
  define_graphs(m);
  define_fabrics(m);
  define_pipelines(m);
  define_policies(m);
  define_reports(m);
  define_shares(m);
  define_runtime(m);
  m.def("_note_exit", &note_exit, "type"_a.none());
  nb::set_leak_warnings(false);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { Session::close_all(); }));
}

}  // namespace weir::py
