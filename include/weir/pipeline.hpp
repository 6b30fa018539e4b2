// Pipelines for C++: typed tunnels, and lambdas for stages. Header-only, C++20.
//
// Contracts are those of <weir/pipeline.h>; a failure status is thrown as weir::Error.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/pipeline.h>
#include <weir/weir.hpp>

namespace weir {

/// The queue of items in front of one stage. A value, valid as long as its pipeline.
template <class T>
class Tunnel {
  static_assert(std::is_trivially_copyable_v<T>, "items of tunnels are copied as bytes");

 public:
  Tunnel() = default;
  explicit Tunnel(weir_tunnel* tunnel) noexcept : tunnel_(tunnel) {}
  weir_tunnel* handle() const noexcept { return tunnel_; }

 private:
  weir_tunnel* tunnel_ = nullptr;
};

/// Where a stage puts items for one of its output tunnels.
template <class T>
class Outlet {
 public:
  explicit Outlet(weir_outlet* outlet) noexcept : outlet_(outlet) {}

  weir_outlet* handle() const noexcept { return outlet_; }
  /// Throws Error{out_of_memory}.
  void put(const T& item) const {
    void* const room = weir_outlet_add(outlet_);
    if (room == nullptr) throw Error(WEIR_STATUS_OUT_OF_MEMORY, weir_last_error());
    std::memcpy(room, &item, sizeof item);
  }

 private:
  weir_outlet* outlet_;
};

/// An item that a stage keeps beyond its call. Complete when destroyed.
class Item {
 public:
  Item() = default;
  explicit Item(weir_item* owned) noexcept : item_(owned) {}

  /// On any thread.
  void complete() {
    if (item_) check(weir_item_complete(item_.release()));
  }

 private:
  static void end(weir_item* item) noexcept { static_cast<void>(weir_item_complete(item)); }
  detail::Owner<weir_item, end> item_;
};

/// The context of a call of a stage besides its item.
class StageContext {
 public:
  explicit StageContext(weir_batch* batch, std::size_t index = 0) noexcept
      : batch_(batch), index_(index) {}
  /// Keeps the item that the stage got beyond this call.
  Item keep() const {
    weir_item* kept = nullptr;
    check(weir_item_keep(batch_, index_, &kept));
    return Item(kept);
  }
  /// Below Pipeline::info().workers; concurrent calls have different values.
  std::size_t worker() const noexcept { return batch_->worker; }
  std::uint64_t epoch() const noexcept { return batch_->epoch; }
  /// For a source: items of its next call and later belong to the next epoch.
  void end_epoch() const noexcept { batch_->epoch_over = true; }

 private:
  weir_batch* batch_;
  std::size_t index_;
};

/// A thread of the program that puts items. Closed when destroyed.
template <class T>
class Feed {
 public:
  Feed() = default;
  explicit Feed(weir_feed* owned) noexcept : feed_(owned) {}

  /// Waits for room where the tunnel blocks.
  void put(const T& item, std::chrono::nanoseconds timeout = forever) const {
    put(std::span<const T>(&item, 1), timeout);
  }
  void put(std::span<const T> items, std::chrono::nanoseconds timeout = forever) const {
    check(weir_feed_put(feed_.get(), items.data(), items.size(), timeout.count(), nullptr));
  }
  /// Does not wait. Returns whether there was room.
  bool try_put(const T& item) const {
    std::size_t put = 0;
    const weir_status status = weir_feed_put(feed_.get(), &item, 1, 0, &put);
    if (status != WEIR_STATUS_TIMEOUT) check(status);
    return put == 1;
  }
  void next_epoch() const { check(weir_feed_next_epoch(feed_.get())); }
  void close() noexcept { feed_.reset(); }

 private:
  detail::Owner<weir_feed, weir_feed_close> feed_;
};

/// Output tunnels of a stage.
template <class... T>
std::tuple<Tunnel<T>...> into(const Tunnel<T>&... tunnels) {
  return {tunnels...};
}

struct TunnelOptions {
  std::size_t capacity = 0;
  weir_overflow overflow = WEIR_OVERFLOW_BLOCK;
};

struct StageOptions {
  const Place* place = nullptr;  ///< nullptr: the pipeline's
  std::size_t workers = 0;       ///< 0: all cores of the place; a source: 1
  bool ordered = false;
  double item_ns = 0;  ///< in virtual time: of a host core for an item
};

/// A kernel as a stage: contracts at weir_stage_kernel.
struct KernelStageOptions {
  std::vector<Scalar> scalars = {};             ///< after the number of items
  std::vector<weir_stage_output> outputs = {};  ///< empty: one item for each
  std::size_t batch = 0;
  std::size_t in_flight = 0;
  bool ordered = false;
  std::vector<Operand> tables = {};  ///< read(...)
  std::size_t scratch_bytes = 0;
};

/// The items that the code of a kernel stage puts into one output. Their number depends on the
/// counting: see weir_stage_output.
template <class T>
struct KernelOutput {
  std::span<T> items;                ///< room, `most` for each item that came
  std::span<std::uint32_t> numbers;  ///< numbers of items put, initially 0; ALL: empty
  std::size_t most = 1;

  /// Room for the output items of item `index` of the batch, unless the counting is PER_TUNNEL.
  std::span<T> of(std::size_t index) const { return items.subspan(index * most, most); }
  /// With PER_ITEM: puts another item for item `index`. Throws std::length_error: there is no room.
  void put(std::size_t index, const T& item) const {
    if (numbers[index] == most) fail_full();
    of(index)[numbers[index]++] = item;
  }
  /// With PER_TUNNEL: puts another item.
  void put(const T& item) const {
    if (numbers[0] == items.size()) fail_full();
    items[numbers[0]++] = item;
  }

 private:
  [[noreturn]] void fail_full() const {
    throw std::length_error("there is room for " + std::to_string(most) +
                            " items for each that came: make `most` larger");
  }
};

/// A stencil: contracts at weir_stencil_options.
struct StencilOptions {
  std::size_t rows = 0, columns = 0;
  std::size_t region_rows = 0, region_columns = 0;  ///< 0: 64
  std::size_t halo = 1;
  bool corners = true;  ///< false: for a cross
  std::size_t sweeps = 1;
  std::vector<Scalar> scalars = {};  ///< behind those of the tile
  std::size_t batch = 0;
  std::size_t in_flight = 0;
};

/// A matrix of which stages set values. A value, valid as long as its pipeline.
template <class T>
class Stencil {
  static_assert(std::is_trivially_copyable_v<T>, "values of stencils are copied as bytes");

 public:
  Stencil() = default;
  explicit Stencil(weir_stencil* stencil) noexcept : stencil_(stencil) {}
  weir_stencil* handle() const noexcept { return stencil_; }

  /// Inside a stage, with its outlet for the input of the stencil.
  void set(const Outlet<weir_stencil_region>& outlet, std::size_t row, std::size_t column,
           const T& value) const {
    set(outlet, row, column, 1, 1, &value, 1);
  }
  void set(const Outlet<weir_stencil_region>& outlet, std::size_t row, std::size_t column,
           std::size_t rows, std::size_t columns, const T* values, std::size_t stride) const {
    check(weir_stencil_set(handle(), outlet.handle(), row, column, rows, columns, values, stride));
  }
  weir_stencil_info info() const {
    weir_stencil_info found = WEIR_STENCIL_INFO_INIT;
    check(weir_stencil_get_info(handle(), &found));
    return found;
  }

 private:
  weir_stencil* stencil_ = nullptr;
};

struct PipelineOptions {
  const char* name = nullptr;
  const Place* place = nullptr;
  bool keep_going = false;
  std::size_t batch = 0;
  std::size_t epochs = 0;
  std::size_t keep_bytes = 0;
  std::function<void(const weir_item_failure&)> on_failure = {};
  std::function<void(std::uint64_t epoch)> on_epoch = {};
  weir_relief relief = WEIR_RELIEF_BOTH;
};

/// The state of a pipeline, stage by stage and tunnel by tunnel: contracts are those of
/// weir_pipeline_get_stage() and weir_pipeline_get_tunnel(). Names live as long as the pipeline.
struct PipelineState {
  weir_pipeline_info info = WEIR_PIPELINE_INFO_INIT;
  std::vector<weir_stage_state> stages = {};
  std::vector<weir_tunnel_state> tunnels = {};
};

/// The age that `percent` of the items had at most, without the items counted in `before`.
/// Negative: no items.
inline std::chrono::nanoseconds percentile(const weir_latency& latency, double percent,
                                           const weir_latency* before = nullptr) {
  std::int64_t ns = 0;
  check(weir_latency_percentile(&latency, before, percent, &ns));
  return std::chrono::nanoseconds(ns);
}

/// Owns a pipeline. Destroying it cancels the pipeline if it runs.
///
/// A stage is code(item, outlets...) for each item, or code(item, outlets..., StageContext); a
/// source is code(outlets...) or code(outlets..., StageContext), called for each item and returning
/// false when there is no more. What they throw fails the item.
class Pipeline {
 public:
  explicit Pipeline(const Runtime& runtime, PipelineOptions wanted = {})
      : runtime_(runtime.handle()),
        callbacks_(std::make_unique<Callbacks>(
            Callbacks{std::move(wanted.on_failure), std::move(wanted.on_epoch)})) {
    weir_pipeline_options options = WEIR_PIPELINE_OPTIONS_INIT;
    options.name = wanted.name;
    options.place = wanted.place != nullptr ? wanted.place->handle() : nullptr;
    options.keep_going = wanted.keep_going;
    options.batch = wanted.batch;
    options.epochs = wanted.epochs;
    options.keep_bytes = wanted.keep_bytes;
    if (callbacks_->on_failure) {
      options.on_failure = [](const weir_item_failure* failure, void* payload) {
        static_cast<Callbacks*>(payload)->on_failure(*failure);
      };
    }
    if (callbacks_->on_epoch) {
      options.on_epoch = [](std::uint64_t epoch, void* payload) {
        static_cast<Callbacks*>(payload)->on_epoch(epoch);
      };
    }
    options.payload = callbacks_.get();
    options.relief = wanted.relief;
    weir_pipeline* made = nullptr;
    check(weir_pipeline_create(runtime.handle(), &options, &made));
    pipeline_.reset(made);
  }

  Pipeline(Pipeline&&) noexcept = default;
  /// Destroys the former pipeline before the functions that it calls.
  Pipeline& operator=(Pipeline&& other) noexcept {
    pipeline_ = std::move(other.pipeline_);
    runtime_ = other.runtime_;
    callbacks_ = std::move(other.callbacks_);
    return *this;
  }

  weir_pipeline* handle() const noexcept { return pipeline_.get(); }

  template <class T>
  Tunnel<T> tunnel(const char* name, const TunnelOptions& wanted = {}) const {
    weir_tunnel_options options = WEIR_TUNNEL_OPTIONS_INIT;
    options.name = name;
    options.item_bytes = sizeof(T);
    options.capacity = wanted.capacity;
    options.overflow = wanted.overflow;
    weir_tunnel* made = nullptr;
    check(weir_pipeline_add_tunnel(handle(), &options, &made));
    return Tunnel<T>(made);
  }

  /// A stage that puts items for others.
  template <class T, class... Out, class Code>
  void stage(const char* name, const Tunnel<T>& input, const std::tuple<Tunnel<Out>...>& outputs,
             Code code, const StageOptions& wanted = {}) const {
    add(name, input.handle(), outputs, std::move(code), run_stage<T, Code, Out...>, wanted);
  }
  /// A stage at the end of a pipeline.
  template <class T, class Code>
  void stage(const char* name, const Tunnel<T>& input, Code code,
             const StageOptions& wanted = {}) const {
    stage(name, input, std::tuple<>(), std::move(code), wanted);
  }
  /// Code as a kernel on the device of a place, where code of the host runs: code(items,
  /// outputs...) or code(items, outputs..., Call) for a batch, with a std::span<const T> and a
  /// KernelOutput<Out> for each output. The scalars that were given begin at 1 in the Call; tables
  /// and scratch are its last operands. What it throws fails the batch. Calls for several batches
  /// run at the same time. The runtime keeps the code, as a kernel of the stage's name, until it
  /// ends.
  template <class T, class... Out, class Code>
    requires(!std::is_convertible_v<Code, Kernel>)
  void kernel(const char* name, const Tunnel<T>& input, const std::tuple<Tunnel<Out>...>& outputs,
              Code code, const Place& place, const KernelStageOptions& wanted = {}) const {
    check_outputs(wanted, sizeof...(Out));
    std::vector<weir_stage_output> described = wanted.outputs;
    described.resize(sizeof...(Out));
    const auto run = [code = std::move(code), described](const Call& call) mutable {
      [[maybe_unused]] OutputReader outputs{call, described};  // without outputs
      // Braces: evaluated from left to right.
      std::tuple<std::span<const T>, KernelOutput<Out>...> arguments{
          call.span<const T>(0), outputs.template next<Out>()...};
      std::apply(
          [&](auto&... each) {
            if constexpr (std::is_invocable_v<Code&, decltype(each)..., const Call&>) {
              code(each..., call);
            } else {
              code(each...);
            }
          },
          arguments);
    };
    kernel(name, input, outputs, register_under(name, std::move(run)), place, wanted);
  }
  /// A kernel on the device of a place without workers.
  template <class T, class... Out>
  void kernel(const char* name, const Tunnel<T>& input, const std::tuple<Tunnel<Out>...>& outputs,
              const Kernel& kernel, const Place& place,
              const KernelStageOptions& wanted = {}) const {
    check_outputs(wanted, sizeof...(Out));
    const std::vector<weir_tunnel*> handles = handles_of(outputs);
    const std::vector<weir_scalar> scalars(wanted.scalars.begin(), wanted.scalars.end());
    weir_stage_kernel code = WEIR_STAGE_KERNEL_INIT;
    code.kernel = kernel.handle();
    code.scalars = scalars.data();
    code.scalar_count = scalars.size();
    code.outputs = wanted.outputs.empty() ? nullptr : wanted.outputs.data();
    code.batch = wanted.batch;
    code.in_flight = wanted.in_flight;
    code.tables = wanted.tables.data();
    code.table_count = wanted.tables.size();
    code.scratch_bytes = wanted.scratch_bytes;
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.name = name;
    options.input = input.handle();
    options.outputs = handles.data();
    options.output_count = handles.size();
    options.place = place.handle();
    options.ordered = wanted.ordered;
    options.kernel = &code;
    check(weir_pipeline_add_stage(handle(), &options));
  }
  /// A stencil of values of T, whose tiles go to the output; `result` outlives the pipeline.
  template <class T>
  Stencil<T> stencil(const char* name, const Tunnel<weir_stencil_region>& input,
                     const Tunnel<weir_stencil_region>& output, const Kernel& kernel,
                     const Place& place, const Buffer& result, const StencilOptions& wanted) const {
    const std::vector<weir_scalar> scalars(wanted.scalars.begin(), wanted.scalars.end());
    weir_stencil_options options = WEIR_STENCIL_OPTIONS_INIT;
    options.name = name;
    options.input = input.handle();
    options.output = output.handle();
    options.place = place.handle();
    options.kernel = kernel.handle();
    options.scalars = scalars.data();
    options.scalar_count = scalars.size();
    options.result = result.handle();
    options.rows = wanted.rows;
    options.columns = wanted.columns;
    options.value_bytes = sizeof(T);
    options.region_rows = wanted.region_rows;
    options.region_columns = wanted.region_columns;
    options.halo = wanted.halo;
    options.corners = wanted.corners;
    options.sweeps = wanted.sweeps;
    options.batch = wanted.batch;
    options.in_flight = wanted.in_flight;
    weir_stencil* made = nullptr;
    check(weir_pipeline_add_stencil(handle(), &options, &made));
    return Stencil<T>(made);
  }
  /// A stage without an input.
  template <class... Out, class Code>
  void source(const char* name, const std::tuple<Tunnel<Out>...>& outputs, Code code,
              const StageOptions& wanted = {}) const {
    add(name, nullptr, outputs, std::move(code), run_source<Code, Out...>, wanted);
  }

  template <class T>
  Feed<T> feed(const Tunnel<T>& tunnel) const {
    weir_feed* made = nullptr;
    check(weir_feed_open(tunnel.handle(), &made));
    return Feed<T>(made);
  }

  void start() const { check(weir_pipeline_start(handle())); }
  /// Works on the calling thread, too, until the end. Throws the first failure.
  void run() const { check(weir_pipeline_run(handle())); }
  void wait(std::chrono::nanoseconds timeout = forever) const {
    check(weir_pipeline_wait(handle(), timeout.count()));
  }
  void cancel() const { check(weir_pipeline_cancel(handle())); }

  weir_pipeline_info info() const {
    weir_pipeline_info found = WEIR_PIPELINE_INFO_INIT;
    check(weir_pipeline_get_info(handle(), &found, nullptr, 0));
    return found;
  }
  std::vector<weir_stage_info> stages() const {
    weir_pipeline_info found = info();
    std::vector<weir_stage_info> all(found.stages);
    check(weir_pipeline_get_info(handle(), &found, all.data(), all.size()));
    return all;
  }
  /// On any thread. The first call makes the pipeline measure latencies.
  PipelineState state() const {
    PipelineState found;
    found.info = info();
    found.stages.assign(found.info.all_stages, WEIR_STAGE_STATE_INIT);
    found.tunnels.assign(found.info.tunnels, WEIR_TUNNEL_STATE_INIT);
    for (std::size_t i = 0; i < found.stages.size(); ++i) {
      check(weir_pipeline_get_stage(handle(), i, &found.stages[i]));
    }
    for (std::size_t i = 0; i < found.tunnels.size(); ++i) {
      check(weir_pipeline_get_tunnel(handle(), i, &found.tunnels[i]));
    }
    return found;
  }

 private:
  struct Callbacks {
    std::function<void(const weir_item_failure&)> on_failure;
    std::function<void(std::uint64_t)> on_epoch;
  };

  template <class... Out>
  static std::vector<weir_tunnel*> handles_of(const std::tuple<Tunnel<Out>...>& tunnels) {
    return std::apply(
        [](const auto&... tunnel) { return std::vector<weir_tunnel*>{tunnel.handle()...}; },
        tunnels);
  }

  static void check_outputs(const KernelStageOptions& wanted, std::size_t outputs) {
    if (wanted.outputs.empty() || wanted.outputs.size() == outputs) return;
    throw Error(WEIR_STATUS_INVALID_ARGUMENT, "a kernel stage describes another number of outputs");
  }

  /// Reads the operands of a kernel, output by output.
  struct OutputReader {
    const Call& call;
    const std::vector<weir_stage_output>& described;
    std::size_t output = 0, operand = 1;

    template <class Out>
    KernelOutput<Out> next() {
      const weir_stage_output& each = described[output++];
      KernelOutput<Out> made{call.span<Out>(operand++), {}, std::max<std::size_t>(each.most, 1)};
      if (each.counting == WEIR_STAGE_COUNTING_ALL) return made;
      made.numbers = call.span<std::uint32_t>(operand++);
      std::fill(made.numbers.begin(), made.numbers.end(), 0);
      return made;
    }
  };

  /// Under a name of its own: pipelines may have stages of the same name.
  template <class Code>
  Kernel register_under(const char* name, Code code) const {
    auto owned = std::make_unique<Code>(std::move(code));
    const std::string wanted = name != nullptr ? name : "stage";
    std::string tried = wanted;
    weir_kernel* made = nullptr;
    for (std::size_t number = 2;; ++number) {
      const weir_status status = detail::register_kernel(
          runtime_, tried.c_str(), WEIR_KERNEL_SHAPE_SERIAL, nullptr, owned, &made);
      if (status == WEIR_STATUS_OK) return Kernel(made);
      const Error failure(status, weir_last_error());
      const bool taken = status == WEIR_STATUS_INVALID_ARGUMENT &&
                         weir_kernel_find(runtime_, tried.c_str(), &made) == WEIR_STATUS_OK;
      if (!taken) throw failure;
      tried = wanted + " " + std::to_string(number);
    }
  }

  template <class... Out, class Code>
  void add(const char* name, weir_tunnel* input, const std::tuple<Tunnel<Out>...>& outputs,
           Code code, weir_stage_function function, const StageOptions& wanted) const {
    auto owned = std::make_unique<Code>(std::move(code));
    const std::vector<weir_tunnel*> handles = handles_of(outputs);
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.name = name;
    options.input = input;
    options.outputs = handles.data();
    options.output_count = handles.size();
    options.function = function;
    options.payload = owned.get();
    options.release = [](void* payload) { delete static_cast<Code*>(payload); };
    options.place = wanted.place != nullptr ? wanted.place->handle() : nullptr;
    options.workers = wanted.workers;
    options.ordered = wanted.ordered;
    options.item_ns = wanted.item_ns;
    check(weir_pipeline_add_stage(handle(), &options));
    static_cast<void>(owned.release());
  }

  /// Calls code with arguments, and a context when it takes one.
  template <class Code, class... Arguments>
  static decltype(auto) call(Code& code, weir_batch* batch, [[maybe_unused]] std::size_t index,
                             Arguments&... arguments) {
    if constexpr (std::is_invocable_v<Code&, Arguments&..., StageContext>) {
      return code(arguments..., StageContext(batch, index));
    } else {
      return code(arguments...);
    }
  }

  template <class Body>
  static weir_status guarded(weir_batch* batch, const std::size_t& at, Body&& body) {
    try {
      body();
      return WEIR_STATUS_OK;
    } catch (const Error& error) {
      batch->index = at;
      return weir_batch_fail(batch, error.status(), "%s", error.what());
    } catch (const std::exception& error) {
      batch->index = at;
      return weir_batch_fail(batch, WEIR_STATUS_KERNEL_ERROR, "%s", error.what());
    } catch (...) {
      batch->index = at;
      return weir_batch_fail(batch, WEIR_STATUS_KERNEL_ERROR, "unknown exception");
    }
  }

  template <class T, class Code, class... Out>
  static weir_status run_stage(weir_batch* batch) {
    Code& code = *static_cast<Code*>(batch->payload);
    const T* const items = static_cast<const T*>(batch->items);
    std::size_t at = 0;
    return guarded(batch, at, [&] {
      with_outlets<Out...>(batch, std::index_sequence_for<Out...>(), [&](auto... outlet) {
        for (const std::size_t count = batch->count; at < count; ++at) {
          call(code, batch, at, items[at], outlet...);
        }
      });
    });
  }

  template <class Code, class... Out>
  static weir_status run_source(weir_batch* batch) {
    Code& code = *static_cast<Code*>(batch->payload);
    std::size_t at = 0;
    return guarded(batch, at, [&] {
      with_outlets<Out...>(batch, std::index_sequence_for<Out...>(), [&](auto... outlet) {
        for (; at < batch->count && !batch->over && !batch->epoch_over; ++at) {
          batch->over = !call(code, batch, at, outlet...);
        }
      });
    });
  }

  template <class... Out, std::size_t... index, class Body>
  static void with_outlets([[maybe_unused]] weir_batch* batch, std::index_sequence<index...>,
                           Body&& body) {
    body(Outlet<Out>(batch->outlets[index])...);
  }

  weir_runtime* runtime_ = nullptr;
  std::unique_ptr<Callbacks> callbacks_;  // outlives the pipeline
  detail::Owner<weir_pipeline, weir_pipeline_destroy> pipeline_;
};

}  // namespace weir
