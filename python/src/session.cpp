#include "session.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <future>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <unistd.h>

#include "array.hpp"
#include "fabric.hpp"
#include "kernel.hpp"
#include "pipeline.hpp"
#include "stream.hpp"

namespace weir::py {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kKeptExceptions = 256;
constexpr std::int64_t kFirstSlice_ns = 5'000'000;
constexpr std::int64_t kLastSlice_ns = 100'000'000;
constexpr const char* kMark = "[python ";
constexpr std::string_view kChose = "' chose candidate ";
constexpr double kMostSeconds = 9e9;
constexpr std::int64_t kGrace_ns = 500'000'000;  // of kernels that are interrupted

// With the GIL, all of them.
std::deque<std::pair<std::uint64_t, nb::object>> exceptions;
std::uint64_t last_exception = 0;
std::vector<std::function<void()>> deferred;
std::vector<std::weak_ptr<Session>> sessions;
std::vector<unsigned long> running_kernels;  // the threads that run them
bool interrupted_wait = false;
unsigned long main_thread = 0;

nb::object raised_late;  // by a handler of signals, during call_interruptibly()

void raise_kept() {
  if (!raised_late.is_valid()) return;
  const nb::object raised = std::exchange(raised_late, {});
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
  throw nb::python_error();
}

/// A runtime that was abandoned, and the memory that its kernels may use.
struct Abandoned {
  weir_runtime* runtime;  ///< null: one of the calls destroys it
  LeftCallsRef left_calls;
  std::vector<Py_buffer> memories;
  std::vector<nb::object> kept;
};
std::vector<Abandoned> abandoned_runtimes;

/// An exception that was kept, unless it is too old.
nb::object kept_exception(std::uint64_t id) {
  for (const auto& [kept, exception] : exceptions) {
    if (kept == id) return exception;
  }
  return {};
}

std::uint64_t number_at(const std::string& message, std::size_t at) {
  return std::strtoull(message.c_str() + at, nullptr, 10);
}

/// Returns the text of an exception: invalid letters become '?'; "" when it cannot be printed.
std::string said_by(nb::handle exception) {
  const nb::object text = nb::steal(PyObject_Str(exception.ptr()));
  nb::object bytes;
  if (text.is_valid()) {
    bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "replace"));
  }
  if (!bytes.is_valid()) {
    PyErr_Clear();
    return {};
  }
  return {PyBytes_AsString(bytes.ptr()), static_cast<std::size_t>(PyBytes_Size(bytes.ptr()))};
}

/// Returns the class of an exception and its text, if it has one.
std::string words_of(nb::handle exception) {
  std::string text = nb::cast<std::string>(nb::handle(exception.type()).attr("__name__"));
  const std::string said = said_by(exception);
  if (!said.empty()) text += ": " + said;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Removes the mark of keep_exception() from a message and returns the exception that it
/// identifies.
nb::object take_mark(std::string& message) {
  const std::size_t begin = message.find(kMark);
  if (begin == std::string::npos) return {};
  const std::size_t end = message.find("] ", begin);
  if (end == std::string::npos) return {};
  const std::uint64_t id = number_at(message, begin + 8);
  message.erase(begin, end + 2 - begin);
  return kept_exception(id);
}

/// Replaces the candidate index of a policy that raised in a message by the text of its exception,
/// and returns the exception.
nb::object take_candidate(std::string& message) {
  const std::size_t begin = message.find(kChose);
  if (begin == std::string::npos) return {};
  const std::uint64_t chosen = number_at(message, begin + kChose.size());
  if (chosen < kFarCandidate) return {};
  const nb::object raised = kept_exception(chosen - kFarCandidate);
  const std::size_t end = message.find(" for task", begin);
  if (end != std::string::npos) {
    const std::string words = raised.is_valid() ? words_of(raised) : "an exception";
    message.replace(begin + 1, end - begin - 1, " raised " + words);
  }
  return raised;
}

/// Takes an exception with its traceback, without the variables of its frames.
nb::object bare_exception(nb::python_error& error) {
  const nb::object value = nb::borrow(error.value());
  if (error.traceback().is_valid()) {
    PyException_SetTraceback(value.ptr(), error.traceback().ptr());
    nb::module_::import_("traceback").attr("clear_frames")(error.traceback());
  }
  return value;
}

/// Nanoseconds until the end of a wait.
class Deadline {
 public:
  explicit Deadline(const Timeout& timeout) {
    if (timeout) end_ = Clock::now() + std::chrono::nanoseconds(timeout_ns(*timeout));
  }

  std::int64_t left_ns() const {
    if (!end_) return INT64_MAX;
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(*end_ - Clock::now());
    return std::max<std::int64_t>(0, left.count());
  }

 private:
  std::optional<Clock::time_point> end_;
};

void dispose_all() {
  while (!deferred.empty()) {
    const std::function<void()> code = std::move(deferred.back());
    deferred.pop_back();
    code();
  }
}

int run_deferred(void*) {
  dispose_late();
  return 0;
}

}  // namespace

thread_local int CallbackScope::depth = 0;

nb::object text_from(const std::string& said) {
  nb::object text =
      nb::steal(PyUnicode_DecodeUTF8(said.data(), static_cast<Py_ssize_t>(said.size()), "replace"));
  if (!text.is_valid()) throw nb::python_error();
  return text;
}

void raise_status(weir_status status, const std::string& message) {
  std::string text = message;
  nb::object cause = take_mark(text);
  if (!cause.is_valid()) cause = take_candidate(text);
  const nb::object raise_class =
      nb::module_::import_("weir._errors").attr("of_status")(weir_status_name(status));
  const nb::object error = raise_class(text_from(text));
  if (cause.is_valid()) PyException_SetCause(error.ptr(), nb::object(cause).release().ptr());
  PyErr_SetObject(raise_class.ptr(), error.ptr());
  throw nb::python_error();
}

void raise_type(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw nb::python_error();
}

void raise_value(const std::string& message) {
  PyErr_SetString(PyExc_ValueError, message.c_str());
  throw nb::python_error();
}

namespace {

std::uint64_t keep(nb::object exception) {
  const std::uint64_t id = ++last_exception;
  exceptions.emplace_back(id, std::move(exception));
  if (exceptions.size() > kKeptExceptions) {
    const auto oldest = std::move(exceptions.front());  // what it holds may keep another as it goes
    exceptions.pop_front();
  }
  return id;
}

}  // namespace

std::string keep_exception(nb::python_error& error) {
  const nb::object value = bare_exception(error);
  const std::uint64_t id = keep(value);
  return kMark + std::to_string(id) + "] " + words_of(value);
}

std::size_t RaisedByPolicy::keep(nb::python_error& error) {
  const nb::object value = bare_exception(error);
  std::string words = words_of(value);
  if (words != words_ || !kept_exception(number_).is_valid()) {
    number_ = py::keep(value);
    words_ = std::move(words);
  }
  return kFarCandidate + number_;
}

void forget_exceptions() { std::exchange(exceptions, {}).clear(); }

void require_no_callback(const char* what) {
  if (!CallbackScope::active()) return;
  raise_status(WEIR_STATUS_BUSY, std::string("a kernel or callback must not close ") + what);
}

void dispose(std::function<void()> code) {
  if (!CallbackScope::active() && !interrupted()) return code();
  deferred.push_back(std::move(code));
  Py_AddPendingCall(run_deferred, nullptr);  // when it has no room, a later call will do
}

void dispose_late() {
  if (!CallbackScope::active() && !interrupted()) dispose_all();
}

RunningKernel::RunningKernel() { running_kernels.push_back(PyThread_get_thread_ident()); }

RunningKernel::~RunningKernel() {
  const auto found =
      std::find(running_kernels.begin(), running_kernels.end(), PyThread_get_thread_ident());
  running_kernels.erase(found);
}

void RunningKernel::interrupt_all() {
  for (const unsigned long thread : running_kernels) {
    PyThreadState_SetAsyncExc(thread, PyExc_KeyboardInterrupt);
  }
}

bool interrupted() noexcept { return interrupted_wait; }

void set_interrupted(bool now) noexcept { interrupted_wait = now; }

void note_exit(nb::handle type) {
  if (!type.is_none() && PyErr_GivenExceptionMatches(type.ptr(), PyExc_KeyboardInterrupt) != 0) {
    set_interrupted(true);
  }
}

void note_main_thread() {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  main_thread = nb::cast<unsigned long>(main.attr("ident"));
}

// ---- InUse -------------------------------------------------------------------------------------

void InUse::enter() {
  if (closed_) {
    raise_status(WEIR_STATUS_INVALID_ARGUMENT, std::string(what_) + " has been closed");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  ++inside_;
}

void InUse::leave() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--inside_ == 0) free_.notify_all();
}

void InUse::close() {
  closed_ = true;
  wait();
}

bool InUse::busy() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return inside_ > 0;
}

void InUse::close_idle() {
  if (busy()) {
    raise_status(WEIR_STATUS_BUSY, std::string("another thread is in a call of ") + what_ +
                                       ": close it when that has returned");
  }
  closed_ = true;
}

void InUse::wait() {
  while (busy()) {  // another thread may enter before this one has the GIL again
    const Released released;
    std::unique_lock<std::mutex> lock(mutex_);
    free_.wait(lock, [this] { return inside_ == 0; });
  }
}

Released::~Released() {
#if PY_VERSION_HEX >= 0x030D0000
  const bool over = Py_IsFinalizing() != 0;
#else
  const bool over = _Py_IsFinalizing() != 0;
#endif
  while (over && PyThread_get_thread_ident() != main_thread) pause();
}

Using::Using(InUseList used) {
  try {
    for (InUse* each : used) {
      if (each == nullptr) continue;
      each->enter();
      entered_[count_++] = each;
    }
  } catch (...) {
    leave();
    throw;
  }
}

void Using::leave() noexcept {
  while (count_ > 0) entered_[--count_]->leave();
}

// ---- Waiting -----------------------------------------------------------------------------------

std::int64_t nanoseconds(double seconds, const char* what) {
  if (std::isnan(seconds)) raise_value(std::string(what) + " is nan: give a number of seconds");
  return static_cast<std::int64_t>(std::clamp(seconds, -kMostSeconds, kMostSeconds) * 1e9);
}

std::int64_t timeout_ns(double seconds) {
  if (!(seconds >= 0)) {
    raise_value("a timeout of " + std::to_string(seconds) +
                " s is not a time: None waits for ever, 0 only asks");
  }
  return nanoseconds(seconds, "timeout");
}

weir_status wait_for(const Timeout& timeout, const std::function<weir_status(std::int64_t)>& wait,
                     InUseList used) {
  dispose_late();
  raise_kept();
  const Deadline deadline(timeout);
  if (PyThread_get_thread_ident() != main_thread) {
    const Using inside(used);
    const Released released;
    return wait(timeout ? deadline.left_ns() : WEIR_FOREVER);
  }
  for (std::int64_t slice_ns = kFirstSlice_ns;; slice_ns = std::min(2 * slice_ns, kLastSlice_ns)) {
    const std::int64_t left_ns = deadline.left_ns();
    weir_status status = WEIR_STATUS_OK;
    {
      const Using inside(used);
      const Released released;
      status = wait(std::min(left_ns, slice_ns));
    }
    if (status != WEIR_STATUS_TIMEOUT || left_ns <= slice_ns) {
      interrupted_wait = interrupted_wait && status == WEIR_STATUS_TIMEOUT;
      return status;
    }
    if (PyErr_CheckSignals() == 0) continue;
    interrupted_wait = interrupted_wait || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    throw nb::python_error();
  }
}

Answer call_cancellable(const std::function<weir_status()>& call,
                        const std::function<void()>& cancel, InUseList used) {
  dispose_late();
  raise_kept();
  const Using inside(used);
  Answer answer;
  const auto run = [&] {
    answer.status = call();
    if (answer.status != WEIR_STATUS_OK) answer.message = weir_last_error();
  };
  if (PyThread_get_thread_ident() != main_thread || CallbackScope::active()) {
    const Released released;
    run();
    return answer;
  }
  auto ended = std::async(std::launch::async, run);
  for (std::int64_t slice_ns = kFirstSlice_ns;; slice_ns = std::min(2 * slice_ns, kLastSlice_ns)) {
    {
      const Released released;
      if (ended.wait_for(std::chrono::nanoseconds(slice_ns)) == std::future_status::ready) break;
    }
    if (PyErr_CheckSignals() == 0) continue;
    interrupted_wait = interrupted_wait || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    nb::python_error raised;
    {
      const Released released;
      cancel();
      ended.wait();
    }
    throw raised;
  }
  ended.get();
  interrupted_wait = interrupted_wait && answer.status == WEIR_STATUS_TIMEOUT;
  return answer;
}

void LeftCalls::begin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++count_;
}

void LeftCalls::end() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--count_ == 0) none_.notify_all();
}

bool LeftCalls::wait(std::int64_t timeout_ns) {
  std::unique_lock<std::mutex> lock(mutex_);
  return none_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [this] { return count_ == 0; });
}

namespace {

int raise_pending(void*) {
  try {
    raise_kept();
  } catch (nb::python_error& error) {
    error.restore();
    return -1;
  }
  return 0;
}

/// Handles signals. Returns whether a handler raised; Python raises that exception later in the
/// program.
bool signal_raised() {
  const nb::error_scope before;  // a destructor may run while an exception propagates
  if (PyErr_CheckSignals() == 0) return false;
  interrupted_wait = interrupted_wait || PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
  nb::python_error error;
  raised_late = nb::borrow(error.value());
  Py_AddPendingCall(raise_pending, nullptr);
  return true;
}

}  // namespace

bool call_interruptibly(const LeftCallsRef& left, std::function<void()> call) {
  if (PyThread_get_thread_ident() != main_thread) {
    const Released released;
    call();
    return true;
  }
  const auto mine = std::make_shared<LeftCalls>();
  left->begin();
  mine->begin();
  const auto run = [left, mine, call = std::move(call)] {
    call();
    left->end();
    mine->end();
  };
  try {
    std::thread(run).detach();
  } catch (const std::system_error&) {  // there is no thread for it: this one waits
    const Released released;
    run();
  }
  for (std::int64_t slice_ns = kFirstSlice_ns;; slice_ns = std::min(2 * slice_ns, kLastSlice_ns)) {
    {
      const Released released;
      if (mine->wait(slice_ns)) return true;
    }
    if (signal_raised()) return false;
  }
}

// ---- Session -----------------------------------------------------------------------------------

Session::Session() = default;

Session::~Session() { interrupted() ? give_up() : end(); }

void Raised::raise() {
  if (!first_.is_valid()) return;
  const nb::object raised = std::exchange(first_, {});
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
  throw nb::python_error();
}

std::shared_ptr<Session> Session::open(const weir_runtime_options& options,
                                       std::shared_ptr<Fabric> fabric) {
  dispose_late();
  auto session = std::shared_ptr<Session>(
      new Session, [](Session* object) { dispose([object] { delete object; }); });
  weir_runtime_options wanted = options;
  if (fabric) wanted.fabric = fabric->open();
  call_released({fabric ? &fabric->in_use : nullptr},
                [&] { return weir_runtime_create(&wanted, &session->runtime_); });
  session->fabric = std::move(fabric);
  std::erase_if(sessions, [](const auto& other) { return other.expired(); });
  sessions.push_back(session);
  return session;
}

void Session::require_open() const {
  if (closed()) raise_status(WEIR_STATUS_INVALID_ARGUMENT, "the runtime has been closed");
}

namespace {

bool is_rank(weir_domain* domain) {
  weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
  check(weir_domain_get_info(domain, &info));
  return std::string_view(info.backend) == "rank";
}

[[noreturn]] void refuse_python(const std::string& kernel) {
  raise_status(WEIR_STATUS_UNSUPPORTED,
               "kernel '" + kernel +
                   "' is a function of Python, which other ranks cannot run: make it portable or "
                   "compiled");
}

}  // namespace

void Session::require_python(weir_domain* domain, const std::string& kernel) const {
  if (fabric && is_rank(domain)) refuse_python(kernel);
}

std::uint64_t Session::python_domains(std::uint64_t wanted, const std::string& kernel) const {
  if (!fabric) return wanted;
  std::uint64_t domains = 0;
  const std::size_t count = weir_runtime_domain_count(runtime_);  // 63 at most
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_rank(weir_runtime_get_domain(runtime_, i))) domains |= std::uint64_t{1} << i;
  }
  if (wanted != 0) domains &= wanted;
  if (domains == 0) refuse_python(kernel);
  return domains;
}

namespace {

/// Returns the objects of a list that still exist.
template <class T>
std::vector<std::shared_ptr<T>> living(std::vector<std::weak_ptr<T>>& list) {
  std::erase_if(list, [](const auto& each) { return each.expired(); });
  std::vector<std::shared_ptr<T>> found;
  for (const auto& each : list) {
    if (auto object = each.lock(); object && object->handle != nullptr) found.push_back(object);
  }
  return found;
}

}  // namespace

void Session::synchronize(const Timeout& timeout) {
  require_open();
  const Deadline deadline(timeout);
  std::optional<nb::python_error> first;
  const auto one = [&](const auto& waiting) {
    try {
      waiting->synchronize(timeout ? Timeout(static_cast<double>(deadline.left_ns()) * 1e-9)
                                   : Timeout());
    } catch (nb::python_error& error) {
      const nb::object failures = nb::module_::import_("weir._errors").attr("OF_ACTIONS");
      if (!error.matches(failures)) throw;
      if (!first) first.emplace(std::move(error));
    }
  };
  for (const auto& queue : living(queues)) one(queue);
  for (const auto& stream : living(streams)) one(stream);
  if (first) throw nb::python_error(std::move(*first));
}

void Session::cancel() {
  require_open();
  for (const auto& pipeline : living(pipelines)) pipeline->cancel();
  for (const auto& queue : living(queues)) queue->cancel();
  for (const auto& stream : living(streams)) stream->cancel();
}

void Session::close() {
  if (closed()) return wait_for_end();
  require_no_callback("the runtime");
  if (interrupted()) return give_up();
  try {
    synchronize({});
  } catch (nb::python_error& error) {
    if (!error.matches(nb::module_::import_("weir._errors").attr("Error"))) {
      give_up();
      throw;
    }
    error.discard_as_unraisable("the end of a weir.Runtime");
  }
  end();
}

void Session::give_up() {
  if (closed()) return wait_for_end();
  cancel();
  RunningKernel::interrupt_all();
  weir_status status = WEIR_STATUS_OK;
  {
    const Using inside({&in_use});
    const nb::gil_scoped_release released;
    const Deadline grace(Timeout(1e-9 * static_cast<double>(kGrace_ns)));
    status = weir_runtime_synchronize(runtime_, kGrace_ns);
    if (!left_calls->wait(grace.left_ns())) status = WEIR_STATUS_TIMEOUT;
  }
  if (status != WEIR_STATUS_TIMEOUT) return end();
  abandon(std::exchange(runtime_, nullptr), left_calls);
}

void Session::abandon(weir_runtime* runtime, LeftCallsRef calls) {
  for (const auto& [handle, known] : buffers) {
    if (const auto buffer = known.lock()) keep(std::exchange(buffer->memory, {}));
  }
  abandoned_runtimes.push_back(
      {runtime, std::move(calls), std::exchange(lent_, {}), std::exchange(kept, {})});
}

void Session::end() {
  if (closed()) return wait_for_end();
  weir_runtime* const runtime = std::exchange(runtime_, nullptr);
  ending_thread_ = PyThread_get_thread_ident();
  {
    const Using ending({&ending_});
    const auto waited_for = living(pipelines);  // by threads that would otherwise wait for ever
    for (const auto& pipeline : waited_for) {
      static_cast<void>(weir_pipeline_cancel(pipeline->handle));
    }
    in_use.close();
    const auto calls = std::make_shared<LeftCalls>();
    const bool ended = call_interruptibly(calls, [before = left_calls, runtime] {
      while (!before->wait(kLastSlice_ns)) continue;
      weir_runtime_destroy(runtime);
    });
    if (!ended) abandon(nullptr, calls);
  }
  for (Py_buffer& memory : std::exchange(lent_, {})) PyBuffer_Release(&memory);
  std::exchange(kept, {}).clear();  // it may hold the runtime
}

void Session::wait_for_end() {
  if (CallbackScope::active() || ending_thread_ == PyThread_get_thread_ident()) return;
  ending_.wait();
}

namespace {

/// Whether an interrupt that the program did not handle is what ends Python.
bool ends_by_interrupt() {
  const nb::object last = nb::getattr(nb::module_::import_("sys"), "last_type", nb::none());
  return last.is(nb::handle(PyExc_KeyboardInterrupt));
}

/// Ends the process as an interrupt does that nothing handles.
[[noreturn]] void end_by_signal() {
  const nb::module_ sys = nb::module_::import_("sys");
  for (const char* const name : {"stdout", "stderr"}) {
    try {
      sys.attr(name).attr("flush")();
    } catch (nb::python_error&) {  // closed, or full: nothing reads it
    }
  }
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
  std::_Exit(128 + SIGINT);
}

/// Ends the abandoned runtimes if their kernels have ended by now; otherwise ends the process.
void end_abandoned() {
  for (Abandoned& each : std::exchange(abandoned_runtimes, {})) {
    {
      const nb::gil_scoped_release released;
      const bool idle = each.left_calls->wait(0) &&
                        (each.runtime == nullptr ||
                         weir_runtime_synchronize(each.runtime, 0) != WEIR_STATUS_TIMEOUT);
      if (!idle) {
        const nb::gil_scoped_acquire held;
        end_by_signal();
      }
      if (each.runtime != nullptr) weir_runtime_destroy(each.runtime);
    }
    for (Py_buffer& memory : each.memories) PyBuffer_Release(&memory);
  }
}

}  // namespace

void Session::close_all() {
  set_interrupted(interrupted() || ends_by_interrupt());
  for (const auto& each : std::exchange(sessions, {})) {
    const auto session = each.lock();
    if (!session) continue;
    try {
      session->close();
    } catch (nb::python_error&) {  // interrupted now
      set_interrupted(true);
    }
  }
  dispose_all();
  end_abandoned();
  Fabric::close_all();
  dispose_all();
  forget_exceptions();
  std::exchange(raised_late, {}).reset();
}

Kernel& Session::kernel(const std::string& name) {
  require_open();
  if (Kernel* const found = known(name)) return *found;
  weir_kernel* found = nullptr;
  check(weir_kernel_find(runtime_, name.c_str(), &found));
  const bool tiles = name.starts_with("blas.") || name.starts_with("lapack.");
  return add(std::make_unique<Kernel>(Kernel{.name = name, .handle = found, .tiles = tiles}));
}

Kernel* Session::known(const std::string& name) const {
  const auto found = kernels_.find(name);
  return found == kernels_.end() ? nullptr : found->second.get();
}

Kernel& Session::add(std::unique_ptr<Kernel> kernel) {
  const std::string name = kernel->name;
  return *kernels_.emplace(name, std::move(kernel)).first->second;
}

std::shared_ptr<Buffer> Session::buffer_at(const void* address) const {
  require_open();
  weir_buffer* found = nullptr;
  std::size_t offset = 0;
  const weir_status status = weir_buffer_find(runtime_, address, &found, &offset);
  if (status == WEIR_STATUS_NOT_FOUND) {
    raise_status(status, "no buffer holds this array: runtime.wrap() it, and keep the buffer");
  }
  check(status);
  const auto known = buffers.find(found);
  const auto buffer = known == buffers.end() ? nullptr : known->second.lock();
  if (!buffer) raise_status(WEIR_STATUS_NOT_FOUND, "the buffer of this array is being closed");
  return buffer;
}

}  // namespace weir::py
