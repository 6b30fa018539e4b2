/* Messages between ranks as actions of streams. */
#pragma once

#include <stdint.h>

#include <weir/communicator.h>
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

#ifdef __cplusplus
}
#endif
