#include "kernels/opencl_blas.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <weir/opencl.h>

#include "backends/opencl/opencl_library.hpp"
#include "base/log.hpp"
#include "kernels/memory_calls.hpp"
#include "kernels/tile_calls.hpp"

namespace weir::kernels {

namespace {

constexpr std::size_t kTile = 16;   ///< groups of the product have kTile x kTile items
constexpr std::size_t kWidth = 64;  ///< items of other groups

/// REAL is float or double. An operand is a pointer and an offset in bytes; without shared virtual
/// memory the pointer is to a buffer. `part`: 1 is the lower triangle, 2 the upper one, 0 all.
constexpr char kText[] = R"(
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#define AT(T, x) x = (global T*)((global uchar*)x + at_##x)

kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void product(global const REAL* a, ulong at_a, global const REAL* b, ulong at_b, global REAL* c,
             ulong at_c, int turn_a, int turn_b, REAL alpha, REAL beta, int m, int n, int depth,
             int lda, int ldb, int ldc, int part) {
  AT(const REAL, a), AT(const REAL, b), AT(REAL, c);
  local REAL left[16][17], right[16][17];
  const int x = get_local_id(0), y = get_local_id(1);
  const long i = get_global_id(0), j = get_global_id(1);
  REAL sum = 0;
  for (int k = 0; k < depth; k += 16) {
    const long row = k + x, column = k + y;
    left[y][x] = 0;
    right[y][x] = 0;
    if (i < m && column < depth) left[y][x] = turn_a ? a[column + i * lda] : a[i + column * lda];
    if (j < n && row < depth) right[y][x] = turn_b ? b[j + row * ldb] : b[row + j * ldb];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int q = 0; q < 16; ++q) sum += left[q][x] * right[y][q];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const int wanted = part == 0 || (part == 1 ? i >= j : i <= j);
  if (i < m && j < n && wanted) {
    c[i + j * ldc] = alpha * sum + (beta == 0 ? 0 : beta * c[i + j * ldc]);
  }
}

// Each item solves for one vector, whose elements are `step` apart; vectors are `next` apart.
kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void solve(global const REAL* a, ulong at_a, global REAL* b, ulong at_b, int order, int count,
           int turned, int lower, int unit, REAL alpha, int lda, int step, int next) {
  AT(const REAL, a), AT(REAL, b);
  const long mine = get_global_id(0) * (long)next;
  if (get_global_id(0) >= count) return;
  for (int t = 0; alpha == 0 && t < order; ++t) b[mine + t * (long)step] = 0;
  for (int t = 0; alpha != 0 && t < order; ++t) {
    const int r = lower ? t : order - 1 - t, first = lower ? 0 : r + 1, end = lower ? r : order;
    REAL sum = alpha * b[mine + r * (long)step];
    for (int q = first; q < end; ++q) {
      sum -= (turned ? a[q + r * (long)lda] : a[r + q * (long)lda]) * b[mine + q * (long)step];
    }
    b[mine + r * (long)step] = unit ? sum : sum / a[r + r * (long)lda];
  }
}

// One group; `down` and `across` are how far the next row and column of the factor are.
kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void factor(global REAL* a, ulong at_a, global int* info, int order, int down, int across) {
  AT(REAL, a);
  const int x = get_local_id(0);
  int bad = 0;
  for (int j = 0; j < order; ++j) {
    global REAL* const column = a + j * (long)across;
    const REAL pivot = column[j * (long)down];
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (bad == 0 && !(pivot > 0)) bad = j + 1;
    if (bad == 0) {
      const REAL root = sqrt(pivot);
      for (int i = j + x; i < order; i += 64) {
        column[i * (long)down] = i == j ? root : column[i * (long)down] / root;
      }
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (bad == 0) {
      for (int k = j + 1 + x; k < order; k += 64) {
        const REAL by = column[k * (long)down];
        for (int i = k; i < order; ++i) {
          a[i * (long)down + k * (long)across] -= column[i * (long)down] * by;
        }
      }
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  if (x == 0) *info = bad;
}

kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void fill(global uchar* x, ulong at_x, uchar byte, ulong width, ulong rows, ulong next_row,
          ulong next_plane) {
  AT(uchar, x);
  const ulong i = get_global_id(0), row = get_global_id(1) % rows, plane = get_global_id(1) / rows;
  if (i < width) x[i + row * next_row + plane * next_plane] = byte;
}

kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void move(global const uchar* x, ulong at_x, global uchar* y, ulong at_y, ulong width, ulong rows,
          ulong x_row, ulong x_plane, ulong y_row, ulong y_plane) {
  AT(const uchar, x), AT(uchar, y);
  const ulong i = get_global_id(0), row = get_global_id(1) % rows, plane = get_global_id(1) / rows;
  if (i >= width) return;
  y[i + row * y_row + plane * y_plane] = x[i + row * x_row + plane * x_plane];
}
)";

using rt::fail, rt::OpenClBuffer, rt::OpenClKernel, rt::OpenClLibrary, rt::OpenClProgram;

/// Throws rt::Error unless code is CL_SUCCESS.
void check_call(cl_int code, const char* what) {
  if (code == CL_SUCCESS) return;
  const bool memory = code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY;
  fail(memory ? WEIR_STATUS_OUT_OF_MEMORY : WEIR_STATUS_DEVICE_ERROR,
       "the OpenCL driver fails with {}: {}", code, what);
}

template <class T>
T fact_of(cl_command_queue queue, cl_command_queue_info what) {
  T value{};
  // NOLINTNEXTLINE(bugprone-sizeof-expression): handles are pointers
  check_call(OpenClLibrary::get().clGetCommandQueueInfo(queue, what, sizeof value, &value, nullptr),
             "asking for what a queue is of");
  return value;
}

/// Throws rt::Error{unsupported} for a device without double precision.
void check_double(cl_device_id device) {
  cl_device_fp_config modes = 0;
  check_call(OpenClLibrary::get().clGetDeviceInfo(device, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof modes,
                                                  &modes, nullptr),
             "asking for double precision");
  if (modes != 0) return;
  fail(WEIR_STATUS_UNSUPPORTED,
       "the OpenCL device computes with float only, it has no double: use the kernel for float");
}

/// The kernels for one element type in one context.
class OpenClKernels {
 public:
  OpenClKernels(cl_command_queue queue, const char* real, bool with_double) {
    const OpenClLibrary& cl = OpenClLibrary::get();
    auto* const device = fact_of<cl_device_id>(queue, CL_QUEUE_DEVICE);
    if (with_double) check_double(device);
    const char* text = kText;
    cl_int code = CL_SUCCESS;
    program_ = OpenClProgram(cl.clCreateProgramWithSource(
        fact_of<cl_context>(queue, CL_QUEUE_CONTEXT), 1, &text, nullptr, &code));
    check_call(code, "making the program of the tile kernels");
    const std::string options = std::string("-cl-std=CL1.2 -D REAL=") + real;
    check_call(cl.clBuildProgram(program_.get(), 1, &device, options.c_str(), nullptr, nullptr),
               "compiling the tile kernels");
    product = made("product");
    solve = made("solve");
    factor = made("factor");
    fill = made("fill");
    move = made("move");
  }

  OpenClKernel product, solve, factor, fill, move;

 private:
  OpenClKernel made(const char* name) const {
    cl_int code = CL_SUCCESS;
    OpenClKernel kernel(OpenClLibrary::get().clCreateKernel(program_.get(), name, &code));
    check_call(code, "finding a tile kernel");
    return kernel;
  }

  OpenClProgram program_;
};

/// The results of the factorisations of a place.
class OpenClResults {
 public:
  OpenClResults() = default;
  OpenClResults(const OpenClResults&) = delete;
  OpenClResults& operator=(const OpenClResults&) = delete;
  ~OpenClResults() {
    while (!open_.empty()) {
      OpenClLibrary::get().clWaitForEvents(1, &open_.front().event);
      const std::string failure = next();
      if (!failure.empty()) rt::log::warning("OpenCL: {}", failure);
    }
  }

  /// Throws rt::Error{kernel_error} for a failed factorisation, once.
  void check() {
    const std::string failure = next();
    if (!failure.empty()) fail(WEIR_STATUS_KERNEL_ERROR, "{}", failure);
  }

  /// Returns device memory for the result of a factorisation; all share it, because the queue is in
  /// order.
  cl_mem word(cl_command_queue queue) {
    if (word_.get() != nullptr) return word_.get();
    cl_int code = CL_SUCCESS;
    word_ = OpenClBuffer(
        OpenClLibrary::get().clCreateBuffer(fact_of<cl_context>(queue, CL_QUEUE_CONTEXT),
                                            CL_MEM_READ_WRITE, sizeof(cl_int), nullptr, &code));
    check_call(code, "memory for the result of a factorisation");
    return word_.get();
  }

  /// Enqueues a read of the result.
  void watch(const char* name, std::int64_t first, cl_command_queue queue) {
    Result& result = open_.emplace_back();
    result.name = name == nullptr ? "potrf" : name;
    result.first = first;
    const cl_int code = OpenClLibrary::get().clEnqueueReadBuffer(queue, word_.get(), CL_FALSE, 0,
                                                                 sizeof result.info, &result.info,
                                                                 0, nullptr, &result.event);
    if (code != CL_SUCCESS) open_.pop_back();
    check_call(code, "reading the result of a factorisation");
  }

 private:
  struct Result {
    std::string name;
    std::int64_t first = 0;  ///< rows before the tile
    cl_int info = 0;
    cl_event event = nullptr;
  };

  /// Advances over the complete factorisations to the next failed one; "": there is none.
  std::string next() {
    const OpenClLibrary& cl = OpenClLibrary::get();
    while (!open_.empty()) {
      cl_int state = CL_COMPLETE;
      cl.clGetEventInfo(open_.front().event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state,
                        &state, nullptr);
      if (state > CL_COMPLETE) return {};
      const Result result = std::move(open_.front());
      open_.pop_front();
      cl.clReleaseEvent(result.event);
      if (state < 0 || result.info == 0) continue;
      return fmt::format(
          "'{}', an earlier action of this place: the leading minor of order {} is not positive "
          "definite",
          result.name, result.first + result.info);
    }
    return {};
  }

  OpenClBuffer word_;
  std::deque<Result> open_;  // the driver writes into the elements
};

/// The state shared by the calls on the thread of a place. It is destroyed with the thread, before
/// the queue.
struct OpenClThread {
  OpenClResults results;
  using Key = std::pair<cl_command_queue, std::size_t>;
  std::map<Key, OpenClKernels> kernels;
  std::map<Key, rt::Outcome> refused;  ///< why there are none

  /// Throws rt::Error, the same for each call, except after a failure for lack of memory.
  template <class T>
  const OpenClKernels& of(cl_command_queue queue) {
    const Key key{queue, sizeof(T)};
    const auto found = kernels.find(key);
    if (found != kernels.end()) return found->second;
    if (const auto known = refused.find(key); known != refused.end()) {
      fail(known->second.status, "{}", known->second.message);
    }
    constexpr bool kDouble = sizeof(T) == sizeof(double);
    try {
      OpenClKernels made(queue, kDouble ? "double" : "float", kDouble);
      return kernels.emplace(key, std::move(made)).first->second;
    } catch (const rt::Error& error) {
      if (error.status() != WEIR_STATUS_OUT_OF_MEMORY) {
        refused.emplace(key, rt::Outcome{error.status(), error.what()});
      }
      throw;
    }
  }

  static OpenClThread& get() {
    static thread_local OpenClThread mine;
    return mine;
  }
};

/// A call of a kernel whose first arguments are operands.
class Launch {
 public:
  explicit Launch(const OpenClKernel& kernel) : kernel_(kernel.get()) {}

  Launch& address(const void* operand) {
    void* found = nullptr;
    std::uint64_t offset = 0;
    if (weir_opencl_buffer(operand, &found, &offset) == WEIR_STATUS_OK && found != nullptr) {
      return value(static_cast<cl_mem>(found)).value(cl_ulong{offset});
    }
    check_call(OpenClLibrary::get().clSetKernelArgSVMPointer(kernel_, next_++, operand),
               "an operand");
    return value(cl_ulong{0});
  }
  template <class T>
  Launch& value(T value) {
    // NOLINTNEXTLINE(bugprone-sizeof-expression): handles are pointers
    check_call(OpenClLibrary::get().clSetKernelArg(kernel_, next_++, sizeof value, &value),
               "an argument");
    return *this;
  }
  /// Enqueues groups of `group` items, for at least `items` items.
  void run(cl_command_queue queue, std::array<std::size_t, 2> items,
           std::array<std::size_t, 2> group) const {
    for (std::size_t i = 0; i < items.size(); ++i) {
      items[i] = (items[i] + group[i] - 1) / group[i] * group[i];
    }
    if (items[0] == 0 || items[1] == 0) return;
    check_call(OpenClLibrary::get().clEnqueueNDRangeKernel(queue, kernel_, 2, nullptr, items.data(),
                                                           group.data(), 0, nullptr, nullptr),
               "a tile kernel");
  }

 private:
  cl_kernel kernel_;
  cl_uint next_ = 0;
};

/// The routines of TeamBlas, in one queue.
template <class T>
class OpenClBlas {
 public:
  OpenClBlas(OpenClThread& thread, const weir_call& call)
      : thread_(thread),
        queue_(static_cast<cl_command_queue>(call.queue)),
        kernels_(thread.of<T>(queue_)),
        name_(call.name) {}

  void gemm(Trans trans_a, Trans trans_b, T alpha, Matrix<T> a, Matrix<T> b, T beta,
            Matrix<T> c) const {
    const int depth = Shape<T>(a, trans_a).columns;
    product({trans_a == Trans::yes, trans_b == Trans::yes}, alpha, a, b, beta, c, depth, 0);
  }

  void syrk(Uplo uplo, Trans trans, T alpha, Matrix<T> a, T beta, Matrix<T> c) const {
    const int depth = Shape<T>(a, trans).columns;
    product({trans == Trans::yes, trans == Trans::no}, alpha, a, a, beta, c, depth,
            uplo == Uplo::lower ? 1 : 2);
  }

  /// From the right, the operation is transposed.
  void trsm(Side side, Uplo uplo, Trans trans, Diag diag, T alpha, Matrix<T> a, Matrix<T> b) const {
    const bool left = side == Side::left;
    const bool turned = (trans == Trans::yes) == left;
    const bool lower = (uplo == Uplo::lower) != turned;
    const int count = left ? b.columns : b.rows;
    Launch(kernels_.solve)
        .address(a.data)
        .address(b.data)
        .value(a.rows)
        .value(count)
        .value(int{turned})
        .value(int{lower})
        .value(int{diag == Diag::unit})
        .value(alpha)
        .value(a.stride)
        .value(left ? 1 : b.stride)
        .value(left ? b.stride : 1)
        .run(queue_, {static_cast<std::size_t>(count), 1}, {kWidth, 1});
  }

  void potrf(Uplo uplo, std::int64_t first, Matrix<T> a) const {
    const bool lower = uplo == Uplo::lower;
    Launch(kernels_.factor)
        .address(a.data)
        .value(thread_.results.word(queue_))
        .value(a.rows)
        .value(lower ? 1 : a.stride)
        .value(lower ? a.stride : 1)
        .run(queue_, {kWidth, 1}, {kWidth, 1});
    thread_.results.watch(name_, first, queue_);
  }

 private:
  /// With alpha 0 neither A nor B is read, so a NaN in them has no effect.
  void product(std::array<bool, 2> turned, T alpha, Matrix<T> a, Matrix<T> b, T beta, Matrix<T> c,
               int depth, int part) const {
    Launch(kernels_.product)
        .address(a.data)
        .address(b.data)
        .address(c.data)
        .value(int{turned[0]})
        .value(int{turned[1]})
        .value(alpha)
        .value(beta)
        .value(c.rows)
        .value(c.columns)
        .value(alpha == T{0} ? 0 : depth)
        .value(a.stride)
        .value(b.stride)
        .value(c.stride)
        .value(part)
        .run(queue_, {static_cast<std::size_t>(c.rows), static_cast<std::size_t>(c.columns)},
             {kTile, kTile});
  }

  OpenClThread& thread_;
  cl_command_queue queue_;
  const OpenClKernels& kernels_;
  const char* name_;
};

template <class T>
struct OpenClPotrf : Potrf<T> {
  using Potrf<T>::Potrf;

  void run(const OpenClBlas<T>& blas) const { blas.potrf(this->uplo, this->first, this->a); }
};

template <class T, template <class> class Routine>
void enqueue_routine(const weir_call& call) {
  const Routine<T> routine(call);
  OpenClThread& thread = OpenClThread::get();
  thread.results.check();
  routine.run(OpenClBlas<T>(thread, call));
}

void set(const weir_call& call) {
  const SetCall arguments(call);
  const weir_view& x = arguments.x;
  auto* const queue = static_cast<cl_command_queue>(call.queue);
  Launch(OpenClThread::get().of<float>(queue).fill)
      .address(x.address)
      .value(cl_uchar{arguments.byte})
      .value(cl_ulong{x.extent[0]})
      .value(cl_ulong{x.extent[1]})
      .value(cl_ulong{x.stride[0]})
      .value(cl_ulong{x.stride[1]})
      .run(queue, {x.extent[0], x.extent[1] * x.extent[2]}, {kWidth, 1});
}

void copy(const weir_call& call) {
  const CopyCall arguments(call);
  const weir_view &x = arguments.x, &y = arguments.y;
  auto* const queue = static_cast<cl_command_queue>(call.queue);
  Launch(OpenClThread::get().of<float>(queue).move)
      .address(x.address)
      .address(y.address)
      .value(cl_ulong{x.extent[0]})
      .value(cl_ulong{x.extent[1]})
      .value(cl_ulong{x.stride[0]})
      .value(cl_ulong{x.stride[1]})
      .value(cl_ulong{y.stride[0]})
      .value(cl_ulong{y.stride[1]})
      .run(queue, {x.extent[0], x.extent[1] * x.extent[2]}, {kWidth, 1});
}

template <auto enqueue>
weir_status call_or_enqueue(const weir_call* call) {
  if (call->queue != nullptr) return run_kernel<enqueue>(call);
  return static_cast<const BuiltinKernel*>(call->payload)->function(call);
}

struct NamedCode {
  std::string_view name;
  weir_host_function function;
};

template <class T, template <class> class Routine>
constexpr NamedCode named(std::string_view name) {
  return {name, call_or_enqueue<enqueue_routine<T, Routine>>};
}

constexpr NamedCode kCodes[] = {
    named<float, Gemm>("blas.sgemm"),           named<double, Gemm>("blas.dgemm"),
    named<float, Syrk>("blas.ssyrk"),           named<double, Syrk>("blas.dsyrk"),
    named<float, Trsm>("blas.strsm"),           named<double, Trsm>("blas.dtrsm"),
    named<float, OpenClPotrf>("lapack.spotrf"), named<double, OpenClPotrf>("lapack.dpotrf"),
    {"mem.set", call_or_enqueue<set>},          {"mem.copy", call_or_enqueue<copy>},
};

}  // namespace

weir_host_function opencl_code(std::string_view kernel) noexcept {
  for (const NamedCode& known : kCodes) {
    if (known.name == kernel) return known.function;
  }
  return nullptr;
}

}  // namespace weir::kernels
