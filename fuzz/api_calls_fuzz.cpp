// Sequences of calls of the C interface: each byte of an input is a choice of the interpreter,
// which keeps small tables of handles, also of what it has destroyed, and calls rightly and
// wrongly.
//
// It makes every mistake that the interface promises to notice: no handle, a dead one, one of
// another runtime, an event that never was, regions, enums, sizes and counts that cannot be, waits
// inside kernels and callbacks. It makes no pointers that lead nowhere. Each call must end with a
// documented status and a message of one line, and one that fails must have enqueued nothing;
// afterwards everything that was enqueued completes, every callback is called once, and every
// payload of a kernel released once.
//
// Runtimes are dear: three are kept from input to input, with a place, a stream and buffers each.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weir/weir.h>

#include "choices.hpp"
#include "target.hpp"

namespace {

using weir::fuzz::Choices;
using weir::fuzz::require;

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kGuard = 4096;
constexpr std::size_t kArena = 65536;  // of memory to wrap

constexpr std::size_t kExtents[] = {8,          64,         256,        1,
                                    0,          2,          4096,       65536,
                                    65537,      1u << 20,   1ull << 31, (1ull << 32) - 1,
                                    1ull << 32, 1ull << 63, kMost - 7,  kMost,
                                    3,          7,          16,         512};
constexpr std::size_t kSizes[] = {4096, 64, 256, 8, 1, 65536, 1u << 20, 0, 1ull << 47, kMost, 24};
constexpr std::size_t kAlignments[] = {0, 0, 0,        8,          64,        4096,
                                       1, 3, 1u << 21, 1ull << 62, 1ull << 63};
constexpr std::int64_t kTimeouts[] = {WEIR_FOREVER,
                                      WEIR_FOREVER,
                                      0,
                                      1,
                                      1000,
                                      1'000'000,
                                      std::numeric_limits<std::int64_t>::max(),
                                      std::numeric_limits<std::int64_t>::min(),
                                      -2};
constexpr int kEnums[] = {
    0, 1, 2, 3, -1, 4, 100, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()};
constexpr int kFewEnums[] = {0, 0, 0, 0, 0, 0, 1, 1, 2, 3, -1, 77};

const std::string long_name(300, 'x');
const char* const kNames[] = {nullptr,      nullptr,  nullptr,          "a",
                              "",           "b",      "\xff\xfe\xc3",   "two\nlines\t\x1b[31m",
                              "\"quoted\\", "%s%n{}", long_name.c_str()};
const char* const kDomains[] = {"host",
                                "sim:cores=1,gbps=1000,latency_us=0",
                                "sim:clock=virtual",
                                "host,sim:latency_us=1,memory=48KiB,duplex=half",
                                "sim,sim",
                                "null,host",
                                "sim:clock=virtual,memory=48KiB,sim:clock=virtual",
                                "host:cores=1,host:cores=1",
                                nullptr,
                                "",
                                "nonsense",
                                "host:cores=100000",
                                "sim:clock=virtual,host",
                                "sim:memory=0",
                                "\xff\n"};
const char* const kKernels[] = {"fuzz.touch",
                                "fuzz.touch",
                                "fuzz.touch",
                                "fuzz.team",
                                "fuzz.fail",
                                "fuzz.throw",
                                "mem.set",
                                "mem.copy",
                                "mem.set.team",
                                "blas.dgemm",
                                "blas.sgemm.team",
                                "blas.dtrsm",
                                "blas.ssyrk.team",
                                "lapack.dpotrf",
                                "lapack.dgetrf",
                                "lapack.spotrf.team",
                                "own",
                                "fuzz.tuoch",
                                "",
                                "no such kernel"};

// ---- Handles ------------------------------------------------------------------------------------

enum class Life { none, live, dead, junk };

/// A handle and what is known of it. Objects die with what owns them.
template <class T>
struct Slot {
  T* handle = nullptr;
  Life life = Life::none;
  weir_runtime* runtime = nullptr;
  const void* parent = nullptr;  ///< place of a stream

  bool live() const noexcept { return life == Life::live; }
};

struct EventSlot {
  weir_event event = WEIR_EVENT_INIT;
  weir_runtime* runtime = nullptr;
  weir_stream* stream = nullptr;
  bool forged = false;
};

/// Memory that is not a handle, but as large as one.
alignas(64) unsigned char junk[4096];

/// The first `kept` slots are not for new objects.
template <class T, std::size_t count, std::size_t kept = 0>
class Table {
 public:
  Slot<T>& operator[](std::size_t index) { return slots_[index]; }
  auto begin() { return slots_.begin(); }
  auto end() { return slots_.end(); }

  Slot<T> pick(Choices& in) {
    const std::uint8_t choice = in.byte();
    if (choice == 255) return {reinterpret_cast<T*>(junk), Life::junk, nullptr, nullptr};
    if (choice == 254) return {};
    return slots_[choice % count];
  }
  /// The slot for a new object: an empty or dead one; null when all are in use.
  Slot<T>* vacant() {
    const auto found =
        std::find_if(begin() + kept, end(), [](const auto& slot) { return !slot.live(); });
    return found == end() ? nullptr : &*found;
  }
  void kill(const T* handle) {
    for (Slot<T>& slot : slots_) {
      if (slot.handle == handle && slot.live()) slot.life = Life::dead;
    }
  }
  void kill_of(const weir_runtime* runtime) {
    for (Slot<T>& slot : slots_) {
      if (slot.runtime == runtime && slot.live()) slot.life = Life::dead;
    }
  }

 private:
  std::array<Slot<T>, count> slots_{};
};

// ---- Kernels and callbacks ----------------------------------------------------------------------

/// Counts what must happen once.
struct Once {
  std::atomic<int> count{0};
  weir_runtime* runtime = nullptr;
  weir_stream* stream = nullptr;  ///< null: the callback only counts
};

std::uint64_t read_and_write(const weir_view& view, std::uint8_t value) {
  std::uint64_t sum = 0;
  for (std::size_t plane = 0; plane < view.extent[2]; ++plane) {
    for (std::size_t row = 0; row < view.extent[1]; ++row) {
      auto* const bytes =
          static_cast<std::uint8_t*>(view.address) + plane * view.stride[1] + row * view.stride[0];
      if (view.access & WEIR_ACCESS_READ) {
        for (std::size_t i = 0; i < view.extent[0]; ++i) sum += bytes[i];
      }
      if (view.access & WEIR_ACCESS_WRITE) std::memset(bytes, value, view.extent[0]);
    }
  }
  return sum;
}

weir_status write_operands(const weir_call* call) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < call->operand_count; ++i) {
    const weir_view& view = call->operands[i];
    require(view.extent[0] > 0 && view.extent[1] > 0 && view.extent[2] > 0, "no extent is 0");
    sum += read_and_write(view, static_cast<std::uint8_t>(i));
  }
  static std::atomic<std::uint64_t> all{0};
  all += sum;
  return WEIR_STATUS_OK;
}

struct Shares {
  std::atomic<std::size_t> indices{0};
};

void add_share(std::size_t begin, std::size_t end, std::size_t, void* payload) {
  static_cast<Shares*>(payload)->indices += end - begin;
}

void run_member(weir_team* team, std::size_t member, void* payload) {
  require(member < weir_team_size(team), "a member has a number");
  weir_team_barrier(team);
  static_cast<Shares*>(payload)->indices += 1;
  weir_team_for(team, 5, 1, add_share, payload);
}

weir_status use_team(const weir_call* call) {
  Shares shares, members;
  const std::uint64_t choice = call->scalar_count > 0 ? call->scalars[0].value.u64 : 0;
  constexpr std::size_t counts[] = {0, 1, 100, 100'000, 1ull << 40, 1ull << 62};
  const std::size_t count = counts[choice % std::size(counts)];
  weir_team_for(call->team, count, choice % 3 == 0 ? count : 16, add_share, &shares);
  require(shares.indices == count, "a loop does each index once");
  weir_team_run(call->team, run_member, &members);
  require(members.indices == 6 * weir_team_size(call->team), "each member runs once");
  if (choice % 4 == 3) weir_team_barrier(call->team);
  return write_operands(call);
}

weir_status fail(const weir_call* call) {
  const auto status = call->scalar_count > 0
                          ? static_cast<weir_status>(call->scalars[0].value.i64 % 20)
                          : WEIR_STATUS_OK;
  return weir_call_fail(call, status, "failed\nas asked, %d operands",
                        static_cast<int>(call->operand_count));
}

weir_status throw_something(const weir_call* call) {
  switch (call->operand_count % 3) {
    case 0: throw std::runtime_error("thrown\nin two lines");
    case 1: throw std::bad_alloc();
    default: throw 7;
  }
}

/// Does what kernels and callbacks must not.
void misbehave(weir_runtime* runtime, weir_stream* stream, std::uint64_t choice) {
  const bool busy = choice % 2 == 0;
  if (busy) {
    require(weir_stream_synchronize(stream, WEIR_FOREVER) == WEIR_STATUS_BUSY, "no waits inside");
    require(weir_runtime_synchronize(runtime, 5) == WEIR_STATUS_BUSY, "no waits inside");
  }
  if (choice % 3 == 0) {  // only what no other thread uses may be destroyed here
    weir_buffer* made = nullptr;
    if (weir_buffer_create(runtime, 64, nullptr, &made) == WEIR_STATUS_OK)
      weir_buffer_destroy(made);
  }
  if (choice % 5 == 0) weir_runtime_destroy(runtime);
  if (choice % 7 == 0) {
    weir_event later = WEIR_EVENT_INIT;
    const weir_sync sync = WEIR_SYNC_INIT;
    require(weir_stream_sync(stream, &sync, &later) == WEIR_STATUS_OK, "enqueuing is allowed");
    weir_event_info info = WEIR_EVENT_INFO_INIT;
    require(weir_event_get_info(runtime, &later, &info) == WEIR_STATUS_OK, "so is looking");
    const weir_status waited =
        weir_event_wait(runtime, &later, 1, WEIR_WAIT_MODE_ALL, WEIR_FOREVER, nullptr);
    require(waited == WEIR_STATUS_BUSY || info.complete || waited != WEIR_STATUS_TIMEOUT,
            "no waits inside");
  }
  if (choice % 11 == 0) weir_stream_cancel(stream);
}

/// Its scalars are the addresses of its runtime and its stream, and a choice.
weir_status misuse(const weir_call* call) {
  misbehave(reinterpret_cast<weir_runtime*>(call->scalars[0].value.u64),
            reinterpret_cast<weir_stream*>(call->scalars[1].value.u64), call->scalars[2].value.u64);
  return WEIR_STATUS_OK;
}

void called_back(weir_status status, const char* message, void* payload) {
  require((status == WEIR_STATUS_OK) == (*message == '\0'), "a message says why");
  if (*message != '\0') weir::fuzz::require_one_line(message);
  auto& once = *static_cast<Once*>(payload);
  if (once.stream != nullptr)
    misbehave(once.runtime, once.stream, 2u + static_cast<unsigned>(status));
  ++once.count;
}

void release(void* payload) { ++static_cast<Once*>(payload)->count; }

weir_cost cost_of(const weir_call* call) {
  return {static_cast<double>(call->operand_count), call->scalar_count > 3 ? std::nan("") : 1e3};
}

// ---- The interpreter ----------------------------------------------------------------------------

class Interpreter {
 public:
  Interpreter() {
    for (std::size_t i = 0; i < kKept; ++i) keep(i);
  }
  ~Interpreter() {
    for (Slot<weir_runtime>& slot : runtimes_) {
      if (slot.live()) destroy(slot);
    }
  }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void run(Choices in) {
    for (std::size_t i = 0; i < kKept; ++i) keep(i);
    created_ = 0;
    for (std::size_t calls = 0; calls < kCalls && !in.exhausted(); ++calls) call(in);
    settle();
    clean();
  }

 private:
  static constexpr std::size_t kKept = 3, kRuntimes = 5, kCalls = 300, kCallbacks = 64;

  // -- Checks --

  /// Checks what every call promises.
  weir_status ended(weir_status status) {
    require(status >= WEIR_STATUS_OK && status < WEIR_STATUS_INTERNAL, "a documented status");
    if (status != WEIR_STATUS_OK) weir::fuzz::require_one_line(weir_last_error());
    return status;
  }
  /// The same of a call whose object is given by a handle.
  template <class T>
  weir_status ended(weir_status status, const Slot<T>& slot) {
    if (!slot.live()) {
      require(status == WEIR_STATUS_INVALID_ARGUMENT, "a handle that is not live is refused");
    }
    return ended(status);
  }

  std::uint64_t enqueued(const weir_runtime* runtime) {
    weir_stats stats = WEIR_STATS_INIT;
    require(weir_runtime_get_stats(runtime, &stats) == WEIR_STATUS_OK, "there are figures");
    return stats.actions_enqueued;
  }

  // -- Set-up and end --

  /// Makes what is kept from input to input, as far as the last one destroyed it.
  void keep(std::size_t index) {
    static const char* const domains[kKept] = {
        "host", "sim:cores=1,gbps=1000,latency_us=1,memory=48KiB,host",
        "sim:clock=virtual,cores=2,gflops=1,memory=48KiB,sim:clock=virtual"};
    Slot<weir_runtime>& runtime = runtimes_[index];
    if (!runtime.live()) {
      weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
      options.domains = domains[index];
      weir_runtime* made = nullptr;
      require(weir_runtime_create(&options, &made) == WEIR_STATUS_OK, "a runtime to call");
      adopt(runtime, made);
    }
    Slot<weir_domain>& domain = domains_[index];
    domain = {weir_runtime_get_domain(runtime.handle, 0), Life::live, runtime.handle, nullptr};
    if (!places_[index].live()) keep_place(index);
    if (!streams_[index].live()) keep_stream(index);
    for (const std::size_t buffer : {index, index + kKept}) {
      if (buffers_[buffer].live()) continue;
      weir_buffer* made = nullptr;
      require(weir_buffer_create(runtime.handle, 4096, nullptr, &made) == WEIR_STATUS_OK,
              "a buffer to use");
      buffers_[buffer] = {made, Life::live, runtime.handle, nullptr};
    }
  }

  void keep_place(std::size_t index) {
    weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
    options.core_count = 1;
    options.oversubscribe = true;
    weir_place* made = nullptr;
    require(weir_place_create(domains_[index].handle, &options, &made) == WEIR_STATUS_OK,
            "a place to use");
    places_[index] = {made, Life::live, runtimes_[index].handle, nullptr};
  }

  void keep_stream(std::size_t index) {
    weir_stream* made = nullptr;
    require(weir_stream_create(places_[index].handle, nullptr, &made) == WEIR_STATUS_OK,
            "a stream to use");
    streams_[index] = {made, Life::live, runtimes_[index].handle, places_[index].handle};
  }

  /// Takes a new runtime into the table and gives it kernels.
  void adopt(Slot<weir_runtime>& slot, weir_runtime* runtime) {
    slot = {runtime, Life::live, runtime, nullptr};
    const std::pair<const char*, weir_host_function> functions[] = {{"fuzz.touch", write_operands},
                                                                    {"fuzz.team", use_team},
                                                                    {"fuzz.fail", fail},
                                                                    {"fuzz.throw", throw_something},
                                                                    {"fuzz.misuse", misuse}};
    for (const auto& [name, function] : functions) {
      const weir_implementation code = {"host", function, new_payload(runtime)};
      weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
      options.name = name;
      options.shape = function == use_team ? WEIR_KERNEL_SHAPE_PARALLEL : WEIR_KERNEL_SHAPE_SERIAL;
      options.implementations = &code;
      options.implementation_count = 1;
      options.release = release;
      options.cost = function == fail ? cost_of : nullptr;
      require(weir_kernel_register(runtime, &options, nullptr) == WEIR_STATUS_OK, "own kernels");
    }
  }

  Once* new_payload(weir_runtime* runtime) {
    payloads_.push_back(std::make_unique<Once>());
    payloads_.back()->runtime = runtime;
    return payloads_.back().get();
  }

  void destroy(Slot<weir_runtime>& slot) {
    weir_runtime* const runtime = slot.handle;
    if (busy_) settle();  // what enqueues inside must not meet the end
    weir_runtime_destroy(runtime);
    for (auto payload = payloads_.begin(); payload != payloads_.end();) {
      if ((*payload)->runtime != runtime) {
        ++payload;
        continue;
      }
      require((*payload)->count == 1, "a payload is released once");
      payload = payloads_.erase(payload);
    }
    forget(runtime);
  }

  void forget(weir_runtime* runtime) {
    runtimes_.kill(runtime);
    domains_.kill_of(runtime);
    places_.kill_of(runtime);
    streams_.kill_of(runtime);
    buffers_.kill_of(runtime);
    kernels_.kill_of(runtime);
  }

  /// Waits until everything enqueued is complete, and what callbacks and kernels enqueued as well.
  void settle() {
    for (const Slot<weir_runtime>& slot : runtimes_) {
      if (!slot.live()) continue;
      weir_stats stats = WEIR_STATS_INIT;
      do {
        ended(weir_runtime_synchronize(slot.handle, WEIR_FOREVER));
        require(weir_runtime_get_stats(slot.handle, &stats) == WEIR_STATUS_OK, "there are figures");
      } while (stats.actions_completed != stats.actions_enqueued);
    }
    for (std::size_t i = 0; i < callback_count_; ++i) {
      if (callbacks_[i].runtime == nullptr) continue;
      while (callbacks_[i].count == 0) std::this_thread::yield();
      require(callbacks_[i].count == 1, "a callback is called once");
    }
  }

  /// Destroys what is not kept.
  void clean() {
    std::size_t index = 0;
    for (Slot<weir_stream>& slot : streams_) {
      if (index++ >= kKept && slot.live()) weir_stream_destroy(slot.handle);
      if (index > kKept) slot = {};
    }
    index = 0;
    for (Slot<weir_place>& slot : places_) {
      if (index++ >= kKept && slot.live()) weir_place_destroy(slot.handle);
      if (index > kKept) slot = {};
    }
    index = 0;
    for (Slot<weir_buffer>& slot : buffers_) {
      if (index++ >= 2 * kKept && slot.live()) weir_buffer_destroy(slot.handle);
      if (index > 2 * kKept) slot = {};
    }
    index = 0;
    for (Slot<weir_runtime>& slot : runtimes_) {
      if (index++ >= kKept && slot.live()) destroy(slot);
      if (index > kKept) slot = {};
    }
    for (Slot<weir_kernel>& slot : kernels_) slot = {};
    for (Slot<weir_domain>& slot : domains_) slot = {};
    for (EventSlot& slot : events_) slot = {};
    for (std::size_t i = 0; i < callback_count_; ++i) {
      callbacks_[i].count = 0;
      callbacks_[i].runtime = nullptr;
    }
    callback_count_ = 0;
    busy_ = false;
    check_guards();
  }

  void check_guards() {
    for (Arena& arena : arenas_) {
      for (std::size_t i = 0; i < kGuard; ++i) {
        require(arena.before[i] == 0 && arena.after[i] == 0, "nothing is written outside a buffer");
      }
    }
  }

  // -- Arguments --

  template <class Options>
  void choose_size(Choices& in, Options& options) {
    if (!in.one_in(32)) return;
    const std::size_t right = sizeof(Options);
    const std::size_t sizes[] = {0,         4,         7,          8,
                                 right - 8, right + 8, 16 * right, 16 * right + 8,
                                 right - 4, right - 1, right + 1,  kMost};
    options.struct_size = in.from(sizes);
  }

  weir_region region(Choices& in) {
    weir_region region = weir_region_range(0, in.from(kExtents));
    switch (in.below(6)) {
      case 0:
      case 1: break;
      case 2: region.offset = in.from(kExtents); break;
      case 3:  // rows
        region = {in.below(64), {1 + in.below(32), 1 + in.below(40), 1}, {in.below(80), 0}};
        break;
      case 4:  // planes
        region = {0, {1 + in.below(8), in.below(8), in.below(8)}, {in.below(16), in.below(128)}};
        break;
      default:
        region.offset = in.from(kExtents);
        for (std::size_t& extent : region.extent) extent = in.from(kExtents);
        for (std::size_t& stride : region.stride) stride = in.from(kExtents);
    }
    return region;
  }

  weir_operand operand(Choices& in) {
    const auto access = in.one_in(16) ? in.from(kEnums) : 1 + static_cast<int>(in.below(3));
    weir_buffer* const buffer = buffers_.pick(in).handle;
    return {buffer, region(in), static_cast<weir_access>(access)};
  }

  weir_scalar scalar(Choices& in) {
    constexpr std::int64_t letters[] = {
        'N', 'T', 'L', 'U', 'R', 0, 1, -1, 'C', std::numeric_limits<std::int64_t>::min()};
    constexpr double numbers[] = {1, 0, -1, 0.5, NAN, HUGE_VAL, -1e300, 1e-320};
    switch (in.below(5)) {
      case 0:
      case 1: return weir_scalar_i64(in.from(letters));
      case 2: return weir_scalar_f64(in.from(numbers));
      case 3: return weir_scalar_f32(static_cast<float>(in.below(9)));
      default: break;
    }
    weir_scalar scalar = weir_scalar_u64(in.byte());
    if (in.one_in(8)) scalar.type = static_cast<weir_scalar_type>(in.from(kEnums));
    return scalar;
  }

  /// An event that was, the null event, one that never was, or a mixture.
  EventSlot event(Choices& in) {
    EventSlot slot = events_[in.below(events_.size())];
    switch (in.below(16)) {
      case 13: return {};
      case 14: {
        // Of the runtime's number the upper bits: the event must not become one of another runtime.
        const std::size_t bit = in.below(56);
        slot.event.opaque[0] ^= std::uint64_t{1} << (bit < 32 ? bit : bit + 8);
        slot.forged = true;
        break;
      }
      case 15:
        slot.forged = true;
        slot.event = {{in.byte() * 0x0101010101010101u, in.byte() * 0x0101010101010101u}};
        break;
      default: break;
    }
    return slot;
  }

  void note_event(const weir_event& event, const Slot<weir_stream>& stream) {
    events_[event_count_++ % events_.size()] = {event, stream.runtime, stream.handle, false};
  }

  // -- Calls --

  void call(Choices& in) {
    static constexpr void (Interpreter::*calls[])(Choices&) = {&Interpreter::compute,
                                                               &Interpreter::compute,
                                                               &Interpreter::compute,
                                                               &Interpreter::compute,
                                                               &Interpreter::transfer,
                                                               &Interpreter::move,
                                                               &Interpreter::move,
                                                               &Interpreter::sync,
                                                               &Interpreter::sync,
                                                               &Interpreter::wait_in_stream,
                                                               &Interpreter::misuse_inside,
                                                               &Interpreter::wait,
                                                               &Interpreter::query_event,
                                                               &Interpreter::on_complete,
                                                               &Interpreter::synchronize,
                                                               &Interpreter::cancel,
                                                               &Interpreter::create_stream,
                                                               &Interpreter::destroy_stream,
                                                               &Interpreter::create_place,
                                                               &Interpreter::partition,
                                                               &Interpreter::destroy_place,
                                                               &Interpreter::create_buffer,
                                                               &Interpreter::wrap_buffer,
                                                               &Interpreter::destroy_buffer,
                                                               &Interpreter::query_buffer,
                                                               &Interpreter::add_kernel,
                                                               &Interpreter::find_kernel,
                                                               &Interpreter::find_domain,
                                                               &Interpreter::query_runtime,
                                                               &Interpreter::trace,
                                                               &Interpreter::without_runtime,
                                                               &Interpreter::create_runtime,
                                                               &Interpreter::destroy_runtime};
    (this->*in.from(calls))(in);
  }

  /// Checks an enqueue: it failed and nothing was enqueued, or there is an event.
  void enqueued(weir_status status, const Slot<weir_stream>& stream, std::uint64_t before,
                const weir_event* event) {
    ended(status, stream);
    if (status == WEIR_STATUS_OK) {
      if (event != nullptr) note_event(*event, stream);
    } else if (stream.live() && !busy_) {
      require(enqueued(stream.runtime) == before, "a call that fails enqueues nothing");
    }
  }
  /// Kernels and callbacks that enqueue make the count useless.
  std::uint64_t count_before(const Slot<weir_stream>& stream) {
    return stream.live() && !busy_ ? enqueued(stream.runtime) : 0;
  }

  void compute(Choices& in) {
    static const std::vector<weir_operand> many_operands(1001);
    static const std::vector<weir_scalar> many_scalars(256);
    const Slot<weir_stream> stream = streams_.pick(in);
    std::array<weir_operand, 4> operands;
    std::array<weir_scalar, 6> scalars;
    weir_compute compute = WEIR_COMPUTE_INIT;
    if (in.one_in(8)) {
      compute.kernel = kernels_.pick(in).handle;
    } else {
      compute.kernel_name = in.from(kKernels);
    }
    compute.operand_count = in.below(operands.size() + 1);
    for (std::size_t i = 0; i < compute.operand_count; ++i) operands[i] = operand(in);
    compute.operands = compute.operand_count > 0 ? operands.data() : nullptr;
    compute.scalar_count = in.below(scalars.size() + 1);
    for (std::size_t i = 0; i < compute.scalar_count; ++i) scalars[i] = scalar(in);
    compute.scalars = scalars.data();
    compute.name = in.from(kNames);
    switch (in.below(64)) {
      case 60: compute.operands = nullptr; break;
      case 61: compute.scalars = nullptr; break;
      case 62: compute.operands = many_operands.data(), compute.operand_count = 1001; break;
      case 63: compute.scalars = many_scalars.data(), compute.scalar_count = kMost; break;
      default: break;
    }
    choose_size(in, compute);
    weir_event event = WEIR_EVENT_INIT;
    const bool has_event = !in.one_in(4);
    const std::uint64_t before = count_before(stream);
    enqueued(weir_stream_compute(stream.handle, in.one_in(64) ? nullptr : &compute,
                                 has_event ? &event : nullptr),
             stream, before, has_event ? &event : nullptr);
  }

  void misuse_inside(Choices& in) {
    const Slot<weir_stream> stream = streams_.pick(in);
    const weir_scalar scalars[] = {weir_scalar_u64(reinterpret_cast<std::uint64_t>(stream.runtime)),
                                   weir_scalar_u64(reinterpret_cast<std::uint64_t>(stream.handle)),
                                   weir_scalar_u64(in.byte())};
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel_name = "fuzz.misuse";
    compute.scalars = scalars;
    compute.scalar_count = 3;
    weir_event event = WEIR_EVENT_INIT;
    busy_ = true;
    enqueued(weir_stream_compute(stream.handle, &compute, &event), stream, 0, &event);
  }

  weir_endpoint endpoint(Choices& in) {
    weir_domain* const domain = in.one_in(2) ? nullptr : domains_.pick(in).handle;
    weir_buffer* const buffer = buffers_.pick(in).handle;
    return {domain, buffer, region(in)};
  }

  void transfer(Choices& in) {
    const Slot<weir_stream> stream = streams_.pick(in);
    weir_transfer transfer = WEIR_TRANSFER_INIT;
    transfer.source = endpoint(in);
    transfer.target = endpoint(in);
    if (in.one_in(2)) transfer.target.region = transfer.source.region;
    transfer.name = in.from(kNames);
    choose_size(in, transfer);
    weir_event event = WEIR_EVENT_INIT;
    const std::uint64_t before = count_before(stream);
    enqueued(weir_stream_transfer(stream.handle, in.one_in(64) ? nullptr : &transfer, &event),
             stream, before, &event);
  }

  void move(Choices& in) {
    const Slot<weir_stream> stream = streams_.pick(in);
    weir_buffer* const buffer = buffers_.pick(in).handle;
    const weir_region part = region(in);
    weir_event event = WEIR_EVENT_INIT;
    const std::uint64_t before = count_before(stream);
    const auto enqueue = in.one_in(2) ? weir_stream_upload : weir_stream_download;
    enqueued(enqueue(stream.handle, buffer, part, &event), stream, before, &event);
  }

  void sync(Choices& in) {
    static const std::vector<weir_event> many_events(10'001);
    const Slot<weir_stream> stream = streams_.pick(in);
    std::array<weir_event, 6> events;
    std::array<weir_operand, 3> operands;
    weir_sync sync = WEIR_SYNC_INIT;
    sync.scope = static_cast<weir_sync_scope>(in.one_in(16) ? in.from(kEnums)
                                                            : static_cast<int>(in.below(3)));
    sync.event_count = in.below(events.size() + 1);
    for (std::size_t i = 0; i < sync.event_count; ++i) events[i] = event(in).event;
    sync.events = events.data();
    if (sync.scope == WEIR_SYNC_SCOPE_OPERANDS || in.one_in(16)) {
      sync.operand_count = in.below(operands.size() + 1);
      for (std::size_t i = 0; i < sync.operand_count; ++i) operands[i] = operand(in);
      sync.operands = operands.data();
    }
    switch (in.below(64)) {
      case 61: sync.events = nullptr; break;
      case 62: sync.operands = nullptr, sync.operand_count = kMost; break;
      case 63: sync.events = many_events.data(), sync.event_count = many_events.size(); break;
      default: break;
    }
    sync.name = in.from(kNames);
    choose_size(in, sync);
    weir_event done = WEIR_EVENT_INIT;
    const std::uint64_t before = count_before(stream);
    enqueued(weir_stream_sync(stream.handle, in.one_in(64) ? nullptr : &sync, &done), stream,
             before, &done);
  }

  void wait_in_stream(Choices& in) {
    const Slot<weir_stream> stream = streams_.pick(in);
    const weir_event awaited = event(in).event;
    const std::uint64_t before = count_before(stream);
    enqueued(weir_stream_wait_event(stream.handle, in.one_in(32) ? nullptr : &awaited), stream,
             before, nullptr);
  }

  void wait(Choices& in) {
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    std::array<weir_event, 6> events;
    std::size_t count = in.below(events.size() + 1);
    bool foreign = false;
    for (std::size_t i = 0; i < count; ++i) {
      const EventSlot slot = event(in);
      events[i] = slot.event;
      foreign |= !slot.forged && slot.runtime != runtime.handle && slot.event.opaque[1] != 0;
    }
    const weir_event* const list = in.one_in(32) ? nullptr : events.data();
    if (list == nullptr && in.one_in(2)) count = kMost;
    std::size_t index = kMost;
    const auto mode = static_cast<weir_wait_mode>(in.from(kFewEnums));
    const weir_status status = weir_event_wait(runtime.handle, list, count, mode,
                                               in.from(kTimeouts), in.one_in(2) ? nullptr : &index);
    ended(status, runtime);
    if (list == nullptr && count > 0) require(status == WEIR_STATUS_INVALID_ARGUMENT, "no events");
    if (foreign) require(status == WEIR_STATUS_INVALID_ARGUMENT, "no event of another runtime");
    require(index == kMost || index < std::max<std::size_t>(count, 1), "an index of the list");
  }

  void query_event(Choices& in) {
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    const weir_event event = this->event(in).event;
    weir_event_info info = WEIR_EVENT_INFO_INIT;
    choose_size(in, info);
    const weir_status status = weir_event_get_info(runtime.handle, in.one_in(32) ? nullptr : &event,
                                                   in.one_in(32) ? nullptr : &info);
    ended(status, runtime);
    if (status != WEIR_STATUS_OK || info.struct_size < sizeof info) return;
    require((info.complete && info.status != WEIR_STATUS_OK) == (info.message[0] != '\0'),
            "a message says why");
    if (info.message[0] != '\0') weir::fuzz::require_one_line(info.message);
  }

  void on_complete(Choices& in) {
    if (callback_count_ == kCallbacks) return;
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    const EventSlot event = this->event(in);
    Once& once = callbacks_[callback_count_];
    const bool live = std::any_of(streams_.begin(), streams_.end(), [&](const auto& slot) {
      return slot.handle == event.stream && slot.live();
    });
    const bool misbehaves = live && runtime.handle == event.runtime && in.one_in(4);
    once.stream = misbehaves ? event.stream : nullptr;
    once.runtime = runtime.handle;
    busy_ |= misbehaves;
    const weir_status status =
        weir_event_on_complete(runtime.handle, in.one_in(32) ? nullptr : &event.event,
                               in.one_in(32) ? nullptr : called_back, &once);
    ended(status, runtime);
    if (status == WEIR_STATUS_OK) {
      ++callback_count_;
    } else {
      once.runtime = nullptr;
      require(once.count == 0, "a callback that was refused is not called");
    }
  }

  void synchronize(Choices& in) {
    if (in.one_in(2)) {
      const Slot<weir_stream> stream = streams_.pick(in);
      ended(weir_stream_synchronize(stream.handle, in.from(kTimeouts)), stream);
    } else {
      const Slot<weir_runtime> runtime = runtimes_.pick(in);
      ended(weir_runtime_synchronize(runtime.handle, in.from(kTimeouts)), runtime);
    }
  }

  void cancel(Choices& in) {
    const Slot<weir_stream> stream = streams_.pick(in);
    const weir_status status = ended(weir_stream_cancel(stream.handle), stream);
    require(!stream.live() || status == WEIR_STATUS_OK, "a stream can be cancelled");
  }

  void create_stream(Choices& in) {
    const Slot<weir_place> place = places_.pick(in);
    Slot<weir_stream>* const slot = streams_.vacant();
    if (slot == nullptr) return;
    weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
    options.name = in.from(kNames);
    options.policy = static_cast<weir_dependence_policy>(in.from(kFewEnums));
    options.priority = in.from(kFewEnums);
    choose_size(in, options);
    weir_stream* made = nullptr;
    const weir_status status = weir_stream_create(place.handle, in.one_in(8) ? nullptr : &options,
                                                  in.one_in(32) ? nullptr : &made);
    if (ended(status, place) == WEIR_STATUS_OK) {
      *slot = {made, Life::live, place.runtime, place.handle};
    }
    require((made != nullptr) == (status == WEIR_STATUS_OK), "a stream or a failure");
  }

  void destroy_stream(Choices& in) {
    const Slot<weir_stream> stream = streams_.pick(in);
    if (busy_) settle();
    weir_stream_destroy(stream.handle);
    streams_.kill(stream.handle);
  }

  void create_place(Choices& in) {
    constexpr std::uint32_t cores[] = {0, 1, 0, 7, 0xffffffff};
    const Slot<weir_domain> domain = domains_.pick(in);
    Slot<weir_place>* const slot = places_.vacant();
    if (slot == nullptr) return;
    weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
    options.name = in.from(kNames);
    options.core_count = in.below(3);
    options.oversubscribe = !in.one_in(4);
    if (in.one_in(4)) options.cores = cores + in.below(4);
    if (options.cores == nullptr && in.one_in(8)) options.core_count = in.from(kExtents);
    choose_size(in, options);
    weir_place* made = nullptr;
    const weir_status status = weir_place_create(domain.handle, in.one_in(16) ? nullptr : &options,
                                                 in.one_in(32) ? nullptr : &made);
    if (ended(status, domain) == WEIR_STATUS_OK) {
      *slot = {made, Life::live, domain.runtime, nullptr};
    }
    require((made != nullptr) == (status == WEIR_STATUS_OK), "a place or a failure");
  }

  void partition(Choices& in) {
    const Slot<weir_domain> domain = domains_.pick(in);
    std::array<weir_place*, 4> made{};
    const bool oversubscribe = in.one_in(2);
    std::size_t count = in.below(made.size() + 1);
    if (!oversubscribe && in.one_in(4)) count = kMost;
    const weir_status status = weir_domain_partition(domain.handle, count, oversubscribe,
                                                     in.one_in(32) ? nullptr : made.data());
    if (ended(status, domain) != WEIR_STATUS_OK) return;
    for (std::size_t i = 0; i < count; ++i) {
      require(made[i] != nullptr, "as many places as asked for");
      weir_place_info info = WEIR_PLACE_INFO_INIT;
      require(weir_place_get_info(made[i], &info) == WEIR_STATUS_OK && info.core_count > 0,
              "a place has cores");
      if (Slot<weir_place>* const slot = places_.vacant()) {
        *slot = {made[i], Life::live, domain.runtime, nullptr};
      } else {
        weir_place_destroy(made[i]);
      }
    }
  }

  void destroy_place(Choices& in) {
    const Slot<weir_place> place = places_.pick(in);
    if (in.one_in(2)) {
      weir_place_info info = WEIR_PLACE_INFO_INIT;
      choose_size(in, info);
      ended(weir_place_get_info(place.handle, &info), place);
      return;
    }
    if (busy_) settle();
    weir_place_destroy(place.handle);
    if (!place.live()) return;
    places_.kill(place.handle);
    for (Slot<weir_stream>& stream : streams_) {
      if (stream.parent == place.handle && stream.live()) stream.life = Life::dead;
    }
  }

  weir_buffer_options buffer_options(Choices& in, std::size_t bytes) {
    weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
    options.name = in.from(kNames);
    options.kind = static_cast<weir_memory_kind>(in.one_in(4) ? in.from(kEnums) : 0);
    options.strict = in.one_in(2);
    options.no_alias = in.one_in(2);
    options.prefault = bytes <= kArena && in.one_in(2);
    options.alignment = in.from(kAlignments);
    choose_size(in, options);
    return options;
  }

  void create_buffer(Choices& in) {
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    Slot<weir_buffer>* const slot = buffers_.vacant();
    if (slot == nullptr) return;
    const std::size_t bytes = in.from(kSizes);
    const weir_buffer_options options = buffer_options(in, bytes);
    weir_buffer* made = nullptr;
    const weir_status status = weir_buffer_create(
        runtime.handle, bytes, in.one_in(4) ? nullptr : &options, in.one_in(32) ? nullptr : &made);
    if (ended(status, runtime) == WEIR_STATUS_OK) {
      *slot = {made, Life::live, runtime.handle, nullptr};
    }
    require((made != nullptr) == (status == WEIR_STATUS_OK), "a buffer or a failure");
  }

  /// Each runtime has memory of its own to wrap.
  void wrap_buffer(Choices& in) {
    const std::uint8_t index = in.byte();
    const Slot<weir_runtime> runtime =
        index % 16 == 15 ? runtimes_.pick(in) : runtimes_[index % kRuntimes];
    Slot<weir_buffer>* const slot = buffers_.vacant();
    if (slot == nullptr) return;
    unsigned char* const memory = arenas_[index % kRuntimes].memory;
    const std::size_t offset = 256 * in.below(64) + (in.one_in(8) ? in.below(9) : 0);
    std::size_t bytes = std::min(in.from(kSizes), kArena - offset);
    if (in.one_in(32)) bytes = kMost - in.below(2);
    const weir_buffer_options options = buffer_options(in, 0);
    weir_buffer* made = nullptr;
    const weir_status status =
        weir_buffer_wrap(runtime.handle, in.one_in(32) ? nullptr : memory + offset, bytes,
                         in.one_in(4) ? nullptr : &options, in.one_in(32) ? nullptr : &made);
    if (ended(status, runtime) == WEIR_STATUS_OK) {
      *slot = {made, Life::live, runtime.handle, nullptr};
    }
    require((made != nullptr) == (status == WEIR_STATUS_OK), "a buffer or a failure");
  }

  void destroy_buffer(Choices& in) {
    const Slot<weir_buffer> buffer = buffers_.pick(in);
    weir_buffer_destroy(buffer.handle);
    buffers_.kill(buffer.handle);
  }

  void query_buffer(Choices& in) {
    const Slot<weir_buffer> buffer = buffers_.pick(in);
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
    choose_size(in, info);
    const weir_status status =
        ended(weir_buffer_get_info(buffer.handle, in.one_in(32) ? nullptr : &info), buffer);
    const bool whole = status == WEIR_STATUS_OK && info.struct_size >= sizeof info;
    const void* address = whole ? static_cast<unsigned char*>(info.address) + info.bytes - 1 : junk;
    if (in.one_in(4)) address = nullptr;
    weir_buffer* found = nullptr;
    std::size_t offset = 0;
    const weir_status looked =
        weir_buffer_find(runtime.handle, address, in.one_in(32) ? nullptr : &found,
                         in.one_in(4) ? nullptr : &offset);
    if (ended(looked, runtime) == WEIR_STATUS_OK && whole && buffer.runtime == runtime.handle) {
      require(found == buffer.handle, "the buffer of an address is found");
    }
  }

  void add_kernel(Choices& in) {
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    Slot<weir_kernel>* const slot = kernels_.vacant();
    if (slot == nullptr) return;
    const char* const backends[] = {"host", "sim", "null", "cuda", nullptr, ""};
    Once* const payload = new_payload(runtime.handle);
    std::array<weir_implementation, 3> codes;
    for (weir_implementation& code : codes) {
      code = {in.from(backends), in.one_in(16) ? nullptr : write_operands, payload};
    }
    const std::string name = "own" + std::to_string(serial_++);
    weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
    options.name = in.one_in(4) ? in.from(kNames) : name.c_str();
    options.shape = static_cast<weir_kernel_shape>(in.from(kFewEnums));
    options.implementations = in.one_in(16) ? nullptr : codes.data();
    options.implementation_count =
        options.implementations == nullptr && in.one_in(2) ? kMost : in.below(codes.size() + 1);
    options.release = release;
    options.cost = in.one_in(2) ? cost_of : nullptr;
    choose_size(in, options);
    weir_kernel* made = nullptr;
    const weir_status status = weir_kernel_register(
        runtime.handle, in.one_in(32) ? nullptr : &options, in.one_in(8) ? nullptr : &made);
    const bool registered = ended(status, runtime) == WEIR_STATUS_OK;
    if (registered && made != nullptr) *slot = {made, Life::live, runtime.handle, nullptr};
    const bool released_later = registered && options.struct_size >= sizeof options;
    if (!released_later) {
      require(payload->count == 0, "the payload of a kernel that is refused is not released");
      if (!registered)
        payloads_.pop_back();
      else
        payload->runtime = nullptr;
    }
  }

  void find_kernel(Choices& in) {
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    Slot<weir_kernel>* const slot = kernels_.vacant();
    const char* const name = in.one_in(16) ? nullptr : in.from(kKernels);
    weir_kernel* found = nullptr;
    const weir_status status =
        weir_kernel_find(runtime.handle, name, in.one_in(32) ? nullptr : &found);
    if (ended(status, runtime) != WEIR_STATUS_OK || slot == nullptr) return;
    *slot = {found, Life::live, runtime.handle, nullptr};
  }

  void find_domain(Choices& in) {
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    const char* const names[] = {"host", "sim", "sim:0", "sim:1", "", "gone\n", nullptr};
    Slot<weir_domain>* slot = domains_.vacant();
    if (slot == nullptr) slot = &domains_[kKept];
    const std::size_t count = weir_runtime_domain_count(runtime.handle);
    require((count > 0) == runtime.live(), "a runtime has domains");
    weir_domain* found = nullptr;
    if (in.one_in(2)) {
      const std::size_t index = in.one_in(16) ? kMost : in.below(3);
      found = weir_runtime_get_domain(runtime.handle, index);
      require((found != nullptr) == (index < count), "each index below the count is a domain");
    } else {
      ended(weir_runtime_find_domain(runtime.handle, in.from(names),
                                     in.one_in(32) ? nullptr : &found),
            runtime);
    }
    if (found != nullptr) *slot = {found, Life::live, runtime.handle, nullptr};
    const Slot<weir_domain> domain = domains_.pick(in);
    weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
    choose_size(in, info);
    ended(weir_domain_get_info(domain.handle, in.one_in(32) ? nullptr : &info), domain);
  }

  void query_runtime(Choices& in) {
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    weir_stats stats = WEIR_STATS_INIT;
    choose_size(in, stats);
    ended(weir_runtime_get_stats(runtime.handle, in.one_in(32) ? nullptr : &stats), runtime);
    weir_runtime_now(runtime.handle);
    if (!in.one_in(4)) return;
    std::array<char, 200> text;
    text.fill('!');
    const std::size_t capacity = in.below(text.size());
    std::size_t size = 0;
    const weir_status status =
        weir_runtime_describe(runtime.handle, in.one_in(16) ? nullptr : text.data(), capacity,
                              in.one_in(16) ? nullptr : &size);
    ended(status, runtime);
    require(text[capacity] == '!', "a description is cut to its capacity");
  }

  void trace(Choices& in) {
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    const char* const paths[] = {"/dev/null",
                                 "/nonexistent/a.json",
                                 "/nonexistent/a.pftrace",
                                 "",
                                 nullptr,
                                 "/proc/\xff\n.pftrace",
                                 "/"};
    constexpr std::size_t budgets[] = {0, 1, 1000, 1u << 20, kMost};
    weir_trace_summary summary = WEIR_TRACE_SUMMARY_INIT;
    choose_size(in, summary);
    switch (in.below(5)) {
      case 0:
      case 1: ended(weir_trace_start(runtime.handle, in.from(budgets)), runtime); break;
      case 2: ended(weir_trace_stop(runtime.handle), runtime); break;
      case 3: ended(weir_trace_write(runtime.handle, in.from(paths)), runtime); break;
      default: ended(weir_trace_summarize(runtime.handle, &summary), runtime);
    }
  }

  void without_runtime(Choices& in) {
    require(*weir_status_name(static_cast<weir_status>(in.from(kEnums))) != '\0', "it has a name");
    require(weir_last_error() != nullptr && weir_team_size(nullptr) == 1, "no team is one thread");
    Shares shares;
    weir_team_for(nullptr, in.from(kExtents), in.from(kExtents), add_share, &shares);
    weir_team_run(
        nullptr, [](weir_team* team, std::size_t, void*) { weir_team_barrier(team); }, &shares);
    weir_team_barrier(nullptr);
    weir_call_fail(nullptr, static_cast<weir_status>(in.from(kEnums)), "%s", long_name.c_str());
  }

  void create_runtime(Choices& in) {
    if (created_++ >= 2) return;
    Slot<weir_runtime>* const slot = runtimes_.vacant();
    if (slot == nullptr) return;
    const char* const libraries[] = {nullptr,    nullptr, "openblas",
                                     "nonsense", "",      "/nonexistent.so"};
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = in.from(kDomains);
    options.shutdown_timeout_ns = in.from(kTimeouts);
    options.blas = in.from(libraries);
    choose_size(in, options);
    weir_runtime* made = nullptr;
    const weir_status status =
        weir_runtime_create(in.one_in(16) ? nullptr : &options, in.one_in(16) ? nullptr : &made);
    require((made != nullptr) == (status == WEIR_STATUS_OK), "a runtime or a failure");
    if (ended(status) == WEIR_STATUS_OK) adopt(*slot, made);
  }

  void destroy_runtime(Choices& in) {
    const Slot<weir_runtime> runtime = runtimes_.pick(in);
    if (!runtime.live()) return weir_runtime_destroy(runtime.handle);
    for (std::size_t i = 0; i < kRuntimes; ++i) {
      const bool dear = i < kKept && !in.one_in(8);
      if (runtimes_[i].handle == runtime.handle && !dear) return destroy(runtimes_[i]);
    }
  }

  struct Arena {
    unsigned char before[kGuard] = {};
    alignas(64) unsigned char memory[kArena] = {};
    unsigned char after[kGuard] = {};
  };

  Table<weir_runtime, kRuntimes, kKept> runtimes_;
  Table<weir_domain, 8, kKept> domains_;
  Table<weir_place, 8, kKept> places_;
  Table<weir_stream, 8, kKept> streams_;
  Table<weir_buffer, 12, 2 * kKept> buffers_;
  Table<weir_kernel, 6> kernels_;
  std::array<EventSlot, 16> events_;
  std::size_t event_count_ = 0, callback_count_ = 0, created_ = 0;
  std::uint64_t serial_ = 0;
  bool busy_ = false;
  std::array<Once, kCallbacks> callbacks_;
  std::vector<std::unique_ptr<Once>> payloads_;
  std::array<Arena, kRuntimes> arenas_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // New ones from time to time, so that they do not fill with names.
  static std::unique_ptr<Interpreter> interpreter;
  static unsigned inputs = 0;
  if (inputs++ % 64 == 0) {
    interpreter.reset();
    interpreter = std::make_unique<Interpreter>();
  }
  interpreter->run(Choices(data, size));
  return 0;
}
