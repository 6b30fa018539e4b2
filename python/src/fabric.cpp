#include "fabric.hpp"

#include "share.hpp"
#include "stream.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>
#include <utility>

namespace weir::py {

namespace {

std::vector<std::weak_ptr<Fabric>> fabrics;

template <class Handle>
Handle* require(const FabricRef& fabric, Handle* handle, const char* what) {
  fabric->open();
  if (handle == nullptr) {
    raise_status(WEIR_STATUS_INVALID_ARGUMENT, std::string("the ") + what + " has been closed");
  }
  return handle;
}

/// The fabric for which this thread runs a handler. The thread that closes the fabric waits for
/// handlers, so calls inside of one are not counted, and do not keep other threads from closing it.
thread_local const Fabric* handled = nullptr;

class HandlerScope {
 public:
  explicit HandlerScope(const Fabric& fabric) : before_(std::exchange(handled, &fabric)) {}
  HandlerScope(const HandlerScope&) = delete;
  HandlerScope& operator=(const HandlerScope&) = delete;
  ~HandlerScope() { handled = before_; }

 private:
  const CallbackScope scope_;
  const Fabric* const before_;
};

/// Runs a function of weir without the GIL, with the objects that it uses held open, and raises its
/// failure.
template <class Call>
void call_inside(Fabric& fabric, InUse* used, Call&& call) {
  if (handled == &fabric) return call_released(call);
  call_released({&fabric.in_use, used}, call);
}

/// Destroys an object of a fabric without the GIL, unless the fabric was closed before. Raises BUSY
/// when another thread is inside.
template <class Handle>
void end(Fabric& fabric, InUse& used, InUse* holder, Handle*& handle, void (*destroy)(Handle*)) {
  if (handle == nullptr || fabric.handle == nullptr) {
    handle = nullptr;
    return;
  }
  used.close_idle();
  Handle* const ended = std::exchange(handle, nullptr);
  const Using ending({&fabric.ending, holder});
  const Released released;
  destroy(ended);
}

void run_handler(unsigned from, const void* message, std::size_t bytes, void* payload) {
  const nb::gil_scoped_acquire held;
  auto& fabric = *static_cast<Fabric*>(payload);
  const HandlerScope scope(fabric);
  const nb::object running = fabric.handler;  // which may set another one in its place
  try {
    running(from, nb::bytes(message, bytes));
  } catch (nb::python_error& error) {
    fabric.raised.keep(error);
  }
}

}  // namespace

// ---- Fabrics -----------------------------------------------------------------------------------

FabricRef open_fabric(const weir_fabric_options& options) {
  dispose_late();
  weir_fabric* made = nullptr;
  call_released([&] { return weir_fabric_open(&options, &made); });
  const FabricRef fabric = make_waiting<Fabric>(made);
  std::erase_if(fabrics, [](const auto& other) { return other.expired(); });
  fabrics.push_back(fabric);
  return fabric;
}

void Fabric::close() {
  if (handle == nullptr || in_use.closed()) return;
  require_no_callback("its fabric");
  in_use.close_idle();
  end();
}

void Fabric::leave() {
  in_use.close();
  closing_.wait();
  end();
}

/// A runtime may keep it.
void Fabric::stop_listening() {
  const Released released;
  static_cast<void>(weir_fabric_listen(handle, nullptr, nullptr));
}

void Fabric::end() {
  if (handle == nullptr) return;
  const Using closing({&closing_});
  stop_listening();
  for (const auto& each : std::exchange(shares, {})) {
    if (const auto share = each.lock()) share->close();
  }
  for (const auto& each : std::exchange(conveyors, {})) {
    if (const auto conveyor = each.lock()) conveyor->close();
  }
  for (const auto& each : std::exchange(windows, {})) {
    if (const auto window = each.lock()) window->close();
  }
  for (const auto& each : std::exchange(communicators, {})) {
    if (const auto communicator = each.lock()) communicator->close();
  }
  ending.wait();
  weir_fabric* const closed = std::exchange(handle, nullptr);
  if (!borrowed && closed != nullptr) {
    const Released released;
    weir_fabric_close(closed);
  }
  handler.reset();
}

void Fabric::close_all() {
  for (const auto& each : std::exchange(fabrics, {})) {
    const auto fabric = each.lock();
    if (!fabric || fabric->handle == nullptr) continue;
    try {
      fabric->close();
    } catch (nb::python_error&) {  // no handler may call Python for it any more
      fabric->stop_listening();
    }
  }
}

weir_fabric* Fabric::open() const {
  if (handle == nullptr) raise_status(WEIR_STATUS_INVALID_ARGUMENT, "the fabric has been closed");
  return handle;
}

void Fabric::wait(const Timeout& timeout, const std::function<weir_status(std::int64_t)>& wait,
                  InUseList used) {
  const weir_status status = wait_for(timeout, wait, used);
  raised.raise();
  check(status);
}

void Fabric::barrier(const Timeout& timeout) {
  weir_fabric* const opened = open();
  wait(timeout, [&](std::int64_t ns) { return weir_fabric_barrier(opened, ns); }, {&in_use});
}

/// Runs a collective operation after all ranks have joined. The other ranks then wait for this one
/// without a timeout, so an exception of a handler is raised only afterwards.
void Fabric::together(const Timeout& timeout, const std::function<weir_status()>& call) {
  weir_fabric* const opened = open();
  const Using inside({&in_use});
  weir_status status =
      wait_for(timeout, [&](std::int64_t ns) { return weir_fabric_barrier(opened, ns); });
  if (status == WEIR_STATUS_OK) {
    const Released released;
    status = call();
  }
  raised.raise();
  check(status);
}

void Fabric::reduce(nb::handle values, weir_fabric_op op, const Timeout& timeout) {
  const Bytes numbers(values, true);
  const std::size_t count = numbers.size() / 8;
  const bool whole = nb::cast<std::string>(values.attr("dtype").attr("kind")) == "i";
  together(timeout, [&] {
    if (whole) {
      auto* const first = reinterpret_cast<std::int64_t*>(numbers.data());
      return weir_fabric_reduce_int64(handle, first, count, op, WEIR_FOREVER);
    }
    auto* const first = reinterpret_cast<double*>(numbers.data());
    return weir_fabric_reduce_double(handle, first, count, op, WEIR_FOREVER);
  });
}

void Fabric::broadcast(unsigned root, nb::handle data, const Timeout& timeout) {
  const Bytes bytes(data, true);
  together(timeout, [&] {
    return weir_fabric_broadcast(handle, root, bytes.data(), bytes.size(), WEIR_FOREVER);
  });
}

void Fabric::send(unsigned to, nb::handle message) {
  const Bytes bytes(message);
  weir_fabric* const opened = open();
  call_inside(*this, nullptr,
              [&] { return weir_fabric_send(opened, to, bytes.data(), bytes.size()); });
}

void Fabric::listen(nb::object code) {
  weir_fabric* const opened = open();
  call_inside(*this, nullptr, [&] { return weir_fabric_listen(opened, nullptr, nullptr); });
  handler = std::move(code);
  if (handler.is_none()) return;
  open();
  call_inside(*this, nullptr, [&] { return weir_fabric_listen(opened, run_handler, this); });
}

namespace {

/// A program of Python on simulated ranks.
struct Simulation {
  nb::handle program;
  std::map<unsigned, nb::object> raised;
};

weir_status run_rank(weir_fabric* handle, void* payload) {
  const nb::gil_scoped_acquire held;
  auto& simulation = *static_cast<Simulation*>(payload);
  const auto fabric = std::make_shared<Fabric>(handle, true);
  weir_status status = WEIR_STATUS_OK;
  try {
    simulation.program(fabric);
  } catch (nb::python_error& error) {
    simulation.raised[weir_fabric_rank(handle)] = nb::borrow(error.value());
    status = WEIR_STATUS_KERNEL_ERROR;
  }
  fabric->leave();
  return status;
}

}  // namespace

void simulate(const weir_fabric_options& options, unsigned ranks, nb::handle program) {
  Simulation simulation{program, {}};
  weir_status status = WEIR_STATUS_OK;
  {
    const Released released;
    status = weir_fabric_simulate(&options, ranks, run_rank, &simulation);
  }
  if (!simulation.raised.empty()) {
    const nb::object first = simulation.raised.begin()->second;
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(first.ptr())), first.ptr());
    throw nb::python_error();
  }
  check(status);
}

int launch(unsigned ranks, const std::vector<std::string>& arguments,
           const weir_fabric_options& options) {
  std::vector<const char*> list;
  for (const std::string& each : arguments) list.push_back(each.c_str());
  list.push_back(nullptr);
  int ended = 0;
  call_released([&] { return weir_fabric_launch(&options, ranks, list.data(), &ended); });
  return ended;
}

// ---- Communicators -----------------------------------------------------------------------------

namespace {

std::uint32_t root_of(std::optional<unsigned> root) { return root.value_or(WEIR_ALL_RANKS); }

/// The type of the elements of an array.
weir_number number_of(nb::handle values) {
  static constexpr std::pair<std::string_view, weir_number> kNumbers[] = {
      {"int8", WEIR_NUMBER_INT8},     {"int16", WEIR_NUMBER_INT16},
      {"int32", WEIR_NUMBER_INT32},   {"int64", WEIR_NUMBER_INT64},
      {"uint8", WEIR_NUMBER_UINT8},   {"uint16", WEIR_NUMBER_UINT16},
      {"uint32", WEIR_NUMBER_UINT32}, {"uint64", WEIR_NUMBER_UINT64},
      {"float32", WEIR_NUMBER_FLOAT}, {"float64", WEIR_NUMBER_DOUBLE}};
  const auto dtype = nb::cast<std::string>(values.attr("dtype").attr("name"));
  for (const auto& [name, number] : kNumbers) {
    if (dtype == name) return number;
  }
  raise_type("a reduction of " + dtype +
             ": convert the array to int8 to int64, uint8 to uint64, float32 or float64");
}

/// Numbers of an array, and how a reduction combines them.
struct Reduced {
  Reduced(nb::handle values, weir_fabric_op op) : type(number_of(values)), bytes(values, true) {
    reduction.type = type;
    reduction.op = op;
    count = bytes.size() / nb::cast<std::size_t>(values.attr("dtype").attr("itemsize"));
  }

  const weir_number type;
  const Bytes bytes;
  std::size_t count;
  weir_reduction reduction = WEIR_REDUCTION_INIT;
};

}  // namespace

std::shared_ptr<Communicator> Communicator::make(const FabricRef& fabric,
                                                 weir_communicator* handle) {
  if (handle == nullptr) return nullptr;
  auto made = make_waiting<Communicator>(fabric, handle);
  std::erase_if(fabric->communicators, [](const auto& other) { return other.expired(); });
  fabric->communicators.push_back(made);
  return made;
}

void Communicator::close() { end(*fabric, in_use_, nullptr, handle, weir_communicator_destroy); }

weir_communicator* Communicator::open() const { return require(fabric, handle, "communicator"); }

unsigned Communicator::fabric_rank(unsigned rank) const {
  const unsigned found = weir_communicator_fabric_rank(open(), rank);
  if (found == WEIR_ALL_RANKS) {
    raise_status(WEIR_STATUS_INVALID_ARGUMENT,
                 "there is no rank " + std::to_string(rank) + " in a communicator of " +
                     std::to_string(weir_communicator_size(open())) + " ranks");
  }
  return found;
}

void Communicator::call(const Timeout& timeout, const Operation& operation) {
  weir_communicator* const opened = open();
  const std::int64_t ns = timeout ? timeout_ns(*timeout) : WEIR_FOREVER;
  const Answer answer = call_cancellable(
      [&] { return operation(opened, ns); },
      [&] { static_cast<void>(weir_communicator_revoke(opened)); }, {&fabric->in_use, &in_use_});
  fabric->raised.raise();
  if (answer.status != WEIR_STATUS_OK) raise_status(answer.status, answer.message);
}

std::shared_ptr<Communicator> Communicator::split(std::optional<std::int64_t> color,
                                                  std::int64_t key, const Timeout& timeout) {
  if (color && *color < 0) {
    raise_value("the color of a split is " + std::to_string(*color) +
                ": choose one of at least 0, or None for no group");
  }
  weir_communicator* made = nullptr;
  call(timeout, [&](weir_communicator* opened, std::int64_t ns) {
    return weir_communicator_split(opened, color.value_or(WEIR_NO_COLOR), key, ns, &made);
  });
  return make(fabric, made);
}

std::shared_ptr<Communicator> Communicator::split_by_node(const Timeout& timeout) {
  weir_communicator* made = nullptr;
  call(timeout, [&](weir_communicator* opened, std::int64_t ns) {
    return weir_communicator_split_by_node(opened, ns, &made);
  });
  return make(fabric, made);
}

/// A timeout does not end it, so that it can wait in slices.
std::shared_ptr<Communicator> Communicator::shrink(const Timeout& timeout) {
  weir_communicator *const opened = open(), *made = nullptr;
  fabric->wait(timeout,
               [&](std::int64_t ns) { return weir_communicator_shrink(opened, ns, &made); },
               {&fabric->in_use, &in_use_});
  return make(fabric, made);
}

void Communicator::revoke() {
  weir_communicator* const opened = open();
  call_inside(*fabric, &in_use_, [&] { return weir_communicator_revoke(opened); });
}

void Communicator::barrier(const Timeout& timeout) { call(timeout, weir_communicator_barrier); }

void Communicator::broadcast(unsigned root, nb::handle data, const Timeout& timeout) {
  const Bytes bytes(data, true);
  call(timeout, [&](weir_communicator* opened, std::int64_t ns) {
    return weir_communicator_broadcast(opened, root, bytes.data(), bytes.size(), ns);
  });
}

void Communicator::gather(Root root, nb::handle own, nb::handle all, const Timeout& timeout) {
  const Bytes part(own);
  std::optional<Bytes> into;
  if (!all.is_none()) into.emplace(all, true);
  call(timeout, [&](weir_communicator* opened, std::int64_t ns) {
    return weir_communicator_gather(opened, root_of(root), part.data(),
                                    into ? into->data() : nullptr, part.size(), ns);
  });
}

void Communicator::scatter(unsigned root, nb::handle all, nb::handle own, const Timeout& timeout) {
  const Bytes part(own, true);
  std::optional<Bytes> from;
  if (!all.is_none()) from.emplace(all);
  call(timeout, [&](weir_communicator* opened, std::int64_t ns) {
    return weir_communicator_scatter(opened, root, from ? from->data() : nullptr, part.data(),
                                     part.size(), ns);
  });
}

void Communicator::all_to_all(nb::handle parts, nb::handle received, const Timeout& timeout) {
  const Bytes from(parts), into(received, true);
  call(timeout, [&](weir_communicator* opened, std::int64_t ns) {
    return weir_communicator_all_to_all(opened, from.data(), into.data(),
                                        from.size() / weir_communicator_size(opened), ns);
  });
}

void Communicator::all_to_all_v(nb::handle parts, const std::vector<std::size_t>& sizes,
                                nb::handle received, const std::vector<std::size_t>& received_sizes,
                                const Timeout& timeout) {
  const Bytes from(parts), into(received, true);
  call(timeout, [&](weir_communicator* opened, std::int64_t ns) {
    return weir_communicator_all_to_all_v(opened, from.data(), sizes.data(), into.data(),
                                          received_sizes.data(), ns);
  });
}

void Communicator::reduce(Root root, nb::handle values, weir_fabric_op op, const Timeout& timeout) {
  const Reduced given(values, op);
  call(timeout, [&](weir_communicator* opened, std::int64_t ns) {
    return weir_communicator_reduce(opened, root_of(root), given.bytes.data(), given.count,
                                    &given.reduction, ns);
  });
}

Event Communicator::enqueue(const Stream& stream, weir_collective_kind kind, Root root,
                            nb::handle part, nb::handle all, weir_fabric_op op) const {
  weir_collective call = WEIR_COLLECTIVE_INIT;
  call.kind = kind;
  call.root = root_of(root);
  call.reduction.op = op;
  if (kind == WEIR_COLLECTIVE_REDUCE) call.reduction.type = number_of(part);
  return stream.collective(open(), call, part, all);
}

void Communicator::scan(nb::handle values, weir_fabric_op op, bool exclusive,
                        const Timeout& timeout) {
  const Reduced given(values, op);
  const auto combine = exclusive ? weir_communicator_exclusive_scan : weir_communicator_scan;
  call(timeout, [&](weir_communicator* opened, std::int64_t ns) {
    return combine(opened, given.bytes.data(), given.count, &given.reduction, ns);
  });
}

// ---- Windows -----------------------------------------------------------------------------------

Window::Window(FabricRef of, nb::object given, const Timeout& timeout)
    : fabric(std::move(of)), array(std::move(given)), memory(std::make_unique<Bytes>(array, true)) {
  weir_fabric* const opened = fabric->open();
  // Signals can end this, as in together().
  check(wait_for(timeout, [&](std::int64_t ns) { return weir_fabric_barrier(opened, ns); },
                 {&fabric->in_use}));
  call_released({&fabric->in_use}, [&] {
    return weir_window_create(opened, memory->data(), memory->size(), WEIR_FOREVER, &handle);
  });
}

std::shared_ptr<Window> Window::make(const FabricRef& fabric, nb::object array,
                                     const Timeout& timeout) {
  auto window = make_waiting<Window>(fabric, std::move(array), timeout);
  fabric->windows.push_back(window);
  return window;
}

weir_window* Window::open() const { return require(fabric, handle, "window"); }

void Window::close() {
  end(*fabric, in_use_, nullptr, handle, weir_window_destroy);
  for (auto& [of, copies] : under_way_) {
    for (auto& bytes : copies) fabric->left.push_back(std::move(bytes));
  }
  under_way_.clear();
}

namespace {

/// Returns a number of the calling thread that is never reused, unlike thread ids.
std::uint64_t thread_number() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  static thread_local const std::uint64_t number = threads.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

void Window::copy(unsigned rank, nb::handle data, bool writable,
                  const std::function<weir_status(weir_window*, const Bytes&)>& start) {
  auto made = std::make_unique<Bytes>(data, writable);
  weir_window* const opened = open();
  const Bytes& bytes = *made;
  const std::pair key(thread_number(), rank);
  under_way_[key].push_back(std::move(made));
  weir_status status = WEIR_STATUS_OK;
  call_inside(*fabric, &in_use_, [&] {
    status = start(opened, bytes);
    return WEIR_STATUS_OK;
  });
  const auto held = under_way_.find(key);
  if (status != WEIR_STATUS_OK && held != under_way_.end()) held->second.pop_back();
  check(status);
}

void Window::put(unsigned rank, std::size_t offset, nb::handle data) {
  copy(rank, data, false, [&](weir_window* opened, const Bytes& bytes) {
    return weir_window_put(opened, rank, offset, bytes.data(), bytes.size());
  });
}

void Window::get(unsigned rank, std::size_t offset, nb::handle into) {
  copy(rank, into, true, [&](weir_window* opened, const Bytes& bytes) {
    return weir_window_get(opened, rank, offset, bytes.data(), bytes.size());
  });
}

std::int64_t Window::fetch_add(unsigned rank, std::size_t offset, std::int64_t operand) {
  weir_window* const opened = open();
  std::int64_t old = 0;
  call_inside(*fabric, &in_use_,
              [&] { return weir_window_fetch_add(opened, rank, offset, operand, &old); });
  return old;
}

std::int64_t Window::compare_swap(unsigned rank, std::size_t offset, std::int64_t expected,
                                  std::int64_t desired) {
  weir_window* const opened = open();
  std::int64_t old = 0;
  call_inside(*fabric, &in_use_, [&] {
    return weir_window_compare_swap(opened, rank, offset, expected, desired, &old);
  });
  return old;
}

void Window::flush(unsigned rank, const Timeout& timeout) {
  weir_window* const opened = open();
  fabric->wait(timeout, [&](std::int64_t ns) { return weir_window_flush(opened, rank, ns); },
               {&fabric->in_use, &in_use_});
  under_way_.erase({thread_number(), rank});
}

// ---- Conveyors ---------------------------------------------------------------------------------

namespace {

weir_status run_items(const weir_items* given) {
  const nb::gil_scoped_acquire held;
  const auto& handler = *static_cast<const ItemsHandler*>(given->payload);
  const HandlerScope scope(*handler.fabric);
  try {
    const nb::bytes bytes(given->items, given->count * given->item_bytes);
    const nb::object items =
        nb::module_::import_("weir._fabric").attr("items_of")(bytes, handler.dtype);
    handler.code(items, given->from);
    return WEIR_STATUS_OK;
  } catch (nb::python_error& error) {
    handler.raised->keep(error);
  }
  return WEIR_STATUS_KERNEL_ERROR;
}

}  // namespace

Conveyor::Conveyor(FabricRef of, const ConveyorOptions& wanted) : fabric(std::move(of)) {
  weir_fabric* const opened = fabric->open();
  if (!wanted.memory.is_none()) memory = std::make_unique<Bytes>(wanted.memory, true);
  std::vector<weir_conveyor_handler> codes;
  for (const auto& [dtype, code] : wanted.handlers) {
    handlers.push_back(
        std::make_unique<ItemsHandler>(ItemsHandler{code, dtype, &raised, fabric.get()}));
    codes.push_back(
        {run_items, handlers.back().get(), nb::cast<std::size_t>(dtype.attr("itemsize"))});
  }
  weir_conveyor_options options = WEIR_CONVEYOR_OPTIONS_INIT;
  options.name = wanted.name;
  options.memory = memory ? memory->data() : nullptr;
  options.bytes = memory ? memory->size() : 0;
  options.handlers = codes.data();
  options.handler_count = codes.size();
  options.block_bytes = wanted.block_bytes;
  options.block_items = wanted.block_items;
  options.blocks_in_flight = wanted.blocks_in_flight;
  options.age_ns = wanted.age_ns;
  if (wanted.timeout) {
    // 0 means the default timeout for weir; no other rank can join in 0 ns anyway.
    options.timeout_ns = std::max<std::int64_t>(timeout_ns(*wanted.timeout), 1);
  }
  call_released({&fabric->in_use}, [&] { return weir_conveyor_create(opened, &options, &handle); });
}

std::shared_ptr<Conveyor> Conveyor::make(const FabricRef& fabric, const ConveyorOptions& options) {
  auto conveyor = make_waiting<Conveyor>(fabric, options);
  fabric->conveyors.push_back(conveyor);
  return conveyor;
}

void Conveyor::close() {
  if (handle != nullptr && fabric->handle != nullptr) {
    require_no_callback("a conveyor");
    in_use.close_idle();
    ending.wait();
  }
  end(*fabric, in_use, nullptr, handle, weir_conveyor_destroy);
}

void Conveyor::finish(const Timeout& timeout) {
  weir_conveyor* const opened = require(fabric, handle, "conveyor");
  const weir_status status =
      wait_for(timeout, [&](std::int64_t ns) { return weir_conveyor_finish(opened, ns); },
               {&fabric->in_use, &in_use});
  if (status != WEIR_STATUS_TIMEOUT) raised.raise();
  check(status);
}

weir_conveyor_info Conveyor::info() {
  weir_conveyor_info found = WEIR_CONVEYOR_INFO_INIT;
  weir_conveyor* const opened = require(fabric, handle, "conveyor");
  call_released({&fabric->in_use, &in_use}, [&] { return weir_conveyor_get_info(opened, &found); });
  return found;
}

Producer::Producer(std::shared_ptr<Conveyor> of) : conveyor(std::move(of)) {
  weir_conveyor* const opened = require(conveyor->fabric, conveyor->handle, "conveyor");
  call_released({&conveyor->fabric->in_use, &conveyor->in_use},
                [&] { return weir_producer_open(opened, &handle); });
}

weir_producer* Producer::open() const {
  require(conveyor->fabric, conveyor->handle, "conveyor");
  return require(conveyor->fabric, handle, "producer");
}

void Producer::close() {
  if (conveyor->in_use.closed()) handle = nullptr;
  if (handle != nullptr && conveyor->fabric->handle != nullptr) require_no_callback("a producer");
  end(*conveyor->fabric, in_use_, &conveyor->ending, handle, weir_producer_close);
}

template <class Call>
void Producer::call(Call&& call) {
  call_released({&conveyor->fabric->in_use, &conveyor->in_use, &in_use_}, call);
}

void Producer::put(unsigned rank, nb::handle offsets, nb::handle items) {
  weir_producer* const opened = open();
  const Bytes where(offsets), what(items);
  const std::size_t count = where.size() / 8;
  if (count == 0) return;
  call([&] {
    return weir_producer_put(opened, rank, reinterpret_cast<const std::uint64_t*>(where.data()),
                             what.data(), what.size() / count, count);
  });
}

void Producer::add(unsigned rank, nb::handle offsets, nb::handle values) {
  weir_producer* const opened = open();
  const Bytes where(offsets), what(values);
  call([&] {
    return weir_producer_add(opened, rank, reinterpret_cast<const std::uint64_t*>(where.data()),
                             reinterpret_cast<const std::int64_t*>(what.data()), where.size() / 8);
  });
}

void Producer::send(unsigned rank, unsigned handler, nb::handle items, std::size_t item_bytes) {
  weir_producer* const opened = open();
  const Bytes what(items);
  call([&] {
    return weir_producer_send(opened, rank, handler, what.data(), item_bytes,
                              what.size() / item_bytes);
  });
}

void Producer::flush(const Timeout& timeout) {
  weir_producer* const opened = open();
  conveyor->fabric->wait(timeout, [&](std::int64_t ns) { return weir_producer_flush(opened, ns); },
                         {&conveyor->fabric->in_use, &conveyor->in_use, &in_use_});
}

}  // namespace weir::py
