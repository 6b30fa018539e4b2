#include "walk.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include <sched.h>

#include <weir/weir.h>

namespace faults {

const Route kRoutes[2] = {
    {"real", "host:cores=2,sim:cores=1,latency_us=0,memory=40KiB", false},
    {"virtual", "sim:clock=virtual,cores=2,gflops=1,sim:clock=virtual,latency_us=1,memory=40KiB",
     true},
};

void Report::blame(const char* format, ...) {
  ++wrong;
  if (written + 1 >= sizeof text) return;
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(text + written, sizeof text - written, format, arguments);
  va_end(arguments);
  written = std::min(sizeof text - 1, written + static_cast<std::size_t>(std::max(0, length)));
  if (written + 1 < sizeof text) text[written++] = '\n';
}

void Report::add(const Report& other) {
  if (errors == 0) std::memcpy(first_error, other.first_error, sizeof first_error);
  errors += other.errors;
  device_errors += other.device_errors;
  if (other.wrong > 0) blame("%s", other.text);
}

bool took(const Route& route, Report& report, weir_status status, const char* call,
          unsigned expected) {
  if (status != WEIR_STATUS_OK) {
    const char* const message = weir_last_error();
    if (*message == '\0') {
      report.blame("%s: %s without a message", call, weir_status_name(status));
    } else if (std::strchr(message, '\n') != nullptr) {
      report.blame("%s: the message has lines: %s", call, message);
    }
  }
  if ((expected & only(status)) != 0) return status == WEIR_STATUS_OK;
  unsigned faults =
      only(WEIR_STATUS_OUT_OF_MEMORY) | only(WEIR_STATUS_UNAVAILABLE) | only(WEIR_STATUS_POISONED);
  if (route.breaks) faults |= only(WEIR_STATUS_DEVICE_ERROR);
  if (route.leaves) faults |= only(WEIR_STATUS_NETWORK_ERROR);
  if (static_cast<unsigned>(status) > WEIR_STATUS_INTERNAL || (faults & only(status)) == 0) {
    report.blame("%s: %s: %s", call, weir_status_name(status), weir_last_error());
  } else if (report.errors++ == 0) {
    std::snprintf(report.first_error, sizeof report.first_error, "%s: %s: %s", call,
                  weir_status_name(status), weir_last_error());
  }
  return false;
}

namespace {

constexpr std::size_t kBuffers = 4;
constexpr std::size_t kCells = 64;
constexpr std::size_t kWords = 32;
constexpr std::size_t kCellBytes = kWords * sizeof(std::uint64_t);
constexpr std::size_t kBufferBytes = kCells * kCellBytes;
constexpr std::size_t kMemories = 3;
constexpr std::size_t kMostSteps = 4096;
constexpr std::size_t kMostOperands = 5;
constexpr std::size_t kWholeBuffer = kCells;  ///< in place of the number of a cell

constexpr std::size_t kLongChain = 700;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  a = (a ^ (b + 0x9E3779B97F4A7C15u + (a << 6) + (a >> 2))) * 0xD6E8FEB86659FD93u;
  return a ^ a >> 32;
}

std::uint64_t initial_word(std::size_t buffer, std::size_t word) {
  return mix(buffer + 1, word + 1);
}

// ---- Kernels -----------------------------------------------------------------------------------

std::atomic<bool> gate_open{true};

void mix_cells(const weir_call* call, std::size_t begin, std::size_t end) {
  auto* const out = static_cast<std::uint64_t*>(call->operands[0].address);
  for (std::size_t w = begin; w < end; ++w) {
    std::uint64_t value = mix(out[w], call->scalars[0].value.u64);
    for (std::size_t i = 1; i < call->operand_count; ++i) {
      value = mix(value, static_cast<const std::uint64_t*>(call->operands[i].address)[w]);
    }
    out[w] = value;
  }
}

weir_status mix_kernel(const weir_call* call) {
  mix_cells(call, 0, kWords);
  return WEIR_STATUS_OK;
}

/// The same in three ways at once: a loop and, between barriers, a function of each member.
weir_status team_kernel(const weir_call* call) {
  struct Shared {
    const weir_call* call;
    std::atomic<unsigned> arrived{0};
    bool late = false;
  } shared{call};
  weir_team_for(
      call->team, kWords, 4,
      [](std::size_t begin, std::size_t end, std::size_t, void* payload) {
        mix_cells(static_cast<Shared*>(payload)->call, begin, end);
      },
      &shared);
  weir_team_run(
      call->team,
      [](weir_team* team, std::size_t, void* payload) {
        auto& mine = *static_cast<Shared*>(payload);
        mine.arrived.fetch_add(1);
        weir_team_barrier(team);
        if (mine.arrived.load() != weir_team_size(team)) mine.late = true;
      },
      &shared);
  return shared.late ? weir_call_fail(call, WEIR_STATUS_INTERNAL, "a barrier did not hold")
                     : WEIR_STATUS_OK;
}

weir_status throwing_kernel(const weir_call*) { throw std::runtime_error("told to throw"); }

weir_status failing_kernel(const weir_call* call) {
  return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "cell %u of a rather long message", 7u);
}

weir_status gate_kernel(const weir_call*) {
  while (!gate_open.load()) sched_yield();
  return WEIR_STATUS_OK;
}

weir_cost cost_of(const weir_call* call) {
  return {static_cast<double>(call->operand_count * kWords), static_cast<double>(kCellBytes)};
}

std::atomic<unsigned> released{0};
void release_payload(void*) { released.fetch_add(1); }

// ---- What was done -----------------------------------------------------------------------------

struct Cell {
  std::uint8_t memory, buffer, cell;
};

enum class Op : std::uint8_t { compute, none, copy, drain };

/// One action, or one synchronise, in the order of the calls.
struct Step {
  Op op;
  std::uint8_t stream;
  std::uint8_t count;  ///< operands; the first is written, the others are read
  bool fails;          ///< is to fail if it runs
  bool cancellable;
  bool of_all;  ///< a synchronise of the runtime
  bool silent;  ///< its end is not one of the stream's failures
  Cell cells[kMostOperands];
  std::uint64_t key;
  weir_event event;
  weir_status status;  ///< of a drain: what it returned; of an action in the end: how it ended
};

enum StreamName : std::uint8_t { kChain, kExact, kFifo, kCard, kLoose, kStreams };
enum PlaceName : std::uint8_t { kNarrow, kWide, kAway, kPlaces };

struct World {
  const Route* route;
  Report* report;
  weir_runtime* runtime;
  weir_domain* domains[2];
  weir_place* places[kPlaces];
  weir_stream* streams[kStreams];
  weir_buffer* buffers[kBuffers];
  std::uint64_t* data[kBuffers];
  weir_kernel *mix, *team, *throws, *fails, *gate;
  std::size_t step_count;
  Step steps[kMostSteps];
  unsigned callbacks_wanted, kernels_registered;
  std::atomic<unsigned> callbacks_seen;
  char text[32768];
};
World world;

alignas(64) std::uint64_t wrapped[2][kCells * kWords];

bool took(weir_status status, const char* call, unsigned expected = only(WEIR_STATUS_OK)) {
  return faults::took(*world.route, *world.report, status, call, expected);
}

std::uint8_t domain_of(StreamName stream) { return stream == kCard || stream == kLoose ? 1 : 0; }

/// The memory that the instance of a buffer is in.
std::uint8_t memory_of(std::uint8_t domain, std::size_t buffer) {
  const bool shares = !world.route->virtual_time && domain == 0 && buffer != 1;
  return shares ? 0 : static_cast<std::uint8_t>(domain + 1);
}

Cell cell_of(StreamName stream, std::size_t buffer, std::size_t cell) {
  return {memory_of(domain_of(stream), buffer), static_cast<std::uint8_t>(buffer),
          static_cast<std::uint8_t>(cell)};
}

weir_region region_of(std::size_t cell) {
  return cell == kWholeBuffer ? weir_region_range(0, kBufferBytes)
                              : weir_region_range(cell * kCellBytes, kCellBytes);
}

Step* new_step(StreamName stream, Op op) {
  if (world.step_count == kMostSteps) {
    world.report->blame("the walk has more steps than there is room for");
    return &world.steps[kMostSteps - 1];
  }
  Step& step = world.steps[world.step_count];
  step = {};
  step.op = op;
  step.stream = stream;
  return &step;
}

/// Keeps a step whose action was enqueued.
bool keep(weir_status status, const char* call) {
  if (!took(status, call)) return false;
  ++world.step_count;
  return true;
}

struct Compute {
  StreamName stream;
  weir_kernel* kernel;
  Op op = Op::compute;
  bool fails = false;
  std::size_t scalars = 1;
  const char* name = nullptr;
};

/// Enqueues out = mix(out, key, in...). The event, if wanted, is that of the last step.
bool compute(const Compute& what,
             std::initializer_list<std::pair<std::size_t, std::size_t>> cells) {
  if (world.streams[what.stream] == nullptr || what.kernel == nullptr) return false;
  Step& step = *new_step(what.stream, what.op);
  weir_operand operands[kMostOperands];
  for (const auto& [buffer, cell] : cells) {
    if (world.buffers[buffer] == nullptr) return false;
    step.cells[step.count] = cell_of(what.stream, buffer, cell);
    operands[step.count] = {world.buffers[buffer], region_of(cell),
                            step.count == 0 ? WEIR_ACCESS_READ_WRITE : WEIR_ACCESS_READ};
    ++step.count;
  }
  step.key = world.step_count + 1;
  step.fails = what.fails;
  weir_scalar scalars[8];
  for (weir_scalar& scalar : scalars) scalar = weir_scalar_u64(step.key);
  weir_compute call = WEIR_COMPUTE_INIT;
  call.kernel = what.kernel;
  call.operands = operands;
  call.operand_count = step.count;
  call.scalars = scalars;
  call.scalar_count = what.scalars;
  call.name = what.name;
  return keep(weir_stream_compute(world.streams[what.stream], &call, &step.event), "compute");
}

bool mix_into(StreamName stream, std::initializer_list<std::pair<std::size_t, std::size_t>> cells) {
  return compute({.stream = stream, .kernel = world.mix}, cells);
}

bool copy_step(StreamName stream, std::size_t buffer, std::size_t cell, bool up) {
  if (world.streams[stream] == nullptr || world.buffers[buffer] == nullptr) return false;
  Step& step = *new_step(stream, Op::copy);
  const Cell here = cell_of(stream, buffer, cell);
  const Cell host = {0, here.buffer, here.cell};
  step.count = 2;
  step.cells[0] = up ? here : host;
  step.cells[1] = up ? host : here;
  const auto move = up ? weir_stream_upload : weir_stream_download;
  return keep(move(world.streams[stream], world.buffers[buffer], region_of(cell), &step.event),
              up ? "upload" : "download");
}

weir_event last_event() {
  return world.step_count > 0 ? world.steps[world.step_count - 1].event : weir_event{};
}

bool sync_with(StreamName stream, weir_sync sync, const char* call) {
  if (world.streams[stream] == nullptr) return false;
  Step& step = *new_step(stream, Op::none);
  step.silent = sync.scope == WEIR_SYNC_SCOPE_NOTHING;
  return keep(weir_stream_sync(world.streams[stream], &sync, &step.event), call);
}

void note_drain(std::size_t stream, weir_status status, bool of_all = false) {
  Step& step = *new_step(static_cast<StreamName>(stream), Op::drain);
  step.status = status;
  step.of_all = of_all;
  ++world.step_count;
}

/// Synchronises a stream, which returns `expected` or succeeds.
void synchronize(StreamName stream, unsigned expected = only(WEIR_STATUS_OK)) {
  if (world.streams[stream] == nullptr) return;
  const weir_status status = weir_stream_synchronize(world.streams[stream], kLong);
  took(status, "stream_synchronize", expected | only(WEIR_STATUS_OK));
  note_drain(stream, status);
}

// ---- The walk ----------------------------------------------------------------------------------

bool open_runtime() {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = world.route->domains;
  if (!took(weir_runtime_create(&options, &world.runtime), "runtime_create")) {
    world.runtime = nullptr;
    return false;
  }
  if (weir_runtime_domain_count(world.runtime) != 2) world.report->blame("not two domains");
  for (std::size_t i = 0; i < 2; ++i) world.domains[i] = weir_runtime_get_domain(world.runtime, i);
  return true;
}

void ask_runtime() {
  weir_domain* found = nullptr;
  took(weir_runtime_find_domain(world.runtime, "sim:0", &found), "find_domain");
  took(weir_runtime_find_domain(world.runtime, "simm", &found), "find_domain of none",
       only(WEIR_STATUS_NOT_FOUND));
  for (weir_domain* domain : world.domains) {
    weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
    took(weir_domain_get_info(domain, &info), "domain_get_info");
  }
  std::size_t size = 0;
  took(weir_runtime_describe(world.runtime, world.text, sizeof world.text, &size), "describe");
  weir_stats stats = WEIR_STATS_INIT;
  took(weir_runtime_get_stats(world.runtime, &stats), "get_stats");
  static_cast<void>(weir_runtime_now(world.runtime));
}

weir_kernel* add_kernel(const char* name, weir_host_function function, weir_kernel_shape shape) {
  static int payload;
  const weir_implementation codes[] = {{"host", function, &payload}, {"sim", function, &payload}};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.shape = shape;
  options.implementations = codes;
  options.implementation_count = 2;
  options.cost = cost_of;
  options.release = release_payload;
  weir_kernel* kernel = nullptr;
  if (!took(weir_kernel_register(world.runtime, &options, &kernel), "kernel_register")) {
    return nullptr;
  }
  ++world.kernels_registered;
  return kernel;
}

/// One with a text, which no device here compiles.
void add_portable_kernel() {
  static const weir_portable_kernel kernel = {
      "portable",
      {64, 1, 1},
      "pi",
      [](const std::uint32_t*, std::uint64_t, std::uint64_t, void* const*) {},
      nullptr};
  weir_portable_options options = WEIR_PORTABLE_OPTIONS_INIT;
  options.kernel = &kernel;
  options.source = "WEIR_KERNEL(portable, 64, 1, 1, WEIR_GLOBAL double* x, int n) {}";
  options.grid = [](const weir_call*, std::uint32_t*) {};
  options.cost = cost_of;
  took(weir_kernel_register_portable(world.runtime, &options, nullptr), "kernel_register_portable");
}

void add_kernels() {
  world.mix = add_kernel("mix", mix_kernel, WEIR_KERNEL_SHAPE_SERIAL);
  world.team = add_kernel("mix of the whole team", team_kernel, WEIR_KERNEL_SHAPE_PARALLEL);
  world.throws = add_kernel("throws", throwing_kernel, WEIR_KERNEL_SHAPE_SERIAL);
  world.fails = add_kernel("fails", failing_kernel, WEIR_KERNEL_SHAPE_SERIAL);
  world.gate = add_kernel("gate", gate_kernel, WEIR_KERNEL_SHAPE_SERIAL);
  add_portable_kernel();
  weir_kernel* found = nullptr;
  took(weir_kernel_find(world.runtime, "mem.copy", &found), "kernel_find");
  took(weir_kernel_find(world.runtime, "mem.copi", &found), "kernel_find of none",
       only(WEIR_STATUS_NOT_FOUND));
}

void make_buffers() {
  for (std::size_t i = 0; i < kBuffers; ++i) {
    weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
    char name[] = "the buffer with the number N";
    name[sizeof name - 2] = static_cast<char>('0' + i);
    options.name = i == 3 ? nullptr : name;
    options.no_alias = i == 1;
    options.prefault = i == 0;
    const weir_status status =
        i < 2 ? weir_buffer_create(world.runtime, kBufferBytes, &options, &world.buffers[i])
              : weir_buffer_wrap(world.runtime, wrapped[i - 2], kBufferBytes, &options,
                                 &world.buffers[i]);
    if (!took(status, i < 2 ? "buffer_create" : "buffer_wrap")) {
      world.buffers[i] = nullptr;
      continue;
    }
    weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
    if (!took(weir_buffer_get_info(world.buffers[i], &info), "buffer_get_info")) {
      world.report->blame("asking about a buffer failed");
    }
    world.data[i] = static_cast<std::uint64_t*>(info.address);
    for (std::size_t w = 0; w < kCells * kWords; ++w) world.data[i][w] = initial_word(i, w);
    weir_buffer* found = nullptr;
    std::size_t offset = 0;
    took(weir_buffer_find(world.runtime, world.data[i] + 5, &found, &offset), "buffer_find");
  }
}

/// Memory of the program as an instance in each domain; for a device, too, it is host memory.
void adopt_memory() {
  static std::uint64_t there[8];
  for (weir_domain* domain : world.domains) {
    weir_buffer* adopted = nullptr;
    if (domain == nullptr) continue;
    if (took(weir_buffer_adopt(domain, there, nullptr, sizeof there, nullptr, &adopted),
             "buffer_adopt")) {
      weir_buffer_destroy(adopted);
    }
  }
}

void make_places() {
  weir_place_options narrow = WEIR_PLACE_OPTIONS_INIT;
  const std::uint32_t core = 0;
  narrow.name = "a narrow place with a name";
  narrow.cores = &core;
  narrow.core_count = 1;
  if (!took(weir_place_create(world.domains[0], &narrow, &world.places[kNarrow]), "place_create")) {
    world.places[kNarrow] = nullptr;
  }
  weir_place_options wide = WEIR_PLACE_OPTIONS_INIT;
  wide.core_count = 2;
  wide.oversubscribe = true;
  if (!took(weir_place_create(world.domains[0], &wide, &world.places[kWide]), "place_create",
            only(WEIR_STATUS_OK) | only(WEIR_STATUS_INVALID_ARGUMENT))) {
    world.places[kWide] = nullptr;  // a machine of one core
  }
  if (!took(weir_domain_partition(world.domains[1], 1, false, &world.places[kAway]), "partition")) {
    world.places[kAway] = nullptr;
  }
  for (weir_place* place : world.places) {
    weir_place_info info = WEIR_PLACE_INFO_INIT;
    if (place != nullptr) took(weir_place_get_info(place, &info), "place_get_info");
  }
}

void make_streams() {
  const struct {
    StreamName name;
    PlaceName place;
    weir_dependence_policy policy;
    int priority;
  } wanted[] = {{kChain, kWide, WEIR_DEPENDENCE_POLICY_OPERANDS, 0},
                {kExact, kNarrow, WEIR_DEPENDENCE_POLICY_OPERANDS, 1},
                {kFifo, kNarrow, WEIR_DEPENDENCE_POLICY_FIFO, -1},
                {kCard, kAway, WEIR_DEPENDENCE_POLICY_OPERANDS, 0},
                {kLoose, kAway, WEIR_DEPENDENCE_POLICY_NONE, 0}};
  for (const auto& [name, place, policy, priority] : wanted) {
    if (world.places[place] == nullptr) continue;
    weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
    options.policy = policy;
    options.priority = priority;
    options.name = name == kCard ? "the stream of the device" : nullptr;
    if (!took(weir_stream_create(world.places[place], &options, &world.streams[name]),
              "stream_create")) {
      world.streams[name] = nullptr;
    }
  }
}

/// Hundreds of actions in flight behind a gate: rings, windows, tables and pools grow.
void walk_long_chain() {
  gate_open.store(world.route->virtual_time);
  for (std::size_t cell = 0; cell < kCells; ++cell) copy_step(kChain, 0, cell, true);
  compute({.stream = kChain, .kernel = world.gate, .op = Op::none}, {{0, kWholeBuffer}});
  for (std::size_t i = 0; i < kLongChain; ++i) {
    if (i % 50 == 49) {
      compute({.stream = kChain, .kernel = world.mix, .scalars = 6, .name = "with many arguments"},
              {{0, i % kCells},
               {0, (i * 7 + 3) % kCells},
               {0, (i + 1) % kCells},
               {0, (i + 9) % kCells},
               {0, (i + 22) % kCells}});
    } else {
      mix_into(kChain, {{0, i % kCells}, {0, (i * 7 + 3) % kCells}});
    }
  }
  for (std::size_t cell = 0; cell < kCells; ++cell) copy_step(kChain, 0, cell, false);
  gate_open.store(true);
  synchronize(kChain);
}

/// A pipeline over two domains, with every kind of wait.
void walk_events() {
  weir_event ends[8];
  std::size_t count = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    if (!copy_step(kExact, 2, i, true) || !mix_into(kExact, {{2, i}, {2, 40 + i}}) ||
        !copy_step(kExact, 2, i, false)) {
      continue;
    }
    const weir_event made = last_event();
    if (world.streams[kCard] == nullptr) continue;
    Step& wait = *new_step(kCard, Op::none);
    if (!keep(weir_stream_wait_event(world.streams[kCard], &made), "wait_event")) continue;
    wait.event = made;  // it has none of its own
    if (!copy_step(kCard, 2, i, true) || !mix_into(kCard, {{2, i}}) ||
        !copy_step(kCard, 2, i, false)) {
      continue;
    }
    const weir_event back[2] = {last_event(), made};
    const weir_operand operand = {world.buffers[2], region_of(i), WEIR_ACCESS_READ_WRITE};
    weir_sync sync = WEIR_SYNC_INIT;
    sync.events = back;
    sync.event_count = 2;
    sync.operands = &operand;
    sync.operand_count = 1;
    sync.scope = WEIR_SYNC_SCOPE_OPERANDS;
    if (!sync_with(kExact, sync, "sync of an operand")) continue;
    // On a device the host instance is in another memory: its contents follow by an upload.
    ends[count++] = back[0];
  }
  weir_sync marker = WEIR_SYNC_INIT;
  marker.scope = WEIR_SYNC_SCOPE_NOTHING;
  marker.events = ends;
  marker.event_count = count;
  sync_with(kExact, marker, "marker");
  const weir_sync barrier = WEIR_SYNC_INIT;
  sync_with(kCard, barrier, "barrier");
  for (std::size_t i = 0; i < count; ++i) {
    const auto count_call = [](weir_status, const char* message, void* payload) {
      if (message == nullptr) return;
      static_cast<std::atomic<unsigned>*>(payload)->fetch_add(1);
    };
    if (took(weir_event_on_complete(world.runtime, &ends[i], count_call, &world.callbacks_seen),
             "on_complete")) {
      ++world.callbacks_wanted;
    }
  }
  std::size_t index = 0;
  took(weir_event_wait(world.runtime, ends, count, WEIR_WAIT_MODE_ANY, kLong, &index), "wait any");
  took(weir_event_wait(world.runtime, ends, count, WEIR_WAIT_MODE_ALL, kLong, nullptr), "wait all");
  for (std::size_t i = 0; i < count; ++i) {
    weir_event_info info = WEIR_EVENT_INFO_INIT;
    took(weir_event_get_info(world.runtime, &ends[i], &info), "event_get_info");
  }
  synchronize(kExact);
  synchronize(kCard);
}

/// More than the memory of the device holds: instances are evicted and come back.
void walk_evictions() {
  for (std::size_t round = 0; round < 3; ++round) {
    for (std::size_t buffer = 1; buffer < kBuffers; ++buffer) {
      const std::size_t cell = 20 + round;
      copy_step(kCard, buffer, cell, true);
      mix_into(kCard, {{buffer, cell}, {buffer % 3 + 1, 20}});
    }
  }
  for (std::size_t buffer = 1; buffer < kBuffers; ++buffer) {
    for (std::size_t round = 0; round < 3; ++round) copy_step(kCard, buffer, 20 + round, false);
  }
  mix_into(kLoose, {{1, 40}});
  copy_step(kExact, 1, 30, true);
  compute({.stream = kExact, .kernel = world.team}, {{1, 30}, {1, 31}});
  copy_step(kExact, 1, 30, false);
  synchronize(kCard);
  synchronize(kLoose);
  synchronize(kExact);
}

void walk_team() {
  for (std::size_t cell = 0; cell < 3; ++cell) {
    copy_step(kChain, 0, cell, true);
    compute({.stream = kChain, .kernel = world.team, .name = "of all"}, {{0, cell}, {0, 50}});
    copy_step(kChain, 0, cell, false);
  }
  synchronize(kChain);
}

/// Kernels fail, what depends on them does not run.
void walk_failures() {
  for (const StreamName stream : {kExact, kFifo, kCard}) {
    const std::size_t buffer = 3;
    const std::size_t at = stream == kExact ? 0 : stream == kFifo ? 10 : 30;
    mix_into(stream, {{buffer, at}});
    compute({.stream = stream, .kernel = world.throws, .fails = true}, {{buffer, at}});
    const bool failing = world.step_count > 0 && world.steps[world.step_count - 1].fails;
    mix_into(stream, {{buffer, at}});
    mix_into(stream, {{buffer, at + 1}, {buffer, at}});
    mix_into(stream, {{buffer, at + 2}});
    if (failing) {
      const weir_event event = world.steps[world.step_count - 1].event;
      took(weir_event_wait(world.runtime, &event, 1, WEIR_WAIT_MODE_ALL, kLong, nullptr),
           "wait after a failure",
           only(WEIR_STATUS_OK) | only(WEIR_STATUS_POISONED) | only(WEIR_STATUS_KERNEL_ERROR));
    }
    const weir_sync barrier = WEIR_SYNC_INIT;
    sync_with(stream, barrier, "barrier after a failure");
    mix_into(stream, {{buffer, at + 3}});
    synchronize(stream, only(WEIR_STATUS_KERNEL_ERROR));
    compute({.stream = stream, .kernel = world.fails, .fails = true}, {{buffer, at + 4}});
    synchronize(stream, only(WEIR_STATUS_KERNEL_ERROR));
    mix_into(stream, {{buffer, at + 5}});
  }
  const weir_status status = weir_runtime_synchronize(world.runtime, kLong);
  took(status, "runtime_synchronize", only(WEIR_STATUS_OK) | only(WEIR_STATUS_KERNEL_ERROR));
  for (std::size_t stream = 0; stream < kStreams; ++stream) note_drain(stream, status, true);
  for (const StreamName stream : {kExact, kFifo, kCard}) synchronize(stream);
}

void walk_cancel() {
  if (world.streams[kFifo] == nullptr) return;
  gate_open.store(world.route->virtual_time);
  const std::size_t first = world.step_count;
  compute({.stream = kFifo, .kernel = world.gate, .op = Op::none}, {{2, 60}});
  for (std::size_t i = 0; i < 4; ++i) mix_into(kFifo, {{2, 60}});
  if (took(weir_stream_cancel(world.streams[kFifo]), "cancel")) {
    for (std::size_t i = first; i < world.step_count; ++i) world.steps[i].cancellable = true;
  }
  gate_open.store(true);
  synchronize(kFifo);
  mix_into(kFifo, {{2, 61}});
  synchronize(kFifo);
}

void write_trace(const char* folder, const char* name) {
  char path[256];
  std::snprintf(path, sizeof path, "%s/%s", folder, name);
  if (took(weir_trace_write(world.runtime, path), "trace_write")) std::remove(path);
}

/// Writes after a while: a caller that does not wait for it finds that out.
weir_status late_kernel(const weir_call* call) {
  for (int i = 0; i < 200; ++i) sched_yield();
  std::memset(call->operands[0].address, 7, call->operands[0].extent[0]);
  return WEIR_STATUS_OK;
}

/// A runtime that ends while things go wrong: its objects wait for the work, then end.
void walk_second_runtime() {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = world.route->virtual_time ? "sim:clock=virtual" : "host:cores=1";
  if (!took(weir_runtime_create(&options, &world.runtime), "second runtime")) return;
  constexpr std::size_t kRoom = 256;
  static unsigned char rooms[2][kRoom];
  weir_place* place = nullptr;
  weir_stream* streams[2] = {};
  weir_buffer* buffers[2] = {};
  weir_kernel* const late = add_kernel("late", late_kernel, WEIR_KERNEL_SHAPE_SERIAL);
  took(weir_place_create(weir_runtime_get_domain(world.runtime, 0), nullptr, &place), "its place");
  for (std::size_t i = 0; i < 2; ++i) {
    std::memset(rooms[i], 0, kRoom);
    if (place != nullptr) took(weir_stream_create(place, nullptr, &streams[i]), "its stream");
    took(weir_buffer_wrap(world.runtime, rooms[i], kRoom, nullptr, &buffers[i]), "its buffer");
    if (streams[i] == nullptr || buffers[i] == nullptr || late == nullptr) continue;
    const weir_operand operand = {buffers[i], weir_region_range(0, kRoom), WEIR_ACCESS_WRITE};
    weir_compute call = WEIR_COMPUTE_INIT;
    call.kernel = late;
    call.operands = &operand;
    call.operand_count = 1;
    took(weir_stream_compute(streams[i], &call, nullptr), "its compute");
    took(weir_stream_download(streams[i], buffers[i], operand.region, nullptr), "its download");
  }
  // The first of each goes by itself, the second with the runtime.
  weir_buffer_destroy(buffers[0]);
  std::memset(rooms[0], 9, kRoom);
  weir_stream_destroy(streams[0]);
  weir_runtime_destroy(world.runtime);
  world.runtime = nullptr;
  std::memset(rooms[1], 9, kRoom);
  sched_yield();
  for (const auto& room : rooms) {
    if (std::count(room, room + kRoom, 9) == kRoom) continue;
    world.report->blame("an action ran after its buffer was destroyed");
  }
  if (released.exchange(0) != world.kernels_registered) {
    world.report->blame("the payload of the second runtime was not released");
  }
  world.kernels_registered = 0;
}

// ---- The oracle --------------------------------------------------------------------------------

enum class Known : std::uint8_t { yes, no, poisoned };

struct Model {
  std::uint64_t words[kMemories][kBuffers][kCells][kWords];
  Known known[kMemories][kBuffers][kCells];
  std::uint8_t poisoner[kMemories][kBuffers][kCells];  ///< stream
};
Model model;

void start_model() {
  std::memset(&model, 0, sizeof model);
  for (std::size_t b = 0; b < kBuffers; ++b) {
    for (std::size_t w = 0; w < kCells * kWords; ++w) {
      model.words[0][b][w / kWords][w % kWords] = initial_word(b, w);
    }
  }
}

template <class Visit>
void each_cell(const Cell& cell, Visit&& visit) {
  const std::size_t first = cell.cell == kWholeBuffer ? 0 : cell.cell;
  const std::size_t last = cell.cell == kWholeBuffer ? kCells : cell.cell + 1u;
  for (std::size_t c = first; c < last; ++c) {
    visit(model.known[cell.memory][cell.buffer][c], model.poisoner[cell.memory][cell.buffer][c],
          model.words[cell.memory][cell.buffer][c]);
  }
}

void apply(const Step& step) {
  if (step.op == Op::none || step.count == 0) return;
  const Cell& out = step.cells[0];
  if (step.op == Op::copy && out.memory == step.cells[1].memory) return;
  auto& target = model.words[out.memory][out.buffer][out.cell];
  const bool copies = step.op == Op::copy;
  bool known = copies || model.known[out.memory][out.buffer][out.cell] == Known::yes;
  for (std::size_t w = 0; w < kWords && !copies; ++w) target[w] = mix(target[w], step.key);
  for (std::size_t i = 1; i < step.count; ++i) {
    const Cell& in = step.cells[i];
    known = known && model.known[in.memory][in.buffer][in.cell] == Known::yes;
    const auto& words = model.words[in.memory][in.buffer][in.cell];
    for (std::size_t w = 0; w < kWords; ++w) {
      target[w] = copies ? words[w] : mix(target[w], words[w]);
    }
  }
  model.known[out.memory][out.buffer][out.cell] = known ? Known::yes : Known::no;
}

/// Whether the action touches what a failed one of its stream was to write.
bool meets_poison(const Step& step) {
  bool meets = false;
  for (std::size_t i = 0; i < step.count; ++i) {
    each_cell(step.cells[i], [&](Known known, std::uint8_t by, auto&) {
      meets = meets || (known == Known::poisoned && by == step.stream);
    });
  }
  return meets;
}

void spoil(const Step& step) {
  if (step.count == 0) return;
  const bool poisons = step.status != WEIR_STATUS_CANCELLED && step.stream != kLoose;
  each_cell(step.cells[0], [&](Known& known, std::uint8_t& by, auto&) {
    known = poisons ? Known::poisoned : Known::no;
    by = step.stream;
  });
}

void heal(std::uint8_t stream) {
  for (std::size_t m = 0; m < kMemories; ++m) {
    for (std::size_t b = 0; b < kBuffers; ++b) {
      for (std::size_t c = 0; c < kCells; ++c) {
        Known& known = model.known[m][b][c];
        if (known == Known::poisoned && model.poisoner[m][b][c] == stream) known = Known::no;
      }
    }
  }
}

/// Whether an action failed because a device did, and says which.
bool is_of_device(const weir_event_info& info) {
  return world.route->breaks && info.status == WEIR_STATUS_DEVICE_ERROR &&
         std::strstr(info.message, "domain 'sim:") != nullptr;
}

/// A synchronise tells of the first failure; when it has no memory itself, the next one does.
void replay_drain(std::size_t number, const Step& step, weir_status& failed) {
  if (step.status == WEIR_STATUS_OK && failed != WEIR_STATUS_OK) {
    world.report->blame("step %zu: a synchronise of stream %u kept a failure to itself", number,
                        step.stream);
  }
  const bool unreported = !step.of_all && failed == WEIR_STATUS_KERNEL_ERROR &&
                          step.status == WEIR_STATUS_OUT_OF_MEMORY;
  if (!unreported) failed = WEIR_STATUS_OK;
  heal(step.stream);
}

/// `failed` is the first failure of each stream that no synchronise has told of.
void replay(std::size_t number, Step& step, weir_status (&failed)[kStreams]) {
  Report& report = *world.report;
  if (step.op == Op::drain) {
    replay_drain(number, step, failed[step.stream]);
    return;
  }
  weir_event_info info = WEIR_EVENT_INFO_INIT;
  took(weir_event_get_info(world.runtime, &step.event, &info), "event_get_info in the end");
  if (!info.complete) report.blame("step %zu of stream %u is not complete", number, step.stream);
  step.status = info.status;
  if (info.status == WEIR_STATUS_OK) {
    if (step.fails) report.blame("step %zu was to fail and did not", number);
    if (meets_poison(step)) report.blame("step %zu ran after a failure it depends on", number);
    apply(step);
    return;
  }
  if (info.message[0] == '\0') report.blame("step %zu failed without a message", number);
  const bool allowed =
      info.status == WEIR_STATUS_OUT_OF_MEMORY || info.status == WEIR_STATUS_POISONED ||
      (info.status == WEIR_STATUS_KERNEL_ERROR && step.fails) ||
      (info.status == WEIR_STATUS_CANCELLED && step.cancellable) || is_of_device(info);
  if (!allowed) {
    report.blame("step %zu of stream %u: %s: %s", number, step.stream,
                 weir_status_name(info.status), info.message);
  }
  if (info.status == WEIR_STATUS_OUT_OF_MEMORY) ++report.errors;
  if (info.status == WEIR_STATUS_DEVICE_ERROR) ++report.device_errors;
  const bool counts = info.status != WEIR_STATUS_CANCELLED && !step.silent;
  if (counts && failed[step.stream] == WEIR_STATUS_OK) failed[step.stream] = info.status;
  spoil(step);
}

void compare_contents() {
  for (std::size_t b = 0; b < kBuffers; ++b) {
    if (world.buffers[b] == nullptr) continue;
    for (std::size_t c = 0; c < kCells; ++c) {
      if (model.known[0][b][c] != Known::yes) continue;
      const std::uint64_t* const found = world.data[b] + c * kWords;
      if (std::equal(found, found + kWords, model.words[0][b][c])) continue;
      world.report->blame("cell %zu of buffer %zu does not hold what the statuses promise", c, b);
      return;
    }
  }
}

/// A job that has nothing to do with the walk.
void small_job(const Route& route, Report& report, weir_runtime* runtime, const char* call) {
  const unsigned before = report.errors;
  static std::uint64_t numbers[kWords];
  std::fill(std::begin(numbers), std::end(numbers), 3);
  weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
  options.core_count = 1;
  options.oversubscribe = true;
  weir_place* place = nullptr;
  weir_stream* stream = nullptr;
  weir_buffer* buffer = nullptr;
  const std::size_t last = weir_runtime_domain_count(runtime) - 1;
  weir_domain* const domain = weir_runtime_get_domain(runtime, std::min(last, route.sound_domain));
  const weir_region all = weir_region_range(0, sizeof numbers);
  const weir_scalar byte = weir_scalar_i64(1);
  bool done =
      faults::took(route, report, weir_place_create(domain, &options, &place), call) &&
      faults::took(route, report, weir_stream_create(place, nullptr, &stream), call) &&
      faults::took(route, report,
                   weir_buffer_wrap(runtime, numbers, sizeof numbers, nullptr, &buffer), call);
  if (done) {
    const weir_operand operand = {buffer, weir_region_range(8, 8), WEIR_ACCESS_WRITE};
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel_name = "mem.set";
    compute.operands = &operand;
    compute.operand_count = 1;
    compute.scalars = &byte;
    compute.scalar_count = 1;
    done = faults::took(route, report, weir_stream_upload(stream, buffer, all, nullptr), call) &&
           faults::took(route, report, weir_stream_compute(stream, &compute, nullptr), call) &&
           faults::took(route, report, weir_stream_download(stream, buffer, all, nullptr), call) &&
           faults::took(route, report, weir_stream_synchronize(stream, kLong), call);
  }
  if (!done || report.errors != before) report.blame("%s failed", call);
  for (std::size_t w = 0; done && w < kWords; ++w) {
    if (numbers[w] != (w == 1 ? UINT64_C(0x0101010101010101) : 3)) {
      report.blame("%s: word %zu is wrong", call, w);
      break;
    }
  }
  weir_buffer_destroy(buffer);
  weir_stream_destroy(stream);
  weir_place_destroy(place);
}

void finish_program(const Route& route, Report& report) {
  for (std::uint8_t stream = 0; stream < kStreams; ++stream) {
    synchronize(static_cast<StreamName>(stream), only(WEIR_STATUS_KERNEL_ERROR));
  }
  start_model();
  weir_status failed[kStreams] = {};
  for (std::size_t i = 0; i < world.step_count; ++i) replay(i, world.steps[i], failed);
  compare_contents();
  if (world.callbacks_seen.load() != world.callbacks_wanted) {
    report.blame("%u of %u callbacks came", world.callbacks_seen.load(), world.callbacks_wanted);
  }
  if (route.breaks) {  // faults that a device still has in store hit jobs that do not count
    static Report scratch;
    const bool broke = report.errors + report.device_errors > 0;
    for (int jobs = broke ? 1 : 16; jobs > 0; --jobs) {
      small_job(route, scratch, world.runtime, "a job that may fail");
    }
  }
  small_job(route, report, world.runtime, "a small job with the same runtime");
  weir_runtime_destroy(world.runtime);
  if (released.load() != world.kernels_registered) {
    report.blame("%u of %u payloads were released", released.load(), world.kernels_registered);
  }
}

}  // namespace

void walk(const Route& route, const char* folder, Report& report) {
  world.route = &route;
  world.report = &report;
  world.runtime = nullptr;
  world.step_count = 0;
  world.callbacks_wanted = world.kernels_registered = 0;
  world.callbacks_seen.store(0);
  released.store(0);
  gate_open.store(true);
  for (auto& place : world.places) place = nullptr;
  for (auto& stream : world.streams) stream = nullptr;
  for (auto& buffer : world.buffers) buffer = nullptr;
  walk_second_runtime();
  if (!open_runtime()) return;
  ask_runtime();
  took(weir_trace_start(world.runtime, 1 << 20), "trace_start");
  add_kernels();
  make_buffers();
  adopt_memory();
  make_places();
  make_streams();
  walk_long_chain();
  walk_events();
  walk_evictions();
  walk_team();
  walk_failures();
  walk_cancel();
  took(weir_trace_stop(world.runtime), "trace_stop");
  weir_trace_summary summary = WEIR_TRACE_SUMMARY_INIT;
  took(weir_trace_summarize(world.runtime, &summary), "trace_summarize");
  write_trace(folder, "walk.json");
  write_trace(folder, "walk.pftrace");
  ask_runtime();
}

void finish(const Route& route, Report& report) {
  if (world.runtime != nullptr) finish_program(route, report);
  finish_anew(route, report);
}

void finish_anew(const Route& route, Report& report) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = route.virtual_time ? "sim:clock=virtual" : "host:cores=1";
  weir_runtime* fresh = nullptr;
  if (!took(route, report, weir_runtime_create(&options, &fresh), "a new runtime")) {
    report.blame("a new runtime cannot be had");
    return;
  }
  small_job(route, report, fresh, "a small job with a new runtime");
  weir_runtime_destroy(fresh);
}

}  // namespace faults
