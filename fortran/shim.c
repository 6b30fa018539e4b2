#define _POSIX_C_SOURCE 200809L /* strnlen */
#include "shim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Messages ---------------------------------------------------------------------------------
 */

static _Thread_local const char* own_message = NULL; /* of a failure that weir does not know */

static weir_status refuse(const char* message) {
  own_message = message;
  return WEIR_STATUS_INVALID_ARGUMENT;
}

static weir_status pass(weir_status status) {
  own_message = NULL;
  return status;
}

void weir_fortran_message(char* text, size_t capacity) {
  const char* const said = own_message != NULL ? own_message : weir_last_error();
  const size_t size = strnlen(said, capacity);
  memcpy(text, said, size);
  memset(text + size, ' ', capacity - size);
  own_message = NULL;
}

static const char* given(const char* text) { return text != NULL && text[0] != '\0' ? text : NULL; }

/* ---- Resources --------------------------------------------------------------------------------
 */

weir_status weir_fortran_runtime_create(const char* domains, const char* blas,
                                        weir_runtime** out_runtime) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = given(domains);
  options.blas = given(blas);
  return pass(weir_runtime_create(&options, out_runtime));
}

weir_status weir_fortran_domain_name(const weir_domain* domain, char* text, size_t capacity) {
  weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
  const weir_status status = pass(weir_domain_get_info(domain, &info));
  memset(text, ' ', capacity);
  if (status == WEIR_STATUS_OK) memcpy(text, info.name, strnlen(info.name, capacity));
  return status;
}

weir_status weir_fortran_place_create(weir_domain* domain, size_t cores, bool oversubscribe,
                                      weir_place** out_place) {
  weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
  options.core_count = cores;
  options.oversubscribe = oversubscribe;
  return pass(weir_place_create(domain, &options, out_place));
}

weir_status weir_fortran_stream_create(weir_place* place, const char* name, size_t max_in_flight,
                                       weir_stream** out_stream) {
  weir_stream_options options = WEIR_STREAM_OPTIONS_INIT;
  options.name = given(name);
  options.max_in_flight = max_in_flight;
  return pass(weir_stream_create(place, &options, out_stream));
}

weir_status weir_fortran_queue_create(weir_runtime* runtime, const char* policy, bool no_models,
                                      weir_place* const* places, size_t place_count,
                                      size_t max_in_flight, weir_queue** out_queue) {
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.policy = given(policy);
  options.no_models = no_models;
  options.places = places;
  options.place_count = place_count;
  options.max_in_flight = max_in_flight;
  return pass(weir_queue_create(runtime, &options, out_queue));
}

/* ---- Arrays -----------------------------------------------------------------------------------
 */

static size_t bytes_of(const CFI_cdesc_t* array) {
  size_t bytes = array->elem_len;
  for (int i = 0; i < array->rank; ++i) {
    bytes *= array->dim[i].extent > 0 ? (size_t)array->dim[i].extent : 0;
  }
  return bytes;
}

/* Finds the memory of an array without gaps; `gaps` is the message for one with gaps. */
static weir_status memory_of(const CFI_cdesc_t* array, const char* gaps, void** out_address,
                             size_t* out_bytes) {
  if (array->rank > 0 && array->dim[array->rank - 1].extent < 0) {
    return refuse("an array of assumed size has no size: pass it with its bounds, a(:n)");
  }
  *out_address = array->base_addr;
  *out_bytes = array->base_addr != NULL ? bytes_of(array) : 0;
  return *out_bytes == 0 || CFI_is_contiguous(array) ? WEIR_STATUS_OK : refuse(gaps);
}

weir_status weir_fortran_buffer_wrap(weir_runtime* runtime, const CFI_cdesc_t* array,
                                     const char* name, weir_buffer** out_buffer,
                                     weir_operand* out_whole) {
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.name = given(name);
  options.alignment = 1;
  void* address = NULL;
  size_t bytes = 0;
  const weir_status wrong = memory_of(
      array, "the section has gaps: wrap the whole array, and use sections of it as operands",
      &address, &bytes);
  if (wrong != WEIR_STATUS_OK) return wrong;
  if (bytes == 0) return refuse("the array is empty or not allocated");
  const weir_status status = weir_buffer_wrap(runtime, address, bytes, &options, out_buffer);
  if (status != WEIR_STATUS_OK) return pass(status);
  weir_region whole = weir_region_range(0, bytes);
  if (array->rank > 1) { /* columns, those of all planes in one sequence */
    whole.extent[0] = (size_t)array->dim[0].extent * array->elem_len;
    whole.extent[1] = bytes / whole.extent[0];
    whole.stride[0] = whole.extent[0];
  }
  *out_whole = (weir_operand){*out_buffer, whole, WEIR_ACCESS_READ};
  return WEIR_STATUS_OK;
}

/* Axes whose elements are evenly spaced. */
typedef struct {
  size_t length, stride;
} level;

static const char* const kProblems[] = {
    "is not a section of its buffer", "runs backwards or is empty",
    "has more gaps than a region, which has rows and planes: copy it, or pass it in parts"};
enum { OUTSIDE, BACKWARDS, GAPS };

/* Makes an operand that explain() refuses. */
static void spoil(weir_operand* operand, size_t problem) {
  operand->buffer = NULL;
  operand->region = weir_region_range(problem, 0);
}

/* The type of a scalar that was marked as a parameter with an impossible index. */
static const int kNoParameter = -1;

static weir_status explain_scalars(const weir_scalar* scalars, size_t count) {
  static _Thread_local char message[160];
  for (size_t i = 0; i < count; ++i) {
    if ((int)scalars[i].type != kNoParameter) continue;
    snprintf(message, sizeof message,
             "scalar %zu is a parameter with an impossible index: parameters count from 1", i + 1);
    return refuse(message);
  }
  return WEIR_STATUS_OK;
}

static weir_status explain(const weir_operand* operands, size_t count) {
  static _Thread_local char message[160];
  for (size_t i = 0; i < count; ++i) {
    if (operands[i].buffer != NULL || operands[i].region.extent[0] != 0) continue;
    if (operands[i].region.offset > GAPS) continue;
    snprintf(message, sizeof message, "operand %zu %s", i + 1,
             kProblems[operands[i].region.offset]);
    return refuse(message);
  }
  return WEIR_STATUS_OK;
}

/* Fills levels, the fastest first; returns how many, 0 for a section that has none. */
static size_t levels_of(const CFI_cdesc_t* section, level* levels) {
  size_t count = 1;
  levels[0] = (level){1, section->elem_len};
  for (int i = 0; i < section->rank; ++i) {
    const CFI_dim_t* const axis = &section->dim[i];
    if (axis->extent < 1 || (axis->extent > 1 && axis->sm <= 0)) return 0;
    const level next = {(size_t)axis->extent, (size_t)axis->sm};
    if (i == 0 && (next.stride == levels[0].stride || next.length == 1)) {
      levels[0].length = next.length;
    } else {
      levels[count++] = next;
    }
  }
  return count;
}

/* Joins levels without a gap between them until three are left; returns how many are. */
static size_t join_levels(level* levels, size_t count) {
  for (size_t i = 0; count > 3 && i + 1 < count;) {
    const bool joins =
        levels[i + 1].length == 1 || levels[i + 1].stride == levels[i].stride * levels[i].length;
    if (!joins) {
      ++i;
      continue;
    }
    levels[i].length *= levels[i + 1].length;
    memmove(&levels[i + 1], &levels[i + 2], (count - i - 2) * sizeof(level));
    --count;
  }
  return count;
}

void weir_fortran_operand(weir_buffer* buffer, const CFI_cdesc_t* section, weir_access access,
                          weir_operand* out_operand) {
  weir_buffer_info info = WEIR_BUFFER_INFO_INIT;
  level levels[CFI_MAX_RANK + 1];
  *out_operand = (weir_operand){buffer, weir_region_range(0, 1), access};
  if (weir_buffer_get_info(buffer, &info) != WEIR_STATUS_OK) return; /* weir will say so itself */
  out_operand->region = weir_region_range(0, info.bytes);
  if (section == NULL) return;
  const uintptr_t begin = (uintptr_t)info.address, at = (uintptr_t)section->base_addr;
  if (at < begin || at - begin >= info.bytes) return spoil(out_operand, OUTSIDE);
  const size_t found = levels_of(section, levels);
  if (found == 0) return spoil(out_operand, BACKWARDS);
  const size_t count = join_levels(levels, found);
  if (count > 3) return spoil(out_operand, GAPS);
  weir_region* const region = &out_operand->region;
  *region = weir_region_range(at - begin, levels[0].length * section->elem_len);
  for (size_t i = 1; i < count; ++i) {
    region->extent[i] = levels[i].length;
    region->stride[i - 1] = levels[i].stride;
  }
}

/* ---- Kernels ----------------------------------------------------------------------------------
 */

weir_status weir_fortran_kernel_register(weir_runtime* runtime, const char* name,
                                         weir_host_function function, bool parallel,
                                         weir_kernel** out_kernel) {
  const weir_implementation implementation = {"host", function, NULL};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.shape = parallel ? WEIR_KERNEL_SHAPE_PARALLEL : WEIR_KERNEL_SHAPE_SERIAL;
  options.implementations = &implementation;
  options.implementation_count = 1;
  return pass(weir_kernel_register(runtime, &options, out_kernel));
}

weir_status weir_fortran_call_fail(const weir_call* call, const char* message) {
  return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "%s", message);
}

/* ---- Actions ----------------------------------------------------------------------------------
 */

weir_status weir_fortran_compute(weir_stream* stream, const weir_kernel* kernel,
                                 const weir_operand* operands, size_t operand_count,
                                 const weir_scalar* scalars, size_t scalar_count, const char* name,
                                 weir_event* out_event) {
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = kernel;
  compute.operands = operands;
  compute.operand_count = operand_count;
  compute.scalars = scalars;
  compute.scalar_count = scalar_count;
  compute.name = given(name);
  weir_status wrong = explain(operands, operand_count);
  if (wrong == WEIR_STATUS_OK) wrong = explain_scalars(scalars, scalar_count);
  return wrong != WEIR_STATUS_OK ? wrong : pass(weir_stream_compute(stream, &compute, out_event));
}

weir_status weir_fortran_submit(weir_queue* queue, const weir_kernel* kernel,
                                const weir_operand* operands, size_t operand_count,
                                const weir_scalar* scalars, size_t scalar_count, const char* name,
                                int priority, weir_event* out_event) {
  weir_task task = WEIR_TASK_INIT;
  task.kernel = kernel;
  task.operands = operands;
  task.operand_count = operand_count;
  task.scalars = scalars;
  task.scalar_count = scalar_count;
  task.name = given(name);
  task.priority = priority;
  weir_status wrong = explain(operands, operand_count);
  if (wrong == WEIR_STATUS_OK) wrong = explain_scalars(scalars, scalar_count);
  return wrong != WEIR_STATUS_OK ? wrong : pass(weir_queue_submit(queue, &task, out_event));
}

weir_status weir_fortran_move(weir_stream* stream, const weir_operand* part, int direction,
                              weir_event* out_event) {
  const weir_status wrong = explain(part, 1);
  if (wrong != WEIR_STATUS_OK) return wrong;
  return pass(direction > 0 ? weir_stream_upload(stream, part->buffer, part->region, out_event)
                            : weir_stream_download(stream, part->buffer, part->region, out_event));
}

weir_status weir_fortran_transfer(weir_stream* stream, const weir_operand* source,
                                  weir_domain* source_domain, const weir_operand* target,
                                  weir_domain* target_domain, weir_event* out_event) {
  const weir_operand ends[] = {*source, *target};
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  transfer.source = (weir_endpoint){source_domain, source->buffer, source->region};
  transfer.target = (weir_endpoint){target_domain, target->buffer, target->region};
  const weir_status wrong = explain(ends, 2);
  return wrong != WEIR_STATUS_OK ? wrong : pass(weir_stream_transfer(stream, &transfer, out_event));
}

weir_status weir_fortran_sync(weir_stream* stream, const weir_event* events, size_t event_count,
                              const weir_operand* parts, size_t part_count, weir_sync_scope scope,
                              weir_event* out_event) {
  weir_sync sync = WEIR_SYNC_INIT;
  sync.events = events;
  sync.event_count = event_count;
  sync.operands = parts;
  sync.operand_count = part_count;
  sync.scope = scope;
  const weir_status wrong = explain(parts, part_count);
  return wrong != WEIR_STATUS_OK ? wrong : pass(weir_stream_sync(stream, &sync, out_event));
}

weir_status weir_fortran_acquire(weir_queue* queue, const weir_operand* part, int64_t timeout_ns) {
  const weir_status wrong = explain(part, 1);
  return wrong != WEIR_STATUS_OK ? wrong
                                 : pass(weir_queue_acquire(queue, part->buffer, part->region,
                                                           part->access, timeout_ns));
}

weir_status weir_fortran_flush(weir_queue* queue, const weir_operand* part, weir_event* out_event) {
  const weir_status wrong = explain(part, 1);
  return wrong != WEIR_STATUS_OK
             ? wrong
             : pass(weir_queue_flush(queue, part->buffer, part->region, out_event));
}

/* ---- Graphs -----------------------------------------------------------------------------------
 */

weir_status weir_fortran_graph_begin(weir_queue* queue, weir_stream* stream, const char* name,
                                     bool record_only, weir_graph** out_graph) {
  weir_graph_options options = WEIR_GRAPH_OPTIONS_INIT;
  options.name = given(name);
  options.queue = queue;
  options.stream = stream;
  options.record_only = record_only;
  *out_graph = NULL;
  return pass(weir_graph_begin(&options, out_graph));
}

weir_status weir_fortran_graph_launch(weir_graph* graph, const weir_binding* bindings,
                                      size_t binding_count, const weir_scalar* parameters,
                                      size_t parameter_count, weir_event* out_event) {
  weir_graph_launch_options options = WEIR_GRAPH_LAUNCH_OPTIONS_INIT;
  options.bindings = bindings;
  options.binding_count = binding_count;
  options.parameters = parameters;
  options.parameter_count = parameter_count;
  return pass(weir_graph_launch(graph, &options, out_event));
}

/* ---- Ranks ------------------------------------------------------------------------------------
 */

weir_status weir_fortran_fabric_open(const char* transport, const char* progress,
                                     int64_t lost_after_ns, weir_fabric** out_fabric) {
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.transport = given(transport);
  options.progress = given(progress);
  options.lost_after_ns = lost_after_ns;
  return pass(weir_fabric_open(&options, out_fabric));
}

/* Data of a call; its address is NULL when it has no elements. */
typedef struct {
  void* address;
  size_t bytes;
} block;

static weir_status block_of(const CFI_cdesc_t* array, block* out_block) {
  return memory_of(array, "the section has gaps: copy it to an array without gaps",
                   &out_block->address, &out_block->bytes);
}

weir_status weir_fortran_send(weir_fabric* fabric, unsigned to, const CFI_cdesc_t* message) {
  block data;
  const weir_status wrong = block_of(message, &data);
  if (wrong != WEIR_STATUS_OK) return wrong;
  return pass(weir_fabric_send(fabric, to, data.address, data.bytes));
}

weir_status weir_fortran_window_create(weir_fabric* fabric, const CFI_cdesc_t* array,
                                       int64_t timeout_ns, weir_window** out_window,
                                       size_t* out_element_bytes) {
  block data;
  *out_element_bytes = array->elem_len;
  const weir_status wrong = block_of(array, &data);
  if (wrong != WEIR_STATUS_OK) return wrong;
  return pass(weir_window_create(fabric, data.address, data.bytes, timeout_ns, out_window));
}

weir_status weir_fortran_put(weir_window* window, unsigned rank, size_t offset,
                             const CFI_cdesc_t* data) {
  block from;
  const weir_status wrong = block_of(data, &from);
  if (wrong != WEIR_STATUS_OK) return wrong;
  return pass(weir_window_put(window, rank, offset, from.address, from.bytes));
}

weir_status weir_fortran_get(weir_window* window, unsigned rank, size_t offset,
                             const CFI_cdesc_t* data) {
  block to;
  const weir_status wrong = block_of(data, &to);
  if (wrong != WEIR_STATUS_OK) return wrong;
  return pass(weir_window_get(window, rank, offset, to.address, to.bytes));
}

weir_status weir_fortran_broadcast(weir_communicator* communicator, unsigned root,
                                   const CFI_cdesc_t* data, int64_t timeout_ns) {
  block all;
  const weir_status wrong = block_of(data, &all);
  if (wrong != WEIR_STATUS_OK) return wrong;
  return pass(weir_communicator_broadcast(communicator, root, all.address, all.bytes, timeout_ns));
}

/* Describes `all` where it is used, which has as many bytes as `own` for each rank. */
static weir_status parts_of(weir_communicator* communicator, unsigned root, const CFI_cdesc_t* own,
                            const CFI_cdesc_t* all, block* out_own, block* out_all) {
  *out_all = (block){NULL, 0};
  weir_status wrong = block_of(own, out_own);
  if (wrong != WEIR_STATUS_OK) return wrong;
  if (root != WEIR_ALL_RANKS && root != weir_communicator_rank(communicator)) return wrong;
  wrong = block_of(all, out_all);
  const unsigned ranks = weir_communicator_size(communicator); /* 0: weir refuses it itself */
  if (wrong == WEIR_STATUS_OK && ranks > 0 && out_all->bytes != out_own->bytes * ranks) {
    return refuse("the array of all ranks does not have the size of the own one for each rank");
  }
  return wrong;
}

weir_status weir_fortran_gather(weir_communicator* communicator, unsigned root,
                                const CFI_cdesc_t* own, const CFI_cdesc_t* all,
                                int64_t timeout_ns) {
  block from, to;
  const weir_status wrong = parts_of(communicator, root, own, all, &from, &to);
  if (wrong != WEIR_STATUS_OK) return wrong;
  return pass(weir_communicator_gather(communicator, root, from.address, to.address, from.bytes,
                                       timeout_ns));
}

weir_status weir_fortran_scatter(weir_communicator* communicator, unsigned root,
                                 const CFI_cdesc_t* all, const CFI_cdesc_t* own,
                                 int64_t timeout_ns) {
  block from, to;
  const weir_status wrong = parts_of(communicator, root, own, all, &to, &from);
  if (wrong != WEIR_STATUS_OK) return wrong;
  return pass(weir_communicator_scatter(communicator, root, from.address, to.address, to.bytes,
                                        timeout_ns));
}

weir_status weir_fortran_all_to_all(weir_communicator* communicator, const CFI_cdesc_t* parts,
                                    const CFI_cdesc_t* received, int64_t timeout_ns) {
  block from, to = {NULL, 0};
  weir_status wrong = block_of(parts, &from);
  if (wrong == WEIR_STATUS_OK) wrong = block_of(received, &to);
  if (wrong != WEIR_STATUS_OK) return wrong;
  const unsigned ranks = weir_communicator_size(communicator);
  const size_t bytes = ranks > 0 ? from.bytes / ranks : 0;
  if (ranks > 0 && (from.bytes != bytes * ranks || to.bytes != from.bytes)) {
    return refuse("the arrays of an all-to-all exchange do not have equal parts for all ranks");
  }
  return pass(
      weir_communicator_all_to_all(communicator, from.address, to.address, bytes, timeout_ns));
}

/* Describes the numbers of a reduction or scan. */
static weir_status numbers_of(const CFI_cdesc_t* values, weir_number type, weir_fabric_op op,
                              block* out_values, weir_reduction* out_reduction) {
  *out_reduction = (weir_reduction)WEIR_REDUCTION_INIT;
  out_reduction->type = type;
  out_reduction->op = op;
  return block_of(values, out_values);
}

weir_status weir_fortran_reduce(weir_communicator* communicator, unsigned root,
                                const CFI_cdesc_t* values, weir_number type, weir_fabric_op op,
                                int64_t timeout_ns) {
  block all;
  weir_reduction reduction;
  const weir_status wrong = numbers_of(values, type, op, &all, &reduction);
  if (wrong != WEIR_STATUS_OK) return wrong;
  return pass(weir_communicator_reduce(communicator, root, all.address,
                                       all.bytes / values->elem_len, &reduction, timeout_ns));
}

weir_status weir_fortran_scan(weir_communicator* communicator, bool exclusive,
                              const CFI_cdesc_t* values, weir_number type, weir_fabric_op op,
                              int64_t timeout_ns) {
  block all;
  weir_reduction reduction;
  const weir_status wrong = numbers_of(values, type, op, &all, &reduction);
  if (wrong != WEIR_STATUS_OK) return wrong;
  const size_t count = all.bytes / values->elem_len;
  return pass(
      exclusive ? weir_communicator_exclusive_scan(communicator, all.address, count, &reduction,
                                                   timeout_ns)
                : weir_communicator_scan(communicator, all.address, count, &reduction, timeout_ns));
}

/* ---- Grids and halos --------------------------------------------------------------------------
 */

weir_status weir_fortran_grid_create(unsigned dimensions, const size_t cells[3],
                                     const size_t periodic[3], unsigned ranks,
                                     const size_t blocks[3], const weir_grid_block* list,
                                     size_t list_count, weir_grid** out_grid) {
  weir_grid_options options = WEIR_GRID_OPTIONS_INIT;
  options.dimensions = dimensions;
  options.ranks = ranks;
  for (int i = 0; i < 3; ++i) {
    options.cells[i] = cells[i];
    options.periodic[i] = periodic[i] != 0;
    options.blocks[i] = blocks[i];
  }
  options.list = list_count > 0 ? list : NULL;
  options.list_count = list_count;
  return pass(weir_grid_create(&options, out_grid));
}

weir_status weir_fortran_grid_blocks(const weir_grid* grid, weir_grid_block* blocks,
                                     size_t capacity, size_t* out_count) {
  weir_grid_info info = WEIR_GRID_INFO_INIT;
  const weir_status status = pass(weir_grid_get_info(grid, &info, blocks, capacity));
  *out_count = info.block_count;
  return status;
}

void weir_fortran_grid_array(const CFI_cdesc_t* array, weir_fortran_cells* out_cells) {
  *out_cells = (weir_fortran_cells){array->base_addr, 0, {1, 1, 1}, {0, 0}};
  if (array->base_addr == NULL || array->rank < 2 || array->rank > 3) return;
  for (int i = 0; i < array->rank; ++i) {
    const CFI_dim_t* const axis = &array->dim[i];
    const bool fits = i > 0 ? axis->sm > 0 : axis->sm == (CFI_index_t)array->elem_len;
    if (axis->extent < 1 || !fits) return;
    out_cells->extent[i] = (size_t)axis->extent;
    if (i > 0) out_cells->stride[i - 1] = (size_t)axis->sm;
  }
  out_cells->element_bytes = array->elem_len;
}

/* Describes array `index`, counted from 0, of a halo and its field. owner: its block, NULL on a
 * rank without blocks. Returns NULL, or the message that refuses the array. */
static const char* describe_cells(const weir_fortran_cells* cells, size_t index,
                                  const weir_grid_block* owner, const size_t width[3],
                                  weir_halo_field* field, weir_grid_array* out_array) {
  static _Thread_local char message[160];
  if (cells->element_bytes == 0) {
    snprintf(message, sizeof message,
             "array %zu of the halo needs rank 2 or 3, and no gaps in its first dimension",
             index + 1);
    return message;
  }
  if (field->element_bytes == 0) field->element_bytes = cells->element_bytes;
  if (field->element_bytes != cells->element_bytes) {
    snprintf(message, sizeof message,
             "array %zu of the halo has elements of %zu bytes, its field of %zu", index + 1,
             cells->element_bytes, field->element_bytes);
    return message;
  }
  for (int i = 0; owner != NULL && i < 3; ++i) {
    const size_t extent = (size_t)(owner->cells.end[i] - owner->cells.begin[i]) + 2 * width[i];
    if (cells->extent[i] == extent) continue;
    snprintf(message, sizeof message,
             "array %zu of the halo has %zu cells in dimension %d: the block and its halo have %zu",
             index + 1, cells->extent[i], i + 1, extent);
    return message;
  }
  out_array->row = cells->stride[0];
  out_array->plane = cells->stride[1];
  out_array->first = (char*)cells->address + width[0] * cells->element_bytes +
                     width[1] * out_array->row + width[2] * out_array->plane;
  return NULL;
}

weir_status weir_fortran_halo_create(weir_fabric* fabric, const weir_grid* grid,
                                     const weir_fortran_cells* arrays, size_t array_count,
                                     const size_t width[3], bool corners, bool check,
                                     int64_t timeout_ns, weir_halo** out_halo) {
  weir_grid_info info = WEIR_GRID_INFO_INIT;
  weir_halo_options options = WEIR_HALO_OPTIONS_INIT;
  if (weir_grid_get_info(grid, &info, NULL, 0) != WEIR_STATUS_OK) info.block_count = 0;
  for (unsigned i = 0; i < 3; ++i) options.width[i] = i < info.dimensions ? width[i] : 0;
  options.corners = corners;
  options.check = check;
  options.timeout_ns = timeout_ns;
  weir_grid_block* const blocks = calloc(info.block_count + 1, sizeof *blocks);
  weir_halo_field* const fields = calloc(array_count + 1, sizeof *fields);
  weir_grid_array* const described = calloc(array_count + 1, sizeof *described);
  const char* wrong = NULL;
  if (blocks == NULL || fields == NULL || described == NULL) {
    wrong = "there is no memory for the plan of a halo";
  } else {
    const unsigned rank = weir_fabric_rank(fabric);
    size_t own = 0;
    weir_grid_get_info(grid, &info, blocks, info.block_count);
    for (size_t i = 0; i < info.block_count; ++i) {
      if (blocks[i].rank == rank) blocks[own++] = blocks[i];
    }
    options.field_count = own > 0 ? array_count / own : array_count;
    if (array_count == 0 || (own > 0 && array_count % own != 0)) {
      wrong = "a halo needs an array of each field for each block of this rank";
    }
    for (size_t i = 0; wrong == NULL && i < array_count; ++i) {
      wrong = describe_cells(&arrays[i], i, own > 0 ? &blocks[i / options.field_count] : NULL,
                             options.width, &fields[i % options.field_count], &described[i]);
    }
    options.arrays = described;
    options.array_count = own > 0 ? array_count : 0;
  }
  /* Without fields the creation fails on all ranks, so that none waits for this one. */
  if (wrong == NULL) options.fields = fields;
  const weir_status status = pass(weir_halo_create(fabric, grid, &options, out_halo));
  free(described);
  free(fields);
  free(blocks);
  return wrong != NULL ? refuse(wrong) : status;
}
