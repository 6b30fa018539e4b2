// Sequences of calls on task queues, shares, pipelines and stencils: each byte of an input is a
// choice, right or wrong. Each call must end with a documented status and a message of one line;
// what was submitted completes, every item of a share is done once, every item of a pipeline too,
// and every payload is released once. No handle is used that is not live: api_calls has those.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <weir/weir.h>

#include "choices.hpp"
#include "target.hpp"

namespace {

using weir::fuzz::Choices;
using weir::fuzz::require;

constexpr std::size_t kBuffers = 3, kBytes = 4096, kMostCalls = 120, kObjects = 3;
constexpr std::size_t kMostTunnels = 5, kMostItemBytes = 100'000;
constexpr std::uint64_t kMostItems = 200;
constexpr std::int64_t kLong = 60'000'000'000;

constexpr std::size_t kExtents[] = {64, 128, 256, 1024, 0, 1, 8, 4096, 4097, SIZE_MAX};
constexpr int kAccesses[] = {WEIR_ACCESS_READ,
                             WEIR_ACCESS_WRITE,
                             WEIR_ACCESS_READ_WRITE,
                             WEIR_ACCESS_READ_WRITE,
                             WEIR_ACCESS_COMMUTE,
                             WEIR_ACCESS_REDUCE,
                             WEIR_ACCESS_READ,
                             0,
                             -1};
constexpr std::int64_t kTimeouts[] = {kLong, kLong, kLong, 0, 1, 1000};
const char* const kPolicies[] = {nullptr,       "finish", "locality",   "steal",    "static",
                                 "round-robin", "",       "nonsense\n", "flow.last"};
const char* const kChunks[] = {nullptr,
                               "learned",
                               "one",
                               "fixed:7",
                               "guided",
                               "factoring",
                               "static",
                               "fixed:0",
                               "static:",
                               "static:1,2",
                               "weighted-factoring",
                               "fixed:x",
                               "\xff",
                               "static:0"};
const char* const kKernels[] = {"flow.touch", "flow.touch", "flow.touch", "flow.fail",    "mem.set",
                                "blas.dgemm", "none",       nullptr,      "flow.portable"};

weir_status ended(weir_status status) {
  require(status >= WEIR_STATUS_OK && status < WEIR_STATUS_INTERNAL, "a documented status");
  if (status != WEIR_STATUS_OK) weir::fuzz::require_one_line(weir_last_error());
  return status;
}

// ---- Kernels, chunks, stages --------------------------------------------------------------------

weir_status write_operands(const weir_call* call) {
  for (std::size_t i = 0; i < call->operand_count; ++i) {
    const weir_view& view = call->operands[i];
    if (view.access & WEIR_ACCESS_WRITE) {
      for (std::size_t row = 0; row < view.extent[1]; ++row) {
        std::memset(static_cast<std::uint8_t*>(view.address) + row * view.stride[0], 1,
                    view.extent[0]);
      }
    }
  }
  return WEIR_STATUS_OK;
}

weir_status fail(const weir_call* call) {
  return weir_call_fail(call, WEIR_STATUS_KERNEL_ERROR, "as asked");
}

/// The last place that has room.
std::size_t choose_last(const char*, const weir_candidate* candidates, std::size_t count, void*) {
  require(count > 0, "a policy has a choice");
  for (std::size_t i = count; i-- > 0;) {
    if (!candidates[i].full) return i;
  }
  return WEIR_POLICY_LATER;
}

/// A share and how often each of its items was handed out.
struct Share {
  weir_share* handle = nullptr;
  weir_buffer* buffer = nullptr;
  std::uint64_t items = 0;
  std::size_t trouble = 0;  ///< chunk number that is refused, 0: none
  std::atomic<std::size_t> chunks{0};
  std::array<std::atomic<unsigned>, kMostItems> given{};
};

weir_status give_chunk(const weir_chunk* chunk, void* payload, weir_event* out_event) {
  auto& share = *static_cast<Share*>(payload);
  require(chunk->first + chunk->count <= share.items && chunk->count > 0, "a chunk of the items");
  if (++share.chunks == share.trouble) return WEIR_STATUS_CANCELLED;
  for (std::uint64_t i = 0; i < chunk->count; ++i) ++share.given[chunk->first + i];
  const weir_region part = weir_region_range(chunk->first * 8, chunk->count * 8);
  const weir_status status = weir_stream_upload(chunk->stream, share.buffer, part, nullptr);
  if (status != WEIR_STATUS_OK) return status;
  return weir_stream_download(chunk->stream, share.buffer, part, out_event);
}

/// A pipeline of up to three stages in a chain; what goes through is counted.
struct Pipeline {
  weir_pipeline* handle = nullptr;
  std::vector<weir_tunnel*> tunnels;
  std::uint64_t wanted = 0;
  std::size_t trouble = 0;  ///< every so many batches fail, 0: none
  bool keeps = false;       ///< an item of each batch
  std::atomic<std::uint64_t> put{0}, taken{0}, batches{0};
  std::atomic<int> releases{0}, held{0};
};

weir_status put_items(weir_batch* batch) {
  auto& pipeline = *static_cast<Pipeline*>(batch->payload);
  for (std::size_t i = 0; i < batch->count && pipeline.put < pipeline.wanted; ++i) {
    for (std::size_t outlet = 0; outlet < batch->outlet_count; ++outlet) {
      void* const room = weir_outlet_add(batch->outlets[outlet]);
      require(room != nullptr, "there is memory");
      std::memset(room, 7, batch->outlets[outlet]->item_bytes);
    }
    ++pipeline.put;
  }
  batch->over = pipeline.put >= pipeline.wanted;
  return WEIR_STATUS_OK;
}

/// Keeps an item, or one that is not there, and completes it once too often.
void keep_item(weir_batch* batch, std::size_t index) {
  weir_item* item = nullptr;
  const weir_status status = ended(weir_item_keep(batch, index, &item));
  require((status == WEIR_STATUS_OK) == (index < batch->count && item != nullptr), "one's items");
  if (status != WEIR_STATUS_OK) return;
  require(ended(weir_item_complete(item)) == WEIR_STATUS_OK, "an item that is kept is completed");
  require(ended(weir_item_complete(item)) == WEIR_STATUS_INVALID_ARGUMENT, "and that once");
}

weir_status pass_items(weir_batch* batch) {
  auto& pipeline = *static_cast<Pipeline*>(batch->payload);
  if (pipeline.trouble > 0 && ++pipeline.batches % pipeline.trouble == 0) {
    return weir_batch_fail(batch, WEIR_STATUS_KERNEL_ERROR, "as asked\n%d", 1);
  }
  if (pipeline.keeps) keep_item(batch, pipeline.taken % (batch->count + 1));
  if (batch->outlet_count == 0) pipeline.taken += batch->count;
  for (std::size_t outlet = 0; outlet < batch->outlet_count; ++outlet) {
    for (std::size_t i = 0; i < batch->count; ++i) {
      void* const room = weir_outlet_add(batch->outlets[outlet]);
      require(room != nullptr, "there is memory");
      std::memset(room, 7, batch->outlets[outlet]->item_bytes);
    }
  }
  return WEIR_STATUS_OK;
}

/// A matrix of which a source sets some rows at a time.
struct Stencil {
  weir_stencil* handle = nullptr;
  std::size_t rows = 0, columns = 0, rows_at_once = 1;
  std::size_t next = 0;                  ///< row
  std::size_t forgotten = 0, again = 0;  ///< row that is not set, or twice; 0: none
};

weir_status set_rows(weir_batch* batch) {
  static constexpr std::array<unsigned char, 9 * 40 * 8> values{};
  auto& stencil = *static_cast<Stencil*>(batch->payload);
  const std::size_t row = stencil.next;
  const std::size_t rows = std::min(stencil.rows_at_once, stencil.rows - row);
  const auto set = [&] {
    return ended(weir_stencil_set(stencil.handle, batch->outlets[0], row, 0, rows, stencil.columns,
                                  values.data(), stencil.columns));
  };
  if (row == 0 || row != stencil.forgotten) {
    const weir_status status = set();
    if (status != WEIR_STATUS_OK) return weir_batch_fail(batch, status, "%s", weir_last_error());
    if (row > 0 && row == stencil.again) require(set() != WEIR_STATUS_OK, "rows are set once");
  }
  stencil.next += rows;
  batch->over = stencil.next == stencil.rows;
  return WEIR_STATUS_OK;
}

void release(void* payload) { ++static_cast<Pipeline*>(payload)->releases; }

// ---- The interpreter ----------------------------------------------------------------------------

class Interpreter {
 public:
  Interpreter() {
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = "host:cores=1,sim:cores=1,gbps=1000,latency_us=0,memory=16KiB";
    require(weir_runtime_create(&options, &runtime_) == WEIR_STATUS_OK, "there is a runtime");
    for (weir_buffer*& buffer : buffers_) {
      require(weir_buffer_create(runtime_, kBytes, nullptr, &buffer) == WEIR_STATUS_OK,
              "there is a buffer");
    }
    for (std::size_t i = 0; i < kPlaces; ++i) {
      weir_domain* const domain = weir_runtime_get_domain(runtime_, i);
      require(weir_domain_partition(domain, 1, false, &places_[i]) == WEIR_STATUS_OK, "a place");
    }
    add_kernel("flow.touch", write_operands);
    add_kernel("flow.fail", fail);
    add_portable_kernel();
    add_policy();
  }
  ~Interpreter() { weir_runtime_destroy(runtime_); }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void run(Choices in) {
    for (std::size_t calls = 0; calls < kMostCalls && !in.exhausted(); ++calls) call(in);
    for (weir_queue*& queue : queues_) weir_queue_destroy(std::exchange(queue, nullptr));
    for (auto& share : shares_) end(share);
    for (auto& pipeline : pipelines_) end(pipeline);
    require(weir_runtime_synchronize(runtime_, kLong) != WEIR_STATUS_TIMEOUT, "all of it ends");
  }

 private:
  using Call = void (Interpreter::*)(Choices&);

  void add_kernel(const char* name, weir_host_function function) {
    const weir_implementation codes[] = {{"host", function, nullptr}, {"sim", function, nullptr}};
    weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.implementations = codes;
    options.implementation_count = 2;
    weir_kernel* kernel = nullptr;
    require(weir_kernel_register(runtime_, &options, &kernel) == WEIR_STATUS_OK, "a kernel");
  }

  /// With one operand and one number.
  void add_portable_kernel() {
    static const weir_portable_kernel kernel = {
        "flow.portable",
        {8, 1, 1},
        "pi",
        [](const std::uint32_t*, std::uint64_t, std::uint64_t, void* const*) {},
        nullptr};
    weir_portable_options options = WEIR_PORTABLE_OPTIONS_INIT;
    options.kernel = &kernel;
    options.grid = [](const weir_call*, std::uint32_t* groups) { groups[0] = 3; };
    require(weir_kernel_register_portable(runtime_, &options, nullptr) == WEIR_STATUS_OK, "one");
    require(ended(weir_kernel_register_portable(runtime_, &options, nullptr)) ==
                WEIR_STATUS_INVALID_ARGUMENT,
            "of each name");
  }

  void add_policy() {
    weir_policy_options options = WEIR_POLICY_OPTIONS_INIT;
    options.name = "flow.last";
    options.choose = choose_last;
    require(weir_policy_register(runtime_, &options) == WEIR_STATUS_OK, "a policy");
    require(ended(weir_policy_register(runtime_, &options)) != WEIR_STATUS_OK, "of each name one");
  }

  void call(Choices& in) {
    static constexpr Call kCalls[] = {
        &Interpreter::submit,        &Interpreter::submit,       &Interpreter::submit,
        &Interpreter::submit,        &Interpreter::create_queue, &Interpreter::use_queue,
        &Interpreter::destroy_queue, &Interpreter::start_share,  &Interpreter::use_share,
        &Interpreter::make_pipeline, &Interpreter::add_tunnel,   &Interpreter::add_stage,
        &Interpreter::add_stage,     &Interpreter::use_pipeline, &Interpreter::use_pipeline,
        &Interpreter::use_feed,      &Interpreter::run_stencil};
    (this->*in.from(kCalls))(in);
  }

  weir_region region(Choices& in) {
    weir_region region = weir_region_range(in.below(8) * 512, in.from(kExtents));
    if (in.one_in(6)) {
      region.extent[1] = in.from(kExtents);
      region.stride[0] = in.from(kExtents);
    }
    return region;
  }
  weir_buffer* buffer(Choices& in) {
    return in.one_in(40) ? nullptr : buffers_[in.below(kBuffers)];
  }
  weir_queue* queue(Choices& in) {
    weir_queue*& chosen = queues_[in.below(kObjects)];
    if (chosen == nullptr) {
      weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
      options.no_models = true;
      options.places = places_;
      options.place_count = kPlaces;
      require(ended(weir_queue_create(runtime_, &options, &chosen)) == WEIR_STATUS_OK, "a queue");
    }
    return chosen;
  }

  // -- Queues --

  void create_queue(Choices& in) {
    weir_queue*& place = queues_[in.below(kObjects)];
    if (place != nullptr) return;
    weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
    options.policy = in.from(kPolicies);
    options.no_models = true;
    options.places = places_;
    options.place_count = in.one_in(8) ? in.below(kPlaces + 1) : kPlaces;
    const double weights[] = {in.one_in(3) ? 0.0 : 1.0, 2.0};
    if (in.one_in(4)) options.weights = weights;
    options.weight_count = in.one_in(4) ? 2 : 0;
    weir_queue* made = nullptr;
    const weir_status status = ended(weir_queue_create(runtime_, &options, &made));
    require((status == WEIR_STATUS_OK) == (made != nullptr), "a queue or a reason");
    place = made;
  }

  void submit(Choices& in) {
    std::array<weir_operand, 4> operands{};
    weir_task task = WEIR_TASK_INIT;
    task.operand_count = in.below(operands.size() + 1);
    for (std::size_t i = 0; i < task.operand_count; ++i) {
      operands[i] = {buffer(in), region(in), static_cast<weir_access>(in.from(kAccesses))};
    }
    if (!in.one_in(30)) task.operands = operands.data();
    task.kernel_name = in.from(kKernels);
    const weir_scalar scalars[] = {weir_scalar_i64(3)};
    task.scalars = scalars;
    task.scalar_count = in.one_in(4) ? 1 : 0;
    task.priority = static_cast<int>(in.below(5)) - 2;
    task.domains = in.below(6);
    weir_kernel* combine = nullptr;
    if (in.one_in(2)) ended(weir_kernel_find(runtime_, "flow.touch", &combine));
    task.combine = combine;
    weir_event event = WEIR_EVENT_INIT;
    const weir_status status = ended(weir_queue_submit(queue(in), &task, &event));
    if (status == WEIR_STATUS_OK && in.one_in(8)) {
      ended(weir_event_wait(runtime_, &event, 1, WEIR_WAIT_MODE_ALL, in.from(kTimeouts), nullptr));
    }
  }

  void use_queue(Choices& in) {
    weir_queue* const chosen = queue(in);
    weir_queue_info info = WEIR_QUEUE_INFO_INIT;
    switch (in.below(6)) {
      case 0: ended(weir_queue_synchronize(chosen, in.from(kTimeouts))); break;
      case 1:
        ended(weir_queue_acquire(chosen, buffer(in), region(in),
                                 static_cast<weir_access>(in.from(kAccesses)), in.from(kTimeouts)));
        break;
      case 2: ended(weir_queue_flush(chosen, buffer(in), region(in), nullptr)); break;
      case 3: ended(weir_queue_cancel(chosen)); break;
      case 4:
        require(ended(weir_queue_get_info(chosen, &info, nullptr, 0)) == WEIR_STATUS_OK &&
                    info.completed <= info.submitted,
                "a queue knows what it did");
        break;
      default: replace_buffer(in); break;
    }
  }

  /// Destroys a buffer that tasks may use, and makes another.
  void replace_buffer(Choices& in) {
    alignas(64) static unsigned char there[kBuffers][kBytes];
    const std::size_t number = in.below(kBuffers);
    weir_buffer*& chosen = buffers_[number];
    const bool shared = std::ranges::any_of(
        shares_, [&](const auto& share) { return share && share->buffer == chosen; });
    if (shared) return;
    weir_buffer_destroy(chosen);
    const weir_status status =
        in.one_in(3) ? weir_buffer_adopt(weir_runtime_get_domain(runtime_, 1), there[number],
                                         nullptr, kBytes, nullptr, &chosen)
                     : weir_buffer_create(runtime_, kBytes, nullptr, &chosen);
    require(status == WEIR_STATUS_OK, "a buffer");
  }

  void destroy_queue(Choices& in) {
    weir_queue_destroy(std::exchange(queues_[in.below(kObjects)], nullptr));
  }

  // -- Shares --

  void start_share(Choices& in) {
    std::unique_ptr<Share>& place = shares_[in.below(kObjects)];
    end(place);
    auto share = std::make_unique<Share>();
    share->items = in.below(kMostItems);
    share->trouble = in.one_in(4) ? in.below(9) : 0;
    share->buffer = buffers_[in.below(kBuffers)];
    weir_share_options options = WEIR_SHARE_OPTIONS_INIT;
    options.items = share->items;
    options.chunks = in.from(kChunks);
    options.enqueue = in.one_in(30) ? nullptr : give_chunk;
    options.payload = share.get();
    options.places = places_;
    options.place_count = kPlaces;
    options.ways = in.below(4);
    std::vector<double> work(kMostItems, 1.0);
    if (in.one_in(5)) options.work = work.data();
    if (in.one_in(5)) work[in.below(kMostItems)] = in.one_in(2) ? -1 : 100;
    const weir_status status = ended(weir_share_start(runtime_, &options, &share->handle));
    require((status == WEIR_STATUS_OK) == (share->handle != nullptr), "a share or a reason");
    if (status == WEIR_STATUS_OK) place = std::move(share);
  }

  void use_share(Choices& in) {
    Share* const share = shares_[in.below(kObjects)].get();
    if (share == nullptr) return;
    weir_share_info info = WEIR_SHARE_INFO_INIT;
    switch (in.below(3)) {
      case 0: wait(*share, in.from(kTimeouts)); break;
      case 1: ended(weir_share_cancel(share->handle)); break;
      default:
        require(ended(weir_share_get_info(share->handle, &info, nullptr, 0)) == WEIR_STATUS_OK &&
                    info.done <= info.items && info.items == share->items,
                "a share knows what it did");
    }
  }

  void wait(Share& share, std::int64_t timeout_ns) {
    if (ended(weir_share_wait(share.handle, timeout_ns)) != WEIR_STATUS_OK) return;
    for (std::uint64_t i = 0; i < share.items; ++i) {
      require(share.given[i] == 1, "each item is handed out once");
    }
  }

  void end(std::unique_ptr<Share>& share) {
    if (share == nullptr) return;
    wait(*share, kLong);
    weir_share_destroy(share->handle);
    share.reset();
  }

  // -- Pipelines --

  void make_pipeline(Choices& in) {
    std::unique_ptr<Pipeline>& place = pipelines_[in.below(kObjects)];
    end(place);
    auto made = std::make_unique<Pipeline>();
    made->wanted = in.below(200);
    made->trouble = in.one_in(4) ? 1 + in.below(9) : 0;
    made->keeps = in.one_in(4);
    weir_pipeline_options options = WEIR_PIPELINE_OPTIONS_INIT;
    options.place = places_[in.one_in(20) ? 1 : 0];
    options.batch = in.below(5);
    options.keep_going = in.one_in(2);
    options.epochs = in.one_in(4) ? in.below(4) : 0;
    if (ended(weir_pipeline_create(runtime_, &options, &made->handle)) == WEIR_STATUS_OK) {
      place = std::move(made);
    }
  }

  Pipeline* pipeline(Choices& in) { return pipelines_[in.below(kObjects)].get(); }

  void add_tunnel(Choices& in) {
    Pipeline* const chosen = pipeline(in);
    if (chosen == nullptr) return;
    constexpr std::size_t kItems[] = {8, 8, 8, 1, 64, 0, kMostItemBytes, SIZE_MAX};
    if (chosen->tunnels.size() == kMostTunnels) return;
    weir_tunnel_options options = WEIR_TUNNEL_OPTIONS_INIT;
    options.item_bytes = in.from(kItems);
    options.capacity = in.one_in(20) ? SIZE_MAX : in.below(40);
    options.overflow = static_cast<weir_overflow>(in.one_in(3) ? static_cast<int>(in.below(6)) : 0);
    weir_tunnel* tunnel = nullptr;
    if (ended(weir_pipeline_add_tunnel(chosen->handle, &options, &tunnel)) == WEIR_STATUS_OK) {
      chosen->tunnels.push_back(tunnel);
    }
  }

  /// Of this pipeline or, rarely, of another.
  weir_tunnel* tunnel(Choices& in, Pipeline& of) {
    Pipeline* const other = in.one_in(25) ? pipeline(in) : nullptr;
    const auto& tunnels = other != nullptr ? other->tunnels : of.tunnels;
    return tunnels.empty() ? nullptr : tunnels[in.below(tunnels.size())];
  }

  void add_stage(Choices& in) {
    Pipeline* const chosen = pipeline(in);
    if (chosen == nullptr) return;
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    const bool source = in.one_in(3);
    options.input = source ? nullptr : tunnel(in, *chosen);
    std::array<weir_tunnel*, 2> outputs{};
    options.output_count = in.below(3);
    for (std::size_t i = 0; i < options.output_count; ++i) outputs[i] = tunnel(in, *chosen);
    options.outputs = outputs.data();
    // What passes items on in a circle would never end.
    const auto at = std::ranges::find(chosen->tunnels, options.input);
    for (std::size_t i = 0; i < options.output_count; ++i) {
      if (std::ranges::find(chosen->tunnels, outputs[i]) <= at && !source) options.output_count = 0;
    }
    options.function = in.one_in(30) ? nullptr : options.input == nullptr ? put_items : pass_items;
    options.payload = chosen;
    options.release = release;
    options.workers = in.below(3);
    options.ordered = in.one_in(6);
    if (ended(weir_pipeline_add_stage(chosen->handle, &options)) == WEIR_STATUS_OK) ++chosen->held;
  }

  void use_pipeline(Choices& in) {
    Pipeline* const chosen = pipeline(in);
    if (chosen == nullptr) return;
    weir_pipeline_info info = WEIR_PIPELINE_INFO_INIT;
    switch (in.below(7)) {
      case 0:
      case 1: ended(weir_pipeline_start(chosen->handle)); break;
      case 5: ended(weir_pipeline_run(chosen->handle)); break;
      case 6: query_state(in, chosen->handle); break;
      case 2: ended(weir_pipeline_wait(chosen->handle, in.from(kTimeouts))); break;
      case 3: ended(weir_pipeline_cancel(chosen->handle)); break;
      default: ended(weir_pipeline_get_info(chosen->handle, &info, nullptr, 0)); break;
    }
  }

  static void query_state(Choices& in, weir_pipeline* pipeline) {
    weir_stage_state stage = WEIR_STAGE_STATE_INIT;
    weir_tunnel_state tunnel = WEIR_TUNNEL_STATE_INIT;
    std::int64_t age = 0;
    if (ended(weir_pipeline_get_stage(pipeline, in.below(4), &stage)) == WEIR_STATUS_OK) {
      const auto percent = static_cast<double>(in.below(120));
      const weir_status status = weir_latency_percentile(&stage.latency, nullptr, percent, &age);
      require((ended(status) == WEIR_STATUS_OK) == (percent > 0 && percent <= 100) && age >= -1,
              "an age");
    }
    ended(weir_pipeline_get_tunnel(pipeline, in.below(kMostTunnels + 1), &tunnel));
  }

  // -- Stencils --

  void run_stencil(Choices& in) {
    weir_pipeline* pipeline = nullptr;
    require(weir_pipeline_create(runtime_, nullptr, &pipeline) == WEIR_STATUS_OK, "a pipeline");
    weir_tunnel_options way = WEIR_TUNNEL_OPTIONS_INIT;
    way.item_bytes = in.one_in(20) ? 8 : sizeof(weir_stencil_region);
    weir_tunnel* regions = nullptr;
    require(weir_pipeline_add_tunnel(pipeline, &way, &regions) == WEIR_STATUS_OK, "a tunnel");
    Stencil stencil;
    const char* const kernel = in.one_in(4) ? in.from(kKernels) : "flow.touch";
    if (add_stencil(in, pipeline, regions, kernel, stencil)) {
      add_rows(in, pipeline, regions, stencil);
      run_stencil(pipeline, kernel, stencil);
    }
    weir_pipeline_destroy(pipeline);
    weir_buffer_destroy(std::exchange(result_, nullptr));
  }

  static std::size_t side(Choices& in) {
    constexpr std::size_t kWrong[] = {0, SIZE_MAX};
    return in.one_in(30) ? in.from(kWrong) : 1 + in.below(40);
  }

  weir_buffer* make_result(const weir_stencil_options& options) {
    const std::size_t bytes = options.rows * options.columns * options.value_bytes;
    result_bytes_ = bytes > 0 && bytes <= 40 * 40 * 8 ? bytes : kBytes;
    require(weir_buffer_create(runtime_, result_bytes_, nullptr, &result_) == WEIR_STATUS_OK, "it");
    return result_;
  }

  bool add_stencil(Choices& in, weir_pipeline* pipeline, weir_tunnel* regions, const char* kernel,
                   Stencil& stencil) {
    weir_stencil_options options = WEIR_STENCIL_OPTIONS_INIT;
    options.input = in.one_in(30) ? nullptr : regions;
    options.place = in.one_in(30) ? nullptr : places_[in.below(kPlaces)];
    options.kernel_name = kernel;
    options.rows = stencil.rows = side(in);
    options.columns = stencil.columns = side(in);
    options.value_bytes = in.one_in(10) ? in.below(9) : 1;
    options.result = in.one_in(30) ? nullptr : make_result(options);
    options.region_rows = in.below(24);
    options.region_columns = in.below(24);
    options.halo = in.below(5);
    options.corners = in.one_in(2);
    options.sweeps = in.below(4);
    options.batch = in.below(4);
    options.in_flight = in.below(3);
    const weir_status status =
        ended(weir_pipeline_add_stencil(pipeline, &options, &stencil.handle));
    require((status == WEIR_STATUS_OK) == (stencil.handle != nullptr), "a stencil or a reason");
    return status == WEIR_STATUS_OK;
  }

  static void add_rows(Choices& in, weir_pipeline* pipeline, weir_tunnel* regions,
                       Stencil& stencil) {
    stencil.rows_at_once = 1 + in.below(9);
    if (in.one_in(4)) stencil.forgotten = stencil.rows_at_once * in.below(3);
    if (in.one_in(4)) stencil.again = stencil.rows_at_once * in.below(3);
    weir_stage_options source = WEIR_STAGE_OPTIONS_INIT;
    source.outputs = &regions;
    source.output_count = 1;
    source.function = set_rows;
    source.payload = &stencil;
    require(ended(weir_pipeline_add_stage(pipeline, &source)) == WEIR_STATUS_OK, "a source");
  }

  void run_stencil(weir_pipeline* pipeline, const char* kernel, const Stencil& stencil) {
    weir_buffer_info result = WEIR_BUFFER_INFO_INIT;
    require(weir_buffer_get_info(result_, &result) == WEIR_STATUS_OK, "a result");
    auto* const values = static_cast<unsigned char*>(result.address);
    std::fill_n(values, result_bytes_, 0);
    const weir_status status = ended(weir_pipeline_run(pipeline));
    weir_stencil_info info = WEIR_STENCIL_INFO_INIT;
    require(ended(weir_stencil_get_info(stencil.handle, &info)) == WEIR_STATUS_OK, "it knows");
    if (status != WEIR_STATUS_OK || kernel == nullptr || std::strcmp(kernel, "flow.touch") != 0) {
      return;
    }
    const bool forgets = stencil.forgotten > 0 && stencil.forgotten < stencil.rows;
    require(!forgets, "a stencil whose values were not all set fails");
    const auto made = static_cast<std::size_t>(std::count(values, values + result_bytes_, 1));
    require(made >= stencil.rows * stencil.columns, "all of the matrix is made");
  }

  void use_feed(Choices& in) {
    Pipeline* const chosen = pipeline(in);
    if (chosen == nullptr || chosen->tunnels.empty()) return;
    weir_feed* feed = nullptr;
    if (ended(weir_feed_open(tunnel(in, *chosen), &feed)) != WEIR_STATUS_OK) return;
    static const std::vector<unsigned char> items(kMostItemBytes * 4);
    std::size_t put = 0;
    if (in.one_in(2)) ended(weir_pipeline_start(chosen->handle));
    const std::size_t count = in.below(4);
    ended(weir_feed_put(feed, in.one_in(20) ? nullptr : items.data(), count, 1'000'000, &put));
    require(put <= count, "no more than was given");
    if (in.one_in(3)) ended(weir_feed_next_epoch(feed));
    weir_feed_close(feed);
  }

  void end(std::unique_ptr<Pipeline>& pipeline) {
    if (pipeline == nullptr) return;
    weir_pipeline_destroy(pipeline->handle);
    require(pipeline->releases == pipeline->held, "each payload is released once");
    pipeline.reset();
  }

  static constexpr std::size_t kPlaces = 2;

  weir_runtime* runtime_ = nullptr;
  weir_place* places_[kPlaces] = {};
  std::array<weir_buffer*, kBuffers> buffers_{};
  weir_buffer* result_ = nullptr;  ///< of a stencil
  std::size_t result_bytes_ = 0;
  std::array<weir_queue*, kObjects> queues_{};
  std::array<std::unique_ptr<Share>, kObjects> shares_;
  std::array<std::unique_ptr<Pipeline>, kObjects> pipelines_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Interpreter interpreter;
  interpreter.run({data, size});
  return 0;
}
