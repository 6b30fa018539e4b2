#include "pipeline.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "array.hpp"
#include "kernel.hpp"

namespace weir::py {

namespace {

/// The Python functions of a stage.
struct StageCode {
  nb::object work, at_end;
  std::size_t item_bytes;               ///< of its input
  std::vector<weir_stencil*> stencils;  ///< for each output; null: a tunnel
  std::weak_ptr<Pipeline> pipeline;
};

/// A batch whose stage runs on this thread, and the items that it keeps.
struct StageRun {
  weir_batch* batch;
  const StageCode* code;
  std::uint64_t number;
  std::vector<std::pair<std::size_t, std::weak_ptr<Item>>> kept;

  /// Forgets the kept items from an index on: weir may reuse their handles.
  void give_up(std::size_t first) const {
    for (const auto& [index, each] : kept) {
      const std::shared_ptr<Item> item = index >= first ? each.lock() : nullptr;
      if (item) item->handle = nullptr;
    }
  }
};

/// While its function is called.
thread_local StageRun* current_run = nullptr;

/// That there were.
std::atomic<std::uint64_t> runs{0};

/// Is true while this lives.
class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flag() { flag_ = false; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool& flag_;
};

nb::object raise_again(nb::handle exception) {
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

/// Puts the items of an object with the buffer protocol, and counts their bytes. Returns false when
/// there is no room for all.
bool put_items(weir_outlet* outlet, nb::handle items, std::size_t& done) {
  const Bytes bytes(items);
  for (; done < bytes.size(); done += outlet->item_bytes) {
    void* const room = weir_outlet_add(outlet);
    if (room == nullptr) return false;
    std::memcpy(room, bytes.data() + done, outlet->item_bytes);
  }
  return true;
}

/// Sets parts of the matrix of a stencil.
weir_status set_values(weir_stencil* stencil, weir_outlet* outlet, nb::handle parts) {
  for (const nb::handle part : parts) {
    const auto number = [&](std::size_t i) { return nb::cast<std::size_t>(part[i]); };
    const Bytes values(part[4]);
    const weir_status status = weir_stencil_set(stencil, outlet, number(0), number(1), number(2),
                                                number(3), values.data(), number(3));
    if (status != WEIR_STATUS_OK) return status;
  }
  return WEIR_STATUS_OK;
}

weir_status put(const StageCode& code, weir_batch& batch, std::size_t output, nb::handle puts,
                std::size_t& done) {
  if (puts.is_none()) return WEIR_STATUS_OK;
  weir_stencil* const stencil = code.stencils[output];
  if (stencil != nullptr) return set_values(stencil, batch.outlets[output], puts);
  return put_items(batch.outlets[output], puts, done) ? WEIR_STATUS_OK : WEIR_STATUS_OUT_OF_MEMORY;
}

/// Puts all outputs of a call. When a put is refused, nothing goes into tunnels, and weir repeats
/// the call for all items except the first.
weir_status put_all(const StageCode& code, weir_batch& batch, nb::handle said) {
  std::vector<std::size_t> done(batch.outlet_count, 0);
  for (std::size_t i = 0; i < done.size(); ++i) {
    const weir_status status = put(code, batch, i, said[3 + i], done[i]);
    if (status == WEIR_STATUS_OK) continue;
    for (std::size_t k = 0; k <= i; ++k) batch.outlets[k]->next -= done[k];
    return status;
  }
  return WEIR_STATUS_OK;
}

/// Calls a function of weir._pipelines and applies its result: see StageOptions.
weir_status call_stage(const StageCode& code, nb::handle function, StageRun& run) {
  weir_batch& batch = *run.batch;
  const auto size =
      static_cast<Py_ssize_t>(batch.items == nullptr ? 0 : batch.count * code.item_bytes);
  const nb::object items =
      nb::steal(PyBytes_FromStringAndSize(static_cast<const char*>(batch.items), size));
  current_run = &run;
  const nb::object said = nb::steal(PyObject_CallFunction(
      function.ptr(), "OK", items.ptr(), static_cast<unsigned long long>(batch.epoch)));
  current_run = nullptr;
  if (!said.is_valid()) throw nb::python_error();
  const auto failed = nb::cast<long long>(said[0]);
  const auto mark = nb::cast<int>(said[2]);
  const weir_status status = put_all(code, batch, said);
  if (status != WEIR_STATUS_OK) return weir_batch_fail(&batch, status, "%s", weir_last_error());
  batch.over = mark == 1;
  batch.epoch_over = mark == 2;
  if (failed < 0) return WEIR_STATUS_OK;
  batch.index = static_cast<std::size_t>(failed);
  raise_again(said[1]);
  return WEIR_STATUS_INTERNAL;
}

weir_status run_guarded(const StageCode& code, nb::handle function, weir_batch* batch) {
  StageRun run{batch, &code, runs.fetch_add(1, std::memory_order_relaxed), {}};
  weir_status status = WEIR_STATUS_OK;
  try {
    status = call_stage(code, function, run);
  } catch (nb::python_error& error) {
    const std::string message = keep_exception(error);
    status = weir_batch_fail(batch, WEIR_STATUS_KERNEL_ERROR, "%s", message.c_str());
  }
  if (status != WEIR_STATUS_OK) run.give_up(batch->index);
  return status;
}

weir_status run_work(weir_batch* batch) {
  using Clock = std::chrono::steady_clock;
  const nb::gil_scoped_acquire held;
  const CallbackScope scope;
  const auto* code = static_cast<const StageCode*>(batch->payload);
  const Clock::time_point begin =
      Clock::now();  // the wait for the interpreter does not count as work
  const weir_status status = run_guarded(*code, code->work, batch);
  batch->busy_ns = std::chrono::nanoseconds(Clock::now() - begin).count();
  return status;
}

weir_status run_at_end(weir_batch* batch) {
  const nb::gil_scoped_acquire held;
  const CallbackScope scope;
  const auto* code = static_cast<const StageCode*>(batch->payload);
  return run_guarded(*code, code->at_end, batch);
}

void release_code(void* payload) {
  const nb::gil_scoped_acquire held;
  const CallbackScope scope;
  delete static_cast<StageCode*>(payload);
}

/// Calls a callback of the program; reports its exception as unraisable, because no caller could
/// handle it.
void call_back(nb::handle code, nb::handle first, nb::handle second = {}) {
  const nb::object done =
      nb::steal(PyObject_CallFunctionObjArgs(code.ptr(), first.ptr(), second.ptr(), nullptr));
  if (!done.is_valid()) PyErr_WriteUnraisable(code.ptr());
}

void report_failure(const weir_item_failure* failure, void* payload) {
  const nb::gil_scoped_acquire held;
  const CallbackScope scope;
  const nb::object exception =
      Event::exception_of(weir_status_name(failure->status), failure->message);
  call_back(static_cast<const PipelineOptions*>(payload)->on_failure, nb::str(failure->stage),
            exception);
}

void report_epoch(std::uint64_t epoch, void* payload) {
  const nb::gil_scoped_acquire held;
  const CallbackScope scope;
  call_back(static_cast<const PipelineOptions*>(payload)->on_epoch, nb::int_(epoch));
}

weir_overflow overflow_of(const std::string& name) {
  if (name == "block") return WEIR_OVERFLOW_BLOCK;
  if (name == "drop-newest") return WEIR_OVERFLOW_DROP_NEWEST;
  if (name == "drop-oldest") return WEIR_OVERFLOW_DROP_OLDEST;
  if (name == "keep-latest") return WEIR_OVERFLOW_KEEP_LATEST;
  raise_value("overflow '" + name +
              "' is not 'block', 'drop-newest', 'drop-oldest' or 'keep-latest'");
}

weir_pipeline* open(const PipelineRef& pipeline) {
  return py::open(*pipeline->session, pipeline->handle, "pipeline");
}

}  // namespace

// ---- Pipelines ---------------------------------------------------------------------------------

std::shared_ptr<Pipeline> Pipeline::make(const SessionRef& session, const PipelineOptions& wanted) {
  session->require_open();
  auto pipeline = make_waiting<Pipeline>();
  pipeline->session = session;
  pipeline->options = std::make_unique<PipelineOptions>(wanted);
  weir_pipeline_options options = WEIR_PIPELINE_OPTIONS_INIT;
  options.name = wanted.name;
  if (wanted.place) {
    options.place = py::open(*session, wanted.place->handle, "place");
    pipeline->places.push_back(used(wanted.place));
  }
  options.keep_going = wanted.keep_going;
  options.batch = wanted.batch;
  options.epochs = wanted.epochs;
  options.keep_bytes = wanted.keep_bytes;
  if (!wanted.on_failure.is_none()) options.on_failure = report_failure;
  if (!wanted.on_epoch.is_none()) options.on_epoch = report_epoch;
  options.payload = pipeline->options.get();
  check(weir_pipeline_create(session->handle(), &options, &pipeline->handle));
  pipeline->options->name = nullptr;  // the caller's
  return pipeline;
}

void Pipeline::close() {
  running = false;
  if (session && session->closed()) {
    handle = nullptr;
    session->wait_for_end();
  } else if (handle != nullptr) {
    require_no_callback("the pipeline");
    if (interrupted()) return cancel();  // stages may be running
    weir_pipeline* const ended = std::exchange(handle, nullptr);
    const Using ending({&session->in_use, &ending_});
    static_cast<void>(weir_pipeline_cancel(ended));  // threads may wait for it, or in a feed
    in_use.close();
    {
      const Released released;
      weir_pipeline_destroy(ended);
    }
    places.clear();
  } else if (!CallbackScope::active()) {
    ending_.wait();
  }
}

void Pipeline::start() {
  weir_pipeline* const opened = py::open(*session, handle, "pipeline");
  call_released({&session->in_use, &in_use}, [&] { return weir_pipeline_start(opened); });
  running = true;
}

void Pipeline::wait(const Timeout& timeout) {
  weir_pipeline* const opened = py::open(*session, handle, "pipeline");
  const auto wait = [&](std::int64_t ns) { return weir_pipeline_wait(opened, ns); };
  const weir_status status = wait_for(timeout, wait, {&session->in_use, &in_use});
  running = running && status == WEIR_STATUS_TIMEOUT;
  check(status);
}

void Pipeline::cancel() const {
  weir_pipeline* const opened = py::open(*session, handle, "pipeline");
  call_released({&session->in_use, &in_use}, [&] { return weir_pipeline_cancel(opened); });
}

weir_pipeline_info Pipeline::info() const {
  weir_pipeline_info found = WEIR_PIPELINE_INFO_INIT;
  check(weir_pipeline_get_info(py::open(*session, handle, "pipeline"), &found, nullptr, 0));
  return found;
}

nb::list Pipeline::stages() const {
  weir_pipeline_info found = info();
  std::vector<weir_stage_info> stages(found.stages);
  check(weir_pipeline_get_info(handle, &found, stages.data(), stages.size()));
  nb::list list;
  for (const weir_stage_info& stage : stages) {
    nb::dict each;
    each["name"] = stage.name;
    each["created"] = stage.created;
    each["complete"] = stage.complete;
    each["dropped"] = stage.dropped;
    each["failed"] = stage.failed;
    each["most_kept"] = stage.most_kept;
    each["at_end"] = stage.at_end;
    list.append(each);
  }
  return list;
}

namespace {

nb::object number_or_none(std::size_t number) {
  return number == SIZE_MAX ? nb::none() : nb::object(nb::int_(number));
}

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

nb::dict ages(const weir_latency& latency, const std::vector<double>& percentiles) {
  nb::dict found;
  for (const double percent : percentiles) {
    std::int64_t ns = 0;
    check(weir_latency_percentile(&latency, nullptr, percent, &ns));
    found[nb::float_(percent)] =
        ns < 0 ? nb::none() : nb::object(nb::float_(seconds(static_cast<std::uint64_t>(ns))));
  }
  return found;
}

nb::dict dict_of(const weir_stage_state& state, const std::vector<double>& percentiles) {
  nb::dict found;
  found["name"] = state.name;
  found["input"] = number_or_none(state.input);
  nb::list outputs;
  for (std::size_t i = 0; i < state.output_count; ++i) outputs.append(state.outputs[i]);
  found["outputs"] = outputs;
  found["workers"] = state.workers;
  found["on_device"] = state.on_device;
  found["at_end"] = state.at_end;
  found["complete"] = state.complete;
  found["failed"] = state.failed;
  found["put"] = state.put;
  found["kept"] = state.kept;
  found["busy_s"] = seconds(state.busy_ns);
  found["ages_s"] = ages(state.latency, percentiles);
  return found;
}

nb::dict dict_of(const weir_tunnel_state& state) {
  nb::dict found;
  found["name"] = state.name;
  found["stage"] = number_or_none(state.stage);
  found["capacity"] = state.capacity;
  found["waiting"] = state.waiting;
  found["under_way"] = state.under_way;
  found["created"] = state.created;
  found["complete"] = state.complete;
  found["dropped"] = state.dropped;
  return found;
}

}  // namespace

nb::dict Pipeline::state(const std::vector<double>& percentiles) const {
  const weir_pipeline_info whole = info();
  nb::list stages, tunnels;
  for (std::size_t i = 0; i < whole.all_stages; ++i) {
    weir_stage_state stage = WEIR_STAGE_STATE_INIT;
    check(weir_pipeline_get_stage(handle, i, &stage));
    stages.append(dict_of(stage, percentiles));
  }
  for (std::size_t i = 0; i < whole.tunnels; ++i) {
    weir_tunnel_state tunnel = WEIR_TUNNEL_STATE_INIT;
    check(weir_pipeline_get_tunnel(handle, i, &tunnel));
    tunnels.append(dict_of(tunnel));
  }
  nb::dict found;
  found["name"] = whole.name;
  found["workers"] = whole.workers;
  found["at_end"] = whole.at_end;
  found["elapsed_s"] = seconds(whole.elapsed_ns);
  found["stages"] = stages;
  found["tunnels"] = tunnels;
  return found;
}

// ---- Items -------------------------------------------------------------------------------------

namespace {

StageRun& run_of_this_thread() {
  if (current_run == nullptr) {
    raise_value("an item is kept by the stage that has it, while it is called");
  }
  return *current_run;
}

}  // namespace

std::uint64_t Item::this_batch() { return run_of_this_thread().number; }

std::shared_ptr<Item> Item::keep(std::uint64_t batch, std::size_t index) {
  StageRun& run = run_of_this_thread();
  if (run.number != batch) {
    raise_value(
        "an item is kept by the stage that has it, while it is called: this one was of an "
        "earlier call");
  }
  auto item = std::make_shared<Item>();
  item->pipeline = run.code->pipeline;
  run.kept.emplace_back(index, item);
  check(weir_item_keep(run.batch, index, &item->handle));
  return item;
}

bool Item::has_pipeline() const {
  const PipelineRef of = pipeline.lock();
  return of && of->handle != nullptr && !of->session->closed();
}

Item::~Item() {
  if (handle != nullptr && has_pipeline()) static_cast<void>(weir_item_complete(handle));
}

void Item::complete() {
  if (handle == nullptr) raise_value("the item is complete already, or its call has failed");
  weir_item* const kept = std::exchange(handle, nullptr);
  if (!has_pipeline()) {
    raise_status(WEIR_STATUS_INVALID_ARGUMENT, "the pipeline of the item has been closed");
  }
  call_released([&] { return weir_item_complete(kept); });
}

// ---- Tunnels and stages ------------------------------------------------------------------------

Tunnel add_tunnel(const PipelineRef& pipeline, nb::handle dtype, std::size_t capacity,
                  const std::string& overflow, const char* name) {
  weir_pipeline* const opened = open(pipeline);
  nb::object known = nb::module_::import_("numpy").attr("dtype")(dtype);
  if (nb::cast<bool>(known.attr("hasobject"))) {
    raise_type("items of dtype " + nb::cast<std::string>(nb::str(known)) +
               " are references: a tunnel carries bytes");
  }
  weir_tunnel_options options = WEIR_TUNNEL_OPTIONS_INIT;
  options.name = name;
  options.item_bytes = nb::cast<std::size_t>(known.attr("itemsize"));
  options.capacity = capacity;
  options.overflow = overflow_of(overflow);
  weir_tunnel* made = nullptr;
  check(weir_pipeline_add_tunnel(opened, &options, &made));
  return {pipeline, made, std::move(known), options.item_bytes, name ? name : ""};
}

void add_stage(const PipelineRef& pipeline, const StageOptions& wanted) {
  weir_pipeline* const opened = open(pipeline);
  std::vector<weir_tunnel*> outputs;
  auto code = std::make_unique<StageCode>(StageCode{
      wanted.work, wanted.at_end, wanted.input ? wanted.input->item_bytes : 0, {}, pipeline});
  for (const Output& output : wanted.outputs) {
    outputs.push_back(output.tunnel);
    code->stencils.push_back(output.stencil);
  }
  weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
  options.name = wanted.name;
  options.input = wanted.input ? wanted.input->handle : nullptr;
  options.outputs = outputs.data();
  options.output_count = outputs.size();
  options.function = run_work;
  if (!wanted.at_end.is_none()) options.at_end = run_at_end;
  options.payload = code.get();
  options.release = release_code;
  if (wanted.place) options.place = py::open(*pipeline->session, wanted.place->handle, "place");
  options.workers = wanted.workers;
  options.ordered = wanted.ordered;
  options.item_ns = wanted.item_seconds * 1e9;
  check(weir_pipeline_add_stage(opened, &options));
  static_cast<void>(code.release());
  if (wanted.place) pipeline->places.push_back(used(wanted.place));
}

// ---- Kernels and stencils ----------------------------------------------------------------------

namespace {

/// Returns a kernel that takes the operands as weir passes them: not a Python function, which needs
/// layouts.
const weir_kernel* kernel_for(Session& session, nb::handle called) {
  const Kernel& kernel = find_kernel(session, called);
  if (kernel.python != nullptr) {
    raise_type("kernel '" + kernel.name +
               "' is a function of Python: here a kernel is portable, compiled or built in");
  }
  return kernel.handle;
}

weir_place* open_place(const Pipeline& pipeline, const PlaceRef& place) {
  return place ? py::open(*pipeline.session, place->handle, "place") : nullptr;
}

}  // namespace

weir_stage_counting counting_of(const std::string& name) {
  if (name == "all") return WEIR_STAGE_COUNTING_ALL;
  if (name == "item") return WEIR_STAGE_COUNTING_PER_ITEM;
  if (name == "tunnel") return WEIR_STAGE_COUNTING_PER_TUNNEL;
  raise_value("counting '" + name + "' is not 'all', 'item' or 'tunnel'");
}

void add_kernel_stage(const PipelineRef& pipeline, const KernelStageOptions& wanted) {
  weir_pipeline* const opened = open(pipeline);
  std::vector<weir_tunnel*> outputs;
  for (const Tunnel* output : wanted.outputs) outputs.push_back(output->handle);
  const std::vector<weir_scalar> scalars = scalars_of(wanted.scalars);
  std::vector<weir_operand> tables;
  std::vector<std::shared_ptr<Buffer>> buffers;
  const Sequence given(wanted.tables, "tables are a sequence of parts of buffers");
  for (std::size_t i = 0; i < given.size(); ++i) {
    Part part = find_part(*pipeline->session, given[i]);
    tables.push_back({part.buffer->handle, part.region, WEIR_ACCESS_READ});
    buffers.push_back(std::move(part.buffer));
  }
  weir_stage_kernel kernel = WEIR_STAGE_KERNEL_INIT;
  kernel.kernel = kernel_for(*pipeline->session, wanted.kernel);
  kernel.scalars = scalars.data();
  kernel.scalar_count = scalars.size();
  kernel.outputs = wanted.counts.data();
  kernel.batch = wanted.batch;
  kernel.in_flight = wanted.in_flight;
  kernel.tables = tables.data();
  kernel.table_count = tables.size();
  kernel.scratch_bytes = wanted.scratch_bytes;
  weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
  options.name = wanted.name;
  options.input = wanted.input->handle;
  options.outputs = outputs.data();
  options.output_count = outputs.size();
  options.kernel = &kernel;
  options.place = open_place(*pipeline, wanted.place);
  options.ordered = wanted.ordered;
  check(weir_pipeline_add_stage(opened, &options));
  pipeline->places.push_back(used(wanted.place));
  pipeline->buffers.insert(pipeline->buffers.end(), buffers.begin(), buffers.end());
}

Stencil add_stencil(const PipelineRef& pipeline, const StencilOptions& wanted) {
  weir_pipeline* const opened = open(pipeline);
  const Part result = find_part(*pipeline->session, wanted.result);
  const auto& axes = result.layout->axes;
  const std::size_t bytes = result.layout->item_bytes;
  if (axes.size() != 2 || result.region.offset != 0 || result.strides[1] != bytes ||
      result.strides[0] != axes[1].length * bytes) {
    raise_value("the result of a stencil is a whole buffer: a matrix, one row after the other");
  }
  if (result.readonly) raise_value("the result of a stencil is read-only");
  const std::vector<weir_scalar> scalars = scalars_of(wanted.scalars);
  weir_stencil_options options = WEIR_STENCIL_OPTIONS_INIT;
  options.name = wanted.name;
  options.input = wanted.input->handle;
  options.output = wanted.output ? wanted.output->handle : nullptr;
  options.place = open_place(*pipeline, wanted.place);
  options.kernel = kernel_for(*pipeline->session, wanted.kernel);
  options.scalars = scalars.data();
  options.scalar_count = scalars.size();
  options.result = result.buffer->handle;
  options.rows = axes[0].length;
  options.columns = axes[1].length;
  options.value_bytes = bytes;
  options.region_rows = wanted.region_rows;
  options.region_columns = wanted.region_columns;
  options.halo = wanted.halo;
  options.corners = wanted.corners;
  options.sweeps = wanted.sweeps;
  options.batch = wanted.batch;
  options.in_flight = wanted.in_flight;
  weir_stencil* made = nullptr;
  check(weir_pipeline_add_stencil(opened, &options, &made));
  pipeline->places.push_back(used(wanted.place));
  pipeline->buffers.push_back(result.buffer);
  return {*wanted.input, made, nb::borrow(result.layout->dtype), wanted.name ? wanted.name : ""};
}

weir_stencil_info Stencil::info() const {
  open(input.pipeline);
  weir_stencil_info found = WEIR_STENCIL_INFO_INIT;
  call_released({&input.pipeline->session->in_use, &input.pipeline->in_use},
                [&] { return weir_stencil_get_info(handle, &found); });
  return found;
}

// ---- Feeds -------------------------------------------------------------------------------------

std::shared_ptr<Feed> open_feed(const Tunnel& tunnel) {
  open(tunnel.pipeline);
  weir_feed* made = nullptr;
  check(weir_feed_open(tunnel.handle, &made));
  return std::make_shared<Feed>(tunnel.pipeline, made, tunnel.dtype, tunnel.item_bytes);
}

void Feed::close() {
  weir_feed* const closed = std::exchange(handle, nullptr);
  if (closed == nullptr) return;
  closing_.store(true, std::memory_order_relaxed);
  in_use_.close();
  if (pipeline->handle == nullptr || pipeline->session->closed()) return;
  const Using inside({&pipeline->session->in_use, &pipeline->in_use});
  const Released released;
  weir_feed_close(closed);
}

void Feed::require_alone() const {
  if (!putting_) return;
  raise_status(WEIR_STATUS_BUSY,
               "another thread puts into this feed: a feed is for one thread, open another");
}

void Feed::put(nb::handle items, const Timeout& timeout) {
  constexpr std::int64_t kSliceNs = 20'000'000;  // until a close by another thread is seen
  const Bytes bytes(items);
  const std::size_t count = bytes.size() / item_bytes;
  open(pipeline);
  weir_feed* const opened = py::open(*pipeline->session, handle, "feed");
  require_alone();
  const Flag putting(putting_);
  std::size_t done = 0;
  const auto wait = [&](std::int64_t ns) {
    for (;;) {
      const std::int64_t slice_ns = ns == WEIR_FOREVER ? kSliceNs : std::min(ns, kSliceNs);
      std::size_t put = 0;
      const weir_status status =
          weir_feed_put(opened, bytes.data() + done * item_bytes, count - done, slice_ns, &put);
      done += put;
      if (ns != WEIR_FOREVER) ns -= slice_ns;
      const bool closed = closing_.load(std::memory_order_relaxed);
      if (status != WEIR_STATUS_TIMEOUT || ns == 0 || closed) return status;
    }
  };
  const weir_status status =
      wait_for(timeout, wait, {&pipeline->session->in_use, &pipeline->in_use, &in_use_});
  if (status == WEIR_STATUS_TIMEOUT && handle == nullptr) {
    raise_status(WEIR_STATUS_INVALID_ARGUMENT,
                 "the feed has been closed: " + std::to_string(count - done) +
                     " items of a put that waited are left");
  }
  check(status);
}

void Feed::next_epoch() const {
  open(pipeline);
  weir_feed* const opened = py::open(*pipeline->session, handle, "feed");
  require_alone();
  check(weir_feed_next_epoch(opened));
}

}  // namespace weir::py
