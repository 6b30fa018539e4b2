#include "walk_flows.hpp"

#include <atomic>
#include <cstring>

#include <weir/weir.h>

namespace faults {

namespace {

constexpr std::size_t kRows = 4, kColumns = 32, kTasks = 6, kItems = 60, kNumbers = 500, kEdge = 16;

alignas(64) int rows[kRows][kColumns], total[kColumns];
alignas(64) int sources[kItems], results[kItems];

// ---- Kernels -----------------------------------------------------------------------------------

weir_status add_kernel(const weir_call* call) {
  auto* const out = static_cast<int*>(call->operands[0].address);
  for (std::size_t i = 0; i < call->operands[0].extent[0] / sizeof(int); ++i) ++out[i];
  return WEIR_STATUS_OK;
}

/// Adds the second operand to the first: a task that reduces, and what combines partial results.
weir_status sum_kernel(const weir_call* call) {
  auto* const out = static_cast<int*>(call->operands[0].address);
  const auto* const in = static_cast<const int*>(call->operands[1].address);
  for (std::size_t i = 0; i < call->operands[0].extent[0] / sizeof(int); ++i) out[i] += in[i];
  return WEIR_STATUS_OK;
}

/// Puts the items that it gets.
weir_status forward_kernel(const weir_call* call) {
  std::memcpy(call->operands[1].address, call->operands[0].address, call->operands[0].extent[0]);
  return WEIR_STATUS_OK;
}

/// Adds one to all values of a tile of a stencil.
weir_status tile_kernel(const weir_call* call) {
  const auto scalar = [&](std::size_t i) { return call->scalars[i].value.i64; };
  auto* const to = static_cast<int*>(call->operands[0].address);
  const auto* const from = static_cast<const int*>(call->operands[1].address);
  for (std::int64_t r = 0; r < scalar(0); ++r) {
    for (std::int64_t c = 0; c < scalar(1); ++c) {
      to[r * scalar(2) + c] = from[(r + scalar(3)) * scalar(2) + c + scalar(4)] + 1;
    }
  }
  return WEIR_STATUS_OK;
}

bool add(const Flows& flows, const char* name, weir_host_function function, weir_kernel** kernel) {
  const weir_implementation codes[] = {{"host", function, nullptr}, {"sim", function, nullptr}};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.implementations = codes;
  options.implementation_count = 2;
  return flows.took(weir_kernel_register(flows.runtime, &options, kernel), "a kernel of the flows");
}

// ---- Task queues -------------------------------------------------------------------------------

bool submit(const Flows& flows, weir_queue* queue, weir_task task, const weir_operand* operands,
            std::size_t count) {
  task.operands = operands;
  task.operand_count = count;
  return flows.took(weir_queue_submit(queue, &task, nullptr), "queue_submit");
}

weir_region row_of(std::size_t row) {
  return weir_region_range(row * sizeof rows[0], sizeof rows[0]);
}

/// Reads rows between tasks. Returns whether nothing failed.
bool read_rows(const Flows& flows, weir_queue* queue) {
  weir_queue_info info = WEIR_QUEUE_INFO_INIT;
  if (!flows.took(weir_queue_flush(queue, flows.grid, row_of(0), nullptr), "queue_flush") ||
      !flows.took(weir_queue_acquire(queue, flows.grid, row_of(1), WEIR_ACCESS_READ, kLong),
                  "queue_acquire")) {
    return false;
  }
  for (const int value : rows[1]) {
    if (value == static_cast<int>(kTasks)) continue;
    flows.report.blame("a row that was acquired has %d instead of %zu", value, kTasks);
    break;
  }
  return flows.took(weir_queue_get_info(queue, &info, nullptr, 0), "queue_get_info");
}

}  // namespace

void walk_queue(const Flows& flows) {
  std::memset(rows, 0, sizeof rows);
  std::memset(total, 0, sizeof total);
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.no_models = true;
  weir_queue* queue = nullptr;
  if (!flows.took(weir_queue_create(flows.runtime, &options, &queue), "queue_create")) return;
  bool all = true;
  for (std::size_t i = 0; i < kTasks * kRows; ++i) {
    weir_task task = WEIR_TASK_INIT;
    task.kernel = flows.add;
    const weir_operand row = {flows.grid, row_of(i % kRows), WEIR_ACCESS_READ_WRITE};
    all = submit(flows, queue, task, &row, 1) && all;
  }
  all = all && read_rows(flows, queue);
  for (std::size_t i = 0; i < kRows; ++i) {
    weir_task task = WEIR_TASK_INIT;
    task.kernel = flows.sum;
    task.combine = flows.combine;
    const weir_operand operands[] = {
        {flows.sums, weir_region_range(0, sizeof total), WEIR_ACCESS_REDUCE},
        {flows.grid, row_of(i), WEIR_ACCESS_READ}};
    all = submit(flows, queue, task, operands, 2) && all;
  }
  all = flows.took(weir_queue_synchronize(queue, kLong), "queue_synchronize") && all;
  for (const int value : total) {
    if (all && value != static_cast<int>(kTasks * kRows)) {
      flows.report.blame("tasks gave %d instead of %zu", value, kTasks * kRows);
      break;
    }
  }
  weir_queue_destroy(queue);
}

namespace {

/// Records calls on all rows in a stream, and launches them twice.
void walk_graph_in(const Flows& flows, weir_stream* stream) {
  const weir_region whole = weir_region_range(0, sizeof rows);
  weir_graph_options options = WEIR_GRAPH_OPTIONS_INIT;
  options.stream = stream;
  weir_graph* graph = nullptr;
  std::memset(rows, 0, sizeof rows);
  if (!flows.took(weir_stream_upload(stream, flows.grid, whole, nullptr), "an upload") ||
      !flows.took(weir_graph_begin(&options, &graph), "graph_begin")) {
    return;
  }
  int calls = 0;
  for (std::size_t i = 0; i < kTasks * kRows; ++i) {
    weir_compute compute = WEIR_COMPUTE_INIT;
    const weir_operand row = {flows.grid, row_of(i % kRows), WEIR_ACCESS_READ_WRITE};
    compute.kernel = flows.add;
    compute.operands = &row;
    compute.operand_count = 1;
    if (flows.took(weir_stream_compute(stream, &compute, nullptr), "a recorded call")) ++calls;
  }
  bool all = flows.took(weir_graph_end(graph), "graph_end");
  for (int launch = 0; launch < 2 && all; ++launch)
    all = flows.took(weir_graph_launch(graph, nullptr, nullptr), "graph_launch");
  all = flows.took(weir_stream_download(stream, flows.grid, whole, nullptr), "a download") && all;
  all = flows.took(weir_stream_synchronize(stream, kLong), "the end of launches") && all;
  int sum = 0;
  for (const auto& row : rows) sum += row[0];
  if (all && sum != 3 * calls) {
    flows.report.blame("two launches of %d calls gave %d", calls, sum);
  }
  weir_graph_destroy(graph);
}

}  // namespace

void walk_graph(const Flows& flows) {
  const std::uint32_t core = 0;
  weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
  options.cores = &core;
  options.core_count = 1;
  options.oversubscribe = true;
  weir_place* place = nullptr;
  weir_stream* stream = nullptr;
  if (!flows.took(weir_place_create(weir_runtime_get_domain(flows.runtime, 0), &options, &place),
                  "the place of a graph")) {
    return;
  }
  if (flows.took(weir_stream_create(place, nullptr, &stream), "the stream of a graph")) {
    walk_graph_in(flows, stream);
    weir_stream_destroy(stream);
  }
  weir_place_destroy(place);
}

namespace {

/// The last place that has room.
std::size_t choose_place(const char*, const weir_candidate* candidates, std::size_t count, void*) {
  for (std::size_t i = count; i-- > 0;) {
    if (!candidates[i].full) return i;
  }
  return WEIR_POLICY_LATER;
}

/// Adds one to each row.
bool add_to_rows(const Flows& flows, weir_queue* queue, int priority) {
  bool all = true;
  for (std::size_t i = 0; i < kRows; ++i) {
    weir_task task = WEIR_TASK_INIT;
    task.kernel = flows.add;
    task.priority = priority;
    const weir_operand row = {flows.grid, row_of(i), WEIR_ACCESS_READ_WRITE};
    all = submit(flows, queue, task, &row, 1) && all;
  }
  return all;
}

/// By a policy of the program and kept times: tasks that are cancelled leave rows as tasks find
/// them.
void cancel_tasks(const Flows& flows, weir_queue* queue) {
  for (int priority = -1; priority <= 1; ++priority) add_to_rows(flows, queue, priority);
  bool all = flows.took(weir_queue_cancel(queue), "queue_cancel") &&
             flows.took(weir_queue_synchronize(queue, kLong), "queue_synchronize");
  int before[kRows];
  for (std::size_t i = 0; i < kRows; ++i) before[i] = rows[i][0];
  all = add_to_rows(flows, queue, 0) && all;
  all = flows.took(weir_queue_synchronize(queue, kLong), "queue_synchronize") && all;
  for (std::size_t i = 0; all && i < kRows * kColumns; ++i) {
    const int found = rows[i / kColumns][i % kColumns];
    if (found == before[i / kColumns] + 1) continue;
    flows.report.blame("after a cancel a task made %d of %d", found, before[i / kColumns]);
    break;
  }
}

void walk_cancel(const Flows& flows) {
  std::memset(rows, 0, sizeof rows);
  weir_policy_options policy = WEIR_POLICY_OPTIONS_INIT;
  policy.name = "the last with room";
  policy.choose = choose_place;
  if (!flows.took(weir_policy_register(flows.runtime, &policy), "policy_register")) return;
  weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
  options.policy = policy.name;
  weir_queue* queue = nullptr;
  if (!flows.took(weir_queue_create(flows.runtime, &options, &queue), "queue_create")) return;
  cancel_tasks(flows, queue);
  weir_queue_destroy(queue);
}

void walk_wisdom(const Flows& flows) {
  weir_wisdom kept = WEIR_WISDOM_INIT, found = WEIR_WISDOM_INIT;
  kept.tiles = 7;
  if (!flows.took(weir_wisdom_keep(flows.runtime, "a walk", 64, &kept), "wisdom_keep")) return;
  if (flows.took(weir_wisdom_find(flows.runtime, "a walk", 64, &found), "wisdom_find",
                 only(WEIR_STATUS_OK) | only(WEIR_STATUS_NOT_FOUND)) &&
      found.tiles != 7) {
    flows.report.blame("the wisdom that was kept has %zu tiles", found.tiles);
  }
}

// ---- Shares ------------------------------------------------------------------------------------

weir_status enqueue_chunk(const weir_chunk* chunk, void* payload, weir_event* out_event) {
  const auto& flows = *static_cast<const Flows*>(payload);
  const weir_region part =
      weir_region_range(chunk->first * sizeof(int), chunk->count * sizeof(int));
  const weir_operand operands[] = {{flows.from, part, WEIR_ACCESS_READ},
                                   {flows.to, part, WEIR_ACCESS_WRITE}};
  weir_compute call = WEIR_COMPUTE_INIT;
  call.kernel = flows.forward;
  call.operands = operands;
  call.operand_count = 2;
  weir_status status = weir_stream_upload(chunk->stream, flows.from, part, nullptr);
  if (status == WEIR_STATUS_OK) status = weir_stream_compute(chunk->stream, &call, nullptr);
  if (status != WEIR_STATUS_OK) return status;
  return weir_stream_download(chunk->stream, flows.to, part, out_event);
}

}  // namespace

void walk_share(const Flows& flows) {
  for (std::size_t i = 0; i < kItems; ++i) sources[i] = static_cast<int>(i), results[i] = 0;
  weir_share_options options = WEIR_SHARE_OPTIONS_INIT;
  options.items = kItems;
  options.chunks = "fixed:7";
  options.enqueue = enqueue_chunk;
  options.payload = const_cast<Flows*>(&flows);
  weir_share* share = nullptr;
  if (!flows.took(weir_share_start(flows.runtime, &options, &share), "share_start")) return;
  if (flows.took(weir_share_wait(share, kLong), "share_wait")) {
    for (std::size_t i = 0; i < kItems; ++i) {
      if (results[i] == sources[i]) continue;
      flows.report.blame("item %zu of the share is %d", i, results[i]);
      break;
    }
  }
  weir_share_destroy(share);
}

namespace {

// ---- Pipelines ---------------------------------------------------------------------------------

std::atomic<std::uint64_t> numbers_put, numbers_seen, sum_seen;

weir_status put_numbers(weir_batch* batch) {
  for (std::size_t i = 0; i < batch->count && numbers_put < kNumbers; ++i) {
    void* const room = weir_outlet_add(batch->outlets[0]);
    if (room == nullptr) return weir_batch_fail(batch, WEIR_STATUS_OUT_OF_MEMORY, "no room");
    const std::uint64_t number = numbers_put.fetch_add(1);
    std::memcpy(room, &number, sizeof number);
  }
  batch->over = numbers_put == kNumbers;
  return WEIR_STATUS_OK;
}

weir_status pass_numbers(weir_batch* batch) {
  for (std::size_t i = 0; i < batch->count; ++i) {
    void* const room = weir_outlet_add(batch->outlets[0]);
    batch->index = i;
    if (room == nullptr) return weir_batch_fail(batch, WEIR_STATUS_OUT_OF_MEMORY, "no room");
    std::memcpy(room, static_cast<const std::uint64_t*>(batch->items) + i, sizeof(std::uint64_t));
  }
  return WEIR_STATUS_OK;
}

weir_status take_numbers(weir_batch* batch) {
  for (std::size_t i = 0; i < batch->count; ++i) {
    sum_seen += static_cast<const std::uint64_t*>(batch->items)[i];
  }
  numbers_seen += batch->count;
  return WEIR_STATUS_OK;
}

/// With a place the stage in the middle is a kernel there.
void run_pipeline(const Flows& flows, weir_pipeline* pipeline, weir_place* card) {
  weir_stage_kernel kernel = WEIR_STAGE_KERNEL_INIT;
  kernel.kernel = flows.forward;
  kernel.batch = 16;
  kernel.in_flight = 2;
  weir_tunnel* tunnels[2] = {};
  for (weir_tunnel*& tunnel : tunnels) {
    weir_tunnel_options options = WEIR_TUNNEL_OPTIONS_INIT;
    options.item_bytes = sizeof(std::uint64_t);
    options.capacity = 16;
    if (!flows.took(weir_pipeline_add_tunnel(pipeline, &options, &tunnel), "add_tunnel")) return;
  }
  const weir_stage_function functions[] = {put_numbers, pass_numbers, take_numbers};
  for (std::size_t i = 0; i < 3; ++i) {
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.input = i > 0 ? tunnels[i - 1] : nullptr;
    options.outputs = i < 2 ? &tunnels[i] : nullptr;
    options.output_count = i < 2 ? 1 : 0;
    options.ordered = i == 1;
    if (i == 1 && card != nullptr) {
      options.kernel = &kernel;
      options.place = card;
    } else {
      options.function = functions[i];
    }
    if (!flows.took(weir_pipeline_add_stage(pipeline, &options), "add_stage")) return;
  }
  if (!flows.took(weir_pipeline_start(pipeline), "pipeline_start")) return;
  if (!flows.took(weir_pipeline_wait(pipeline, kLong), "pipeline_wait")) return;
  if (numbers_seen != kNumbers || sum_seen != kNumbers * (kNumbers - 1) / 2) {
    flows.report.blame("%u of %zu items came through the pipeline",
                       static_cast<unsigned>(numbers_seen), kNumbers);
  }
}

void walk_pipeline(const Flows& flows, weir_place* card) {
  numbers_put = numbers_seen = sum_seen = 0;
  weir_pipeline_options options = WEIR_PIPELINE_OPTIONS_INIT;
  options.batch = 8;
  weir_pipeline* pipeline = nullptr;
  if (!flows.took(weir_pipeline_create(flows.runtime, &options, &pipeline), "pipeline_create")) {
    return;
  }
  run_pipeline(flows, pipeline, card);
  weir_pipeline_destroy(pipeline);
}

constexpr std::uint64_t kEpochs = 3, kOfEpoch = 4;
std::atomic<std::uint64_t> epochs_told;
std::atomic<bool> forgotten;

/// Keeps each item and completes it at once.
weir_status keep_numbers(weir_batch* batch) {
  for (batch->index = 0; batch->index < batch->count; ++batch->index) {
    weir_item* item = nullptr;
    const weir_status status = weir_item_keep(batch, batch->index, &item);
    if (status != WEIR_STATUS_OK) return weir_batch_fail(batch, status, "%s", weir_last_error());
    weir_item_complete(item);
  }
  return take_numbers(batch);
}

weir_status forget_number(weir_batch* batch) {
  weir_item* item = nullptr;
  const weir_status status = weir_item_keep(batch, 0, &item);
  if (status != WEIR_STATUS_OK) return weir_batch_fail(batch, status, "%s", weir_last_error());
  forgotten = true;
  return WEIR_STATUS_OK;
}

weir_status put_at_end(weir_batch* batch) {
  void* const room = weir_outlet_add(batch->outlets[0]);
  if (room == nullptr) return weir_batch_fail(batch, WEIR_STATUS_OUT_OF_MEMORY, "no room");
  std::memset(room, 0, sizeof(std::uint64_t));
  return WEIR_STATUS_OK;
}

/// Two stages behind a feed, the last of which is the given one.
bool start_fed(const Flows& flows, weir_pipeline* pipeline, weir_stage_function last,
               weir_feed** feed) {
  weir_tunnel* tunnels[2] = {};
  for (weir_tunnel*& tunnel : tunnels) {
    weir_tunnel_options options = WEIR_TUNNEL_OPTIONS_INIT;
    options.item_bytes = sizeof(std::uint64_t);
    options.capacity = 16;
    if (!flows.took(weir_pipeline_add_tunnel(pipeline, &options, &tunnel), "add_tunnel")) {
      return false;
    }
  }
  weir_stage_options pass = WEIR_STAGE_OPTIONS_INIT, end = WEIR_STAGE_OPTIONS_INIT;
  pass.input = tunnels[0];
  pass.outputs = &tunnels[1];
  pass.output_count = 1;
  pass.function = pass_numbers;
  pass.at_end = put_at_end;
  end.input = tunnels[1];
  end.function = last;
  return flows.took(weir_pipeline_add_stage(pipeline, &pass), "add_stage") &&
         flows.took(weir_pipeline_add_stage(pipeline, &end), "add_stage") &&
         flows.took(weir_feed_open(tunnels[0], feed), "feed_open") &&
         flows.took(weir_pipeline_start(pipeline), "pipeline_start");
}

void feed_epochs(const Flows& flows, weir_pipeline* pipeline) {
  constexpr unsigned kStopped = only(WEIR_STATUS_OK) | only(WEIR_STATUS_CANCELLED);
  weir_feed* feed = nullptr;
  if (!start_fed(flows, pipeline, keep_numbers, &feed)) return;
  bool all = true;
  const std::uint64_t numbers[kOfEpoch] = {1, 2, 3, 4};
  for (std::uint64_t epoch = 0; all && epoch < kEpochs; ++epoch) {
    all =
        flows.took(weir_feed_put(feed, numbers, kOfEpoch, kLong, nullptr), "feed_put", kStopped) &&
        flows.took(weir_feed_next_epoch(feed), "feed_next_epoch");
  }
  weir_feed_close(feed);
  if (!flows.took(weir_pipeline_wait(pipeline, kLong), "pipeline_wait") || !all) return;
  // What is put at the end has an epoch of its own when the others were over before the feed
  // closed.
  const bool told = epochs_told == kEpochs || epochs_told == kEpochs + 1;
  if (numbers_seen != kEpochs * kOfEpoch + 1 || sum_seen != kEpochs * 10 || !told) {
    flows.report.blame("%u items of %u epochs came from a feed",
                       static_cast<unsigned>(numbers_seen), static_cast<unsigned>(epochs_told));
  }
}

/// Goes with an item that no thread completes.
void forget_item(const Flows& flows, weir_pipeline* pipeline) {
  weir_feed* feed = nullptr;
  if (!start_fed(flows, pipeline, forget_number, &feed)) return;
  const std::uint64_t number = 1;
  if (!flows.took(weir_feed_put(feed, &number, 1, kLong, nullptr), "feed_put")) return;
  constexpr unsigned kEither = only(WEIR_STATUS_OK) | only(WEIR_STATUS_TIMEOUT);
  weir_status status = WEIR_STATUS_TIMEOUT;
  while (!forgotten && status == WEIR_STATUS_TIMEOUT) {
    status = weir_pipeline_wait(pipeline, 1'000'000);
    flows.took(status, "pipeline_wait", kEither);
  }
  flows.took(weir_pipeline_cancel(pipeline), "pipeline_cancel");
}

/// With epochs, of which none waits for room: in virtual time only threads that wait work.
void walk_fed(const Flows& flows, void (*use)(const Flows&, weir_pipeline*)) {
  numbers_seen = sum_seen = epochs_told = 0;
  forgotten = false;
  weir_pipeline_options options = WEIR_PIPELINE_OPTIONS_INIT;
  options.epochs = kEpochs + 1;
  options.on_epoch = [](std::uint64_t, void*) { ++epochs_told; };
  weir_pipeline* pipeline = nullptr;
  if (!flows.took(weir_pipeline_create(flows.runtime, &options, &pipeline), "pipeline_create")) {
    return;
  }
  use(flows, pipeline);
  weir_pipeline_destroy(pipeline);
}

// ---- Stencils ----------------------------------------------------------------------------------

alignas(64) int before[kEdge][kEdge], after[kEdge][kEdge];
weir_stencil* the_stencil;

weir_status set_values(weir_batch* batch) {
  batch->over = true;
  const weir_status status =
      weir_stencil_set(the_stencil, batch->outlets[0], 0, 0, kEdge, kEdge, before, kEdge);
  if (status == WEIR_STATUS_OK) return status;
  return weir_batch_fail(batch, status, "%s", weir_last_error());
}

void run_stencil(const Flows& flows, weir_pipeline* pipeline) {
  weir_tunnel_options way = WEIR_TUNNEL_OPTIONS_INIT;
  way.item_bytes = sizeof(weir_stencil_region);
  weir_tunnel* regions = nullptr;
  if (!flows.took(weir_pipeline_add_tunnel(pipeline, &way, &regions), "add_tunnel")) return;
  weir_stencil_options options = WEIR_STENCIL_OPTIONS_INIT;
  options.input = regions;
  options.place = flows.card;
  options.kernel = flows.tile;
  options.result = flows.result;
  options.rows = options.columns = kEdge;
  options.value_bytes = sizeof(int);
  options.region_rows = options.region_columns = kEdge / 2;
  options.halo = 1;
  options.sweeps = 3;
  if (!flows.took(weir_pipeline_add_stencil(pipeline, &options, &the_stencil), "add_stencil")) {
    return;
  }
  weir_stage_options source = WEIR_STAGE_OPTIONS_INIT;
  source.outputs = &regions;
  source.output_count = 1;
  source.function = set_values;
  if (!flows.took(weir_pipeline_add_stage(pipeline, &source), "add_stage")) return;
  if (!flows.took(weir_pipeline_start(pipeline), "pipeline_start")) return;
  if (!flows.took(weir_pipeline_wait(pipeline, kLong), "pipeline_wait")) return;
  for (std::size_t i = 0; i < kEdge * kEdge; ++i) {
    const int made = after[i / kEdge][i % kEdge], was = before[i / kEdge][i % kEdge];
    if (made == was + 3) continue;
    flows.report.blame("value %zu of the stencil is %d instead of %d", i, made, was + 3);
    break;
  }
}

void walk_stencil(const Flows& flows) {
  for (std::size_t i = 0; i < kEdge * kEdge; ++i) {
    before[i / kEdge][i % kEdge] = static_cast<int>(i);
    after[i / kEdge][i % kEdge] = -1;
  }
  weir_pipeline* pipeline = nullptr;
  if (!flows.took(weir_pipeline_create(flows.runtime, nullptr, &pipeline), "pipeline_create")) {
    return;
  }
  run_stencil(flows, pipeline);
  weir_pipeline_destroy(pipeline);
}

/// Of host cores, and with a device that has stages.
void walk_pipelines(Flows& flows) {
  walk_pipeline(flows, nullptr);
  walk_fed(flows, feed_epochs);
  walk_fed(flows, forget_item);
  weir_domain* const domain = weir_runtime_get_domain(flows.runtime, 1);
  if (!flows.took(weir_domain_partition(domain, 1, false, &flows.card), "a place of the device")) {
    return;
  }
  walk_pipeline(flows, flows.card);
  walk_stencil(flows);
}

}  // namespace

bool open_flows(Flows& flows, const weir_runtime_options& options) {
  if (!flows.took(weir_runtime_create(&options, &flows.runtime), "the runtime of the flows")) {
    return false;
  }
  const struct {
    const char* name;
    weir_host_function function;
    weir_kernel** kernel;
  } kernels[] = {{"add one", add_kernel, &flows.add},
                 {"add to", sum_kernel, &flows.sum},
                 {"combine", sum_kernel, &flows.combine},
                 {"forward", forward_kernel, &flows.forward},
                 {"tile", tile_kernel, &flows.tile}};
  for (const auto& [name, function, kernel] : kernels) {
    if (!add(flows, name, function, kernel)) return false;
  }
  return true;
}

bool wrap_flows(Flows& flows) {
  const struct {
    void* memory;
    std::size_t bytes;
    weir_buffer** buffer;
  } wanted[] = {{rows, sizeof rows, &flows.grid},
                {total, sizeof total, &flows.sums},
                {sources, sizeof sources, &flows.from},
                {results, sizeof results, &flows.to},
                {after, sizeof after, &flows.result}};
  for (const auto& [memory, bytes, buffer] : wanted) {
    if (!flows.took(weir_buffer_wrap(flows.runtime, memory, bytes, nullptr, buffer),
                    "a buffer of the flows")) {
      return false;
    }
  }
  return true;
}

void walk_flows(const Route& route, const char*, Report& report) {
  Flows flows{route, report};
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = route.domains;
  if (open_flows(flows, options) && wrap_flows(flows)) {
    walk_queue(flows);
    walk_graph(flows);
    walk_cancel(flows);
    walk_wisdom(flows);
    walk_share(flows);
    walk_pipelines(flows);
  }
  weir_runtime_destroy(flows.runtime);
}

}  // namespace faults
