#include "backends/cuda/cuda_context.hpp"

#include <utility>

#include "base/text.hpp"

namespace weir::rt {

namespace {

/// The process keeps a broken context as long as a library in it, such as cuBLAS, retains it.
CUresult state_of(CUcontext context) {
  const CudaLibrary& cu = CudaLibrary::get();
  std::size_t free = 0, total = 0;
  CUresult code = cu.cuCtxPushCurrent(context);
  if (code != CUDA_SUCCESS) return code;
  code = cu.cuMemGetInfo(&free, &total);
  cu.cuCtxPopCurrent(&context);
  return code;
}

}  // namespace

CudaContext::CudaContext(std::string domain, CUdevice device)
    : domain_(std::move(domain)), device_(device) {
  CUresult code = CudaLibrary::get().cuDevicePrimaryCtxRetain(&context_, device_);
  if (code == CUDA_SUCCESS) {
    code = state_of(context_);
    if (code != CUDA_SUCCESS) CudaLibrary::get().cuDevicePrimaryCtxRelease(device_);
  }
  if (breaks_context(code)) {
    fail(WEIR_STATUS_DEVICE_ERROR,
         "domain '{}': this process has lost its GPU before, {}: start the program again", domain_,
         cuda_error(code));
  }
  check_cuda(code, fmt::format("domain '{}' gets no CUDA context", domain_));
}

CudaContext::~CudaContext() { CudaLibrary::get().cuDevicePrimaryCtxRelease(device_); }

bool CudaContext::note_result(CUresult code, const char* during) noexcept {
  if (!breaks_context(code)) return false;
  const sys::Lock lock(mutex_);
  if (lost()) return true;
  try {
    cause_ = fmt::format("domain '{}' is lost: {} while '{}' was in flight", domain_,
                         cuda_error(code), during == nullptr ? "?" : during);
  } catch (...) {
    cause_.clear();
  }
  lost_.store(true, std::memory_order_seq_cst);
  return true;
}

Outcome CudaContext::lost_outcome() const noexcept {
  const sys::Lock lock(mutex_);
  return failed_outcome(WEIR_STATUS_DEVICE_ERROR, cause_.empty() ? "device lost" : cause_.c_str());
}

Outcome CudaContext::failed_call(const char* what, CUresult code) const noexcept {
  const weir_status status =
      code == CUDA_ERROR_OUT_OF_MEMORY ? WEIR_STATUS_OUT_OF_MEMORY : WEIR_STATUS_DEVICE_ERROR;
  try {
    return {status, fmt::format("domain '{}': {}: {}", domain_, what, cuda_error(code))};
  } catch (...) {
    return failed_outcome(status, "the CUDA driver fails");
  }
}

bool CudaContext::enter() noexcept {
  inside_.fetch_add(1, std::memory_order_seq_cst);
  if (!lost()) return true;
  leave();
  return false;
}

void CudaContext::wait_for_callbacks() const noexcept {
  while (inside_.load(std::memory_order_seq_cst) > 0) sys::yield();
}

bool lock_cuda_host(const CudaContext& context, void* address, std::size_t bytes) noexcept {
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  if (bytes < kLeast || context.lost()) return false;
  try {
    const CudaScope scope(context.get());
    return CudaLibrary::get().cuMemHostRegister(address, bytes, CU_MEMHOSTREGISTER_PORTABLE) ==
           CUDA_SUCCESS;
  } catch (...) {
    return false;
  }
}

void unlock_cuda_host(const CudaContext& context, void* address) noexcept {
  try {
    const CudaScope scope(context.get());
    CudaLibrary::get().cuMemHostUnregister(address);
  } catch (...) {  // the context is lost, and the page lock with it
  }
}

CudaMemory::CudaMemory(CudaContext& context) : context_(context) {
  const CudaScope scope(context.get());
  const CudaLibrary& cu = CudaLibrary::get();
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = context.device();
  CUmemoryPool pool = nullptr;
  check_cuda(cu.cuMemPoolCreate(&pool, &properties),
             fmt::format("domain '{}' gets no memory pool", context.domain()));
  pool_ = CudaPool(pool);
  cuuint64_t threshold = UINT64_MAX;  // freed memory stays in the pool for the next allocation
  check_cuda(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
             "setting up a memory pool");
  stream_ = make_cuda_stream();
  clear_ = make_cuda_event(false);
}

CudaMemory::~CudaMemory() {
  const CudaLibrary& cu = CudaLibrary::get();
  if (context_.lost() || cu.cuCtxPushCurrent(context_.get()) != CUDA_SUCCESS) return;
  cu.cuStreamSynchronize(stream_.get());
  CUcontext context = nullptr;
  cu.cuCtxPopCurrent(&context);
}

Memory CudaMemory::allocate(std::size_t bytes) {
  if (context_.lost()) throw Error(context_.lost_outcome().status, context_.lost_outcome().message);
  const CudaScope scope(context_.get());
  const CudaLibrary& cu = CudaLibrary::get();
  CUdeviceptr address = 0;
  const CUresult code = cu.cuMemAllocFromPoolAsync(&address, bytes, pool_.get(), stream_.get());
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    fail(WEIR_STATUS_OUT_OF_MEMORY, "domain '{}' was asked for {}, and its device has {} free",
         context_.domain(), format_size(bytes), format_size(free_cuda_memory(context_)));
  }
  context_.note_result(code, "an allocation");
  check_cuda(code, fmt::format("domain '{}' gives no {}", context_.domain(), format_size(bytes)));
  Memory memory{reinterpret_cast<void*>(address), bytes};
  CUresult cleared = cu.cuMemsetD8Async(address, 0, bytes, stream_.get());
  if (cleared == CUDA_SUCCESS) cleared = cu.cuEventRecord(clear_.get(), stream_.get());
  if (cleared != CUDA_SUCCESS) {
    context_.note_result(cleared, "clearing memory");
    cu.cuMemFreeAsync(address, stream_.get());
    check_cuda(cleared, fmt::format("domain '{}' cannot clear its memory", context_.domain()));
  }
  allocations_.fetch_add(1, std::memory_order_release);
  return memory;
}

CUresult CudaMemory::order_after_clear(CUstream stream) const noexcept {
  return CudaLibrary::get().cuStreamWaitEvent(stream, clear_.get(), 0);
}

std::uint64_t CudaMemory::wait_until_cleared() const noexcept {
  const std::uint64_t before = allocations();
  const CUresult code = CudaLibrary::get().cuStreamSynchronize(stream_.get());
  return code == CUDA_SUCCESS ? before : 0;
}

Memory CudaMemory::adopt(void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<CUdeviceptr>(address);
  const CudaScope scope(context_.get());
  const auto ask = [&](CUpointer_attribute what, void* answer) {
    return CudaLibrary::get().cuPointerGetAttribute(answer, what, begin) == CUDA_SUCCESS;
  };
  CUmemorytype type{};
  int device = -1;
  if (!ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type) || type != CU_MEMORYTYPE_DEVICE ||
      !ask(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &device) || device != context_.device()) {
    fail(WEIR_STATUS_NOT_FOUND,
         "address {} is not in the memory of domain '{}': give the domain of its GPU",
         fmt::ptr(address), context_.domain());
  }
  CUdeviceptr start = 0;
  std::size_t size = 0;
  if (ask(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &start) &&
      ask(CU_POINTER_ATTRIBUTE_RANGE_SIZE, &size) && bytes > size - (begin - start)) {
    fail_argument("{} bytes at {} reach beyond an allocation of {} bytes", bytes, fmt::ptr(address),
                  size);
  }
  return {address, bytes, true};
}

void CudaMemory::release(Memory& memory) noexcept {
  if (memory.address != nullptr && !memory.adopted && !context_.lost()) {
    CudaLibrary::get().cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(memory.address), stream_.get());
  }
  memory = {};
}

void CudaMemory::enable_peer_access(CUdevice peer) noexcept {
  const std::uint64_t bit = peer < 64 ? std::uint64_t{1} << peer : 0;
  if ((open_.load(std::memory_order_acquire) & bit) != 0) return;
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = peer;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (CudaLibrary::get().cuMemPoolSetAccess(pool_.get(), &access, 1) != CUDA_SUCCESS) return;
  open_.fetch_or(bit, std::memory_order_release);
}

std::size_t free_cuda_memory(const CudaContext& context) {
  const CudaScope scope(context.get());
  std::size_t free = 0, total = 0;
  check_cuda(CudaLibrary::get().cuMemGetInfo(&free, &total),
             fmt::format("domain '{}': asking for free memory", context.domain()));
  return free;
}

}  // namespace weir::rt
