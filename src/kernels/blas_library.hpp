// The BLAS of the process: found and opened at run time.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "kernels/blas_functions.hpp"
#include "kernels/blas_info.hpp"

namespace weir::kernels {

/// A shared object. Closed only on request: a thread may be in it when the process exits.
class SharedObject {
 public:
  /// Opens a file by name or path. Throws Error{unavailable} with the loader's reason.
  void open(const std::string& file);
  void close() noexcept;

  /// Whether the program had loaded it before open().
  bool was_loaded() const noexcept { return was_loaded_; }
  /// The file that defines a symbol, "" when nothing does.
  std::string file_of(const char* symbol) const;

  /// Finds a function, by its name or with the prefix `scipy_`, in the object or its dependencies;
  /// null when there is none.
  template <class Function>
  Function* find(const char* symbol) const noexcept {
    return reinterpret_cast<Function*>(address_of(symbol));
  }

 private:
  void* address_of(const char* symbol) const noexcept;

  void* handle_ = nullptr;
  bool was_loaded_ = false;
};

/// An open BLAS. It runs each call on the thread that makes it.
class BlasLibrary {
 public:
  /// Decides which library instance() opens: "openblas", "blis", "mkl", "reference",
  /// "plain" or a path; null
  /// leaves it to WEIR_BLAS, or to the best one installed. Only the first choice of the process
  /// counts; a later one that differs is logged. Throws Error{invalid_argument} for another word.
  static void choose(const char* name);

  /// Returns the library, opened by the first call; plain loops of weir where none is installed.
  /// Throws Error{unavailable} if the chosen one cannot be opened; the next call then tries again.
  static const BlasLibrary& instance();

  /// Opens a library by name or path, independent of the choice. Throws Error{unavailable}.
  explicit BlasLibrary(const std::string& name);
  BlasLibrary(const BlasLibrary&) = delete;
  BlasLibrary& operator=(const BlasLibrary&) = delete;

  template <class T>
  const Blas<T>& functions() const noexcept {
    if constexpr (std::is_same_v<T, float>) {
      return single_;
    } else {
      return double_;
    }
  }
  const BlasInfo& info() const noexcept { return info_; }
  /// Logs, once in a process, why this library is slower than one could be, unless a variable of
  /// the user chose its kernels.
  void warn_once() const;

  /// Whether its products of small contiguous blocks are so much faster than its triangular
  /// routines that these should be built from products.
  bool excels_at_small_products() const noexcept { return small_products_; }

  /// Sets the thread count of the OpenMP that the library uses, for the calling thread, and returns
  /// the one before; 1 when it uses none.
  int set_openmp_threads(int count) const noexcept;

 private:
  void use_plain_loops();
  void open(const std::string& name);
  void identify();
  void identify_openblas();
  void use_better_kernels();
  void use_one_thread();
  template <class T>
  void bind(Blas<T>& functions, const std::string& prefix);

  SharedObject object_;
  Blas<float> single_{};
  Blas<double> double_{};
  BlasInfo info_;
  bool small_products_ = false;
  bool chosen_by_user_ = false;
  int (*openmp_threads_)() = nullptr;
  void (*set_openmp_threads_)(int) = nullptr;
};

/// Keeps a BLAS that uses OpenMP on the calling thread while it lives.
class OneThread {
 public:
  explicit OneThread(const BlasLibrary& library) noexcept
      : library_(library), before_(library.set_openmp_threads(1)) {}
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;
  ~OneThread() { library_.set_openmp_threads(before_); }

 private:
  const BlasLibrary& library_;
  int before_;
};

/// Returns the OpenBLAS kernels to request instead of `in_use` on this processor, "" when `in_use`
/// is the best.
std::string better_openblas_kernels(std::string_view in_use);

}  // namespace weir::kernels
