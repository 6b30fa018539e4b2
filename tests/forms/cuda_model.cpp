// A model of CUDA's runtime for the objects of NVIDIA's compiler: see model.hpp.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "forms/forms.hpp"
#include "model.hpp"

struct CUevent_st {
  int recorded = 0;  // times that the program has enqueued
  int reached = 0;   // of these, how many have run
};
struct CUstream_st {
  struct Action {
    std::function<void()> run;
    CUevent_st* awaited = nullptr;
    int times = 0;  // that the event must have been reached
  };
  std::deque<Action> actions;
};

namespace {

using Body = void (*)(int item, void** arguments);

template <class T>
T argument(void** arguments, int index) {
  return *static_cast<T*>(arguments[index]);
}
template <int index>
double* pointer(void** arguments) {
  return argument<double*>(arguments, index);
}
int first(void** arguments) { return argument<int>(arguments, 0); }

// Kernels by a part of their name, and the bytes of their parameters.
struct HostKernel {
  const char* name;
  std::vector<std::size_t> parameters;
  Body body;
};
constexpr std::size_t kInt = sizeof(int), kPointer = sizeof(void*);
const HostKernel kernels[] = {
    {"roots_kernel",
     {kPointer, kInt},
     [](int item, void** given) {
       if (item < argument<int>(given, 1)) root_item(pointer<0>(given), item);
     }},
    {"potrf_kernel",
     {kInt, kPointer},
     [](int, void** given) { potrf_item(first(given), pointer<1>(given)); }},
    {"trsm_kernel",
     {kInt, kPointer, kPointer},
     [](int item, void** given) {
       if (item >= first(given)) return;
       trsm_item(first(given), pointer<1>(given), pointer<2>(given), item);
     }},
    {"syrk_kernel",
     {kInt, kPointer, kPointer},
     [](int item, void** given) {
       if (item >= first(given) * first(given)) return;
       syrk_item(first(given), pointer<1>(given), pointer<2>(given), item);
     }},
    {"gemm_kernel",
     {kInt, kPointer, kPointer, kPointer},
     [](int item, void** given) {
       if (item >= first(given) * first(given)) return;
       gemm_item(first(given), pointer<1>(given), pointer<2>(given), pointer<3>(given), item);
     }},
};

struct Launch {
  dim3 grid, block;
  std::size_t shared = 0;
  cudaStream_t stream = nullptr;
};

std::map<const void*, const HostKernel*> registered;
Launch configured;
std::vector<std::unique_ptr<CUstream_st>> streams;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "model of CUDA: %s\n", what.c_str());
  std::exit(1);
}

void enqueue(cudaStream_t stream, CUstream_st::Action action) {
  if (stream == nullptr) die("the default stream is not supported");
  stream->actions.push_back(std::move(action));
}

bool can_run(const CUstream_st& stream) {
  if (stream.actions.empty()) return false;
  const CUstream_st::Action& next = stream.actions.front();
  return next.awaited == nullptr || next.awaited->reached >= next.times;
}

/// Runs all actions, one after the other.
void run_all() {
  forms_model::Order order;
  for (;;) {
    std::vector<CUstream_st*> able;
    bool left = false;
    for (const auto& stream : streams) {
      left = left || !stream->actions.empty();
      if (can_run(*stream)) able.push_back(stream.get());
    }
    if (able.empty() && left) die("streams wait for events that nothing records");
    if (able.empty()) return;
    CUstream_st& chosen = *able[order.choose(able.size())];
    const CUstream_st::Action action = std::move(chosen.actions.front());
    chosen.actions.pop_front();
    if (action.run) action.run();
  }
}

cudaError_t launch(const HostKernel& kernel, const Launch& how, void** arguments) {
  std::vector<std::vector<char>> values;  // as the caller's may be gone
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const char* const from = static_cast<const char*>(arguments[i]);
    values.emplace_back(from, from + kernel.parameters[i]);
  }
  const int items = static_cast<int>(how.grid.x * how.block.x);
  enqueue(how.stream, {[&kernel, items, values]() mutable {
            std::vector<void*> pointers;
            for (auto& value : values) pointers.push_back(value.data());
            for (int item = items - 1; item >= 0; --item) kernel.body(item, pointers.data());
          }});
  return cudaSuccess;
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
  for (const HostKernel& kernel : kernels) {
    if (std::strstr(name, kernel.name) != nullptr) registered[stub] = &kernel;
  }
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared,
                                     CUstream_st* stream) {
  configured = {grid, block, shared, stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared, void* stream) {
  *grid = configured.grid;
  *block = configured.block;
  *shared = configured.shared;
  *static_cast<cudaStream_t*>(stream) = configured.stream;
  return cudaSuccess;
}
// The kernel of a stub is the stub itself here.
cudaError_t __cudaGetKernel(cudaKernel_t* out, const void* stub) {
  *out = static_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared, cudaStream_t stream) {
  const auto found = registered.find(stub);
  if (found == registered.end()) die("a kernel is not known here: add it to the table");
  return launch(*found->second, {grid, block, shared, stream}, arguments);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}

const char* cudaGetErrorString(cudaError_t) { return "an error of the model"; }
cudaError_t cudaHostRegister(void*, std::size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }
cudaError_t cudaMalloc(void** out, std::size_t bytes) {
  *out = forms_model::device_memory(bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* out) {
  *out = streams.emplace_back(std::make_unique<CUstream_st>()).get();
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  run_all();
  std::erase_if(streams, [&](const auto& each) { return each.get() == stream; });
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  *out = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  const int times = ++event->recorded;
  enqueue(stream, {[event, times] { event->reached = std::max(event->reached, times); }});
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (forms_model::Order::waits_count()) enqueue(stream, {{}, event, event->recorded});
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  enqueue(stream, {[=] { std::memcpy(to, from, bytes); }});
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  run_all();
  return cudaSuccess;
}
}
