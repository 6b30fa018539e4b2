// weir for C++: owning handles, exceptions and lambdas over the C interface. Header-only, C++20.
//
// Contracts are those of the C functions; a failure status is thrown as weir::Error.
#pragma once

#if defined(__cplusplus) && __cplusplus <= 201703L
// A missing file ends the compilation with one line; #error would go on to hundreds.
#include "<weir/weir.hpp> needs C++20: compile with -std=c++20, or in CMake with the feature cxx_std_20"
#endif

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/weir.h>

namespace weir {

/// A failed call, with the status and the message of weir_last_error().
class Error : public std::runtime_error {
 public:
  Error(weir_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  weir_status status() const noexcept { return status_; }

 private:
  weir_status status_;
};

/// Throws Error unless status is OK.
inline void check(weir_status status) {
  if (status != WEIR_STATUS_OK) throw Error(status, weir_last_error());
}

/// A wait without a deadline.
inline constexpr std::chrono::nanoseconds forever{WEIR_FOREVER};

// ---- Data --------------------------------------------------------------------------------------

/// A region of a buffer. Borrows the buffer.
struct Region {
  weir_buffer* buffer = nullptr;
  weir_region region{};
};

/// A region and how a compute action uses it.
struct Operand : weir_operand {
  Operand(const Region& part, weir_access access)
      : weir_operand{part.buffer, part.region, access} {}
};
inline Operand read(const Region& part) { return {part, WEIR_ACCESS_READ}; }
inline Operand write(const Region& part) { return {part, WEIR_ACCESS_WRITE}; }
inline Operand readwrite(const Region& part) { return {part, WEIR_ACCESS_READ_WRITE}; }
/// For tasks of a queue only: read-write, in any order with others that commute.
inline Operand commute(const Region& part) { return {part, WEIR_ACCESS_COMMUTE}; }
/// For tasks of a queue only: each task reads and writes a private partial result;
/// TaskOptions::combine combines them.
inline Operand reduce(const Region& part) { return {part, WEIR_ACCESS_REDUCE}; }

/// A scalar argument: integers become i64 or u64, float f32, double f64; letters stay letters.
struct Scalar : weir_scalar {
  template <class T>
    requires std::is_arithmetic_v<T>
  Scalar(T given) : weir_scalar(convert(given)) {}

 private:
  template <class T>
  static weir_scalar convert(T given) {
    if constexpr (std::is_same_v<T, float>) {
      return weir_scalar_f32(given);
    } else if constexpr (std::is_floating_point_v<T>) {
      return weir_scalar_f64(static_cast<double>(given));
    } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      return weir_scalar_u64(given);
    } else {
      return weir_scalar_i64(static_cast<std::int64_t>(given));
    }
  }
};

namespace detail {

template <class T, void (*destroy)(T*)>
struct Destroy {
  void operator()(T* object) const noexcept { destroy(object); }
};
template <class T, void (*destroy)(T*)>
using Owner = std::unique_ptr<T, Destroy<T, destroy>>;

}  // namespace detail

/// Owns a buffer. Destroying it waits for the actions that use it.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(weir_buffer* owned) : buffer_(owned) {
    weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
    check(weir_buffer_get_info(owned, &info));
    address_ = info.address;
    bytes_ = info.bytes;
  }

  weir_buffer* handle() const noexcept { return buffer_.get(); }
  std::size_t bytes() const noexcept { return bytes_; }
  /// Host memory, as elements of T.
  template <class T = std::byte>
  T* data() const noexcept {
    return static_cast<T*>(address_);
  }

  Region all() const noexcept { return {handle(), weir_region_range(0, bytes_)}; }
  /// `count` bytes from byte `offset`. A call that gets a region beyond the buffer refuses it.
  Region range(std::size_t offset, std::size_t count) const {
    expect_count("range", "offset", offset, 1);
    expect_count("range", "count", count, 1);
    return {handle(), weir_region_range(offset, count)};
  }
  /// `count` elements of T from element `first`. Throws Error for a number that is negative.
  template <class T>
  Region elements(std::size_t first, std::size_t count) const {
    expect_count("elements", "first", first, sizeof(T));
    expect_count("elements", "count", count, sizeof(T));
    return {handle(), weir_region_range(first * sizeof(T), count * sizeof(T))};
  }
  /// rows x columns elements of a column-major matrix of T with leading dimension ld. Throws Error
  /// for a number that is negative.
  template <class T>
  Region tile(std::size_t row, std::size_t column, std::size_t rows, std::size_t columns,
              std::size_t ld) const {
    expect_count("tile", "row", row, sizeof(T));
    expect_count("tile", "column", column, sizeof(T));
    expect_count("tile", "rows", rows, sizeof(T));
    expect_count("tile", "columns", columns, sizeof(T));
    expect_count("tile", "ld", ld, sizeof(T));
    return {handle(), weir_region_tile(row, column, rows, columns, ld, sizeof(T))};
  }

 private:
  /// Refuses a negative number, which the conversion to std::size_t has made large, and one whose
  /// elements of `size` bytes no memory can hold.
  static void expect_count(const char* call, const char* which, std::size_t given,
                           std::size_t size) {
    if (given > PTRDIFF_MAX / size) refuse_count(call, which, given);
  }
  [[noreturn]] static void refuse_count(const char* call, const char* which, std::size_t given) {
    const bool negative = given > PTRDIFF_MAX;
    const std::string text =
        negative ? std::to_string(static_cast<std::ptrdiff_t>(given)) : std::to_string(given);
    throw Error(WEIR_STATUS_INVALID_ARGUMENT,
                std::string(which) + " of " + call + "() is " + text +
                    (negative ? ": give a number from 0" : ": no memory has so many elements"));
  }

  detail::Owner<weir_buffer, weir_buffer_destroy> buffer_;
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
};

// ---- Kernels -----------------------------------------------------------------------------------

/// A column-major tile of T in the memory of the domain that runs the kernel.
template <class T>
struct Tile {
  T* data;
  std::size_t rows, columns, ld;
  T& operator()(std::size_t row, std::size_t column) const { return data[column * ld + row]; }
};

/// The arguments of one call of a kernel; valid during the call.
class Call {
 public:
  explicit Call(const weir_call* call) noexcept : call_(call) {}

  const weir_call* handle() const noexcept { return call_; }
  const char* name() const noexcept { return call_->name; }

  /// Operand `index` as contiguous elements. Throws std::invalid_argument when it is not contiguous
  /// or its bytes are not whole elements.
  template <class T>
  std::span<T> span(std::size_t index) const {
    const weir_view& view = operand(index);
    if (view.extent[1] > 1 || view.extent[2] > 1) {
      throw std::invalid_argument("operand " + std::to_string(index) + " is not contiguous");
    }
    return {static_cast<T*>(view.address), elements<T>(index, view.extent[0], "has")};
  }
  /// Operand `index` as a column-major tile. Throws std::invalid_argument when it has a third
  /// dimension, or columns that are not whole elements.
  template <class T>
  Tile<T> tile(std::size_t index) const {
    const weir_view& view = operand(index);
    if (view.extent[2] > 1) {
      throw std::invalid_argument("operand " + std::to_string(index) + " has three dimensions");
    }
    const std::size_t rows = elements<T>(index, view.extent[0], "has columns of");
    const std::size_t ld = elements<T>(index, view.stride[0], "has columns at a distance of");
    return {static_cast<T*>(view.address), rows, view.extent[1], ld > 0 ? ld : rows};
  }
  const weir_view& operand(std::size_t index) const {
    if (index >= call_->operand_count) {
      throw std::out_of_range("operand " + std::to_string(index) + " of " +
                              std::to_string(call_->operand_count));
    }
    return call_->operands[index];
  }

  /// Scalar `index`, converted to T.
  template <class T>
  T scalar(std::size_t index) const {
    if (index >= call_->scalar_count) {
      throw std::out_of_range("scalar " + std::to_string(index) + " of " +
                              std::to_string(call_->scalar_count));
    }
    const weir_scalar& given = call_->scalars[index];
    switch (given.type) {
      case WEIR_SCALAR_TYPE_U64: return static_cast<T>(given.value.u64);
      case WEIR_SCALAR_TYPE_F32: return static_cast<T>(given.value.f32);
      case WEIR_SCALAR_TYPE_F64: return static_cast<T>(given.value.f64);
      default: return static_cast<T>(given.value.i64);
    }
  }

  /// Threads of the place that work on a parallel kernel, 1 for a serial one.
  std::size_t team_size() const noexcept { return weir_team_size(call_->team); }
  /// Runs body(begin, end) over [0, count) on the threads of the team.
  template <class Body>
  void parallel_for(std::size_t count, std::size_t grain, Body&& body) const {
    using Plain = std::remove_reference_t<Body>;
    weir_team_for(
        call_->team, count, grain,
        [](std::size_t begin, std::size_t end, std::size_t, void* payload) {
          (*static_cast<Plain*>(payload))(begin, end);
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  }

 private:
  template <class T>
  static std::size_t elements(std::size_t index, std::size_t bytes, const char* has) {
    if (bytes % sizeof(T) != 0) {
      throw std::invalid_argument(
          "operand " + std::to_string(index) + " " + has + " " + std::to_string(bytes) +
          " bytes, which are not whole elements of " + std::to_string(sizeof(T)) + " bytes");
    }
    return bytes / sizeof(T);
  }

  const weir_call* call_;
};

namespace detail {

template <class Code>
weir_status run_kernel(const weir_call* call) {
  try {
    Call wrapped(call);
    (*static_cast<Code*>(call->payload))(wrapped);
    return WEIR_STATUS_OK;
  } catch (const std::exception& error) {
    return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "%s", error.what());
  } catch (...) {
    return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "unknown exception");
  }
}

/// Registers code(Call&) for host cores. Returns the status; the runtime owns the code only with
/// OK.
template <class Code>
weir_status register_kernel(weir_runtime* runtime, const char* name, weir_kernel_shape shape,
                            weir_cost_function cost, std::unique_ptr<Code>& code,
                            weir_kernel** out_kernel) {
  const weir_implementation implementation = {"host", run_kernel<Code>, code.get()};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.shape = shape;
  options.implementations = &implementation;
  options.implementation_count = 1;
  options.cost = cost;
  options.release = [](void* payload) { delete static_cast<Code*>(payload); };
  const weir_status status = weir_kernel_register(runtime, &options, out_kernel);
  if (status == WEIR_STATUS_OK) static_cast<void>(code.release());
  return status;
}

}  // namespace detail

/// A registered kernel. Borrowed from the runtime.
class Kernel {
 public:
  Kernel() = default;
  explicit Kernel(weir_kernel* kernel) noexcept : kernel_(kernel) {}
  weir_kernel* handle() const noexcept { return kernel_; }

 private:
  weir_kernel* kernel_ = nullptr;
};

/// How many groups a call of a portable kernel runs.
struct Groups {
  std::uint32_t x = 1, y = 1, z = 1;
};

/// Number of groups of `size` items that hold `items` items, in one dimension; at most INT32_MAX.
constexpr std::uint32_t group_count(std::size_t items, std::size_t size) noexcept {
  const std::size_t groups = items / size + (items % size != 0 ? 1 : 0);
  return groups < INT32_MAX ? static_cast<std::uint32_t>(groups) : INT32_MAX;
}

/// The fields of weir_portable_options, except the grid.
struct PortableOptions {
  const weir_portable_kernel* kernel = nullptr;  ///< defined by WEIR_KERNEL()
  const char* source = nullptr;                  ///< the text, nullptr: for the host only
  const char* source_name = nullptr;
  const char* name = nullptr;  ///< nullptr: that in the text
  weir_kernel_shape shape = WEIR_KERNEL_SHAPE_PARALLEL;
  weir_cost_function cost = nullptr;
  std::span<const weir_implementation> implementations = {};
  void (*release)(void* payload) = nullptr;
  bool resident = false;
};

// ---- Events and streams ------------------------------------------------------------------------

/// The completion of an action. A value.
class Event {
 public:
  Event() = default;
  Event(weir_runtime* runtime, weir_event event) noexcept : runtime_(runtime), event_(event) {}

  const weir_event& handle() const noexcept { return event_; }

  /// Waits; throws Error when the action failed or the deadline passed.
  void wait(std::chrono::nanoseconds timeout = forever) const {
    if (runtime_ == nullptr) return;
    check(weir_event_wait(runtime_, &event_, 1, WEIR_WAIT_MODE_ALL, timeout.count(), nullptr));
  }
  bool complete() const { return runtime_ == nullptr || info().complete; }
  weir_event_info info() const {
    weir_event_info found = WEIR_EVENT_INFO_INIT;
    check(weir_event_get_info(runtime_, &event_, &found));
    return found;
  }
  /// Calls code(status, message) once when the event is complete, at once if it already is. It may
  /// enqueue, but not wait; its result is ignored.
  template <class Code>
  void on_complete(Code code) const {
    if (runtime_ == nullptr) return static_cast<void>(code(WEIR_STATUS_OK, ""));
    auto owned = std::make_unique<Code>(std::move(code));
    const auto run = [](weir_status status, const char* message, void* payload) {
      const std::unique_ptr<Code> called(static_cast<Code*>(payload));
      (*called)(status, message);
    };
    check(weir_event_on_complete(runtime_, &event_, run, owned.get()));
    static_cast<void>(owned.release());
  }

 private:
  weir_runtime* runtime_ = nullptr;
  weir_event event_ = WEIR_EVENT_INIT;
};

/// An external action that has been started: the program performs it, then calls complete() or
/// fail(), once. Any thread.
class ExternalAction {
 public:
  ExternalAction(weir_runtime* runtime, const weir_external_call& started) noexcept
      : runtime_(runtime), event_(started.event) {}

  void complete() const {
    check(weir_external_complete(runtime_, &event_, WEIR_STATUS_OK, nullptr));
  }
  void fail(weir_status status, const std::string& message) const {
    check(weir_external_complete(runtime_, &event_, status, message.c_str()));
  }

 private:
  weir_runtime* runtime_;
  weir_event event_;
};

/// A stream, without ownership.
class StreamRef {
 public:
  StreamRef() = default;
  StreamRef(weir_runtime* runtime, weir_stream* stream) noexcept
      : runtime_(runtime), stream_(stream) {}

  weir_stream* handle() const noexcept { return stream_; }
  weir_runtime* runtime() const noexcept { return runtime_; }

  Event compute(const Kernel& kernel, std::initializer_list<Operand> operands,
                std::initializer_list<Scalar> scalars = {}, const char* name = nullptr) const {
    return compute(kernel, std::span(operands.begin(), operands.size()),
                   std::span(scalars.begin(), scalars.size()), name);
  }
  Event compute(const Kernel& kernel, std::span<const Operand> operands,
                std::span<const Scalar> scalars, const char* name = nullptr) const {
    static_assert(sizeof(Operand) == sizeof(weir_operand) && sizeof(Scalar) == sizeof(weir_scalar));
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel = kernel.handle();
    compute.operands = operands.data();
    compute.operand_count = operands.size();
    compute.scalars = scalars.data();
    compute.scalar_count = scalars.size();
    compute.name = name;
    return enqueue(
        [&](weir_event* event) { return weir_stream_compute(handle(), &compute, event); });
  }

  /// From host memory to the stream's domain.
  Event upload(const Region& part) const {
    return enqueue([&](weir_event* event) {
      return weir_stream_upload(handle(), part.buffer, part.region, event);
    });
  }
  /// From the stream's domain to host memory.
  Event download(const Region& part) const {
    return enqueue([&](weir_event* event) {
      return weir_stream_download(handle(), part.buffer, part.region, event);
    });
  }
  Event transfer(const weir_endpoint& source, const weir_endpoint& target) const {
    weir_transfer transfer = WEIR_TRANSFER_INIT;
    transfer.source = source;
    transfer.target = target;
    return enqueue(
        [&](weir_event* event) { return weir_stream_transfer(handle(), &transfer, event); });
  }

  /// Enqueues an operation that weir orders and something else performs. When its operands are
  /// ready, start(ExternalAction, std::span<const weir_view>) begins it and does not wait: see
  /// weir_stream_external(). An exception of start() is the failure of the action.
  template <class Start>
  Event external(std::span<const Operand> operands, Start start, const char* name = nullptr) const {
    struct Payload {
      weir_runtime* runtime;
      std::shared_ptr<Start> start;  // which may run when the action is complete
    };
    auto payload =
        std::make_unique<Payload>(Payload{runtime_, std::make_shared<Start>(std::move(start))});
    weir_external external = WEIR_EXTERNAL_INIT;
    external.payload = payload.get();
    external.operands = operands.data();
    external.operand_count = operands.size();
    external.name = name;
    external.start = [](const weir_external_call* given) {
      const Payload own = *static_cast<Payload*>(given->payload);
      const auto fail = [&own, event = given->event](weir_status status, const char* why) {
        static_cast<void>(weir_external_complete(own.runtime, &event, status, why));
      };
      try {
        (*own.start)(ExternalAction(own.runtime, *given),
                     std::span(given->operands, given->operand_count));
      } catch (const Error& error) {
        fail(error.status(), error.what());
      } catch (const std::exception& error) {
        fail(WEIR_STATUS_KERNEL_ERROR, error.what());
      } catch (...) {
        fail(WEIR_STATUS_KERNEL_ERROR, "the function that starts it threw");
      }
      return WEIR_STATUS_OK;
    };
    external.release = [](void* owned) { delete static_cast<Payload*>(owned); };
    const Event event =
        enqueue([&](weir_event* made) { return weir_stream_external(handle(), &external, made); });
    static_cast<void>(payload.release());
    return event;
  }

  /// A barrier inside the stream that also waits for an event of another.
  Event wait(const Event& event) const { return sync({&event, 1}, {}, WEIR_SYNC_SCOPE_STREAM); }
  /// Orders actions that access `part` after an event of another stream; other actions are not
  /// affected.
  Event wait(const Event& event, const Region& part) const {
    return sync({&event, 1}, {&part, 1}, WEIR_SYNC_SCOPE_OPERANDS);
  }
  Event barrier() const { return sync({}, {}, WEIR_SYNC_SCOPE_STREAM); }
  /// An event for everything enqueued so far, which orders nothing.
  Event mark() const { return sync({}, {}, WEIR_SYNC_SCOPE_NOTHING); }

  Event sync(std::span<const Event> events, std::span<const Region> parts,
             weir_sync_scope scope) const {
    std::vector<weir_event> waits;
    for (const Event& event : events) waits.push_back(event.handle());
    std::vector<Operand> operands;
    for (const Region& part : parts) operands.push_back(readwrite(part));
    weir_sync sync = WEIR_SYNC_INIT;
    sync.events = waits.data();
    sync.event_count = waits.size();
    sync.operands = operands.data();
    sync.operand_count = operands.size();
    sync.scope = scope;
    return enqueue([&](weir_event* event) { return weir_stream_sync(handle(), &sync, event); });
  }

  /// Blocks until everything enqueued so far is complete; throws the first failure.
  void synchronize(std::chrono::nanoseconds timeout = forever) const {
    check(weir_stream_synchronize(handle(), timeout.count()));
  }
  void cancel() const { check(weir_stream_cancel(handle())); }

 private:
  template <class Enqueue>
  Event enqueue(Enqueue&& enqueue) const {
    weir_event event;
    check(enqueue(&event));
    return {runtime_, event};
  }

  weir_runtime* runtime_ = nullptr;
  weir_stream* stream_ = nullptr;
};

/// Owns a stream, and its place if that was a temporary. Destroying it waits for its actions.
class Stream : public StreamRef {
 public:
  using OwnedPlace = detail::Owner<weir_place, weir_place_destroy>;

  Stream() = default;
  Stream(weir_runtime* runtime, weir_stream* owned, OwnedPlace place = nullptr) noexcept
      : StreamRef(runtime, owned), place_(std::move(place)), owner_(owned) {}
  Stream(Stream&& other) noexcept
      : StreamRef(std::exchange(static_cast<StreamRef&>(other), {})),
        place_(std::move(other.place_)),
        owner_(std::move(other.owner_)) {}
  Stream& operator=(Stream&& other) noexcept {
    owner_ = std::move(other.owner_);
    place_ = std::move(other.place_);
    StreamRef::operator=(std::exchange(static_cast<StreamRef&>(other), {}));
    return *this;
  }

 private:
  OwnedPlace place_;  // destroyed after the stream
  detail::Owner<weir_stream, weir_stream_destroy> owner_;
};

// ---- Resources ---------------------------------------------------------------------------------

struct StreamOptions {
  const char* name = nullptr;
  weir_dependence_policy policy = WEIR_DEPENDENCE_POLICY_OPERANDS;
  int priority = 0;
  std::size_t max_in_flight = 0;  ///< 0: the usual number
};

/// Owns a place. Destroying it destroys its streams: keep it longer than they are.
class Place {
 public:
  Place() = default;
  Place(weir_runtime* runtime, weir_place* owned) : runtime_(runtime), place_(owned) {}

  weir_place* handle() const noexcept { return place_.get(); }
  std::size_t cores() const {
    weir_place_info info = WEIR_PLACE_INFO_INIT;
    check(weir_place_get_info(handle(), &info));
    return info.core_count;
  }
  Stream stream(const StreamOptions& wanted = {}) const& { return {runtime_, create(wanted)}; }
  /// The stream owns this temporary: `runtime.domain(0).place().stream()` lasts as long as it.
  Stream stream(const StreamOptions& wanted = {}) && {
    weir_stream* const made = create(wanted);
    return {runtime_, made, std::move(place_)};
  }

 private:
  weir_stream* create(const StreamOptions& wanted) const {
    weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
    options.name = wanted.name;
    options.policy = wanted.policy;
    options.priority = wanted.priority;
    options.max_in_flight = wanted.max_in_flight;
    weir_stream* made = nullptr;
    check(weir_stream_create(handle(), &options, &made));
    return made;
  }

  weir_runtime* runtime_ = nullptr;
  Stream::OwnedPlace place_;
};

/// The fields of weir_task besides kernel, operands and scalars.
struct TaskOptions {
  const char* name = nullptr;
  int priority = 0;
  std::uint64_t domains = 0;             ///< bit i: domain i may run it; 0: all
  weir_place* place = nullptr;           ///< nullptr: the policy decides
  const weir_kernel* combine = nullptr;  ///< of operands of reduce(): result so far, partial result
  const weir_kernel* init = nullptr;     ///< writes its identity; nullptr: zero bytes
};

/// Owns a task queue. Destroying it waits for its tasks.
class Queue {
 public:
  Queue() = default;
  Queue(weir_runtime* runtime, weir_queue* owned) : runtime_(runtime), queue_(owned) {}

  weir_queue* handle() const noexcept { return queue_.get(); }
  weir_runtime* runtime() const noexcept { return runtime_; }

  Event submit(const Kernel& kernel, std::initializer_list<Operand> operands,
               std::initializer_list<Scalar> scalars = {}, const TaskOptions& wanted = {}) const {
    return submit(kernel, std::span(operands.begin(), operands.size()),
                  std::span(scalars.begin(), scalars.size()), wanted);
  }
  Event submit(const Kernel& kernel, std::span<const Operand> operands,
               std::span<const Scalar> scalars, const TaskOptions& wanted = {}) const {
    weir_task task = WEIR_TASK_INIT;
    task.kernel = kernel.handle();
    task.operands = operands.data();
    task.operand_count = operands.size();
    task.scalars = scalars.data();
    task.scalar_count = scalars.size();
    task.name = wanted.name;
    task.priority = wanted.priority;
    task.domains = wanted.domains;
    task.place = wanted.place;
    task.combine = wanted.combine;
    task.init = wanted.init;
    weir_event event = WEIR_EVENT_INIT;
    check(weir_queue_submit(handle(), &task, &event));
    return {runtime_, event};
  }

  /// Waits until the program may read a region, or read and write it.
  void acquire(const Region& part, weir_access access = WEIR_ACCESS_READ,
               std::chrono::nanoseconds timeout = forever) const {
    check(weir_queue_acquire(handle(), part.buffer, part.region, access, timeout.count()));
  }
  /// Begins to write a region back to host memory.
  Event flush(const Region& part) const {
    weir_event event = WEIR_EVENT_INIT;
    check(weir_queue_flush(handle(), part.buffer, part.region, &event));
    return {runtime_, event};
  }
  /// Waits for all tasks and their results; throws the first failure.
  void synchronize(std::chrono::nanoseconds timeout = forever) const {
    check(weir_queue_synchronize(handle(), timeout.count()));
  }
  void cancel() const { check(weir_queue_cancel(handle())); }

  weir_queue_info info() const {
    weir_queue_info found = WEIR_QUEUE_INFO_INIT;
    check(weir_queue_get_info(handle(), &found, nullptr, 0));
    return found;
  }
  /// What each place did.
  std::vector<weir_queue_share> shares() const {
    weir_queue_info found = info();
    std::vector<weir_queue_share> shares(found.place_count);
    check(weir_queue_get_info(handle(), &found, shares.data(), shares.size()));
    return shares;
  }

 private:
  weir_runtime* runtime_ = nullptr;
  detail::Owner<weir_queue, weir_queue_destroy> queue_;
};

/// Items of a share for one place.
struct Chunk {
  std::uint64_t first, count;
  StreamRef stream;   ///< of the place
  std::size_t place;  ///< among those that this rank brought
  std::size_t way;    ///< of ShareOptions::ways
};

/// The fields of weir_share_options, except the number of items and the function.
struct ShareOptions {
  const char* name = nullptr;
  const char* chunks = nullptr;              ///< nullptr: "learned"
  std::span<const double> work = {};         ///< of each item; none: all alike
  std::span<weir_place* const> places = {};  ///< none: all free cores of each domain
  std::size_t ways = 1;
  weir_fabric* fabric = nullptr;                     ///< whose ranks share; nullptr: this process
  const char* scheduler = nullptr;                   ///< nullptr: "onesided"
  void* results = nullptr;                           ///< of all items, which rank 0 gets
  std::span<const std::size_t> result_offsets = {};  ///< offset in bytes of each item, plus the end
  std::chrono::nanoseconds timeout = forever;        ///< for the start with the other ranks
};

/// Owns a share. Destroying it waits for its items.
class Share {
 public:
  Share() = default;
  /// enqueue(const Chunk&) gives the Event of a chunk; see weir_chunk_function.
  template <class Enqueue>
  Share(weir_runtime* runtime, std::uint64_t items, Enqueue enqueue, const ShareOptions& wanted)
      : program_(std::make_unique<Program>()) {
    const std::string wrong = complaint(items, wanted);
    program_->runtime = runtime;
    program_->enqueue = std::move(enqueue);
    weir_share_options options = WEIR_SHARE_OPTIONS_INIT;
    options.name = wanted.name;
    options.items = items;
    if (wanted.work.size() == items) options.work = wanted.work.data();
    options.places = wanted.places.data();
    options.place_count = wanted.places.size();
    options.chunks = wanted.chunks;
    options.enqueue = wrong.empty() ? Program::run : nullptr;  // refused: other ranks hear of it
    options.payload = program_.get();
    options.ways = wanted.ways;
    options.fabric = wanted.fabric;
    options.scheduler = wanted.scheduler;
    options.results = wanted.results;
    if (wanted.result_offsets.size() == items + 1) {
      options.result_offsets = wanted.result_offsets.data();
    }
    options.timeout_ns = wanted.timeout.count();
    weir_share* made = nullptr;
    const weir_status status = weir_share_start(runtime, &options, &made);
    if (!wrong.empty()) throw Error(WEIR_STATUS_INVALID_ARGUMENT, wrong);
    check(status);
    share_.reset(made);
  }

  Share(Share&&) noexcept = default;
  /// Destroys the former share before the function that it calls.
  Share& operator=(Share&& other) noexcept {
    share_ = std::move(other.share_);
    program_ = std::move(other.program_);
    return *this;
  }

  weir_share* handle() const noexcept { return share_.get(); }

  /// Waits until all items are done; throws the failure that ended the share, which may be an
  /// exception of the function.
  void wait(std::chrono::nanoseconds timeout = forever) const {
    const weir_status status = weir_share_wait(handle(), timeout.count());
    if (status != WEIR_STATUS_OK) program_->rethrow(status);
    check(status);
  }
  void cancel() const { check(weir_share_cancel(handle())); }

  weir_share_info info() const {
    weir_share_info found = WEIR_SHARE_INFO_INIT;
    check(weir_share_get_info(handle(), &found, nullptr, 0));
    return found;
  }
  /// What each place did.
  std::vector<weir_share_part> parts() const {
    weir_share_info found = info();
    std::vector<weir_share_part> parts(found.place_count);
    check(weir_share_get_info(handle(), &found, parts.data(), parts.size()));
    return parts;
  }

 private:
  /// Describes wrong array lengths, which the C interface cannot check; "": all are right.
  static std::string complaint(std::uint64_t items, const ShareOptions& wanted) {
    const std::size_t work = wanted.work.size(), offsets = wanted.result_offsets.size();
    if (work > 0 && work != items) {
      return "the work of " + std::to_string(work) + " items is given for " + std::to_string(items);
    }
    if (offsets > 0 && offsets - 1 != items) {
      return std::to_string(offsets) + " result offsets are given for " + std::to_string(items) +
             " items: give one of each item, and that behind the last";
    }
    return "";
  }

  /// The function, and the first exception that it threw.
  struct Program {
    weir_runtime* runtime = nullptr;
    std::function<Event(const Chunk&)> enqueue;
    std::mutex mutex;
    std::exception_ptr thrown;
    weir_status status = WEIR_STATUS_OK;  // that it was given for

    static weir_status run(const weir_chunk* chunk, void* payload, weir_event* out_event) {
      auto& program = *static_cast<Program*>(payload);
      try {
        *out_event =
            program
                .enqueue({chunk->first, chunk->count, StreamRef(program.runtime, chunk->stream),
                          chunk->place, chunk->way})
                .handle();
        return WEIR_STATUS_OK;
      } catch (const Error& error) {
        return program.keep(error.status());
      } catch (...) {
        return program.keep(WEIR_STATUS_KERNEL_ERROR);
      }
    }
    /// Drops an exception of a chunk that other places took over, for a later one.
    weir_status keep(weir_status given) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (thrown == nullptr || status == WEIR_STATUS_DEVICE_ERROR ||
          status == WEIR_STATUS_NETWORK_ERROR || status == WEIR_STATUS_UNAVAILABLE) {
        thrown = std::current_exception();
        status = given;
      }
      return given;
    }
    /// Unless another failure has ended the share.
    void rethrow(weir_status ended) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (thrown != nullptr && status == ended) std::rethrow_exception(thrown);
    }
  };

  std::unique_ptr<Program> program_;  // outlives the share
  detail::Owner<weir_share, weir_share_destroy> share_;
};

/// A domain. Borrowed from the runtime.
class Domain {
 public:
  Domain(weir_runtime* runtime, weir_domain* domain) noexcept
      : runtime_(runtime), domain_(domain) {}

  weir_domain* handle() const noexcept { return domain_; }
  weir_domain_info info() const {
    weir_domain_info found = WEIR_DOMAIN_INFO_INIT;
    check(weir_domain_get_info(domain_, &found));
    return found;
  }
  std::string name() const { return info().name; }

  /// A place of `cores` cores, 0: of all that are free.
  Place place(std::size_t cores = 0) const {
    weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
    options.core_count = cores;
    weir_place* made = nullptr;
    check(weir_place_create(domain_, &options, &made));
    return {runtime_, made};
  }
  /// All free cores, divided evenly.
  std::vector<Place> partition(std::size_t count, bool oversubscribe = false) const {
    std::vector<weir_place*> made(count ? count : 1);
    std::vector<Place> places;
    places.reserve(made.size());
    check(weir_domain_partition(domain_, count, oversubscribe, made.data()));
    for (weir_place* place : made) places.emplace_back(runtime_, place);
    return places;
  }

 private:
  weir_runtime* runtime_;
  weir_domain* domain_;
};

/// Owns a runtime. Destroy it after the places, streams and buffers made from it.
class Runtime {
 public:
  /// Opens domains, "host,sim:cores=2,gbps=6"; without any those of WEIR_DOMAINS, or the host.
  explicit Runtime(const char* domains = nullptr) {
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = domains;
    create(options);
  }
  explicit Runtime(const std::string& domains) : Runtime(domains.c_str()) {}
  explicit Runtime(const weir_runtime_options& options) { create(options); }

  weir_runtime* handle() const noexcept { return runtime_.get(); }

  /// On a rank other than 0, serves rank 0 and returns true when rank 0 has closed its fabric.
  /// Otherwise returns false, and the program continues.
  bool serve() const {
    bool served = false;
    check(weir_rank_serve(handle(), &served));
    return served;
  }

  std::size_t domain_count() const noexcept { return weir_runtime_domain_count(handle()); }
  Domain domain(std::size_t index) const& {
    weir_domain* const found = weir_runtime_get_domain(handle(), index);
    if (found == nullptr) {
      throw Error(WEIR_STATUS_NOT_FOUND, "there is no domain " + std::to_string(index) + ": the " +
                                             "runtime has " + std::to_string(domain_count()));
    }
    return {handle(), found};
  }
  Domain domain(const std::string& name) const& {
    weir_domain* found = nullptr;
    check(weir_runtime_find_domain(handle(), name.c_str(), &found));
    return {handle(), found};
  }

  Domain domain(std::size_t index) const&& =
      delete;  // of a runtime that is destroyed before its use
  Domain domain(const std::string& name) const&& = delete;

  /// A task queue over all free cores of all domains, or over the places of the options.
  Queue queue(const char* policy = nullptr) const& {
    weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
    options.policy = policy;
    return queue(options);
  }
  Queue queue(const weir_queue_options& options) const& {
    weir_queue* made = nullptr;
    check(weir_queue_create(handle(), &options, &made));
    return {handle(), made};
  }
  Queue queue(const char* policy = nullptr) const&& = delete;
  Queue queue(const weir_queue_options& options) const&& = delete;

  /// Starts a share: enqueue(const Chunk&) enqueues those of a chunk and gives the event of the
  /// last action.
  template <class Enqueue>
  Share share(std::uint64_t items, Enqueue enqueue, const ShareOptions& wanted = {}) const {
    return {handle(), items, std::move(enqueue), wanted};
  }

  /// New zero-filled memory.
  Buffer buffer(std::size_t bytes, const char* name = nullptr) const {
    weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
    options.name = name;
    return buffer(bytes, options);
  }
  Buffer buffer(std::size_t bytes, const weir_buffer_options& options) const {
    weir_buffer* made = nullptr;
    check(weir_buffer_create(handle(), bytes, &options, &made));
    return Buffer(made);
  }
  /// The program's own memory, which must outlive the buffer.
  Buffer wrap(void* address, std::size_t bytes, const char* name = nullptr) const {
    weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
    options.name = name;
    return wrap(address, bytes, options);
  }
  Buffer wrap(void* address, std::size_t bytes, const weir_buffer_options& options) const {
    weir_buffer* made = nullptr;
    check(weir_buffer_wrap(handle(), address, bytes, &options, &made));
    return Buffer(made);
  }
  /// The program's memory in a domain, with new host memory beside it.
  Buffer adopt(const Domain& domain, void* address, std::size_t bytes,
               const weir_buffer_options& options = WEIR_BUFFER_OPTIONS_INIT) const {
    weir_buffer* made = nullptr;
    check(weir_buffer_adopt(domain.handle(), address, nullptr, bytes, &options, &made));
    return Buffer(made);
  }
  template <class T>
  Buffer wrap(std::vector<T>& memory, const char* name = nullptr) const {
    return wrap(memory.data(), memory.size() * sizeof(T), name);
  }

  /// Finds a kernel: a built-in one, or one that was registered.
  Kernel kernel(const char* name) const {
    weir_kernel* found = nullptr;
    check(weir_kernel_find(handle(), name, &found));
    return Kernel(found);
  }
  /// Registers code(Call&) as a kernel for host cores. What it throws fails the action. cost, a
  /// lambda without captures: the work of a call, see weir_kernel_options; nullptr: measured.
  template <class Code>
  Kernel kernel(const char* name, Code code, weir_kernel_shape shape = WEIR_KERNEL_SHAPE_SERIAL,
                weir_cost_function cost = nullptr) const {
    auto owned = std::make_unique<Code>(std::move(code));
    weir_kernel* made = nullptr;
    check(detail::register_kernel(handle(), name, shape, cost, owned, &made));
    return Kernel(made);
  }

  /// Registers a kernel of <weir/portable.h>. grid(const Call&) returns the Groups of a call; it is
  /// a lambda without captures.
  template <class Grid>
  Kernel portable_kernel(const PortableOptions& wanted, Grid) const {
    static_assert(std::is_empty_v<Grid> && std::is_default_constructible_v<Grid>,
                  "a grid captures nothing: it is called with the scalars and operands of a call");
    weir_portable_options options = WEIR_PORTABLE_OPTIONS_INIT;
    options.name = wanted.name;
    options.kernel = wanted.kernel;
    options.source = wanted.source;
    options.source_name = wanted.source_name;
    options.grid = [](const weir_call* call, std::uint32_t out_groups[3]) {
      const Groups groups = Grid()(Call(call));
      out_groups[0] = groups.x;
      out_groups[1] = groups.y;
      out_groups[2] = groups.z;
    };
    options.shape = wanted.shape;
    options.cost = wanted.cost;
    options.implementations = wanted.implementations.data();
    options.implementation_count = wanted.implementations.size();
    options.release = wanted.release;
    options.resident = wanted.resident;
    weir_kernel* made = nullptr;
    check(weir_kernel_register_portable(handle(), &options, &made));
    return Kernel(made);
  }

  void synchronize(std::chrono::nanoseconds timeout = forever) const {
    check(weir_runtime_synchronize(handle(), timeout.count()));
  }
  /// Waits for all of the events; throws the first failure.
  void wait(std::span<const Event> events, std::chrono::nanoseconds timeout = forever) const {
    std::vector<weir_event> all;
    for (const Event& event : events) all.push_back(event.handle());
    check(weir_event_wait(handle(), all.data(), all.size(), WEIR_WAIT_MODE_ALL, timeout.count(),
                          nullptr));
  }

  /// Waits for one of the events; returns its index. Throws when it failed or the deadline passed.
  std::size_t wait_any(std::span<const Event> events,
                       std::chrono::nanoseconds timeout = forever) const {
    std::vector<weir_event> all;
    for (const Event& event : events) all.push_back(event.handle());
    std::size_t index = 0;
    check(weir_event_wait(handle(), all.data(), all.size(), WEIR_WAIT_MODE_ANY, timeout.count(),
                          &index));
    return index;
  }

  std::chrono::nanoseconds now() const noexcept {
    return std::chrono::nanoseconds(weir_runtime_now(handle()));
  }
  /// In virtual time: lets time pass, as if the calling thread worked.
  void pass_time(std::chrono::nanoseconds time) const {
    check(weir_runtime_pass_time(handle(), time.count()));
  }
  weir_stats stats() const {
    weir_stats found = WEIR_STATS_INIT;
    check(weir_runtime_get_stats(handle(), &found));
    return found;
  }
  /// Machine, domains, libraries and kernels as JSON.
  std::string describe() const {
    std::string text(std::size_t{1} << 16, '\0');
    for (;;) {
      std::size_t size = 0;
      check(weir_runtime_describe(handle(), text.data(), text.size(), &size));
      const bool whole = size <= text.size();
      text.resize(whole ? size - 1 : size);
      if (whole) return text;
    }
  }

  void start_trace(std::size_t max_bytes = 0) const {
    check(weir_trace_start(handle(), max_bytes));
  }
  void stop_trace() const { check(weir_trace_stop(handle())); }
  void write_trace(const std::string& path) const {
    check(weir_trace_write(handle(), path.c_str()));
  }
  weir_trace_summary trace_summary() const {
    weir_trace_summary found = WEIR_TRACE_SUMMARY_INIT;
    check(weir_trace_summarize(handle(), &found));
    return found;
  }

  /// How to divide a problem, if wisdom was kept: see weir_wisdom_find().
  std::optional<weir_wisdom> wisdom(const std::string& problem, std::uint64_t size) const {
    weir_wisdom found = WEIR_WISDOM_INIT;
    const weir_status status = weir_wisdom_find(handle(), problem.c_str(), size, &found);
    if (status == WEIR_STATUS_NOT_FOUND) return {};
    check(status);
    return found;
  }
  void keep_wisdom(const std::string& problem, std::uint64_t size,
                   const weir_wisdom& wisdom) const {
    check(weir_wisdom_keep(handle(), problem.c_str(), size, &wisdom));
  }

 private:
  void create(const weir_runtime_options& options) {
    weir_runtime* made = nullptr;
    check(weir_runtime_create(&options, &made));
    runtime_.reset(made);
  }

  detail::Owner<weir_runtime, weir_runtime_destroy> runtime_;
};

}  // namespace weir
