#include "executor.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <weir/opencl.h>

#include "platforms.hpp"

namespace weir::model {

namespace {

void check(weir_status status) {
  if (status != WEIR_STATUS_OK) {
    throw std::runtime_error(std::string(weir_status_name(status)) + ": " + weir_last_error());
  }
}

std::vector<bool> aliases_of(weir_runtime* runtime) {
  std::vector<bool> aliases;
  for (std::size_t i = 0; i < weir_runtime_domain_count(runtime); ++i) {
    weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
    check(weir_domain_get_info(weir_runtime_get_domain(runtime, i), &info));
    aliases.push_back(info.aliases_host);
  }
  return aliases;
}

template <class Visit>
void each_word(const weir_view& view, Visit&& visit) {
  auto* const base = static_cast<std::byte*>(view.address);
  for (std::size_t p = 0; p < view.extent[2]; ++p) {
    for (std::size_t r = 0; r < view.extent[1]; ++r) {
      for (std::size_t b = 0; b < view.extent[0]; b += 8) {
        visit(
            *reinterpret_cast<std::uint64_t*>(base + p * view.stride[1] + r * view.stride[0] + b));
      }
    }
  }
}

Host* host_of_kernels = nullptr;

/// Scalars: key, whether to fail, where to note what it reads (a vector of words), then for each
/// operand the number of its first word.
weir_status mix_kernel(const weir_call* call) {
  const std::uint64_t key = call->scalars[0].value.u64;
  if (call->scalars[1].value.u64 != 0) throw std::runtime_error("told to fail");
  auto& seen = *reinterpret_cast<std::vector<std::uint64_t>*>(call->scalars[2].value.u64);
  seen.clear();
  std::uint64_t read = 0;
  for (std::size_t i = 0; i < call->operand_count; ++i) {
    if ((call->operands[i].access & WEIR_ACCESS_READ) == 0) continue;
    each_word(call->operands[i], [&](std::uint64_t& word) {
      seen.push_back(word);
      read = mix(read, word, key);
    });
  }
  host_of_kernels->inside_kernel();
  for (std::size_t i = 0; i < call->operand_count; ++i) {
    const weir_view& view = call->operands[i];
    if ((view.access & WEIR_ACCESS_WRITE) == 0) continue;
    const bool keeps = (view.access & WEIR_ACCESS_READ) != 0;
    const auto* const base = static_cast<const std::byte*>(view.address);
    const std::uint64_t first = call->scalars[3 + i].value.u64;
    each_word(view, [&](std::uint64_t& word) {
      const auto at =
          first + static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(&word) - base) / 8;
      word = mix(keeps ? word : 0, read, key + at);
    });
  }
  return WEIR_STATUS_OK;
}

/// A call that a stream comes to later, with what it points to.
struct LaterCall {
  weir_call call;
  std::vector<weir_scalar> scalars;
  std::vector<weir_view> operands;

  explicit LaterCall(const weir_call& given)
      : call(given),
        scalars(given.scalars, given.scalars + given.scalar_count),
        operands(given.operands, given.operands + given.operand_count) {
    call.scalars = scalars.data();
    call.operands = operands.data();
  }
};

/// For the CUDA driver for tests, whose memory is that of the host.
weir_status mix_in_stream(const weir_call* call) {
  using Function = void (*)(void*);
  using Launch = int (*)(void* stream, Function function, void* data);
  static const auto launch = reinterpret_cast<Launch>(
      dlsym(dlopen(std::getenv("WEIR_CUDA_DRIVER"), RTLD_NOW), "cuLaunchHostFunc"));
  if (call->scalars[1].value.u64 != 0) throw std::runtime_error("told to fail");
  auto later = std::make_unique<LaterCall>(*call);
  const Function run = [](void* data) {
    const std::unique_ptr<LaterCall> mine(static_cast<LaterCall*>(data));
    mix_kernel(&mine->call);
  };
  if (launch(call->queue, run, later.get()) != 0) throw std::runtime_error("not launched");
  later.release();
  return WEIR_STATUS_OK;
}

/// Copies a row between the host and an operand of an OpenCL device, and waits for it.
void copy_row(const weir_call& call, std::byte* operand, std::byte* host, std::size_t bytes,
              bool back) {
  using Move = int (*)(void* queue, void* buffer, unsigned waits, std::size_t offset,
                       std::size_t bytes, void* host, unsigned, const void*, void*);
  using Copy = int (*)(void* queue, unsigned waits, void* to, const void* from, std::size_t bytes,
                       unsigned, const void*, void*);
  static void* const loader = dlopen("libOpenCL.so.1", RTLD_NOW);
  static const auto read = reinterpret_cast<Move>(dlsym(loader, "clEnqueueReadBuffer"));
  static const auto write = reinterpret_cast<Move>(dlsym(loader, "clEnqueueWriteBuffer"));
  static const auto copy = reinterpret_cast<Copy>(dlsym(loader, "clEnqueueSVMMemcpy"));
  void* buffer = nullptr;
  std::uint64_t offset = 0;
  check(weir_opencl_buffer(operand, &buffer, &offset));
  std::byte *const from = back ? host : operand, *const to = back ? operand : host;
  const int code = buffer == nullptr ? copy(call.queue, 1, to, from, bytes, 0, nullptr, nullptr)
                                     : (back ? write : read)(call.queue, buffer, 1, offset, bytes,
                                                             host, 0, nullptr, nullptr);
  if (code != 0) throw std::runtime_error("OpenCL copies no row: " + std::to_string(code));
}

/// Memory of the host for what operands span, which is one where they overlap.
class Shadows {
 public:
  explicit Shadows(const weir_call& call) {
    std::map<std::byte*, std::byte*> spans;  // from begin to end
    for (std::size_t i = 0; i < call.operand_count; ++i) {
      const weir_view& view = call.operands[i];
      auto* begin = static_cast<std::byte*>(view.address);
      std::byte* end = begin + (view.extent[2] - 1) * view.stride[1] +
                       (view.extent[1] - 1) * view.stride[0] + view.extent[0];
      for (auto at = spans.begin(); at != spans.end();) {
        const bool disjoint = at->second < begin || end < at->first;
        if (!disjoint) begin = std::min(begin, at->first), end = std::max(end, at->second);
        at = disjoint ? std::next(at) : spans.erase(at);
      }
      spans[begin] = end;
    }
    for (const auto& [begin, end] : spans)
      memory_[begin].resize(static_cast<std::size_t>(end - begin));
  }

  /// Returns where an address is.
  std::byte* of(void* address) {
    auto* const byte = static_cast<std::byte*>(address);
    auto& [begin, copy] = *std::prev(memory_.upper_bound(byte));
    return copy.data() + (byte - begin);
  }

 private:
  std::map<std::byte*, std::vector<std::byte>> memory_;
};

/// For OpenCL devices: on the host, with copies of the operands. Nothing beside their rows is
/// written, as other actions may be at work there.
weir_status mix_by_copies(const weir_call* call) {
  if (call->queue == nullptr) return mix_kernel(call);  // a processor
  if (call->scalars[1].value.u64 != 0) throw std::runtime_error("told to fail");
  LaterCall mine(*call);
  Shadows shadows(*call);
  const auto move_rows = [&](const weir_view& view, bool back) {
    for (std::size_t p = 0; p < view.extent[2]; ++p) {
      for (std::size_t r = 0; r < view.extent[1]; ++r) {
        auto* const row =
            static_cast<std::byte*>(view.address) + p * view.stride[1] + r * view.stride[0];
        copy_row(*call, row, shadows.of(row), view.extent[0], back);
      }
    }
  };
  for (std::size_t i = 0; i < call->operand_count; ++i) {
    mine.operands[i].address = shadows.of(call->operands[i].address);
    if ((call->operands[i].access & WEIR_ACCESS_READ) != 0) move_rows(call->operands[i], false);
  }
  const weir_status status = mix_kernel(&mine.call);
  for (std::size_t i = 0; i < call->operand_count; ++i) {
    if ((call->operands[i].access & WEIR_ACCESS_WRITE) != 0) move_rows(call->operands[i], true);
  }
  return status;
}

/// Scalar: a counter of the times it was called.
weir_status mark_kernel(const weir_call* call) {
  reinterpret_cast<std::atomic<int>*>(call->scalars[0].value.u64)->fetch_add(1);
  return WEIR_STATUS_OK;
}

weir_kernel* add_kernel(weir_runtime* runtime, const char* name, weir_host_function function,
                        weir_kernel_shape shape, weir_host_function in_stream = nullptr,
                        weir_host_function by_copies = nullptr) {
  const weir_implementation implementations[] = {
      {"host", function, nullptr}, {"cuda", in_stream, nullptr}, {"opencl", by_copies, nullptr}};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.shape = shape;
  options.implementations = implementations;
  options.implementation_count = in_stream == nullptr ? 1 : 3;
  weir_kernel* kernel = nullptr;
  check(weir_kernel_register(runtime, &options, &kernel));
  return kernel;
}

}  // namespace

void Host::run_all(const std::vector<std::function<void()>>& bodies) {
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < bodies.size(); ++i) threads.emplace_back(bodies[i]);
  bodies[0]();
  for (std::thread& thread : threads) thread.join();
}

void Host::relax() noexcept { std::this_thread::yield(); }

Kernels::Kernels(weir_runtime* runtime)
    : mix(add_kernel(runtime, "mix", mix_kernel, WEIR_KERNEL_SHAPE_SERIAL, mix_in_stream,
                     mix_by_copies)),
      mix_team(add_kernel(runtime, "mix.team", mix_kernel, WEIR_KERNEL_SHAPE_PARALLEL,
                          mix_in_stream, mix_by_copies)),
      mark(add_kernel(runtime, "mark", mark_kernel, WEIR_KERNEL_SHAPE_SERIAL)) {}

Platform as_found(Platform platform) {
  if (!platform.aliases.empty()) return platform;
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = platform.domains.c_str();
  weir_runtime* runtime = nullptr;
  check(weir_runtime_create(&options, &runtime));
  platform.aliases = aliases_of(runtime);
  weir_runtime_destroy(runtime);
  return platform;
}

Executor::Executor(const Platform& platform, Host& host, weir_fabric* fabric)
    : platform_(platform), host_(host) {
  host_of_kernels = &host;
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = platform.domains.c_str();
  options.fabric = fabric;
  check(weir_runtime_create(&options, &runtime_));
  if (aliases_of(runtime_) != platform.aliases) {
    weir_runtime_destroy(runtime_);
    throw std::runtime_error("which domains of '" + platform.domains +
                             "' share the host's memory is not what the platform '" +
                             platform.name + "' says: change its 'aliases'");
  }
  kernels_.emplace(runtime_);
  for (std::size_t i = 0; i < platform.places.size(); ++i) {
    weir_place_options place = WEIR_PLACE_OPTIONS_INIT;
    place.core_count = platform.cores[i];
    place.oversubscribe = true;
    weir_place* made = nullptr;
    check(weir_place_create(weir_runtime_get_domain(runtime_, platform.places[i]), &place, &made));
    places_.push_back(made);
  }
}

Executor::~Executor() { weir_runtime_destroy(runtime_); }

/// The objects of one program.
struct Executor::Run {
  /// What happened to one step.
  struct Record {
    weir_event event{};
    std::atomic<bool> enqueued{false};
    std::vector<std::uint64_t> seen;
    weir_status host_status = WEIR_STATUS_OK;
    std::size_t host_index = 0;
    // Of a callback.
    Run* run = nullptr;
    std::atomic<int> called{0}, marked{0};
    weir_status told = WEIR_STATUS_OK;
    // Of an external action, instead of a kernel.
    std::vector<weir_scalar> scalars;
  };
  /// An external action that is in progress.
  struct Begun {
    weir_event event;
    LaterCall call;
  };

  Executor& executor;
  const Program& program;
  std::vector<Words> memory;
  std::vector<weir_buffer*> buffers;
  std::vector<weir_stream*> streams;
  weir_stream* callbacks = nullptr;  ///< callbacks enqueue here, from any thread
  std::vector<Record> records;
  std::mutex begun_mutex;
  std::list<Begun> begun;
  std::ostringstream wrong;

  Run(Executor& owner, const Program& planned)
      : executor(owner), program(planned), records(planned.steps.size()) {
    memory.resize(program.buffer_aliases.size());
    for (std::size_t buffer = 0; buffer < memory.size(); ++buffer) {
      for (std::size_t word = 0; word < kWords; ++word) {
        memory[buffer][word] = initial_word(buffer, word);
      }
      weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
      options.no_alias = !program.buffer_aliases[buffer];
      buffers.push_back(nullptr);
      check(weir_buffer_wrap(executor.runtime_, memory[buffer].data(), sizeof(Words), &options,
                             &buffers.back()));
    }
    for (const StreamPlan& plan : program.streams) {
      weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
      options.policy = plan.policy;
      options.priority = plan.priority;
      if (program.seed % 3 == 0) options.max_in_flight = 1 + program.seed / 3 % 8;
      streams.push_back(nullptr);
      check(weir_stream_create(executor.places_[plan.place], &options, &streams.back()));
    }
    check(weir_stream_create(executor.places_[0], nullptr, &callbacks));
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    for (weir_stream* stream : streams) weir_stream_destroy(stream);
    weir_stream_destroy(callbacks);
    for (weir_buffer* buffer : buffers) weir_buffer_destroy(buffer);
  }

  weir_domain* domain_of_memory(std::size_t index) const {
    return index == 0 ? nullptr : weir_runtime_get_domain(executor.runtime_, index - 1);
  }
  std::vector<weir_event> events_of(const Step& step) const {
    std::vector<weir_event> events;
    for (const std::size_t earlier : step.events) events.push_back(records[earlier].event);
    return events;
  }
  std::vector<weir_operand> operands_of(const Step& step) const {
    std::vector<weir_operand> operands;
    for (const Part& part : step.parts) {
      operands.push_back({buffers[part.buffer], part.region(), part.access});
    }
    return operands;
  }

  /// Whether the program calls the kernel of a step itself, in an external action: it must reach
  /// the memory.
  bool is_external(const Step& step) const {
    if (step.kind != StepKind::compute || step.parallel || step.key % 4 != 0) return false;
    const std::size_t place = program.streams[step.stream].place;
    const Platform& platform = executor.platform_;
    return platform.places[place] == 0 || !has_threads_of_its_own(platform);
  }
  bool has_externals() const {
    return std::any_of(program.steps.begin(), program.steps.end(),
                       [this](const Step& step) { return is_external(step); });
  }

  void external(const Step& step, Record& record, const std::vector<weir_operand>& operands) {
    record.run = this;
    weir_external external = WEIR_EXTERNAL_INIT;
    external.start = begin_external;
    external.payload = &record;
    external.operands = operands.data();
    external.operand_count = operands.size();
    check(weir_stream_external(streams[step.stream], &external, &record.event));
  }

  /// Calls the kernel at once, refuses to start, or leaves the call to another thread.
  static weir_status begin_external(const weir_external_call* started) {
    Record& record = *static_cast<Record*>(started->payload);
    weir_call call{};
    call.scalars = record.scalars.data();
    call.scalar_count = record.scalars.size();
    call.operands = started->operands;
    call.operand_count = started->operand_count;
    Begun own{started->event, LaterCall(call)};
    const std::uint64_t key = call.scalars[0].value.u64, fails = call.scalars[1].value.u64;
    if (key / 4 % 4 == 0 && fails != 0) return WEIR_STATUS_KERNEL_ERROR;
    if (key / 4 % 4 <= 1) {
      record.run->end_external(own);
    } else {
      const std::lock_guard<std::mutex> lock(record.run->begun_mutex);
      record.run->begun.push_back(std::move(own));
    }
    return WEIR_STATUS_OK;
  }

  void end_external(Begun& own) const {
    weir_status status = WEIR_STATUS_KERNEL_ERROR;
    own.call.call.scalars = own.call.scalars.data();
    own.call.call.operands = own.call.operands.data();
    if (own.call.scalars[1].value.u64 == 0) status = mix_kernel(&own.call.call);
    check(weir_external_complete(executor.runtime_, &own.event, status, "told to fail"));
  }

  /// Ends the external actions that are in progress, in any order, until `done`.
  void end_externals(const std::atomic<bool>& done) {
    while (!done.load()) {
      std::list<Begun> one;
      {
        const std::lock_guard<std::mutex> lock(begun_mutex);
        const bool last = begun.size() % 2 == 0;
        if (!begun.empty()) {
          one.splice(one.begin(), begun, last ? std::prev(begun.end()) : begun.begin());
        }
      }
      if (one.empty()) {
        executor.host_.relax();
      } else {
        end_external(one.front());
      }
    }
  }

  void compute(const Step& step, Record& record) {
    const std::vector<weir_operand> operands = operands_of(step);
    std::size_t words = 0;  // that it reads: the thread sanitizer marks each that is allocated
    for (const Part& part : step.parts) {
      if (part.reads()) words += part.row * part.rows * part.planes;
    }
    record.seen.reserve(words);
    std::vector<weir_scalar> scalars = {
        weir_scalar_u64(step.key), weir_scalar_u64(step.fails),
        weir_scalar_u64(reinterpret_cast<std::uint64_t>(&record.seen))};
    for (const Part& part : step.parts) scalars.push_back(weir_scalar_u64(part.offset));
    if (is_external(step)) {
      record.scalars = std::move(scalars);
      return external(step, record, operands);
    }
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel = step.parallel ? executor.kernels_->mix_team : executor.kernels_->mix;
    compute.operands = operands.data();
    compute.operand_count = operands.size();
    compute.scalars = scalars.data();
    compute.scalar_count = scalars.size();
    check(weir_stream_compute(streams[step.stream], &compute, &record.event));
  }

  void transfer(const Step& step, Record& record) const {
    const auto end = [&](const Part& part) {
      return weir_endpoint{domain_of_memory(part.memory), buffers[part.buffer], part.region()};
    };
    weir_transfer transfer = WEIR_TRANSFER_INIT;
    transfer.source = end(step.parts[0]);
    transfer.target = end(step.parts[1]);
    check(weir_stream_transfer(streams[step.stream], &transfer, &record.event));
  }

  void sync(const Step& step, Record& record) const {
    const std::vector<weir_event> events = events_of(step);
    const std::vector<weir_operand> operands = operands_of(step);
    weir_sync sync = WEIR_SYNC_INIT;
    sync.events = events.data();
    sync.event_count = events.size();
    sync.operands = operands.data();
    sync.operand_count = operands.size();
    sync.scope = step.scope;
    check(weir_stream_sync(streams[step.stream], &sync, &record.event));
  }

  void host_wait(const Step& step, Record& record) const {
    const std::vector<weir_event> events = events_of(step);
    record.host_status = weir_event_wait(executor.runtime_, events.data(), events.size(),
                                         step.wait_any ? WEIR_WAIT_MODE_ANY : WEIR_WAIT_MODE_ALL,
                                         WEIR_FOREVER, &record.host_index);
  }

  void host_callback(const Step& step, Record& record) {
    record.run = this;
    check(weir_event_on_complete(executor.runtime_, &records[step.events[0]].event,
                                 &Run::on_complete, &record));
  }

  static void on_complete(weir_status status, const char*, void* payload) {
    auto& record = *static_cast<Record*>(payload);
    const weir_scalar scalar = weir_scalar_u64(reinterpret_cast<std::uint64_t>(&record.marked));
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel = record.run->executor.kernels_->mark;
    compute.scalars = &scalar;
    compute.scalar_count = 1;
    record.told = status;
    const bool enqueued =
        weir_stream_compute(record.run->callbacks, &compute, nullptr) == WEIR_STATUS_OK;
    record.called.fetch_add(enqueued ? 1 : 1000);
  }

  void host_query(const Step& step) const {
    weir_event_info info = WEIR_EVENT_INFO_INIT;
    check(weir_event_get_info(executor.runtime_, &records[step.events[0]].event, &info));
    weir_stats stats = WEIR_STATS_INIT;
    check(weir_runtime_get_stats(executor.runtime_, &stats));
  }

  void run_step(std::size_t index) {
    const Step& step = program.steps[index];
    Record& record = records[index];
    for (const std::size_t event : step.events) {
      while (!records[event].enqueued.load()) executor.host_.relax();
    }
    switch (step.kind) {
      case StepKind::compute: compute(step, record); break;
      case StepKind::transfer: transfer(step, record); break;
      case StepKind::sync: sync(step, record); break;
      case StepKind::host_wait: host_wait(step, record); break;
      case StepKind::host_synchronize:
        record.host_status = weir_stream_synchronize(streams[step.stream], WEIR_FOREVER);
        break;
      case StepKind::host_cancel: check(weir_stream_cancel(streams[step.stream])); break;
      case StepKind::host_callback: host_callback(step, record); break;
      case StepKind::host_query: host_query(step); break;
    }
    record.enqueued.store(true);
  }

  void run_all() {
    std::vector<std::function<void()>> bodies;
    std::atomic<std::size_t> working{program.threads};
    std::atomic<bool> done{false};
    for (std::size_t thread = 0; thread < program.threads; ++thread) {
      bodies.push_back([&, thread] {
        for (std::size_t i = 0; i < program.steps.size(); ++i) {
          if (program.steps[i].stream % program.threads == thread) run_step(i);
        }
        working.fetch_sub(1);
        if (thread != 0) return;
        while (working.load() > 0) executor.host_.relax();
        for (weir_stream* stream : streams) weir_stream_synchronize(stream, WEIR_FOREVER);
        done.store(true);
      });
    }
    if (has_externals()) bodies.push_back([&] { end_externals(done); });
    executor.host_.run_all(bodies);
  }

  std::vector<weir_status> statuses() {
    std::vector<weir_status> list(program.steps.size(), WEIR_STATUS_OK);
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      if (!program.steps[i].enqueues()) continue;
      weir_event_info info = WEIR_EVENT_INFO_INIT;
      check(weir_event_get_info(executor.runtime_, &records[i].event, &info));
      if (!info.complete) complain(i) << "is not complete\n";
      list[i] = info.status;
    }
    return list;
  }

  /// The steps that were cancelled, each of which must have had reason to.
  std::vector<bool> cancelled(const std::vector<weir_status>& found) {
    std::vector<bool> list(found.size());
    std::vector<bool> may(program.streams.size(), false);
    for (std::size_t i = found.size(); i-- > 0;) {
      const Step& step = program.steps[i];
      if (step.kind == StepKind::host_cancel) may[step.stream] = true;
      if (step.kind == StepKind::host_synchronize) may[step.stream] = false;
      if (!step.enqueues() || found[i] != WEIR_STATUS_CANCELLED) continue;
      if (!may[step.stream]) complain(i) << "is cancelled, and no call cancelled it\n";
      list[i] = true;
    }
    return list;
  }

  std::ostringstream& complain(std::size_t step) {
    wrong << program.describe(step, executor.platform_) << " ";
    return wrong;
  }
  void compare(std::size_t step, const char* what, weir_status found, weir_status wanted) {
    if (found == wanted) return;
    complain(step) << what << weir_status_name(found) << " instead of " << weir_status_name(wanted)
                   << "\n";
  }

  void compare_statuses(const Outcome& expected, const std::vector<weir_status>& found) {
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      const Step& step = program.steps[i];
      const Record& record = records[i];
      if (step.enqueues()) compare(i, "is ", found[i], expected.status[i]);
      if (step.kind == StepKind::host_synchronize) {
        compare(i, "returned ", record.host_status, expected.status[i]);
      }
      if (step.kind == StepKind::host_wait) {
        compare(i, "returned ", record.host_status, wait_status(expected, step, record));
      }
      if (step.kind == StepKind::host_callback) {
        compare(i, "received ", record.told, expected.status[step.events[0]]);
      }
    }
  }

  static weir_status wait_status(const Outcome& expected, const Step& step, const Record& record) {
    if (step.wait_any) return expected.status[step.events[record.host_index]];
    for (const std::size_t event : step.events) {
      if (expected.status[event] != WEIR_STATUS_OK) return expected.status[event];
    }
    return WEIR_STATUS_OK;
  }

  /// Every callback comes once, and what it enqueued runs once.
  void finish_callbacks() {
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      if (program.steps[i].kind != StepKind::host_callback) continue;
      // It may come a moment after waiters see the event.
      while (records[i].called.load() == 0) {
        weir_stream_synchronize(callbacks, WEIR_FOREVER);
        executor.host_.relax();
      }
    }
    check(weir_stream_synchronize(callbacks, WEIR_FOREVER));
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      if (program.steps[i].kind != StepKind::host_callback) continue;
      const int called = records[i].called.load(), marked = records[i].marked.load();
      if (called != 1 || marked != 1) {
        complain(i) << "was called " << called << " times, its action ran " << marked << " times\n";
      }
    }
  }

  /// The step that made a value: names the edge that was missing.
  std::string maker(const Outcome& expected, std::uint64_t value) const {
    for (const auto& [made, step] : expected.producers) {
      if (made == value) return "step " + std::to_string(step);
    }
    for (std::size_t buffer = 0; buffer < memory.size(); ++buffer) {
      for (std::size_t word = 0; word < kWords; ++word) {
        if (value == initial_word(buffer, word)) return "no step (first contents)";
      }
    }
    return value == 0 ? "no step (zero)" : "no step of a sequential execution";
  }

  void compare_reads(const Outcome& expected) {
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
      if (program.steps[i].kind != StepKind::compute) continue;
      if (expected.status[i] != WEIR_STATUS_OK) continue;
      const auto& seen = records[i].seen;
      const auto& wanted = expected.reads[i];
      std::size_t word = 0;
      while (word < wanted.size() && word < seen.size() && seen[word] == wanted[word]) ++word;
      if (word == wanted.size() && word == seen.size()) continue;
      complain(i) << "read as its word number " << word << " what "
                  << (word < seen.size() ? maker(expected, seen[word]) : "no step")
                  << " wrote instead of "
                  << (word < wanted.size() ? maker(expected, wanted[word]) : "nothing") << "\n";
      return;  // the later ones follow from it
    }
  }

  /// Contents of an instance, by a transfer to a buffer of its own.
  Words contents(std::size_t buffer, std::size_t memory_index) {
    if (memory_index == 0) return memory[buffer];
    weir_buffer* scratch = nullptr;
    check(weir_buffer_create(executor.runtime_, sizeof(Words), nullptr, &scratch));
    weir_stream* stream = nullptr;
    std::size_t place = 0;
    while (executor.platform_.places[place] != memory_index - 1) ++place;
    check(weir_stream_create(executor.places_[place], nullptr, &stream));
    weir_transfer transfer = WEIR_TRANSFER_INIT;
    const weir_region all = weir_region_range(0, sizeof(Words));
    transfer.source = {domain_of_memory(memory_index), buffers[buffer], all};
    transfer.target = {nullptr, scratch, all};
    check(weir_stream_transfer(stream, &transfer, nullptr));
    check(weir_stream_synchronize(stream, WEIR_FOREVER));
    weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
    check(weir_buffer_get_info(scratch, &info));
    Words words;
    std::memcpy(words.data(), info.address, sizeof words);
    weir_stream_destroy(stream);
    weir_buffer_destroy(scratch);
    return words;
  }

  void compare_memories(const Outcome& expected) {
    for (const auto& [where, image] : expected.images) {
      const Words found = contents(where[0], where[1]);
      for (std::size_t word = 0; word < kWords; ++word) {
        if (found[word] == image.words[word]) continue;
        wrong << "buffer " << where[0] << " memory " << where[1] << " word " << word
              << " holds what " << maker(expected, found[word]) << " wrote; the last to write is ";
        if (image.writer[word] == SIZE_MAX) {
          wrong << "no step\n";
        } else {
          wrong << program.describe(image.writer[word], executor.platform_) << "\n";
        }
        break;
      }
    }
  }
};

std::string Executor::run(const Program& program) {
  Run run(*this, program);
  run.run_all();
  run.finish_callbacks();
  const std::vector<weir_status> found = run.statuses();
  const Outcome expected = run_sequentially(program, run.cancelled(found));
  run.compare_statuses(expected, found);
  run.compare_reads(expected);
  run.compare_memories(expected);
  return run.wrong.str();
}

}  // namespace weir::model
