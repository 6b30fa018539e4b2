/* Messages, collective operations, one-sided operations and halos as actions of streams. */
#pragma once

#include <stdint.h>

#include <weir/communicator.h>
#include <weir/fabric.h>
#include <weir/grid.h>
#include <weir/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Enqueues the send of a region of the instance of the stream's domain to rank `to` of a
 * communicator, as ncclSend or a starpu_mpi send: kernels before it that write the region are
 * complete when it starts, those after it that write the region wait until it is sent, and no
 * thread waits. Device memory is copied through page-locked host memory.
 *
 * The n-th send with a tag to a rank matches the n-th receive with this tag from the sender, in the
 * order in which each rank enqueues them, whatever order the streams run them in. Both have the
 * same number of bytes; the shape may differ. If an action is poisoned or cancelled, or a rank is
 * lost, the matching one fails with NETWORK_ERROR.
 *
 * weir_communicator_revoke() makes the messages of the calling rank fail, and so the matching ones.
 *
 * The runtime of the stream has the fabric of the communicator (weir_runtime_options.fabric), which
 * may be destroyed before the action is complete.
 */
WEIR_API weir_status weir_stream_send(weir_stream* stream, weir_communicator* communicator,
                                      unsigned to, uint32_t tag, weir_buffer* buffer,
                                      weir_region region, weir_event* out_event);

/** Enqueues the matching receive. INVALID_ARGUMENT as its outcome: the sizes differ. */
WEIR_API weir_status weir_stream_receive(weir_stream* stream, weir_communicator* communicator,
                                         unsigned from, uint32_t tag, weir_buffer* buffer,
                                         weir_region region, weir_event* out_event);

/** What a collective operation does with the memory of the ranks. */
typedef enum weir_collective_kind {
  WEIR_COLLECTIVE_BROADCAST = 0,  /**< `region` of rank `root` to that of the others */
  WEIR_COLLECTIVE_REDUCE = 1,     /**< combines the numbers in `region`, in place */
  WEIR_COLLECTIVE_GATHER = 2,     /**< `region` of rank r to part r of `all_region` of `root` */
  WEIR_COLLECTIVE_SCATTER = 3,    /**< part r of `all_region` of `root` to `region` of rank r */
  WEIR_COLLECTIVE_ALL_TO_ALL = 4, /**< part r of `region` to rank r; `all_region` is received */
} weir_collective_kind;

/** A collective operation of a stream. */
typedef struct weir_collective {
  size_t struct_size;
  weir_collective_kind kind;
  unsigned root;           /**< of a reduction or gather also WEIR_ALL_RANKS */
  weir_buffer* buffer;     /**< what the rank contributes or receives */
  weir_region region;      /**< of it; the same size on all ranks */
  weir_buffer* all_buffer; /**< has a part for each rank, in their order; NULL where not used */
  weir_region all_region;
  weir_reduction reduction; /**< of REDUCE */
} weir_collective;
#define WEIR_COLLECTIVE_INIT                                                                   \
  {                                                                                            \
    sizeof(weir_collective), WEIR_COLLECTIVE_BROADCAST, 0, NULL, {0, {0, 0, 0}, {0, 0}}, NULL, \
        {0, {0, 0, 0}, {0, 0}}, WEIR_REDUCTION_INIT                                            \
  }

/**
 * Enqueues a collective operation, as MPI's nonblocking ones or ncclAllReduce: kernels before it
 * that write its regions are complete when it starts, those after it wait for its completion, and
 * no thread waits. Regions are those of the instances of the stream's domain; device memory is
 * copied through page-locked host memory.
 *
 * All ranks of the communicator enqueue the same operations in the same order, in any streams.
 * These operations are independent of those of <weir/communicator.h>. A reduction combines numbers
 * in the order of the ranks: all ranks get the same bits, on every run. Its function runs on a
 * thread of weir.
 *
 * If the action is poisoned or cancelled on one rank, or a rank is lost, it fails with
 * NETWORK_ERROR on those ranks that need its data. If ranks enqueue different operations, all
 * messages of the communicator fail with INVALID_ARGUMENT.
 */
WEIR_API weir_status weir_stream_collective(weir_stream* stream, weir_communicator* communicator,
                                            const weir_collective* collective,
                                            weir_event* out_event);

/**
 * Enqueues the copy of a region of the instance of the stream's domain to the bytes from `offset`
 * in the part of rank `to` of a window, as nvshmemx_putmem_on_stream: kernels before it that write
 * the region are complete when it starts, and it is complete when the rank can read the bytes. The
 * rank takes no part: a message that a later action of the stream sends tells it. Device memory is
 * copied through page-locked host memory. A get copies from the part of rank `from`.
 *
 * The part is host memory: it has the region's rows one after the other. INVALID_ARGUMENT: the part
 * has no such bytes. As its outcome NETWORK_ERROR: the rank is lost; INVALID_ARGUMENT: it has ended
 * the window. The window may be destroyed when the action is complete. The runtime of the stream
 * has the fabric of the window (weir_runtime_options.fabric).
 */
WEIR_API weir_status weir_stream_put(weir_stream* stream, weir_window* window, unsigned to,
                                     size_t offset, weir_buffer* buffer, weir_region region,
                                     weir_event* out_event);
WEIR_API weir_status weir_stream_get(weir_stream* stream, weir_window* window, unsigned from,
                                     size_t offset, weir_buffer* buffer, weir_region region,
                                     weir_event* out_event);

/**
 * Enqueues a step of a halo: weir_halo_start() and weir_halo_finish() without a thread that waits.
 * The operands are regions of host memory: READ for cells that other blocks need, WRITE for halos.
 * The step starts when the actions before it on these regions are complete, and actions after it on
 * them wait until all halos are filled; others, such as a kernel on the inner cells, run meanwhile.
 * On a device's stream download the faces before it and upload the halos after it:
 * weir_grid_region().
 *
 * The ranks take the steps of a halo in the order in which their actions start, so the operands of
 * two steps overlap. No thread calls weir_halo_start() meanwhile. If the action is poisoned or
 * cancelled, the steps of the ranks that need its cells fail with NETWORK_ERROR, and the halo is
 * unusable. Destroying the halo earlier fails the steps of its actions that are not complete, with
 * INVALID_ARGUMENT. The runtime of the stream has the fabric of the halo
 * (weir_runtime_options.fabric).
 */
WEIR_API weir_status weir_stream_halo(weir_stream* stream, weir_halo* halo,
                                      const weir_operand* operands, size_t operand_count,
                                      weir_event* out_event);

#ifdef __cplusplus
}
#endif
