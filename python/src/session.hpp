// The base of the binding: one runtime of a Python program, its errors and its waits.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weir/weir.h>

namespace weir::py {

namespace nb = nanobind;

struct Buffer;
struct Fabric;
struct Graph;
struct Kernel;
struct Pipeline;
struct Queue;
struct Stream;

/// Seconds to wait; none: for ever.
using Timeout = std::optional<double>;

// ---- Errors ------------------------------------------------------------------------------------

/// Raises the exception class of a status. The exception of a Python kernel that the message names
/// becomes its cause.
[[noreturn]] void raise_status(weir_status status, const std::string& message);

/// Raises weir_last_error() unless status is OK.
inline void check(weir_status status) {
  if (status != WEIR_STATUS_OK) raise_status(status, weir_last_error());
}

/// Returns a message of weir as Python text; a long message may end within a letter.
nb::object text_from(const std::string& said);

/// Raises a built-in exception.
[[noreturn]] void raise_type(const std::string& message);
[[noreturn]] void raise_value(const std::string& message);

/// Takes the Python exception of a kernel and returns the message of the action, by which
/// raise_status() finds it again. Keeps the newest 256, without the variables of their frames,
/// which hold arrays that are no longer valid.
std::string keep_exception(nb::python_error& error);
/// No candidate of a policy has this index or one behind it.
constexpr std::size_t kFarCandidate = std::size_t{1} << 62;
/// The exception that a policy has raised.
class RaisedByPolicy {
 public:
  /// Keeps an exception, unless its text equals that of the previous one, and returns the candidate
  /// index that the policy returns to weir; raise_status() finds the exception by it.
  std::size_t keep(nb::python_error& error);

 private:
  std::uint64_t number_ = 0;  ///< of the previous exception
  std::string words_;
};
void forget_exceptions();

// ---- Threads -----------------------------------------------------------------------------------

/// Keeps the first exception of callbacks until a call of the program raises it.
class Raised {
 public:
  void keep(nb::python_error& error) {
    if (!first_.is_valid()) first_ = nb::borrow(error.value());
  }
  /// Raises the kept exception, and forgets it.
  void raise();

 private:
  nb::object first_;
};

/// Marks a thread that runs a kernel or a callback of Python: nothing on it may wait.
class CallbackScope {
 public:
  CallbackScope() noexcept { ++depth; }
  ~CallbackScope() { --depth; }
  CallbackScope(const CallbackScope&) = delete;
  CallbackScope& operator=(const CallbackScope&) = delete;
  static bool active() noexcept { return depth > 0; }

 private:
  static thread_local int depth;
};

/// Marks a thread that runs a kernel of Python, so that an interrupt reaches it. With the GIL.
class RunningKernel {
 public:
  RunningKernel();
  ~RunningKernel();
  RunningKernel(const RunningKernel&) = delete;
  RunningKernel& operator=(const RunningKernel&) = delete;

  /// Raises KeyboardInterrupt in all kernels of Python, when they next run bytecode.
  static void interrupt_all();
};

/// Whether a wait of the main thread, or a with statement, ended with KeyboardInterrupt, and since
/// then no wait has completed and nothing was enqueued. While this is true, close() does not wait
/// for running kernels.
bool interrupted() noexcept;
void set_interrupted(bool now) noexcept;
/// Notes the exception class that a with statement ended with, or None.
void note_exit(nb::handle type);

/// Raises on a thread that runs a kernel or a callback: the object that calls it cannot be closed
/// there.
void require_no_callback(const char* what);

/// Runs code that may wait: now, or later on the main thread when this one must not wait or the
/// program was interrupted. With the GIL.
void dispose(std::function<void()> code);
/// Runs the code that dispose() has deferred, unless it must still be deferred.
void dispose_late();

/// Makes an object whose destructor may wait: see dispose().
template <class T, class... Arguments>
std::shared_ptr<T> make_waiting(Arguments&&... arguments) {
  return std::shared_ptr<T>(new T(std::forward<Arguments>(arguments)...),
                            [](T* object) { dispose([object] { delete object; }); });
}

/// Counts the calls that use an object without the GIL. The thread that closes the object waits for
/// them, or gets BUSY.
class InUse {
 public:
  /// what: "the feed".
  explicit InUse(const char* what) : what_(what) {}
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

  /// With the GIL. Raises when it has been closed.
  void enter();
  void leave() noexcept;
  /// Refuses new calls and waits, without the GIL, for those in the object. With the GIL, on a
  /// thread that is not in a call.
  void close();
  /// Refuses new calls. Raises BUSY when a call is in the object. With the GIL.
  void close_idle();
  /// Waits as close() does, but does not refuse new calls.
  void wait();
  bool closed() const noexcept { return closed_; }

 private:
  bool busy();

  const char* const what_;
  bool closed_ = false;
  std::mutex mutex_;
  std::condition_variable free_;
  std::size_t inside_ = 0;
};
using InUseList = std::initializer_list<InUse*>;

/// Releases the GIL for a scope. A thread that would retake it after the interpreter has ended
/// sleeps for ever instead, as Python would end it inside of code that must not throw.
class Released {
 public:
  Released() = default;
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
  ~Released();

 private:
  nb::gil_scoped_release released_;
};

/// Holds up to three InUse open for a scope; each may be null. Constructed and destroyed with the
/// GIL.
class Using {
 public:
  explicit Using(InUseList used);
  ~Using() { leave(); }
  Using(const Using&) = delete;
  Using& operator=(const Using&) = delete;

 private:
  void leave() noexcept;
  InUse* entered_[3] = {};
  std::size_t count_ = 0;
};

/// Calls of weir that continue on threads of their own, because an interrupt ended the wait for
/// them.
class LeftCalls {
 public:
  void begin();
  void end() noexcept;
  /// Waits at most `timeout_ns` for them to end; returns whether none is left. Without the GIL.
  bool wait(std::int64_t timeout_ns);

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  std::size_t count_ = 0;
};
using LeftCallsRef = std::shared_ptr<LeftCalls>;

/// Calls a function that may wait for a kernel, without the GIL. On the main thread it handles
/// signals meanwhile. When a handler raises, it returns false: the call continues, counted in
/// `left`, and Python raises the exception when it runs the program again. For destructors, which
/// cannot raise.
bool call_interruptibly(const LeftCallsRef& left, std::function<void()> call);

/// Notes the calling thread as the one that handles signals.
void note_main_thread();

/// Converts seconds to nanoseconds, at most 285 years. `what`: "lost_after". Raises when `seconds`
/// is not a number.
std::int64_t nanoseconds(double seconds, const char* what);
/// The same for a timeout, which must not be negative.
std::int64_t timeout_ns(double seconds);

/// Calls wait(timeout_ns) without the GIL until it returns a status other than TIMEOUT or the time
/// is over; returns its status. On the main thread it handles signals in between, which may raise;
/// it also raises when a used object is closed meanwhile.
weir_status wait_for(const Timeout& timeout, const std::function<weir_status(std::int64_t)>& wait,
                     InUseList used = {});

/// The result of a call on another thread.
struct Answer {
  weir_status status = WEIR_STATUS_OK;
  std::string message;
};
/// Calls a function that cannot continue after a timeout, without the GIL. On the main thread
/// another thread calls it, and signals are handled meanwhile: when a handler raises, cancel()
/// makes the call return, and the exception is raised.
Answer call_cancellable(const std::function<weir_status()>& call,
                        const std::function<void()>& cancel, InUseList used);

// ---- The runtime -------------------------------------------------------------------------------

/// One runtime. Objects made from it hold it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  static std::shared_ptr<Session> open(const weir_runtime_options& options,
                                       std::shared_ptr<Fabric> fabric);
  ~Session();

  weir_runtime* handle() const noexcept { return runtime_; }
  bool closed() const noexcept { return runtime_ == nullptr; }
  /// Raises unless the runtime is open.
  void require_open() const;
  /// Waits until a closed runtime has ended: until then it uses memory of the program. Not in a
  /// callback, nor on the thread that ends it.
  void wait_for_end();

  /// Raises when a domain cannot run Python functions, which exist in this process only.
  void require_python(weir_domain* domain, const std::string& kernel) const;
  /// Returns the domains of a task (0: all) that can. Raises when none can.
  std::uint64_t python_domains(std::uint64_t wanted, const std::string& kernel) const;

  /// Waits for all streams and queues; raises the first failure.
  void synchronize(const Timeout& timeout);
  void cancel();
  /// Waits for all work and ends the runtime. An unreported failure goes to sys.unraisablehook().
  /// Calls give_up() when it is interrupted, or the wait before it was.
  void close();
  /// Cancels actions that have not started, interrupts Python kernels, and ends the runtime when
  /// all of them end within half a second. Otherwise the runtime counts as closed, and is abandoned
  /// to its running kernels until Python ends.
  void give_up();
  /// Keeps memory that kernels of an interrupted program may still use until the runtime has ended.
  void keep(const Py_buffer& memory) { lent_.push_back(memory); }
  /// Closes all sessions: Python is about to end.
  static void close_all();

  Kernel& kernel(const std::string& name);
  /// Returns a kernel that was found or added, or null.
  Kernel* known(const std::string& name) const;
  Kernel& add(std::unique_ptr<Kernel> kernel);
  /// Returns the buffer that contains an address. Raises when there is none.
  std::shared_ptr<Buffer> buffer_at(const void* address) const;

  std::unordered_map<weir_buffer*, std::weak_ptr<Buffer>> buffers;
  std::vector<std::weak_ptr<Stream>> streams;
  std::vector<std::weak_ptr<Queue>> queues;
  std::vector<std::weak_ptr<Pipeline>> pipelines;
  std::vector<nb::object> kept;    ///< objects that registered code uses
  std::shared_ptr<Fabric> fabric;  ///< of a runtime with domains of other ranks
  InUse in_use{"the runtime"};
  const LeftCallsRef left_calls = std::make_shared<LeftCalls>();

 private:
  Session();
  void end();
  void abandon(weir_runtime* runtime, LeftCallsRef calls);

  weir_runtime* runtime_ = nullptr;
  std::vector<Py_buffer> lent_;
  InUse ending_{"the runtime"};
  unsigned long ending_thread_ = 0;
  std::unordered_map<std::string, std::unique_ptr<Kernel>> kernels_;
};

using SessionRef = std::shared_ptr<Session>;

/// The elements of anything that can be iterated over.
class Sequence {
 public:
  Sequence(nb::handle given, const char* what) : all_(nb::steal(PySequence_Tuple(given.ptr()))) {
    if (all_.is_valid()) return;
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0) throw nb::python_error();
    PyErr_Clear();
    raise_type(what);
  }
  std::size_t size() const { return static_cast<std::size_t>(PyTuple_Size(all_.ptr())); }
  nb::handle operator[](std::size_t index) const {
    return PyTuple_GetItem(all_.ptr(), static_cast<Py_ssize_t>(index));
  }

 private:
  nb::object all_;
};

/// The bytes of an object with the buffer protocol, which it holds.
class Bytes {
 public:
  explicit Bytes(nb::handle object, bool writable = false) {
    const int flags = writable ? PyBUF_WRITABLE : PyBUF_SIMPLE;
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
  }
  ~Bytes() { PyBuffer_Release(&view_); }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(view_.buf); }
  std::size_t size() const { return static_cast<std::size_t>(view_.len); }

 private:
  Py_buffer view_{};
};

// ---- Calls -------------------------------------------------------------------------------------

/// Runs a function of weir without the GIL and raises its failure.
template <class Call>
void call_released(InUseList used, Call&& call) {
  weir_status status = WEIR_STATUS_OK;
  {
    const Using inside(used);
    const Released released;
    status = call();
  }
  check(status);
}
template <class Call>
void call_released(Call&& call) {
  call_released({}, std::forward<Call>(call));
}

/// Destroys an object of weir without the GIL when no call is in the objects of `used` any more;
/// does nothing when its runtime destroys it. After an interrupt the runtime destroys it; during
/// one, a separate thread does. Raises in a callback, where no destructor calls it: see dispose().
/// Not for objects that Python code refers to: it may destroy them later.
template <class Handle>
void end(Session& session, Handle*& handle, void (*destroy)(Handle*),
         const std::vector<InUse*>& used = {}) {
  if (handle == nullptr) return;
  if (!session.closed()) require_no_callback("what may wait for it");
  Handle* const ended = std::exchange(handle, nullptr);
  if (session.closed()) return session.wait_for_end();
  if (interrupted()) return;  // it may be busy for long: the runtime destroys it
  const Using inside({&session.in_use});
  for (InUse* each : used) each->close();
  call_interruptibly(session.left_calls, [=] { destroy(ended); });
}

/// Returns the handle of an object. Raises when it has been closed.
template <class Handle>
Handle* open(const Session& session, Handle* handle, const char* what) {
  session.require_open();
  if (handle == nullptr) {
    raise_status(WEIR_STATUS_INVALID_ARGUMENT, std::string("the ") + what + " has been closed");
  }
  return handle;
}

}  // namespace weir::py
