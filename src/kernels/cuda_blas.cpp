#include "kernels/cuda_blas.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cuda/cuda_library.hpp"
#include "base/log.hpp"
#include "kernels/builtin_kernel.hpp"
#include "kernels/cuda_libraries.hpp"
#include "kernels/memory_calls.hpp"
#include "kernels/tile_calls.hpp"

namespace weir::kernels {

namespace {

using rt::CudaLibrary, rt::fail;

// The values of the options of cuBLAS, which cuSOLVER shares.
int number(Trans trans) { return trans == Trans::no ? 0 : 1; }
int number(Uplo uplo) { return uplo == Uplo::lower ? 0 : 1; }
int number(Side side) { return side == Side::left ? 0 : 1; }
int number(Diag diag) { return diag == Diag::non_unit ? 0 : 1; }

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

/// Throws rt::Error unless code is CUDA_SUCCESS. `what` names the call in the message.
void check_call(CUresult code, const char* what) {
  if (code == CUDA_SUCCESS) return;
  const char* name = nullptr;
  if (CudaLibrary::get().cuGetErrorName(code, &name) != CUDA_SUCCESS) name = "CUDA error";
  fail(code == CUDA_ERROR_OUT_OF_MEMORY ? WEIR_STATUS_OUT_OF_MEMORY : WEIR_STATUS_DEVICE_ERROR,
       "{}: {} ({})", what, name, static_cast<int>(code));
}

/// The handles of one stream. Two streams that shared a workspace would write into each other's.
class CublasStream {
 public:
  explicit CublasStream(CUstream stream) : stream_(stream) {}
  CublasStream(const CublasStream&) = delete;
  CublasStream& operator=(const CublasStream&) = delete;
  ~CublasStream() {
    if (work_ != 0) CudaLibrary::get().cuMemFree(work_);
    if (cublas_ != nullptr) Cublas::get().destroy(cublas_);
    if (cusolver_ != nullptr) Cusolver::get().destroy(cusolver_);
  }

  CUstream stream() const noexcept { return stream_; }
  void* cublas() { return made<Cublas>(cublas_); }
  void* cusolver() { return made<Cusolver>(cusolver_); }

  /// Returns device memory of `bytes` bytes; the next call in the stream may overwrite it.
  CUdeviceptr work(std::size_t bytes) {
    if (bytes <= bytes_) return work_;
    const CudaLibrary& cu = CudaLibrary::get();
    CUdeviceptr larger = 0;
    check_call(cu.cuMemAllocAsync(&larger, bytes, stream_), "the workspace of a factorisation");
    if (work_ != 0) cu.cuMemFreeAsync(work_, stream_);
    work_ = larger;
    bytes_ = bytes;
    return work_;
  }

 private:
  template <class Library>
  void* made(void*& handle) {
    if (handle != nullptr) return handle;
    const Library& library = Library::get();
    void* fresh = nullptr;
    Library::check(library.create(&fresh), "making a handle");
    const int status = library.set_stream(fresh, stream_);
    if (status != 0) library.destroy(fresh);
    Library::check(status, "choosing a stream");
    return handle = fresh;
  }

  CUstream stream_;
  void *cublas_ = nullptr, *cusolver_ = nullptr;
  CUdeviceptr work_ = 0;
  std::size_t bytes_ = 0;
};

/// The results of the factorisations of a place: the device writes them to host memory.
class Factorizations {
 public:
  Factorizations() = default;
  Factorizations(const Factorizations&) = delete;
  Factorizations& operator=(const Factorizations&) = delete;
  ~Factorizations() {
    for (Failure failure; next(failure);) {
      rt::log::warning("CUDA: {}", failure.text.data());
    }
    if (infos_ != nullptr) CudaLibrary::get().cuMemFreeHost(infos_);
  }

  /// Throws rt::Error{kernel_error} for a failed factorisation, once.
  void check() {
    Failure failure;
    if (next(failure)) fail(WEIR_STATUS_KERNEL_ERROR, "{}", failure.text.data());
  }

  /// Enqueues a copy of the result of a factorisation to host memory.
  void watch(const char* name, std::int64_t first, CUdeviceptr info, CUstream stream) {
    prepare();
    Entry& entry = entries_[added_ % kMost];
    std::int32_t* const word = infos_ + added_ % kMost;
    entry.first = first;
    std::snprintf(entry.name.data(), entry.name.size(), "%s", name == nullptr ? "potrf" : name);
    __atomic_store_n(word, kUnknown, __ATOMIC_RELEASE);
    check_call(CudaLibrary::get().cuMemcpyDtoHAsync(word, info, sizeof *word, stream),
               "copying a result");
    ++added_;
  }

 private:
  /// More than are in flight at once: an overwritten entry is complete.
  static constexpr std::size_t kMost = 1024;
  static constexpr std::int32_t kUnknown = INT32_MIN;

  struct Entry {
    std::int64_t first = 0;  ///< rows before the tile
    std::array<char, 48> name{};
  };
  struct Failure {
    std::array<char, 160> text{};
  };

  void prepare() {
    if (infos_ != nullptr) return;
    entries_.resize(kMost);
    void* memory = nullptr;
    check_call(CudaLibrary::get().cuMemHostAlloc(&memory, kMost * sizeof(std::int32_t), 0),
               "memory for the results of factorisations");
    infos_ = static_cast<std::int32_t*>(memory);
  }

  /// Advances over the complete factorisations to the next failed one. Returns whether there was
  /// one.
  bool next(Failure& failure) noexcept {
    if (added_ - seen_ > kMost) seen_ = added_ - kMost;
    while (seen_ < added_) {
      const std::int32_t info = __atomic_load_n(infos_ + seen_ % kMost, __ATOMIC_ACQUIRE);
      if (info == kUnknown) return false;
      const Entry& entry = entries_[seen_++ % kMost];
      if (info == 0) continue;
      std::snprintf(failure.text.data(), failure.text.size(),
                    "'%s', an earlier action of this place: the leading minor of order %lld is not "
                    "positive definite",
                    entry.name.data(), static_cast<long long>(entry.first) + info);
      return true;
    }
    return false;
  }

  std::vector<Entry> entries_;
  std::int32_t* infos_ = nullptr;
  std::size_t added_ = 0, seen_ = 0;
};

/// The state shared by the calls on the thread of a place. It is destroyed with the thread, while
/// the context of the place is current and its streams are idle.
struct CudaThread {
  Factorizations factorizations;
  std::vector<std::unique_ptr<CublasStream>> streams;

  CublasStream& stream_for(CUstream stream) {
    for (const auto& known : streams) {
      if (known->stream() == stream) return *known;
    }
    return *streams.emplace_back(std::make_unique<CublasStream>(stream));
  }

  static CudaThread& get() {
    static thread_local CudaThread mine;
    return mine;
  }
};

/// The routines of TeamBlas that cuBLAS and cuSOLVER have, in one stream.
template <class T>
class CudaBlas {
 public:
  CudaBlas(CudaThread& thread, const weir_call& call)
      : thread_(thread),
        cublas_(thread.stream_for(static_cast<CUstream>(call.queue))),
        name_(call.name) {}

  void gemm(Trans trans_a, Trans trans_b, T alpha, Matrix<T> a, Matrix<T> b, T beta,
            Matrix<T> c) const {
    const int depth = Shape<T>(a, trans_a).columns;
    Cublas::check(
        blas().gemm(cublas_.cublas(), number(trans_a), number(trans_b), c.rows, c.columns, depth,
                    &alpha, a.data, a.stride, b.data, b.stride, &beta, c.data, c.stride),
        "gemm");
  }

  void syrk(Uplo uplo, Trans trans, T alpha, Matrix<T> a, T beta, Matrix<T> c) const {
    const int depth = Shape<T>(a, trans).columns;
    Cublas::check(blas().syrk(cublas_.cublas(), number(uplo), number(trans), c.rows, depth, &alpha,
                              a.data, a.stride, &beta, c.data, c.stride),
                  "syrk");
  }

  void trsm(Side side, Uplo uplo, Trans trans, Diag diag, T alpha, Matrix<T> a, Matrix<T> b) const {
    Cublas::check(
        blas().trsm(cublas_.cublas(), number(side), number(uplo), number(trans), number(diag),
                    b.rows, b.columns, &alpha, a.data, a.stride, b.data, b.stride),
        "trsm");
  }

  void potrf(Uplo uplo, std::int64_t first, Matrix<T> a) const {
    constexpr std::size_t kInfoBytes = 256;  // before the workspace, which stays aligned
    const CusolverRoutines<T>& lapack = Cusolver::get().routines<T>();
    void* const handle = cublas_.cusolver();
    int elements = 0;
    Cusolver::check(lapack.potrf_size(handle, number(uplo), a.rows, a.data, a.stride, &elements),
                    "asking for the workspace of potrf");
    const CUdeviceptr info =
        cublas_.work(kInfoBytes + sizeof(T) * static_cast<std::size_t>(std::max(elements, 0)));
    Cusolver::check(lapack.potrf(handle, number(uplo), a.rows, a.data, a.stride,
                                 reinterpret_cast<T*>(info + kInfoBytes), elements,
                                 reinterpret_cast<int*>(info)),
                    "potrf");
    thread_.factorizations.watch(name_, first, info, cublas_.stream());
  }

 private:
  static const CublasRoutines<T>& blas() { return Cublas::get().routines<T>(); }

  CudaThread& thread_;
  CublasStream& cublas_;
  const char* name_;
};

template <class T>
struct CudaPotrf : Potrf<T> {
  using Potrf<T>::Potrf;

  void run(const CudaBlas<T>& blas) const { blas.potrf(this->uplo, this->first, this->a); }
};

template <class T, template <class> class Routine>
void call_routine(const weir_call& call) {
  const Routine<T> routine(call);
  CudaThread& thread = CudaThread::get();
  thread.factorizations.check();
  routine.run(CudaBlas<T>(thread, call));
}

/// Merges rows that follow each other without a gap.
weir_view merged(weir_view view) {
  if (view.extent[1] == 1) view.stride[0] = view.extent[0];
  if (view.extent[2] == 1) view.stride[1] = view.stride[0] * view.extent[1];
  return view;
}
bool dense(const weir_view& view) {
  return view.stride[0] == view.extent[0] && view.stride[1] == view.extent[0] * view.extent[1];
}
std::size_t bytes_of(const weir_view& view) {
  return view.extent[0] * view.extent[1] * view.extent[2];
}

void set(const weir_call& call) {
  const SetCall arguments(call);
  const weir_view x = merged(arguments.x);
  const CudaLibrary& cu = CudaLibrary::get();
  const CUdeviceptr start = address_of(x.address);
  const auto stream = static_cast<CUstream>(call.queue);
  if (dense(x)) {
    return check_call(cu.cuMemsetD8Async(start, arguments.byte, bytes_of(x), stream), "mem.set");
  }
  for (std::size_t plane = 0; plane < x.extent[2]; ++plane) {
    check_call(cu.cuMemsetD2D8Async(start + plane * x.stride[1], x.stride[0], arguments.byte,
                                    x.extent[0], x.extent[1], stream),
               "mem.set");
  }
}

void copy(const weir_call& call) {
  const CopyCall arguments(call);
  const weir_view x = merged(arguments.x), y = merged(arguments.y);
  const CudaLibrary& cu = CudaLibrary::get();
  const CUdeviceptr from = address_of(x.address), to = address_of(y.address);
  const auto stream = static_cast<CUstream>(call.queue);
  if (dense(x) && dense(y)) {
    return check_call(cu.cuMemcpyDtoDAsync(to, from, bytes_of(x), stream), "mem.copy");
  }
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.WidthInBytes = x.extent[0];
  rows.Height = x.extent[1];
  rows.srcPitch = x.stride[0];
  rows.dstPitch = y.stride[0];
  for (std::size_t plane = 0; plane < x.extent[2]; ++plane) {
    rows.srcDevice = from + plane * x.stride[1];
    rows.dstDevice = to + plane * y.stride[1];
    check_call(cu.cuMemcpy2DAsync(&rows, stream), "mem.copy");
  }
}

struct CudaKernel {
  std::string_view name;
  weir_host_function function;
};

template <class T, template <class> class Routine>
constexpr CudaKernel kernel(std::string_view name) {
  return {name, run_kernel<call_routine<T, Routine>>};
}

constexpr CudaKernel kKernels[] = {kernel<float, Gemm>("blas.sgemm"),
                                   kernel<double, Gemm>("blas.dgemm"),
                                   kernel<float, Syrk>("blas.ssyrk"),
                                   kernel<double, Syrk>("blas.dsyrk"),
                                   kernel<float, Trsm>("blas.strsm"),
                                   kernel<double, Trsm>("blas.dtrsm"),
                                   kernel<float, CudaPotrf>("lapack.spotrf"),
                                   kernel<double, CudaPotrf>("lapack.dpotrf"),
                                   {"mem.set", run_kernel<set>},
                                   {"mem.copy", run_kernel<copy>}};

}  // namespace

weir_host_function cuda_code(std::string_view kernel) noexcept {
  for (const CudaKernel& known : kKernels) {
    if (known.name == kernel) return known.function;
  }
  return nullptr;
}

}  // namespace weir::kernels
