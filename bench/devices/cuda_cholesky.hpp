// A factorisation by cuSOLVER, written by hand: the peer of `weir run cholesky` on a GPU.
#pragma once

#include <algorithm>
#include <vector>

#include "devices/cuda_by_hand.hpp"

namespace weir_bench {

/// Factors the lower triangle of a matrix of doubles that is in page-locked memory.
class CudaCholesky {
 public:
  CudaCholesky(const Cuda& cuda, int order)
      : cuda_(cuda),
        order_(order),
        stream_(cuda.stream()),
        given_(static_cast<double*>(cuda.pinned(bytes()))),
        factor_(static_cast<double*>(cuda.pinned(bytes()))),
        there_(cuda.memory(bytes())),
        info_(cuda.memory(sizeof(int))),
        copy_(cuda.entry<const Panel*, void*>("cuMemcpy2DAsync_v2")),
        potrf_(library(), "cusolverDnDpotrf") {
    CudaEntry<void**>(library(), "cusolverDnCreate")(&handle_);
    CudaEntry<void*, void*>(library(), "cusolverDnSetStream")(handle_, stream_);
    CudaEntry<void*, int, int, double*, int, int*>(library(), "cusolverDnDpotrf_bufferSize")(
        handle_, kLower, order_, at<double>(there_), order_, &elements_);
    work_ = cuda.memory(sizeof(double) * static_cast<std::size_t>(std::max(elements_, 1)));
    fill();
  }

  /// Seconds of one factorisation, with the copies of the triangle to the GPU and back, or of what
  /// is there already.
  double seconds(bool copies) const {
    if (!copies) {
      move(true);
      cuda_.wait(stream_);
    }
    const double taken = time_of([&] {
      if (copies) move(true);
      potrf_(handle_, kLower, order_, at<double>(there_), order_, at<double>(work_), elements_,
             at<int>(info_));
      if (copies) move(false);
      cuda_.wait(stream_);
    });
    int info = -1;
    cuda_.call<void*, CudaAddress, std::size_t>("cuMemcpyDtoH_v2", &info, info_, sizeof info);
    if (info != 0) throw std::runtime_error("cusolverDnDpotrf: info " + std::to_string(info));
    return taken;
  }

 private:
  static constexpr int kLower = 0;
  static constexpr std::size_t kColumns = 512;  ///< that are copied at a time

  /// CUDA_MEMCPY2D.
  struct Panel {
    struct End {
      std::size_t x = 0, y = 0;
      unsigned memory = 0;  ///< 1: the host's, 2: the GPU's
      void* host = nullptr;
      CudaAddress card = 0;
      void* array = nullptr;
      std::size_t pitch = 0;
    };
    End source, target;
    std::size_t width = 0, height = 0;
  };

  template <class T>
  static T* at(CudaAddress address) {
    return reinterpret_cast<T*>(address);
  }
  static void* library() {
    const char* const given = std::getenv("WEIR_CUSOLVER");
    for (const char* name :
         {given == nullptr ? "" : given, "libcusolver.so.12", "libcusolver.so.11"}) {
      void* const found = *name == '\0' ? nullptr : dlopen(name, RTLD_NOW);
      if (found != nullptr) return found;
    }
    throw Unavailable(std::string("no cuSOLVER: ") + dlerror());
  }
  std::size_t rows() const { return static_cast<std::size_t>(order_); }
  std::size_t bytes() const { return rows() * rows() * sizeof(double); }

  void fill() const {
    std::fill_n(given_, rows() * rows(), 1.0);
    for (std::size_t i = 0; i < rows(); ++i) given_[i * (rows() + 1)] = order_ + 1.0;
  }
  /// Columns from the diagonal on, some at a time.
  void move(bool to_card) const {
    for (std::size_t k = 0; k < rows(); k += kColumns) {
      const std::size_t offset = k * (rows() + 1), pitch = rows() * sizeof(double);
      const Panel::End here{
          .memory = 1, .host = (to_card ? given_ : factor_) + offset, .pitch = pitch};
      const Panel::End there{.memory = 2, .card = there_ + offset * sizeof(double), .pitch = pitch};
      const Panel panel{.source = to_card ? here : there,
                        .target = to_card ? there : here,
                        .width = (rows() - k) * sizeof(double),
                        .height = std::min(kColumns, rows() - k)};
      copy_(&panel, stream_);
    }
  }

  const Cuda& cuda_;
  const int order_;
  void* const stream_;
  double *const given_, *const factor_;
  const CudaAddress there_, info_;
  const CudaEntry<const Panel*, void*> copy_;
  const CudaEntry<void*, int, int, double*, int, double*, int, int*> potrf_;
  void* handle_ = nullptr;
  CudaAddress work_ = 0;
  int elements_ = 0;
};

}  // namespace weir_bench
