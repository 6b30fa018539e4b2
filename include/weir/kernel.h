/* Kernels: named functions with one implementation for each kind of domain. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <weir/runtime.h>
#include <weir/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a compute action may use a region. */
typedef enum weir_access {
  WEIR_ACCESS_READ = 1,
  WEIR_ACCESS_WRITE = 2,
  WEIR_ACCESS_READ_WRITE = 3,
  /** For tasks of a queue only: read-write, in any order with others that commute. */
  WEIR_ACCESS_COMMUTE = 7,
  /** For tasks of a queue only: read-write of a partial result, see weir_task::combine. */
  WEIR_ACCESS_REDUCE = 11
} weir_access;

typedef enum weir_scalar_type {
  WEIR_SCALAR_TYPE_I64 = 0,
  WEIR_SCALAR_TYPE_U64 = 1,
  WEIR_SCALAR_TYPE_F32 = 2,
  WEIR_SCALAR_TYPE_F64 = 3
} weir_scalar_type;

/** One scalar argument, copied when the action is enqueued. */
typedef struct weir_scalar {
  weir_scalar_type type;
  union {
    int64_t i64;
    uint64_t u64;
    float f32;
    double f64;
  } value;
} weir_scalar;

static inline weir_scalar weir_scalar_i64(int64_t value) {
  weir_scalar scalar;
  scalar.type = WEIR_SCALAR_TYPE_I64;
  scalar.value.i64 = value;
  return scalar;
}
static inline weir_scalar weir_scalar_u64(uint64_t value) {
  weir_scalar scalar;
  scalar.type = WEIR_SCALAR_TYPE_U64;
  scalar.value.u64 = value;
  return scalar;
}
static inline weir_scalar weir_scalar_f32(float value) {
  weir_scalar scalar;
  scalar.type = WEIR_SCALAR_TYPE_F32;
  scalar.value.f32 = value;
  return scalar;
}
static inline weir_scalar weir_scalar_f64(double value) {
  weir_scalar scalar;
  scalar.type = WEIR_SCALAR_TYPE_F64;
  scalar.value.f64 = value;
  return scalar;
}

/** An operand of a kernel: its location in the memory of the domain that runs the kernel. */
typedef struct weir_view {
  void* address;    /**< of the first byte of the region */
  size_t extent[3]; /**< bytes of a row, number of rows, number of planes; all at least 1 */
  size_t stride[2]; /**< bytes between rows and planes */
  weir_access access;
} weir_view;

/** The threads of a place while it runs a parallel kernel. */
typedef struct weir_team weir_team;

/** Arguments of one call of a host kernel; valid during the call. */
typedef struct weir_call {
  const weir_scalar* scalars;
  size_t scalar_count;
  const weir_view* operands; /**< in the order in which they were enqueued */
  size_t operand_count;
  weir_team* team;  /**< of a parallel kernel; NULL for a serial one */
  const char* name; /**< of the action */
  void* payload;    /**< weir_implementation::payload */
  void* queue;      /**< native queue of the place for kernels that enqueue their work there without
                       waiting: a CUstream for kind "cuda"; for kind "opencl", on a GPU or another
                      accelerator, an in-order cl_command_queue; NULL otherwise */
} weir_call;

/**
 * A kernel for host cores. Returns WEIR_STATUS_OK, or weir_call_fail(...); a C++ exception that
 * leaves it counts as a failure with its what(). Several calls may run at once on different
 * operands. It must not wait for weir events or streams.
 */
typedef weir_status (*weir_host_function)(const weir_call* call);

/**
 * Fails the action with a message: `return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "...")`.
 * Returns status. Call it only on the thread that runs the kernel.
 */
WEIR_API weir_status weir_call_fail(const weir_call* call, weir_status status, const char* format,
                                    ...) WEIR_PRINTF(3, 4);

/** Returns the number of threads of the team; 1 for NULL. */
WEIR_API size_t weir_team_size(const weir_team* team);

/** Body of a team loop: handles the indices [begin, end) as team member `member`. */
typedef void (*weir_team_body)(size_t begin, size_t end, size_t member, void* payload);

/**
 * Runs body over [0, count) on all threads of the team in chunks of at least grain indices, and
 * returns when all are done. Call it only from the kernel. With team == NULL, and inside another
 * loop or function of the team, the calling thread runs all of it.
 */
WEIR_API void weir_team_for(weir_team* team, size_t count, size_t grain, weir_team_body body,
                            void* payload);

/** Code of one team member: member < weir_team_size(team). */
typedef void (*weir_team_function)(weir_team* team, size_t member, void* payload);

/**
 * Runs function once on every thread of the team at the same time; returns when all have. Not
 * inside another loop or function of the team: the action fails.
 */
WEIR_API void weir_team_run(weir_team* team, weir_team_function function, void* payload);

/** Waits inside weir_team_run() until every member has called it. */
WEIR_API void weir_team_barrier(weir_team* team);

/** How a kernel uses its place. */
typedef enum weir_kernel_shape {
  WEIR_KERNEL_SHAPE_SERIAL = 0,  /**< one thread; several actions of a place run at once */
  WEIR_KERNEL_SHAPE_PARALLEL = 1 /**< the whole place: a team, or OpenMP with its thread count */
} weir_kernel_shape;

/** Work of one call, for simulated devices in virtual time and for rates in reports. */
typedef struct weir_cost {
  double flops;
  double bytes;
} weir_cost;
typedef weir_cost (*weir_cost_function)(const weir_call* call);

/** Code of a kernel for one kind of domain. */
typedef struct weir_implementation {
  const char* backend; /**< "host" (runs on "sim" and "opencl", too), or "sim", "opencl", "cuda" for
                          specific code */
  weir_host_function function;
  void* payload; /**< passed to every call */
} weir_implementation;

typedef struct weir_kernel_options {
  size_t struct_size;
  const char* name; /**< unique in the runtime; copied */
  weir_kernel_shape shape;
  const weir_implementation* implementations;
  size_t implementation_count;
  weir_cost_function cost; /**< may be NULL: virtual time then measures the kernel */
  void (*release)(
      void* payload); /**< called once for each payload when the runtime ends; may be NULL */
} weir_kernel_options;
#define WEIR_KERNEL_OPTIONS_INIT \
  { sizeof(weir_kernel_options), NULL, WEIR_KERNEL_SHAPE_SERIAL, NULL, 0, NULL, NULL }

/** A registered kernel. Borrowed from the runtime, which frees it. */
typedef struct weir_kernel weir_kernel;

/** Registers a kernel under its name; INVALID_ARGUMENT when the name is taken. */
WEIR_API weir_status weir_kernel_register(weir_runtime* runtime, const weir_kernel_options* options,
                                          weir_kernel** out_kernel);

/**
 * A kernel in the dialect of <weir/portable.h>. For the host WEIR_KERNEL() defines one under the
 * kernel's name; for a kernel with source only, fill one in.
 */
typedef struct weir_portable_kernel {
  const char* name;       /**< in the text */
  uint32_t group[3];      /**< items of a group: X, Y, Z; none is 0 */
  const char* parameters; /**< a letter for each, 64 at most: 'p' pointer; 'i' and 'u', 'l' and 'm'
                             signed and unsigned integers of 32 and 64 bits; 'f', 'd' */
  /** Runs the groups with the indices [begin, end), x fastest; arguments point to the values of the
      parameters. NULL, like run_backwards: the kernel has no host code. */
  void (*run)(const uint32_t groups[3], uint64_t begin, uint64_t end, void* const* arguments);
  void (*run_backwards)(const uint32_t groups[3], uint64_t begin, uint64_t end,
                        void* const* arguments);
} weir_portable_kernel;

/**
 * Computes the number of groups of a call from the scalars and the extents of the operands: writes
 * out_groups, initially 1, 1, 1. Must not access the data. A 0 means that the call does nothing; at
 * most 2^31 - 1 in x and 65535 in y and z. Called on any thread.
 */
typedef void (*weir_grid_function)(const weir_call* call, uint32_t out_groups[3]);

typedef struct weir_portable_options {
  size_t struct_size;
  const char* name;                   /**< unique in the runtime; NULL: the name in the source */
  const weir_portable_kernel* kernel; /**< copied; must have host code unless `source` is given */
  const char* source;      /**< source text, for devices with a compiler; NULL: host only */
  const char* source_name; /**< for messages of compilers; NULL: the kernel's name */
  weir_grid_function grid;
  weir_kernel_shape shape; /**< shape on the host; default parallel */
  weir_cost_function cost; /**< as in weir_kernel_options */
  /** Native code for some backends, used there in place of the portable code. It gets operands and
   * scalars as they were enqueued. */
  const weir_implementation* implementations;
  size_t implementation_count;
  void (*release)(void* payload); /**< of these implementations */
  /** Groups may wait for each other, because all of them are resident on the device at the same
   * time. The grid is the maximum number of groups, along x; as many run as fit. Only for CUDA
   * source: other devices cannot run such a kernel. */
  bool resident;
} weir_portable_options;
#define WEIR_PORTABLE_OPTIONS_INIT                                                                 \
  {                                                                                                \
    sizeof(weir_portable_options), NULL, NULL, NULL, NULL, NULL, WEIR_KERNEL_SHAPE_PARALLEL, NULL, \
        NULL, 0, NULL, false                                                                       \
  }

/**
 * Registers a portable kernel; INVALID_ARGUMENT when the name is taken. Devices with a compiler run
 * its source, if any; devices that run host code run its host code. A device compiles the source
 * when the kernel first runs there: a compiler error fails the action.
 *
 * An action gives as many operands as the kernel has pointers and as many scalars as it has other
 * parameters. Scalars are converted to the types of the parameters. A float or double parameter
 * accepts integers; an integer parameter rejects f32 and f64 scalars. Values out of range are
 * rejected, too (INVALID_ARGUMENT from weir_stream_compute()).
 */
WEIR_API weir_status weir_kernel_register_portable(weir_runtime* runtime,
                                                   const weir_portable_options* options,
                                                   weir_kernel** out_kernel);

/**
 * Finds a kernel by name.
 *
 * Built in, all on column-major tiles with scalars and operands in BLAS order (T = s or d):
 *   blas.Tgemm   (transa, transb, alpha, beta)        A read, B read, C read-write
 *   blas.Tsyrk   (uplo, trans, alpha, beta)           A read, C read-write
 *   blas.Ttrsm   (side, uplo, transa, diag, alpha)    A read, B read-write
 *   lapack.Tpotrf (uplo, first)                       A read-write
 *   lapack.Tgetrf ()                                  A read-write, pivots write (int32, 1-based)
 *   mem.set      (byte)                               X write
 *   mem.copy     ()                                   X read, Y write, same shape, no overlap
 * Options are the letters of the BLAS standard as i64 ('N', 'T', 'L', 'U', 'R'). Each has a variant
 * with the suffix ".team" that uses the whole place. Sizes follow from the regions.
 */
WEIR_API weir_status weir_kernel_find(const weir_runtime* runtime, const char* name,
                                      weir_kernel** out_kernel);

#ifdef __cplusplus
}
#endif
