/* What the Fortran module calls: weir's functions without structs, strings end at NUL, "" is NULL.
 */
#pragma once

#include <ISO_Fortran_binding.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/weir.h>

/** Copies the message of the last failure on this thread, blank-padded as Fortran has it. Called
 * once after each failure. */
void weir_fortran_message(char* text, size_t capacity);

weir_status weir_fortran_runtime_create(const char* domains, const char* blas,
                                        weir_runtime** out_runtime);
weir_status weir_fortran_domain_name(const weir_domain* domain, char* text, size_t capacity);
weir_status weir_fortran_place_create(weir_domain* domain, size_t cores, bool oversubscribe,
                                      weir_place** out_place);
weir_status weir_fortran_stream_create(weir_place* place, const char* name, size_t max_in_flight,
                                       weir_stream** out_stream);
weir_status weir_fortran_queue_create(weir_runtime* runtime, const char* policy, bool no_models,
                                      weir_place* const* places, size_t place_count,
                                      size_t max_in_flight, weir_queue** out_queue);

/** Makes a buffer of an array without gaps, and describes the array: its first axis and the rest.
 */
weir_status weir_fortran_buffer_wrap(weir_runtime* runtime, const CFI_cdesc_t* array,
                                     const char* name, weir_buffer** out_buffer,
                                     weir_operand* out_whole);

/**
 * Describes a section of an array that lies in the buffer; NULL: all of the buffer. What cannot be
 * described becomes an operand without a buffer, which functions below refuse and explain.
 */
void weir_fortran_operand(weir_buffer* buffer, const CFI_cdesc_t* section, weir_access access,
                          weir_operand* out_operand);

weir_status weir_fortran_kernel_register(weir_runtime* runtime, const char* name,
                                         weir_host_function function, bool parallel,
                                         weir_kernel** out_kernel);
weir_status weir_fortran_call_fail(const weir_call* call, const char* message);

weir_status weir_fortran_compute(weir_stream* stream, const weir_kernel* kernel,
                                 const weir_operand* operands, size_t operand_count,
                                 const weir_scalar* scalars, size_t scalar_count, const char* name,
                                 weir_event* out_event);
weir_status weir_fortran_submit(weir_queue* queue, const weir_kernel* kernel,
                                const weir_operand* operands, size_t operand_count,
                                const weir_scalar* scalars, size_t scalar_count, const char* name,
                                int priority, weir_event* out_event);

weir_status weir_fortran_graph_begin(weir_queue* queue, weir_stream* stream, const char* name,
                                     bool record_only, weir_graph** out_graph);
weir_status weir_fortran_graph_launch(weir_graph* graph, const weir_binding* bindings,
                                      size_t binding_count, const weir_scalar* parameters,
                                      size_t parameter_count, weir_event* out_event);

/** direction: to the stream's domain if it is positive, to host memory otherwise. */
weir_status weir_fortran_move(weir_stream* stream, const weir_operand* part, int direction,
                              weir_event* out_event);
weir_status weir_fortran_transfer(weir_stream* stream, const weir_operand* source,
                                  weir_domain* source_domain, const weir_operand* target,
                                  weir_domain* target_domain, weir_event* out_event);
weir_status weir_fortran_sync(weir_stream* stream, const weir_event* events, size_t event_count,
                              const weir_operand* parts, size_t part_count, weir_sync_scope scope,
                              weir_event* out_event);
weir_status weir_fortran_acquire(weir_queue* queue, const weir_operand* part, int64_t timeout_ns);
weir_status weir_fortran_flush(weir_queue* queue, const weir_operand* part, weir_event* out_event);

weir_status weir_fortran_fabric_open(const char* transport, const char* progress,
                                     int64_t lost_after_ns, weir_fabric** out_fabric);

/* Data are arrays without gaps; the functions check the sizes that belong together. */

weir_status weir_fortran_send(weir_fabric* fabric, unsigned to, const CFI_cdesc_t* message);
weir_status weir_fortran_window_create(weir_fabric* fabric, const CFI_cdesc_t* array,
                                       int64_t timeout_ns, weir_window** out_window,
                                       size_t* out_element_bytes);
weir_status weir_fortran_put(weir_window* window, unsigned rank, size_t offset,
                             const CFI_cdesc_t* data);
weir_status weir_fortran_get(weir_window* window, unsigned rank, size_t offset,
                             const CFI_cdesc_t* data);
weir_status weir_fortran_broadcast(weir_communicator* communicator, unsigned root,
                                   const CFI_cdesc_t* data, int64_t timeout_ns);
weir_status weir_fortran_gather(weir_communicator* communicator, unsigned root,
                                const CFI_cdesc_t* own, const CFI_cdesc_t* all, int64_t timeout_ns);
weir_status weir_fortran_scatter(weir_communicator* communicator, unsigned root,
                                 const CFI_cdesc_t* all, const CFI_cdesc_t* own,
                                 int64_t timeout_ns);
weir_status weir_fortran_all_to_all(weir_communicator* communicator, const CFI_cdesc_t* parts,
                                    const CFI_cdesc_t* received, int64_t timeout_ns);
weir_status weir_fortran_reduce(weir_communicator* communicator, unsigned root,
                                const CFI_cdesc_t* values, weir_number type, weir_fabric_op op,
                                int64_t timeout_ns);
weir_status weir_fortran_scan(weir_communicator* communicator, bool exclusive,
                              const CFI_cdesc_t* values, weir_number type, weir_fabric_op op,
                              int64_t timeout_ns);

/** periodic: 0 or 1. blocks: all 0 for one block of each rank. list: used if it has blocks. */
weir_status weir_fortran_grid_create(unsigned dimensions, const size_t cells[3],
                                     const size_t periodic[3], unsigned ranks,
                                     const size_t blocks[3], const weir_grid_block* list,
                                     size_t list_count, weir_grid** out_grid);
weir_status weir_fortran_grid_blocks(const weir_grid* grid, weir_grid_block* blocks,
                                     size_t capacity, size_t* out_count);

/** An array with the cells of a block and its halo; element_bytes is 0 for one that cannot be. */
typedef struct weir_fortran_cells {
  void* address;
  size_t element_bytes, extent[3], stride[2];
} weir_fortran_cells;

void weir_fortran_grid_array(const CFI_cdesc_t* array, weir_fortran_cells* out_cells);

/** arrays: all fields of each block of this rank, block after block; on a rank without blocks an
 * array of each field. A failure on one rank is one on all. */
weir_status weir_fortran_halo_create(weir_fabric* fabric, const weir_grid* grid,
                                     const weir_fortran_cells* arrays, size_t array_count,
                                     const size_t width[3], bool corners, bool check,
                                     int64_t timeout_ns, weir_halo** out_halo);
