#include "fake_cuda.h"

#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>
#include <weir/kernel.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kGroups = 4, kGroupSize = 8;
constexpr unsigned kStaticShared = 48 << 10, kMostShared = 227 << 10;

struct Device {
  CUresult lost = CUDA_SUCCESS;
  unsigned retained = 0;
  std::size_t used = 0;
};

struct Context {
  int device = 0;
  unsigned groups = (1u << kGroups) - 1;             // bits
  std::map<std::thread::id, unsigned> current = {};  // how often, in each thread
};

struct Record {
  bool over = false;
  Clock::time_point when;
};

struct Event {
  Context* context = nullptr;
  bool timed = false;
  std::shared_ptr<Record> record;
};

using Commands = std::deque<std::function<void()>>;

struct Graph {
  Commands commands;
};

struct Stream {
  Context* context = nullptr;
  Commands commands;                // the first is in flight
  std::unique_ptr<Graph> captured;  // what is enqueued goes here
  bool leaving = false;
  std::thread thread;
};

struct Allocation {
  std::size_t bytes = 0;
  int device = -1;       // -1: of the host
  bool leaving = false;  // when its stream gets there
};

struct Pool {
  int device = 0;
};

struct Kernel {
  std::string parameters;
  fake_cuda_run run = nullptr;
  unsigned units = 0, most_dynamic = kStaticShared;  // of the parameters, and bytes that it shares
};

struct Code {
  std::string text;
  bool compiled = false;
  void* library = nullptr;  // what the compiler of the host made of it
  std::map<std::string, Kernel> kernels = {};
};

struct Fault {
  std::string name;
  unsigned long left = 0;
  CUresult code = CUDA_SUCCESS;
};

std::size_t number_from(const char* variable, std::size_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

struct World {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Device> devices{number_from("FAKE_CUDA_DEVICES", 2)};
  std::vector<Context> primary = std::vector<Context>(devices.size());
  std::size_t memory = number_from("FAKE_CUDA_MEMORY", std::size_t{1} << 30);
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Context*> greens;
  std::set<Code*> codes;
  std::set<Graph*> graphs;
  std::map<std::byte*, Allocation> allocations;
  std::map<std::string, Kernel> kernels;
  std::map<std::string, unsigned long> calls;
  std::vector<Fault> faults;
  std::vector<std::unique_ptr<std::vector<unsigned>>> descriptions;
  unsigned long launches_left = 0;
  CUresult launch_code = CUDA_SUCCESS;
  bool held = false;
  unsigned long depth = 0, misuses = 0, running = 0, most = 0, last_groups = 0;
  unsigned long last_shared = 0;

  World() {
    for (std::size_t i = 0; i < primary.size(); ++i) primary[i].device = static_cast<int>(i);
  }
};

World& world() {
  static World* const made = new World;  // outlives the threads of all
  return *made;
}

using Lock = std::unique_lock<std::mutex>;

/// A context becomes one of the thread's, or is one no more.
void hold_context(Context* context) {
  if (context == nullptr) return;
  ++context->current[std::this_thread::get_id()];
  // There is no lock in a green context.
  if (context->current.size() > 1 && world().greens.contains(context)) ++world().misuses;
}
void drop_context(Context* context) {
  const auto is_it = [&](const Context& primary) { return &primary == context; };
  const auto& primaries = world().primary;
  const bool lives =
      world().greens.contains(context) || std::any_of(primaries.begin(), primaries.end(), is_it);
  if (!lives) return;
  const auto mine = context->current.find(std::this_thread::get_id());
  if (mine != context->current.end() && --mine->second == 0) context->current.erase(mine);
}

/// The contexts of a thread, which it releases when it ends.
struct Current : std::vector<Context*> {
  ~Current() {
    const Lock lock(world().mutex);
    for (Context* context : *this) drop_context(context);
  }
};
thread_local Current current;
thread_local bool in_host_function = false;

bool is_sticky(CUresult code) {
  return code == CUDA_ERROR_ECC_UNCORRECTABLE || code == CUDA_ERROR_NVLINK_UNCORRECTABLE ||
         (code >= CUDA_ERROR_ILLEGAL_ADDRESS && code <= CUDA_ERROR_LAUNCH_FAILED &&
          code != CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

int device_now() { return current.empty() ? -1 : current.back()->device; }

void lose(int device, CUresult code) {
  if (device < 0 || world().devices[static_cast<std::size_t>(device)].lost != CUDA_SUCCESS) return;
  world().devices[static_cast<std::size_t>(device)].lost = code;
  world().changed.notify_all();
}

CUresult misuse(CUresult code) {
  ++world().misuses;
  return code;
}

/// What every entry point does first, under the lock: counts, fails as requested, or since it must.
CUresult enter(const std::string& function, int device) {
  const std::string name = function.substr(0, function.find('_'));  // without the "_v2" of cuda.h
  ++world().calls[name];
  if (in_host_function) return misuse(CUDA_ERROR_NOT_PERMITTED);
  CUresult code = CUDA_SUCCESS;
  for (Fault& fault : world().faults) {
    if (fault.name == name && fault.left > 0 && --fault.left == 0) code = fault.code;
  }
  if (is_sticky(code)) lose(device, code);
  if (code != CUDA_SUCCESS) return code;
  return device >= 0 ? world().devices[static_cast<std::size_t>(device)].lost : CUDA_SUCCESS;
}

#define ENTER(device)             \
  const Lock lock(world().mutex); \
  if (const CUresult code = enter(__func__, device); code != CUDA_SUCCESS) return code
#define ENTER_HERE() ENTER(device_now())

Stream* stream_of(CUstream handle) {
  auto* const stream = reinterpret_cast<Stream*>(handle);
  return world().streams.contains(stream) ? stream : nullptr;
}
Event* event_of(CUevent handle) {
  auto* const event = reinterpret_cast<Event*>(handle);
  return world().events.contains(event) ? event : nullptr;
}

#define ENTER_STREAM(handle)                                                                \
  const Lock lock(world().mutex);                                                           \
  Stream* const stream = stream_of(handle);                                                 \
  if (stream == nullptr) return misuse(CUDA_ERROR_INVALID_HANDLE);                          \
  if (const CUresult code = enter(__func__, stream->context->device); code != CUDA_SUCCESS) \
  return code

/// Returns whether a device may touch all of these bytes.
bool reachable(const void* address, std::size_t bytes, int device) {
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(address));
  auto found = world().allocations.upper_bound(begin);
  if (found == world().allocations.begin()) return false;
  --found;
  return begin + bytes <= found->first + found->second.bytes &&
         (found->second.device == device || found->second.device == -1);
}

/// The same of any device.
bool on_a_card(const void* address, std::size_t bytes) {
  for (int device = 0; device < static_cast<int>(world().devices.size()); ++device) {
    if (reachable(address, bytes, device)) return true;
  }
  return false;
}

bool lost(const Context& context) {
  return world().devices[static_cast<std::size_t>(context.device)].lost != CUDA_SUCCESS;
}

void run_stream(Stream* stream) {
  Lock lock(world().mutex);
  for (;;) {
    world().changed.wait(lock, [&] {
      const bool goes = !world().held || stream->leaving || lost(*stream->context);
      return (stream->leaving && stream->commands.empty()) || (goes && !stream->commands.empty());
    });
    if (stream->commands.empty()) return;
    if (!lost(*stream->context)) {
      const std::function<void()>& command = stream->commands.front();
      lock.unlock();
      command();
      lock.lock();
    }
    std::function<void()> over = std::move(stream->commands.front());
    stream->commands.pop_front();
    world().changed.notify_all();
  }
}

void push(Stream* stream, std::function<void()> command) {
  if (stream->captured != nullptr) {
    stream->captured->commands.push_back(std::move(command));
    return;
  }
  stream->commands.push_back(std::move(command));
  world().depth = std::max<unsigned long>(world().depth, stream->commands.size());
  world().changed.notify_all();
}

/// A copy or the like, which breaks the context when a device's end is not in its memory.
CUresult push_bytes(Stream* stream, std::function<bool()> sound, std::function<void()> command) {
  push(stream, [=] {
    {
      const Lock lock(world().mutex);
      if (!sound()) {
        ++world().misuses;
        lose(stream->context->device, CUDA_ERROR_ILLEGAL_ADDRESS);
        return;
      }
    }
    command();
  });
  return CUDA_SUCCESS;
}

/// Enqueues a kernel, whose groups run(code, groups, count, arguments) runs.
template <class Run>
void push_launch(Stream* stream, CUfunction function, std::array<std::uint32_t, 3> grid,
                 void** parameters, Run run) {
  const auto* const kernel = reinterpret_cast<const Kernel*>(function);
  auto values = std::make_shared<std::vector<std::uint64_t>>(kernel->parameters.size());
  for (std::size_t i = 0; i < values->size(); ++i) {
    const char letter = kernel->parameters[i];
    const bool half = letter == 'i' || letter == 'u' || letter == 'f';
    std::memcpy(&(*values)[i], parameters[i], half ? 4 : 8);
  }
  const bool breaks = world().launches_left > 0 && --world().launches_left == 0;
  const CUresult code = world().launch_code;
  const fake_cuda_run code_of_kernel = kernel->run;
  push(stream, [=] {
    {
      const Lock lock(world().mutex);
      if (breaks) return lose(stream->context->device, code);
      world().last_groups = stream->context->groups;
      world().most = std::max(world().most, ++world().running);
    }
    std::vector<void*> arguments;
    for (std::uint64_t& value : *values) arguments.push_back(&value);
    run(code_of_kernel, grid.data(), std::uint64_t{grid[0]} * grid[1] * grid[2], arguments.data());
    const Lock lock(world().mutex);
    --world().running;
  });
}

CUresult make_stream(CUstream* out, Context* context) {
  auto* const stream = new Stream;
  stream->context = context;
  stream->thread = std::thread(run_stream, stream);
  world().streams.insert(stream);
  *out = reinterpret_cast<CUstream>(stream);
  return CUDA_SUCCESS;
}

/// Compiles a text in the portable dialect for the host, each kernel with a variable that tells of
/// it. Returns nullptr when that fails; the compiler has said why.
void* compile(const std::string& text) {
  std::string folder = (std::getenv("TMPDIR") != nullptr ? std::getenv("TMPDIR") : "/tmp");
  folder += "/fake_cuda.XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return nullptr;
  const std::string source = folder + "/code.cpp", library = folder + "/code.so";
  std::ofstream(source) << R"(#include <weir/portable.h>
#undef WEIR_KERNEL
#define WEIR_KERNEL(name, X, Y, Z, ...)                                       \
  namespace {                                                                 \
  struct weir_body_of_##name : ::weir::portable::Group<(X), (Y), (Z)> {       \
    template <bool weir_backwards_>                                           \
    static void run(const ::weir::portable::Position& weir_at_, __VA_ARGS__); \
  };                                                                          \
  }                                                                           \
  extern "C" {                                                                \
  extern const ::weir_portable_kernel weir_kernel_##name;                     \
  const ::weir_portable_kernel weir_kernel_##name =                           \
      ::weir::portable::describe<weir_body_of_##name>(#name);                 \
  }                                                                           \
  template <bool weir_backwards_>                                             \
  void weir_body_of_##name::run(const ::weir::portable::Position& weir_at_, __VA_ARGS__)
)" << text;
  const std::string command = FAKE_CUDA_COMPILER
                              " -std=c++20 -O1 -fPIC -shared " FAKE_CUDA_FRAME_LIMIT
                              " -I" FAKE_CUDA_INCLUDE " -o " +
                              library + " " + source;
  void* const opened =
      std::system(command.c_str()) == 0 ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  for (const std::string& made : {source, library}) std::remove(made.c_str());
  rmdir(folder.c_str());
  return opened;
}

/// Returns the kernel of a text that the text has under its full name, or that a macro of it makes.
const Kernel* find_kernel(Code& code, const std::string& name) {
  constexpr std::string_view kTeller = "weir_large_of_";
  if (name.starts_with(kTeller)) {
    const std::string call = "WEIR_LARGE_BYTES(" + name.substr(kTeller.size()) + ", ";
    const std::size_t at = code.text.find(call);
    if (at == std::string::npos) return nullptr;
    const auto bytes = std::strtoul(code.text.c_str() + at + call.size(), nullptr, 10);
    return &(code.kernels[name] = {"", nullptr, static_cast<unsigned>(bytes + 63) / 64});
  }
  const auto taught = world().kernels.find(name);
  if (taught != world().kernels.end() && code.text.find(name) != std::string::npos) {
    return &taught->second;
  }
  if (code.text.find(".entry " + name + "()") !=
      std::string::npos) {  // PTX of one that does nothing
    return &(code.kernels[name] = {
                 "", [](const std::uint32_t*, std::uint64_t, std::uint64_t, void* const*) {}});
  }
  const std::size_t text = code.text.rfind("#line 1 ");  // behind the header of the dialect
  const bool portable = code.text.find("WEIR_KERNEL", text) != std::string::npos;
  if (portable && !std::exchange(code.compiled, true)) code.library = compile(code.text.substr(4));
  if (code.library == nullptr) return nullptr;
  const auto* const found = static_cast<const weir_portable_kernel*>(
      dlsym(code.library, ("weir_kernel_" + name).c_str()));
  if (found == nullptr) return nullptr;
  return &(code.kernels[name] = {found->parameters, found->run});
}

std::byte* bytes_at(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }

CUresult allocate(CUdeviceptr* address, std::size_t bytes, int device) {
  Device& mine = world().devices[static_cast<std::size_t>(device)];
  if (bytes > world().memory - mine.used) return CUDA_ERROR_OUT_OF_MEMORY;
  auto* const made = static_cast<std::byte*>(std::malloc(bytes));
  std::memset(made, 0xdb, bytes);  // no caller may count on zeros
  mine.used += bytes;
  world().allocations[made] = {bytes, device};
  *address = reinterpret_cast<CUdeviceptr>(made);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

void fake_cuda_register_kernel(const char* entry, const char* parameters, fake_cuda_run run) {
  const Lock lock(world().mutex);
  world().kernels[entry] = {parameters, run};
}
void fake_cuda_reset() {
  const Lock lock(world().mutex);
  world().calls.clear();
  world().faults.clear();
  world().launches_left = 0;
  world().held = false;
  world().depth = world().misuses = world().most = 0;
  world().changed.notify_all();
}
unsigned long fake_cuda_calls(const char* name) {
  const Lock lock(world().mutex);
  const auto found = world().calls.find(name);
  return found == world().calls.end() ? 0 : found->second;
}
void fake_cuda_fail(const char* name, unsigned long n, int code) {
  const Lock lock(world().mutex);
  world().faults.push_back({name, n, static_cast<CUresult>(code)});
}
void fake_cuda_break_launch(unsigned long n, int code) {
  const Lock lock(world().mutex);
  world().launches_left = n;
  world().launch_code = static_cast<CUresult>(code);
}
void fake_cuda_hold(int held) {
  const Lock lock(world().mutex);
  world().held = held != 0;
  world().changed.notify_all();
}
unsigned long fake_cuda_depth() {
  const Lock lock(world().mutex);
  return world().depth;
}
unsigned long fake_cuda_misuses() {
  const Lock lock(world().mutex);
  return world().misuses;
}
unsigned long fake_cuda_objects() {
  const Lock lock(world().mutex);
  return world().streams.size() + world().events.size() + world().allocations.size() +
         world().codes.size() + world().greens.size() + world().graphs.size();
}
unsigned long fake_cuda_most_at_once() {
  const Lock lock(world().mutex);
  return world().most;
}
unsigned long fake_cuda_last_groups() {
  const Lock lock(world().mutex);
  return world().last_groups;
}

unsigned long fake_cuda_last_shared() {
  const Lock lock(world().mutex);
  return world().last_shared;
}

// The driver: what every program asks.

CUresult cuInit(unsigned) {
  const Lock lock(world().mutex);
  if (const CUresult code = enter("cuInit", -1); code != CUDA_SUCCESS) return code;
  return world().devices.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult error, const char** text) {
  switch (error) {
    case CUDA_ERROR_INVALID_VALUE: *text = "CUDA_ERROR_INVALID_VALUE"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_NO_DEVICE: *text = "CUDA_ERROR_NO_DEVICE"; break;
    case CUDA_ERROR_INVALID_HANDLE: *text = "CUDA_ERROR_INVALID_HANDLE"; break;
    case CUDA_ERROR_NOT_FOUND: *text = "CUDA_ERROR_NOT_FOUND"; break;
    case CUDA_ERROR_ILLEGAL_ADDRESS: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES: *text = "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"; break;
    case CUDA_ERROR_LAUNCH_FAILED: *text = "CUDA_ERROR_LAUNCH_FAILED"; break;
    case CUDA_ERROR_ECC_UNCORRECTABLE: *text = "CUDA_ERROR_ECC_UNCORRECTABLE"; break;
    case CUDA_ERROR_NOT_SUPPORTED: *text = "CUDA_ERROR_NOT_SUPPORTED"; break;
    default: *text = nullptr; return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "as the test wants it";
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = static_cast<int>(world().devices.size());
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice) {
  switch (what) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = kGroups * kGroupSize; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = kMostShared; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS: *value = 1; break;
    default: return misuse(CUDA_ERROR_INVALID_VALUE);
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice one, CUdevice other) {
  *can = one != other;
  return CUDA_SUCCESS;
}

// Contexts.

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  ENTER(-1);
  const auto index = static_cast<std::size_t>(device);
  ++world().devices[index].retained;
  *context = reinterpret_cast<CUcontext>(&world().primary[index]);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  const Lock lock(world().mutex);
  Device& mine = world().devices[static_cast<std::size_t>(device)];
  if (mine.retained == 0) return misuse(CUDA_ERROR_INVALID_CONTEXT);
  if (--mine.retained > 0) return CUDA_SUCCESS;
  if (mine.lost != CUDA_SUCCESS) {  // the next context is a new one
    std::erase_if(world().allocations, [&](const auto& entry) {
      if (entry.second.device != device) return false;
      std::free(entry.first);
      return true;
    });
    mine = {};
  }
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  const Lock lock(world().mutex);
  hold_context(reinterpret_cast<Context*>(context));
  current.push_back(reinterpret_cast<Context*>(context));
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  const Lock lock(world().mutex);
  if (current.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = reinterpret_cast<CUcontext>(current.back());
  drop_context(current.back());
  current.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxSetCurrent(CUcontext context) {
  const Lock lock(world().mutex);
  if (!current.empty()) {
    drop_context(current.back());
    current.pop_back();
  }
  if (context == nullptr) return CUDA_SUCCESS;
  hold_context(reinterpret_cast<Context*>(context));
  current.push_back(reinterpret_cast<Context*>(context));
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type) {
  ENTER(device);
  *resource = {};
  resource->type = type;
  resource->sm = {kGroups * kGroupSize, kGroupSize, kGroupSize};
  return CUDA_SUCCESS;
}
CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* count,
                                     const CUdevResource* input, CUdevResource*, unsigned,
                                     unsigned least) {
  ENTER(-1);
  if (least % kGroupSize != 0 || input->sm.smCount != kGroups * kGroupSize) {
    return misuse(CUDA_ERROR_INVALID_VALUE);
  }
  *count = std::min(*count, kGroups);
  for (unsigned i = 0; i < *count; ++i) {
    result[i] = {};
    result[i].type = CU_DEV_RESOURCE_TYPE_SM;
    result[i].sm = {kGroupSize, kGroupSize, kGroupSize};
    result[i]._internal_padding[0] = static_cast<unsigned char>(i);
  }
  return CUDA_SUCCESS;
}
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources,
                                   unsigned count) {
  ENTER(-1);
  auto& made = world().descriptions.emplace_back(std::make_unique<std::vector<unsigned>>());
  for (unsigned i = 0; i < count; ++i) made->push_back(resources[i]._internal_padding[0]);
  *description = reinterpret_cast<CUdevResourceDesc>(made.get());
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc description, CUdevice device,
                          unsigned flags) {
  ENTER(device);
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return misuse(CUDA_ERROR_INVALID_VALUE);
  auto* const made = new Context{.device = device, .groups = 0};
  for (unsigned group : *reinterpret_cast<std::vector<unsigned>*>(description)) {
    made->groups |= 1u << group;
  }
  world().greens.insert(made);
  *green = reinterpret_cast<CUgreenCtx>(made);
  return CUDA_SUCCESS;
}
CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  const Lock lock(world().mutex);
  auto* const mine = reinterpret_cast<Context*>(green);
  if (world().greens.erase(mine) == 0) return misuse(CUDA_ERROR_INVALID_HANDLE);
  delete mine;
  return CUDA_SUCCESS;
}
CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  *context = reinterpret_cast<CUcontext>(green);
  return CUDA_SUCCESS;
}

// Memory.

CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  ENTER_HERE();
  *total = world().memory;
  *free = *total - world().devices[static_cast<std::size_t>(device_now())].used;
  return CUDA_SUCCESS;
}
CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  ENTER(properties->location.id);
  *pool = reinterpret_cast<CUmemoryPool>(new Pool{properties->location.id});
  return CUDA_SUCCESS;
}
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  delete reinterpret_cast<Pool*>(pool);
  return CUDA_SUCCESS;
}
CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void*) { return CUDA_SUCCESS; }
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc*, std::size_t) {
  ENTER(reinterpret_cast<Pool*>(pool)->device);
  return CUDA_SUCCESS;
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool,
                                 CUstream handle) {
  ENTER_STREAM(handle);
  return allocate(address, bytes, reinterpret_cast<Pool*>(pool)->device);
}
CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream handle) {
  ENTER_STREAM(handle);
  return allocate(address, bytes, stream->context->device);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  ENTER_STREAM(handle);
  const auto found = world().allocations.find(bytes_at(address));
  if (found == world().allocations.end() || found->second.leaving) {
    return misuse(CUDA_ERROR_INVALID_VALUE);
  }
  world().devices[static_cast<std::size_t>(found->second.device)].used -= found->second.bytes;
  found->second.leaving = true;
  push(stream, [memory = found->first] {
    const Lock inner(world().mutex);
    world().allocations.erase(memory);
    std::free(memory);
  });
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  ENTER_HERE();
  if (current.empty()) return misuse(CUDA_ERROR_INVALID_CONTEXT);
  return allocate(address, bytes, device_now());
}
CUresult cuMemFree(CUdeviceptr address) {
  const Lock lock(world().mutex);
  const auto found = world().allocations.find(bytes_at(address));
  if (current.empty() || found == world().allocations.end() || found->second.leaving) {
    return misuse(CUDA_ERROR_INVALID_VALUE);
  }
  world().devices[static_cast<std::size_t>(found->second.device)].used -= found->second.bytes;
  std::free(found->first);
  world().allocations.erase(found);
  return CUDA_SUCCESS;
}
CUresult cuMemHostAlloc(void** address, std::size_t bytes, unsigned) {
  ENTER_HERE();
  if (current.empty()) return misuse(CUDA_ERROR_INVALID_CONTEXT);
  *address = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  world().allocations[static_cast<std::byte*>(*address)] = {bytes, -1};
  return CUDA_SUCCESS;
}
CUresult cuMemFreeHost(void* address) {
  const Lock lock(world().mutex);
  if (current.empty()) return misuse(CUDA_ERROR_INVALID_CONTEXT);
  if (world().allocations.erase(static_cast<std::byte*>(address)) == 0) {
    return misuse(CUDA_ERROR_INVALID_VALUE);
  }
  std::free(address);
  return CUDA_SUCCESS;
}
CUresult cuMemHostRegister(void* address, std::size_t bytes, unsigned) {
  ENTER_HERE();
  if (current.empty()) return misuse(CUDA_ERROR_INVALID_CONTEXT);
  auto* const begin = static_cast<std::byte*>(address);
  const auto next = world().allocations.lower_bound(begin + bytes);
  if (next != world().allocations.begin()) {
    const auto& [start, before] = *std::prev(next);
    if (start + before.bytes > begin) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  world().allocations[begin] = {bytes, -1};
  return CUDA_SUCCESS;
}
CUresult cuMemHostUnregister(void* address) {
  const Lock lock(world().mutex);
  if (current.empty()) return misuse(CUDA_ERROR_INVALID_CONTEXT);
  if (world().allocations.erase(static_cast<std::byte*>(address)) == 0) {
    return misuse(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  }
  return CUDA_SUCCESS;
}
CUresult cuMemHostGetDevicePointer(CUdeviceptr* there, void* here, unsigned) {
  ENTER_HERE();
  *there = reinterpret_cast<CUdeviceptr>(here);
  return CUDA_SUCCESS;
}
CUresult cuPointerGetAttribute(void* data, CUpointer_attribute what, CUdeviceptr address) {
  ENTER_HERE();
  auto found = world().allocations.upper_bound(bytes_at(address));
  if (found == world().allocations.begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto& [begin, allocation] = *--found;
  if (begin + allocation.bytes <= bytes_at(address)) return CUDA_ERROR_INVALID_VALUE;
  switch (what) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<CUmemorytype*>(data) =
          allocation.device < 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = allocation.device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = reinterpret_cast<CUdeviceptr>(begin);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(data) = allocation.bytes;
      return CUDA_SUCCESS;
    default: return misuse(CUDA_ERROR_INVALID_VALUE);
  }
}

// What goes into streams.

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t bytes,
                         CUstream handle) {
  ENTER_STREAM(handle);
  const int device = stream->context->device;
  return push_bytes(
      stream, [=] { return reachable(bytes_at(address), bytes, device); },
      [=] { std::memset(bytes_at(address), value, bytes); });
}
CUresult cuMemsetD2D8Async(CUdeviceptr address, std::size_t pitch, unsigned char value,
                           std::size_t width, std::size_t height, CUstream handle) {
  ENTER_STREAM(handle);
  if (pitch < width) return misuse(CUDA_ERROR_INVALID_VALUE);
  const int device = stream->context->device;
  const std::size_t span = (height - 1) * pitch + width;
  return push_bytes(
      stream, [=] { return reachable(bytes_at(address), span, device); },
      [=] {
        for (std::size_t row = 0; row < height; ++row) {
          std::memset(bytes_at(address) + row * pitch, value, width);
        }
      });
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void* source, std::size_t bytes,
                           CUstream handle) {
  ENTER_STREAM(handle);
  if (!reachable(source, bytes, -1)) return misuse(CUDA_ERROR_INVALID_VALUE);  // would block
  const int device = stream->context->device;
  return push_bytes(
      stream, [=] { return reachable(bytes_at(target), bytes, device); },
      [=] { std::memcpy(bytes_at(target), source, bytes); });
}
CUresult cuMemcpyDtoHAsync(void* target, CUdeviceptr source, std::size_t bytes, CUstream handle) {
  ENTER_STREAM(handle);
  if (!reachable(target, bytes, -1)) return misuse(CUDA_ERROR_INVALID_VALUE);
  const int device = stream->context->device;
  return push_bytes(
      stream, [=] { return reachable(bytes_at(source), bytes, device); },
      [=] { std::memcpy(target, bytes_at(source), bytes); });
}
CUresult cuMemcpyHtoD(CUdeviceptr target, const void* source, std::size_t bytes) {
  ENTER_HERE();
  if (!reachable(bytes_at(target), bytes, device_now())) return misuse(CUDA_ERROR_INVALID_VALUE);
  std::memcpy(bytes_at(target), source, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoH(void* target, CUdeviceptr source, std::size_t bytes) {
  ENTER_HERE();
  if (!reachable(bytes_at(source), bytes, device_now())) return misuse(CUDA_ERROR_INVALID_VALUE);
  std::memcpy(target, bytes_at(source), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, std::size_t bytes,
                           CUstream handle) {
  ENTER_STREAM(handle);
  return push_bytes(
      stream,
      [=] { return on_a_card(bytes_at(source), bytes) && on_a_card(bytes_at(target), bytes); },
      [=] { std::memcpy(bytes_at(target), bytes_at(source), bytes); });
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* given, CUstream handle) {
  ENTER_STREAM(handle);
  const CUDA_MEMCPY2D copy = *given;
  if (copy.srcPitch < copy.WidthInBytes || copy.dstPitch < copy.WidthInBytes) {
    return misuse(CUDA_ERROR_INVALID_VALUE);
  }
  const bool from_host = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
  const bool to_host = copy.dstMemoryType == CU_MEMORYTYPE_HOST;
  const std::byte* const source =
      from_host ? static_cast<const std::byte*>(copy.srcHost) : bytes_at(copy.srcDevice);
  std::byte* const target =
      to_host ? static_cast<std::byte*>(copy.dstHost) : bytes_at(copy.dstDevice);
  const auto span = [&](std::size_t pitch) {
    return (copy.Height - 1) * pitch + copy.WidthInBytes;
  };
  const std::size_t read = span(copy.srcPitch), written = span(copy.dstPitch);
  if ((from_host && !reachable(source, read, -1)) || (to_host && !reachable(target, written, -1))) {
    return misuse(CUDA_ERROR_INVALID_VALUE);
  }
  return push_bytes(
      stream, [=] { return on_a_card(source, read) && on_a_card(target, written); },
      [=] {
        for (std::size_t row = 0; row < copy.Height; ++row) {
          std::memcpy(target + row * copy.dstPitch, source + row * copy.srcPitch,
                      copy.WidthInBytes);
        }
      });
}
CUresult cuStreamWriteValue64(CUstream handle, CUdeviceptr address, cuuint64_t value, unsigned) {
  ENTER_STREAM(handle);
  if (!reachable(bytes_at(address), 8, -1)) return misuse(CUDA_ERROR_INVALID_VALUE);
  push(stream,
       [=] { __atomic_store_n(reinterpret_cast<cuuint64_t*>(address), value, __ATOMIC_SEQ_CST); });
  return CUDA_SUCCESS;
}
CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* data) {
  ENTER_STREAM(handle);
  push(stream, [=] {
    in_host_function = true;
    function(data);
    in_host_function = false;
  });
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int threads,
                                                     std::size_t) {
  ENTER_HERE();
  if (current.empty() || threads > 1024) return misuse(CUDA_ERROR_INVALID_VALUE);
  *blocks = 1;
  return CUDA_SUCCESS;
}
/// Groups run at the same time, each on a thread: there may be as many as multiprocessors.
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned x, unsigned y, unsigned z,
                                   unsigned group_x, unsigned group_y, unsigned group_z, unsigned,
                                   CUstream handle, void** parameters) {
  ENTER_STREAM(handle);
  const auto room = kGroupSize * static_cast<unsigned>(__builtin_popcount(stream->context->groups));
  if (x * y * z == 0 || group_x * group_y * group_z > 1024) return CUDA_ERROR_INVALID_VALUE;
  if (x * y * z > room) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  push_launch(stream, function, {x, y, z}, parameters,
              [](fake_cuda_run run, const std::uint32_t* groups, std::uint64_t count,
                 void* const* arguments) {
                std::vector<std::thread> all;
                for (std::uint64_t group = 0; group < count; ++group) {
                  all.emplace_back([=] { run(groups, group, group + 1, arguments); });
                }
                for (std::thread& each : all) each.join();
              });
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned group_x,
                        unsigned group_y, unsigned group_z, unsigned shared, CUstream handle,
                        void** parameters, void**) {
  ENTER_STREAM(handle);
  if (shared > reinterpret_cast<const Kernel*>(function)->most_dynamic) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  world().last_shared = shared;
  if (x == 0 || y == 0 || z == 0 || y > 65535 || z > 65535 || group_x * group_y * group_z > 1024) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  push_launch(stream, function, {x, y, z}, parameters,
              [](fake_cuda_run run, const std::uint32_t* groups, std::uint64_t count,
                 void* const* arguments) { run(groups, 0, count, arguments); });
  return CUDA_SUCCESS;
}

// Streams.

CUresult cuStreamCreate(CUstream* out, unsigned) {
  ENTER_HERE();
  if (current.empty()) return misuse(CUDA_ERROR_INVALID_CONTEXT);
  return make_stream(out, current.back());
}
CUresult cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx green, unsigned, int) {
  ENTER_HERE();
  return make_stream(out, reinterpret_cast<Context*>(green));
}
CUresult cuStreamDestroy(CUstream handle) {
  Stream* stream = nullptr;
  {
    const Lock lock(world().mutex);
    ++world().calls["cuStreamDestroy"];
    stream = stream_of(handle);
    if (stream == nullptr) return misuse(CUDA_ERROR_INVALID_HANDLE);
    world().streams.erase(stream);
    stream->leaving = true;
    world().changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  return CUDA_SUCCESS;
}
CUresult cuStreamQuery(CUstream handle) {
  ENTER_STREAM(handle);
  return stream->commands.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult cuStreamSynchronize(CUstream handle) {
  Lock lock(world().mutex);
  if (handle == CU_STREAM_LEGACY) {  // no caller enqueues anything there
    return current.empty() ? misuse(CUDA_ERROR_INVALID_CONTEXT) : enter(__func__, device_now());
  }
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return misuse(CUDA_ERROR_INVALID_HANDLE);
  const int device = stream->context->device;
  if (const CUresult code = enter(__func__, device); code != CUDA_SUCCESS) return code;
  world().changed.wait(lock, [&] { return stream->commands.empty(); });
  return world().devices[static_cast<std::size_t>(device)].lost;
}

// Graphs of one stream.

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode) {
  ENTER_STREAM(handle);
  if (stream->captured != nullptr) return misuse(CUDA_ERROR_ILLEGAL_STATE);
  stream->captured = std::make_unique<Graph>();
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream handle, CUgraph* out) {
  ENTER_STREAM(handle);
  if (stream->captured == nullptr) return misuse(CUDA_ERROR_ILLEGAL_STATE);
  Graph* const graph = stream->captured.release();
  world().graphs.insert(graph);
  *out = reinterpret_cast<CUgraph>(graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph handle, unsigned long long) {
  ENTER_HERE();
  auto* const graph = reinterpret_cast<Graph*>(handle);
  if (!world().graphs.contains(graph)) return misuse(CUDA_ERROR_INVALID_HANDLE);
  auto* const made = new Graph(*graph);
  world().graphs.insert(made);
  *out = reinterpret_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  ENTER_STREAM(stream_handle);
  auto* const graph = reinterpret_cast<Graph*>(handle);
  if (!world().graphs.contains(graph)) return misuse(CUDA_ERROR_INVALID_HANDLE);
  for (const auto& command : graph->commands) push(stream, command);
  return CUDA_SUCCESS;
}
static CUresult destroy_graph(Graph* graph) {
  const Lock lock(world().mutex);
  if (world().graphs.erase(graph) == 0) return misuse(CUDA_ERROR_INVALID_HANDLE);
  delete graph;
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) { return destroy_graph(reinterpret_cast<Graph*>(graph)); }
CUresult cuGraphExecDestroy(CUgraphExec graph) {
  return destroy_graph(reinterpret_cast<Graph*>(graph));
}

// Events.

CUresult cuEventCreate(CUevent* out, unsigned flags) {
  ENTER_HERE();
  if (current.empty()) return misuse(CUDA_ERROR_INVALID_CONTEXT);
  auto* const event = new Event;
  event->context = current.back();
  event->timed = (flags & CU_EVENT_DISABLE_TIMING) == 0;
  world().events.insert(event);
  *out = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent handle) {
  const Lock lock(world().mutex);
  Event* const event = event_of(handle);
  if (event == nullptr) return misuse(CUDA_ERROR_INVALID_HANDLE);
  world().events.erase(event);
  delete event;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  ENTER_STREAM(stream_handle);
  Event* const event = event_of(handle);
  if (event == nullptr || event->context != stream->context) {
    return misuse(CUDA_ERROR_INVALID_HANDLE);
  }
  event->record = std::make_shared<Record>();
  push(stream, [record = event->record] {
    const Lock inner(world().mutex);
    *record = {true, Clock::now()};
    world().changed.notify_all();
  });
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned) {
  ENTER_STREAM(handle);
  Event* const event = event_of(event_handle);
  if (event == nullptr) return misuse(CUDA_ERROR_INVALID_HANDLE);
  if (event->record == nullptr) return CUDA_SUCCESS;
  push(stream, [record = event->record, context = stream->context] {
    Lock inner(world().mutex);
    world().changed.wait(inner, [&] { return record->over || lost(*context); });
  });
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent handle) {
  Lock lock(world().mutex);
  Event* const event = event_of(handle);
  if (event == nullptr) return misuse(CUDA_ERROR_INVALID_HANDLE);
  if (const CUresult code = enter(__func__, event->context->device); code != CUDA_SUCCESS) {
    return code;
  }
  const std::shared_ptr<Record> record = event->record;
  if (record == nullptr) return CUDA_SUCCESS;
  world().changed.wait(lock, [&] { return record->over || lost(*event->context); });
  return world().devices[static_cast<std::size_t>(event->context->device)].lost;
}
CUresult cuEventElapsedTime(float* ms, CUevent begin, CUevent end) {
  ENTER_HERE();
  const Event *const first = event_of(begin), *const last = event_of(end);
  if (first == nullptr || last == nullptr || !first->timed || !last->timed || !first->record ||
      !last->record) {
    return misuse(CUDA_ERROR_INVALID_HANDLE);
  }
  if (!first->record->over || !last->record->over) return CUDA_ERROR_NOT_READY;
  *ms = std::chrono::duration<float, std::milli>(last->record->when - first->record->when).count();
  return CUDA_SUCCESS;
}

// Code.

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
  ENTER_HERE();
  const std::string text = static_cast<const char*>(image);
  if (!text.starts_with("FAKE") && !text.starts_with(".version")) return CUDA_ERROR_INVALID_IMAGE;
  auto* const code = new Code{text};
  world().codes.insert(code);
  *library = reinterpret_cast<CUlibrary>(code);
  return CUDA_SUCCESS;
}
CUresult cuLibraryUnload(CUlibrary library) {
  const Lock lock(world().mutex);
  auto* const code = reinterpret_cast<Code*>(library);
  if (world().codes.erase(code) == 0) return misuse(CUDA_ERROR_INVALID_HANDLE);
  if (code->library != nullptr) dlclose(code->library);
  delete code;
  return CUDA_SUCCESS;
}
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  ENTER_HERE();
  const Kernel* const found = find_kernel(*reinterpret_cast<Code*>(library), name);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  *kernel = reinterpret_cast<CUkernel>(const_cast<Kernel*>(found));
  return CUDA_SUCCESS;
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute, CUkernel, CUdevice) {
  *value = 1024;
  return CUDA_SUCCESS;
}
CUresult cuKernelGetParamInfo(CUkernel handle, std::size_t, std::size_t* offset,
                              std::size_t* size) {
  ENTER(-1);
  *offset = 0;
  *size = reinterpret_cast<const Kernel*>(handle)->units;
  return CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute what, int value, CUkernel handle, CUdevice) {
  ENTER(-1);
  if (what != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    return misuse(CUDA_ERROR_INVALID_VALUE);
  }
  if (value < 0 || static_cast<unsigned>(value) > kMostShared) return CUDA_ERROR_INVALID_VALUE;
  reinterpret_cast<Kernel*>(handle)->most_dynamic = static_cast<unsigned>(value);
  return CUDA_SUCCESS;
}

// NVRTC, whose code is the text.

struct FakeProgram {
  std::string text, name, log;
};
constexpr int kCompilationFailed = 6;

int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 2;
  return 0;
}
int nvrtcGetSupportedArchs(int* architectures) {
  architectures[0] = 80;
  architectures[1] = 90;
  return 0;
}
int nvrtcCreateProgram(FakeProgram** program, const char* text, const char* name, int,
                       const char* const*, const char* const*) {
  *program = new FakeProgram{text, name, ""};
  return 0;
}
int nvrtcDestroyProgram(FakeProgram** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
int nvrtcCompileProgram(FakeProgram* program, int, const char* const*) {
  {
    const Lock lock(world().mutex);
    ++world().calls["nvrtcCompileProgram"];
  }
  const std::size_t text = std::min(program->text.rfind("#line 1 "), program->text.size());
  const std::size_t error = program->text.find("#error", text);
  if (error == std::string::npos) return 0;
  const auto at = program->text.begin() + static_cast<std::ptrdiff_t>(error);
  const auto line = std::count(program->text.begin() + static_cast<std::ptrdiff_t>(text), at, '\n');
  const std::size_t end = std::min(program->text.find('\n', error), program->text.size());
  program->log = program->name + "(" + std::to_string(line) +
                 "): error: " + program->text.substr(error, end - error) + "\n";
  return kCompilationFailed;
}
int nvrtcGetProgramLogSize(FakeProgram* program, std::size_t* bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}
int nvrtcGetProgramLog(FakeProgram* program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return 0;
}
int nvrtcGetCUBINSize(FakeProgram* program, std::size_t* bytes) {
  *bytes = program->text.size() + 5;
  return 0;
}
int nvrtcGetCUBIN(FakeProgram* program, char* code) {
  std::memcpy(code, "FAKE", 4);
  std::memcpy(code + 4, program->text.c_str(), program->text.size() + 1);
  return 0;
}
int nvrtcGetPTXSize(FakeProgram* program, std::size_t* bytes) {
  return nvrtcGetCUBINSize(program, bytes);
}
int nvrtcGetPTX(FakeProgram* program, char* code) { return nvrtcGetCUBIN(program, code); }
const char* nvrtcGetErrorString(int) { return "as the test wants it"; }

}  // extern "C"
