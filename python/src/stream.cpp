#include "stream.hpp"

#include <cstring>
#include <utility>

#include "graph.hpp"

namespace weir::py {

namespace {

void check_target(const Part& part) {
  if (part.readonly) {
    raise_value("the array of buffer '" + part.buffer->name() +
                "' is read-only: it cannot be written");
  }
}

weir_domain* domain_of(const Place& place) {
  weir_place_info info = WEIR_PLACE_INFO_INIT;
  check(weir_place_get_info(open(*place.session, place.handle, "place"), &info));
  return info.domain;
}

weir_endpoint endpoint_of(const Part& part, weir_domain* domain) {
  return {domain, part.buffer->handle, part.region};
}

}  // namespace

void Place::close() {
  if (handle == nullptr) return;
  require_no_callback("a place");
  if (uses > 0 && !session->closed()) {
    weir_place_info info = WEIR_PLACE_INFO_INIT;
    check(weir_place_get_info(handle, &info));
    raise_status(WEIR_STATUS_BUSY,
                 "place '" + std::string(info.name) +
                     "' is used by a queue, a share or a pipeline: close that first");
  }
  std::vector<std::shared_ptr<Stream>> ended;  // destroyed with it
  std::vector<InUse*> used;
  for (const auto& each : session->streams) {
    const auto stream = each.lock();
    if (!stream || stream->place.get() != this) continue;
    stream->handle = nullptr;
    used.push_back(&stream->in_use);
    ended.push_back(stream);
  }
  end(*session, handle, weir_place_destroy, used);
}

PlaceRef used(const PlaceRef& place) {
  if (!place) return {};
  ++place->uses;
  return {place.get(), [place](Place*) { --place->uses; }};
}

// ---- Events ------------------------------------------------------------------------------------

void Event::wait(const Timeout& timeout) const {
  session->require_open();
  weir_runtime* const runtime = session->handle();  // null once another thread closes the session
  const auto wait = [&](std::int64_t ns) {
    return weir_event_wait(runtime, &handle, 1, WEIR_WAIT_MODE_ALL, ns, nullptr);
  };
  check(wait_for(timeout, wait, {&session->in_use}));
}

weir_event_info Event::info() const {
  session->require_open();
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  call_released({&session->in_use},
                [&] { return weir_event_get_info(session->handle(), &handle, &info); });
  return info;
}

void Event::on_complete(nb::handle code) const {
  session->require_open();
  const auto run = [](weir_status status, const char* message, void* payload) {
    const nb::gil_scoped_acquire held;
    const CallbackScope scope;
    const nb::object called = nb::steal(static_cast<PyObject*>(payload));
    const nb::object text =
        nb::steal(PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)),
                                       "replace"));  // which may end within a letter
    const nb::object done =
        nb::steal(text.is_valid() ? PyObject_CallFunction(called.ptr(), "sO",
                                                          weir_status_name(status), text.ptr())
                                  : nullptr);
    if (!done.is_valid()) PyErr_WriteUnraisable(called.ptr());
  };
  const Using inside({&session->in_use});
  PyObject* const owned = nb::borrow(code).release().ptr();
  weir_status status = WEIR_STATUS_OK;
  {
    const Released released;
    status = weir_event_on_complete(session->handle(), &handle, run, owned);
  }
  if (status != WEIR_STATUS_OK) Py_DECREF(owned);
  check(status);
}

nb::object Event::exception_of(const std::string& status, const std::string& message) {
  for (int each = WEIR_STATUS_OK + 1; each <= WEIR_STATUS_INTERNAL; ++each) {
    const auto known = static_cast<weir_status>(each);
    if (status != weir_status_name(known)) continue;
    try {
      raise_status(known, message);
    } catch (nb::python_error& error) {
      return nb::borrow(error.value());
    }
  }
  return nb::none();
}

std::vector<weir_event> handles_of(nb::handle events, const Session& session) {
  session.require_open();
  std::vector<weir_event> handles;
  const Event* one = nullptr;
  if (nb::try_cast(events, one)) return {one->handle};
  const Sequence list(events, "events are an Event or a sequence of them");
  for (std::size_t i = 0; i < list.size(); ++i) {
    handles.push_back(nb::cast<const Event&>(list[i]).handle);
  }
  return handles;
}

// ---- Actions -----------------------------------------------------------------------------------

namespace {

/// A kernel that reductions call, or null.
const weir_kernel* find_reducing(Session& session, nb::handle called, const Layout* layout) {
  if (called.is_none()) return nullptr;
  if (layout == nullptr) raise_value("combine and init are for operands of weir.reduce()");
  return on_layout(session, find_kernel(session, called), layout).handle;
}

}  // namespace

Action::Action(Session& session, nb::handle called, nb::handle parts, nb::handle values,
               const Graph* graph) {
  session.require_open();
  Kernel* const known = &find_kernel(session, called);
  kernel = known->handle;
  if (known->python != nullptr) python = known;
  const Sequence given(parts, "operands are a sequence of weir.read(), write() and readwrite()");
  fill_scalars(values, graph);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Operand* operand = nullptr;
    if (!nb::try_cast(given[i], operand)) {
      raise_type("operand " + std::to_string(i) + " of '" + known->name +
                 "' does not say how it is used: write weir.read(x), weir.write(x) or "
                 "weir.readwrite(x)");
    }
    Part part = find_part(session, operand->part);
    if (operand->access != WEIR_ACCESS_READ) check_target(part);
    if (operand->access == WEIR_ACCESS_REDUCE) {
      if (reduced != nullptr && reduced != part.layout) {
        raise_type("a task reduces into parts of one shape and dtype");
      }
      reduced = part.layout;
    }
    weir_region region = part.region;
    if (known->tiles) {
      check_tile_dtype(*known, part, i);
      region = tile_of(part, "operand " + std::to_string(i) + " of '" + known->name + "'");
    }
    operands.push_back({part.buffer->handle, region, operand->access});
    if (known->python) {
      scalars.push_back(weir_scalar_u64(reinterpret_cast<std::uint64_t>(part.layout)));
    }
    buffers.push_back(std::move(part.buffer));
  }
}

void Action::fill_scalars(nb::handle values, const Graph* graph) {
  const Sequence numbers(values, "scalars are a sequence of numbers");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const Parameter* parameter = nullptr;
    if (!nb::try_cast(numbers[i], parameter) || parameter == nullptr) {
      scalars.push_back(scalar_of(numbers[i], i));
      continue;
    }
    if (graph == nullptr) {
      raise_value("scalar " + std::to_string(i) +
                  " is a weir.parameter(), but the call is not being recorded: pass the value "
                  "alone");
    }
    scalars.push_back(graph->scalar_of(*parameter));
    parameters.push_back(*parameter);
  }
}

// ---- Streams -----------------------------------------------------------------------------------

template <class Enqueue>
Event Stream::enqueue(Enqueue&& enqueue) const {
  weir_stream* const stream = open(session(), handle, "stream");
  weir_event event = WEIR_EVENT_INIT;
  call_released({&session().in_use, &in_use}, [&] { return enqueue(stream, &event); });
  set_interrupted(false);
  return {place->session, event};
}

void Stream::close() { end(session(), handle, weir_stream_destroy, {&in_use}); }

Event Stream::compute(nb::handle kernel, nb::handle operands, nb::handle scalars,
                      const char* name) const {
  const std::shared_ptr<Graph> graph = recording.lock();
  const Action action(session(), kernel, operands, scalars, graph.get());
  if (action.python) session().require_python(domain_of(*place), action.python->name);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = action.kernel;
  compute.operands = action.operands.data();
  compute.operand_count = action.operands.size();
  compute.scalars = action.scalars.data();
  compute.scalar_count = action.scalars.size();
  compute.name = name;
  const Event event = enqueue([&](weir_stream* stream, weir_event* event) {
    return weir_stream_compute(stream, &compute, event);
  });
  if (graph) graph->note(action);
  return event;
}

Event Stream::upload(nb::handle given) const {
  const Part part = find_part(session(), given);
  return enqueue([&](weir_stream* stream, weir_event* event) {
    return weir_stream_upload(stream, part.buffer->handle, part.region, event);
  });
}

Event Stream::download(nb::handle given) const {
  const Part part = find_part(session(), given);
  check_target(part);
  return enqueue([&](weir_stream* stream, weir_event* event) {
    return weir_stream_download(stream, part.buffer->handle, part.region, event);
  });
}

Event Stream::transfer(nb::handle source, nb::handle target, weir_domain* from,
                       weir_domain* to) const {
  const Part read = find_part(session(), source), written = find_part(session(), target);
  if (to == nullptr) check_target(written);
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  transfer.source = endpoint_of(read, from);
  transfer.target = endpoint_of(written, to);
  return enqueue([&](weir_stream* stream, weir_event* event) {
    return weir_stream_transfer(stream, &transfer, event);
  });
}

Event Stream::sync(nb::handle events, nb::handle parts, weir_sync_scope scope) const {
  const std::vector<weir_event> waits = handles_of(events, session());
  std::vector<weir_operand> operands;
  std::vector<Part> found;
  const Sequence list(parts, "parts are a sequence");
  for (std::size_t i = 0; i < list.size(); ++i) {
    found.push_back(find_part(session(), list[i]));
    operands.push_back({found.back().buffer->handle, found.back().region, WEIR_ACCESS_READ_WRITE});
  }
  weir_sync sync = WEIR_SYNC_INIT;
  sync.events = waits.data();
  sync.event_count = waits.size();
  sync.operands = operands.data();
  sync.operand_count = operands.size();
  sync.scope = scope;
  return enqueue([&](weir_stream* stream, weir_event* event) {
    return weir_stream_sync(stream, &sync, event);
  });
}

Event Stream::send(weir_communicator* group, unsigned to, std::uint32_t tag,
                   nb::handle given) const {
  const Part part = find_part(session(), given);
  return enqueue([&](weir_stream* stream, weir_event* event) {
    return weir_stream_send(stream, group, to, tag, part.buffer->handle, part.region, event);
  });
}

Event Stream::receive(weir_communicator* group, unsigned from, std::uint32_t tag,
                      nb::handle given) const {
  const Part part = find_part(session(), given);
  check_target(part);
  return enqueue([&](weir_stream* stream, weir_event* event) {
    return weir_stream_receive(stream, group, from, tag, part.buffer->handle, part.region, event);
  });
}

Event Stream::put(weir_window* window, unsigned to, std::size_t offset, nb::handle given) const {
  const Part part = find_part(session(), given);
  return enqueue([&](weir_stream* stream, weir_event* event) {
    return weir_stream_put(stream, window, to, offset, part.buffer->handle, part.region, event);
  });
}

Event Stream::get(weir_window* window, unsigned from, std::size_t offset, nb::handle given) const {
  const Part part = find_part(session(), given);
  check_target(part);
  return enqueue([&](weir_stream* stream, weir_event* event) {
    return weir_stream_get(stream, window, from, offset, part.buffer->handle, part.region, event);
  });
}

Event Stream::collective(weir_communicator* group, weir_collective call, nb::handle given,
                         nb::handle all) const {
  const auto fill = [&](nb::handle array, bool is_target, weir_buffer*& buffer,
                        weir_region& region) {
    const Part part = find_part(session(), array);
    if (is_target) check_target(part);
    buffer = part.buffer->handle;
    region = part.region;
  };
  const bool is_reduced = call.kind == WEIR_COLLECTIVE_REDUCE;
  const bool is_copied = call.kind == WEIR_COLLECTIVE_BROADCAST;
  const bool is_root = call.root == weir_communicator_rank(group);
  fill(given, is_reduced || call.kind == WEIR_COLLECTIVE_SCATTER || (is_copied && !is_root),
       call.buffer, call.region);
  if (!all.is_none()) {
    fill(all, call.kind != WEIR_COLLECTIVE_SCATTER, call.all_buffer, call.all_region);
  }
  return enqueue([&](weir_stream* stream, weir_event* event) {
    return weir_stream_collective(stream, group, &call, event);
  });
}

void Stream::synchronize(const Timeout& timeout) const {
  weir_stream* const stream = open(session(), handle, "stream");
  const auto wait = [&](std::int64_t ns) { return weir_stream_synchronize(stream, ns); };
  check(wait_for(timeout, wait, {&session().in_use, &in_use}));
}

void Stream::cancel() const {
  weir_stream* const stream = open(session(), handle, "stream");
  call_released({&session().in_use, &in_use}, [&] { return weir_stream_cancel(stream); });
}

// ---- Queues ------------------------------------------------------------------------------------

void Queue::close() {
  end(*session, handle, weir_queue_destroy, {&in_use});
  places.clear();
}

Event Queue::submit(nb::handle kernel, nb::handle operands, nb::handle scalars,
                    const TaskOptions& wanted) const {
  weir_queue* const queue = open(*session, handle, "queue");
  const std::shared_ptr<Graph> graph = recording.lock();
  const Action action(*session, kernel, operands, scalars, graph.get());
  if (action.python && wanted.place) {
    session->require_python(domain_of(*wanted.place), action.python->name);
  }
  weir_task task = WEIR_TASK_INIT;
  task.kernel = action.kernel;
  task.operands = action.operands.data();
  task.operand_count = action.operands.size();
  task.scalars = action.scalars.data();
  task.scalar_count = action.scalars.size();
  task.name = wanted.name;
  task.priority = wanted.priority;
  task.domains = wanted.domains;
  if (action.python) task.domains = session->python_domains(wanted.domains, action.python->name);
  task.combine = find_reducing(*session, wanted.combine, action.reduced);
  task.init = find_reducing(*session, wanted.init, action.reduced);
  task.place = wanted.place ? open(*session, wanted.place->handle, "place") : nullptr;
  weir_event event = WEIR_EVENT_INIT;
  call_released({&session->in_use, &in_use},
                [&] { return weir_queue_submit(queue, &task, &event); });
  if (graph) graph->note(action);
  set_interrupted(false);
  return {session, event};
}

void Queue::acquire(nb::handle given, weir_access access, const Timeout& timeout) const {
  weir_queue* const queue = open(*session, handle, "queue");
  const Part part = find_part(*session, given);
  const auto wait = [&](std::int64_t ns) {
    return weir_queue_acquire(queue, part.buffer->handle, part.region, access, ns);
  };
  check(wait_for(timeout, wait, {&session->in_use, &in_use}));
}

Event Queue::flush(nb::handle given) const {
  weir_queue* const queue = open(*session, handle, "queue");
  const Part part = find_part(*session, given);
  weir_event event = WEIR_EVENT_INIT;
  call_released({&session->in_use, &in_use},
                [&] { return weir_queue_flush(queue, part.buffer->handle, part.region, &event); });
  return {session, event};
}

void Queue::synchronize(const Timeout& timeout) const {
  weir_queue* const queue = open(*session, handle, "queue");
  const auto wait = [&](std::int64_t ns) { return weir_queue_synchronize(queue, ns); };
  check(wait_for(timeout, wait, {&session->in_use, &in_use}));
}

void Queue::cancel() const {
  weir_queue* const queue = open(*session, handle, "queue");
  call_released({&session->in_use, &in_use}, [&] { return weir_queue_cancel(queue); });
}

weir_queue_info Queue::info() const {
  weir_queue* const queue = open(*session, handle, "queue");
  weir_queue_info found = WEIR_QUEUE_INFO_INIT;
  call_released({&session->in_use, &in_use},
                [&] { return weir_queue_get_info(queue, &found, nullptr, 0); });
  return found;
}

nb::list Queue::shares() const {
  weir_queue_info found = info();
  std::vector<weir_queue_share> shares(found.place_count);
  call_released({&session->in_use, &in_use},
                [&] { return weir_queue_get_info(handle, &found, shares.data(), shares.size()); });
  nb::list list;
  for (const weir_queue_share& share : shares) {
    nb::dict each;
    each["place"] = share.place;
    each["tasks"] = share.tasks;
    each["busy_s"] = static_cast<double>(share.busy_ns) * 1e-9;
    each["bytes_in"] = share.bytes_in;
    each["bytes_out"] = share.bytes_out;
    list.append(each);
  }
  return list;
}

}  // namespace weir::py
