#define _POSIX_C_SOURCE 200809L /* strnlen */
#include "shim.h"

#include <stdio.h>
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

weir_status weir_fortran_buffer_wrap(weir_runtime* runtime, const CFI_cdesc_t* array,
                                     const char* name, weir_buffer** out_buffer,
                                     weir_operand* out_whole) {
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.name = given(name);
  options.alignment = 1;
  if (array->rank > 0 && array->dim[array->rank - 1].extent < 0) {
    return refuse("an array of assumed size has no size: pass it with its bounds, a(:n)");
  }
  if (array->base_addr == NULL || bytes_of(array) == 0)
    return refuse("the array is empty or not allocated");
  if (!CFI_is_contiguous(array)) {
    return refuse("the section has gaps: wrap the whole array, and use sections of it as operands");
  }
  const size_t bytes = bytes_of(array);
  const weir_status status =
      weir_buffer_wrap(runtime, array->base_addr, bytes, &options, out_buffer);
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
