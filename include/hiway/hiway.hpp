// The interface of HiWayLib (paper 002, figure 8) on weir's pipelines. Header-only, C++20.
//
//   HiWayLib::use(runtime);
//   HiWayLib::createTunnel<Item>(found, HiWayLib::GPU_TO_CPU, true);
//   ...
//   HiWayLib::setupService();
//   while (!HiWayLib::isTerminate_h()) {          // on any number of threads
//     if (HiWayLib::get_h(&item, found)) {
//       use_of(item);
//       HiWayLib::endTask_h(found);
//     }
//   }
//   HiWayLib::shutdownService();
//
// What differs from the paper:
// - Device code is a kernel set with configKernel(): its operands replace get_d() and put_d().
//   Batches move by credits, not by time-outs.
// - Items are always counted, so that ends are exact. The end flag is a call that closes a tunnel
//   for threads that have no item: it is valid at any time after their last put_h().
// - A thread that has an item, from get_h() to endTask_h(), never waits for room: the worker that
//   handed the item out keeps the items it puts. Other threads wait, which bounds the memory.
// - When a thread leaves a batch that it has begun, other threads get the rest.
// - A worker, which is a core of the host, hands out a batch and waits until threads have ended all
//   of it: at most as many threads as workers have items at a time. A failure of a device ends the
//   service at once, also while all workers wait.
// - A thread has one item at a time, and ends it exactly once. Anything else is an error.
//
// There is one service in a program. What weir reports as a status is thrown as weir::Error.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <weir/pipeline.hpp>

namespace HiWayLib {

/// The two ends of a tunnel; GPU means any domain that runs kernels.
enum TunnelDirection { CPU_TO_CPU, CPU_TO_GPU, GPU_TO_CPU, GPU_TO_GPU };

/// The argument of put_h() that closes a tunnel for threads without an item.
struct EndFlag {};
inline constexpr EndFlag endFlag_h{};

/// A matrix whose values are set with set_h() in any order, each once: contracts at
/// weir_stencil_options. x is the column of a value, y its row.
struct StencilConfig {
  std::size_t rows = 0, columns = 0;
  std::size_t halo = 1;         ///< values on each side that a value depends on
  bool corners = true;          ///< diagonal neighbours, too; false: for a cross
  std::size_t region_rows = 0;  ///< size of a region, copied at once; 0: 64
  std::size_t region_columns = 0;
  std::size_t sweeps = 1;
  weir::Kernel kernel = {};
  const weir::Place* place = nullptr;
};

namespace detail {

using Clock = std::chrono::steady_clock;

/// A batch that a worker offers to threads of the program.
struct Offer {
  std::mutex mutex;
  weir_batch* batch;  ///< null: the worker no longer waits for the answer
  weir_status status = WEIR_STATUS_OK;
  const char* message = "";
  bool complete = false;
  std::condition_variable answered;  ///< notified also when the service ends
  std::size_t index = 0;             ///< of the first item that no thread has taken
  Clock::duration worked{0};         ///< of the threads that had the batch
};

/// The batch that a thread works on.
struct Holding {
  std::shared_ptr<Offer> offer;
  std::uint64_t service = 0;  ///< number of the service that handed it out
  int tunnel = -1;
  std::vector<std::byte> items;
  std::size_t index = 0, count = 0;
  Clock::time_point taken;
  std::condition_variable wake;  ///< of a thread that waits for an offer
  bool woken = false;
  Holding* next = nullptr;  ///< next in Tunnel::waiting: waits longer
  bool active = false;      ///< between get_h() and endTask_h()

  /// When a thread exits with an item, the item fails; without one, other threads get the rest.
  ~Holding();
};

struct Tunnel {
  std::string name;
  TunnelDirection direction;
  std::size_t item_bytes;
  bool batched;
  weir_tunnel* handle = nullptr;
  std::mutex feeding;
  weir_feed* feed = nullptr;  ///< of threads without an item
  std::deque<std::shared_ptr<Offer>> offers;
  std::size_t consumers = 0;   ///< threads that wait for its items or have some
  Holding* waiting = nullptr;  ///< for its items, the latest first: its cache is warm

  bool starts_on_cpu() const noexcept { return direction == CPU_TO_CPU || direction == CPU_TO_GPU; }
  bool ends_on_cpu() const noexcept { return direction == CPU_TO_CPU || direction == GPU_TO_CPU; }
};

/// The settings of configKernel().
struct Code {
  int input;
  std::vector<int> outputs;
  weir::Kernel kernel;
  const weir::Place* place;
  weir::KernelStageOptions options;
};

/// The settings of configStencilTunnel(), and the tiles that are complete.
struct Matrix {
  int tunnel;
  std::size_t value_bytes;
  StencilConfig config;
  weir::Buffer result = {};
  weir_stencil* stencil = nullptr;
  std::unique_ptr<std::atomic<bool>[]> ready = {};

  std::size_t region_rows() const noexcept { return config.region_rows ? config.region_rows : 64; }
  std::size_t region_columns() const noexcept {
    return config.region_columns ? config.region_columns : 64;
  }
  std::size_t across() const noexcept {
    return (config.columns + region_columns() - 1) / region_columns();
  }
  std::size_t regions() const noexcept {
    return (config.rows + region_rows() - 1) / region_rows() * across();
  }
  std::size_t region_of(std::size_t row, std::size_t column) const noexcept {
    return row / region_rows() * across() + column / region_columns();
  }
};

/// The header before a value of a stencil: its position.
struct Spot {
  std::uint32_t row, column;
};

[[noreturn]] inline void refuse(weir_status status, const std::string& message) {
  throw weir::Error(status, message);
}

class Service {
 public:
  static Service& instance() {
    static Service service;
    return service;
  }
  /// The holding of this thread; that of a service that was shut down is discarded.
  Holding& holding() {
    thread_local Holding held;
    if (held.offer != nullptr && held.service != number_) {
      held.offer.reset();
      held.active = false;
    }
    return held;
  }
  ~Service() { stop(); }

  void use(const weir::Runtime& runtime) {
    refuse_while_running("use");
    runtime_ = &runtime;
  }

  int add_tunnel(TunnelDirection direction, std::size_t item_bytes, bool batched) {
    refuse_while_running("createTunnel");
    auto tunnel = std::make_unique<Tunnel>();
    tunnel->name = "tunnel " + std::to_string(tunnels_.size());
    tunnel->direction = direction;
    tunnel->item_bytes = item_bytes;
    tunnel->batched = batched;
    tunnels_.push_back(std::move(tunnel));
    return static_cast<int>(tunnels_.size()) - 1;
  }

  void add_code(Code code) {
    refuse_while_running("configKernel");
    const Tunnel& input = tunnel(code.input);
    if (input.ends_on_cpu()) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT, input.name +
                                               " does not lead to a GPU: give the kernel "
                                               "a tunnel that does");
    }
    for (const int output : code.outputs) {
      if (!tunnel(output).starts_on_cpu()) continue;
      refuse(WEIR_STATUS_INVALID_ARGUMENT, tunnel(output).name +
                                               " does not begin on a GPU: give "
                                               "the kernel a tunnel that does");
    }
    codes_.push_back(std::move(code));
  }

  void add_matrix(int id, std::size_t value_bytes, const StencilConfig& config) {
    refuse_while_running("configStencilTunnel");
    Tunnel& values = tunnel(id);
    if (values.direction != CPU_TO_GPU || values.item_bytes != value_bytes) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT,
             values.name + " takes no values of a stencil: expected CPU_TO_GPU of " +
                 std::to_string(value_bytes) + " bytes");
    }
    if (config.place == nullptr || config.rows == 0 || config.columns == 0) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT,
             "the stencil of " + values.name + " needs rows, columns, a kernel and a place");
    }
    matrices_.push_back(std::make_unique<Matrix>(Matrix{id, value_bytes, config}));
    values.item_bytes = sizeof(Spot) + value_bytes;
  }

  void setup() {
    refuse_while_running("setupService");
    if (runtime_ == nullptr) runtime_ = &own_.emplace();
    ended_ = stopped_ = failed_ = false;
    error_ = nullptr;
    try {
      connect();
      watcher_ = std::thread([this] { watch(); });
    } catch (...) {
      pipeline_.reset();
      for (const auto& each : tunnels_) each->feed = nullptr;
      throw;
    }
  }

  void shutdown() {
    stop();
    const std::exception_ptr error = std::exchange(error_, nullptr);
    matrices_.clear();
    codes_.clear();
    {
      const std::lock_guard<std::mutex> lock(mutex_);  // a thread with an item may be exiting
      ++number_;
      tunnels_.clear();
    }
    runtime_ = nullptr;
    own_.reset();
    if (error != nullptr) std::rethrow_exception(error);
  }

  bool ended() const noexcept { return ended_ || stopped_; }

  void put(int id, const void* item, std::size_t bytes) {
    Tunnel& into = tunnel(id);
    check_item(into, bytes);
    if (!into.starts_on_cpu()) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT, into.name + " begins on a GPU: put_h() is not for it");
    }
    const Holding& held = holding();
    if (held.active) return put_for(held, id, item, bytes);
    const bool lent = held.offer != nullptr;  // a worker, which may be the one that makes room
    std::unique_lock<std::mutex> lock(into.feeding, std::defer_lock);
    if (!lent) {
      lock.lock();
    } else if (!lock.try_lock()) {  // the thread that holds it may wait for that room
      return put_for(held, id, item, bytes);
    }
    if (into.feed == nullptr) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT,
             into.name + (pipeline_ ? " got its end flag: nothing more goes there"
                                    : " is not open: call setupService() before put_h()"));
    }
    const weir_status status =
        weir_feed_put(into.feed, item, 1, lent ? 0 : weir::forever.count(), nullptr);
    if (lent && status == WEIR_STATUS_TIMEOUT) return put_for(held, id, item, bytes);
    weir::check(status);
  }
  void close(int id) {
    Tunnel& into = tunnel(id);
    const std::lock_guard<std::mutex> lock(into.feeding);
    if (into.feed == nullptr) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT, into.name + " is closed: it takes one end flag");
    }
    weir_feed_close(std::exchange(into.feed, nullptr));
  }

  bool get(int id, void* item, std::size_t bytes) {
    Tunnel& from = tunnel(id);
    check_item(from, bytes);
    if (!from.ends_on_cpu()) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT, from.name + " leads to a GPU: get_h() is not for it");
    }
    Holding& held = holding();
    if (held.active) {
      refuse(WEIR_STATUS_BUSY, "the thread has an item of " + tunnel(held.tunnel).name +
                                   ": call endTask_h() before the next get_h()");
    }
    if (!pipeline_) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT,
             from.name + " is not open: call setupService() before get_h()");
    }
    if (held.offer != nullptr && held.tunnel != id) leave(held);
    if (held.offer == nullptr && !take(from, id, held)) return false;
    std::memcpy(item, held.items.data() + held.index * bytes, bytes);
    held.active = true;
    return true;
  }
  void end_task(int id) {
    Holding& held = holding();
    if (!held.active || held.tunnel != id) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT, "the thread has no item of " + tunnel(id).name +
                                               ": endTask_h() ends what get_h() gave");
    }
    held.active = false;
    if (++held.index == held.count) answer(held, WEIR_STATUS_OK, "");
  }

  /// Answers the worker that has offered the batch.
  void answer(Holding& held, weir_status status, const char* message) noexcept {
    const std::shared_ptr<Offer> offer = std::move(held.offer);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const std::lock_guard<std::mutex> answering(offer->mutex);
      offer->worked += Clock::now() - held.taken;
      if (offer->batch != nullptr) {
        offer->batch->index = held.index;
        offer->batch->busy_ns =
            std::chrono::duration_cast<std::chrono::nanoseconds>(offer->worked).count();
      }
      offer->status = status;
      offer->message = message;
      offer->complete = true;
      if (held.service == number_)
        remove_consumer(*tunnels_[static_cast<std::size_t>(held.tunnel)]);
    }
    offer->answered.notify_one();
  }

  /// Gives up a thread's batch: fails its item if it has one, otherwise offers the rest to others.
  void leave(Holding& held) noexcept {
    if (!held.active && give_back(held)) return;
    answer(held, WEIR_STATUS_KERNEL_ERROR, "a thread ended before it called endTask_h()");
  }

  Matrix& matrix(int id) {
    for (const auto& each : matrices_) {
      if (each->tunnel == id) return *each;
    }
    refuse(WEIR_STATUS_INVALID_ARGUMENT,
           tunnel(id).name + " has no stencil: call configStencilTunnel() first");
  }
  void set_value(int id, int x, int y, const void* value, std::size_t bytes) {
    const Matrix& of = matrix(id);
    if (bytes != of.value_bytes) check_item(tunnel(id), sizeof(Spot) + bytes);
    static_cast<void>(region_at(of, x, y));
    const Spot spot{static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(x)};
    std::vector<std::byte> item(sizeof spot + bytes);
    std::memcpy(item.data(), &spot, sizeof spot);
    std::memcpy(item.data() + sizeof spot, value, bytes);
    put(id, item.data(), item.size());
  }
  bool ready(int id, int x, int y) {
    const Matrix& of = matrix(id);
    return of.ready != nullptr && of.ready[region_at(of, x, y)].load(std::memory_order_acquire);
  }
  void fetch(int id, int x, int y, void* value, std::size_t bytes) {
    const Matrix& of = matrix(id);
    if (bytes != of.value_bytes || !ready(id, x, y)) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT,
             "value (" + std::to_string(x) + ", " + std::to_string(y) + ") of " + tunnel(id).name +
                 (bytes != of.value_bytes ? " has another type" : " is not ready"));
    }
    const auto at = static_cast<std::size_t>(y) * of.config.columns + static_cast<std::size_t>(x);
    std::memcpy(value, of.result.data() + at * bytes, bytes);
  }

 private:
  Tunnel& tunnel(int id) {
    if (id < 0 || static_cast<std::size_t>(id) >= tunnels_.size()) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT, "there is no tunnel " + std::to_string(id) +
                                               ": there are " + std::to_string(tunnels_.size()));
    }
    return *tunnels_[static_cast<std::size_t>(id)];
  }
  static void check_item(const Tunnel& tunnel, std::size_t bytes) {
    if (bytes == tunnel.item_bytes) return;
    refuse(WEIR_STATUS_INVALID_ARGUMENT, "items of " + tunnel.name + " have " +
                                             std::to_string(tunnel.item_bytes) + " bytes, not " +
                                             std::to_string(bytes));
  }
  void refuse_while_running(const char* call) const {
    if (pipeline_) {
      refuse(WEIR_STATUS_BUSY, std::string(call) + "() comes before setupService()");
    }
  }
  std::size_t region_at(const Matrix& of, int x, int y) const {
    const auto column = static_cast<std::size_t>(x), row = static_cast<std::size_t>(y);
    if (x < 0 || y < 0 || column >= of.config.columns || row >= of.config.rows) {
      refuse(WEIR_STATUS_INVALID_ARGUMENT,
             "(" + std::to_string(x) + ", " + std::to_string(y) + ") is not in a matrix of " +
                 std::to_string(of.config.columns) + " x " + std::to_string(of.config.rows));
    }
    return of.region_of(row, column);
  }

  // ---- The pipeline ----

  void connect() {
    pipeline_.emplace(*runtime_, weir::PipelineOptions{
                                     .name = "HiWayLib",
                                     .on_failure = [this](const weir_item_failure&) { fail(); }});
    for (const auto& each : tunnels_) each->handle = make_tunnel(each->name, each->item_bytes);
    from_cpu_.clear();
    for (const auto& each : tunnels_) {
      if (each->starts_on_cpu()) from_cpu_.push_back(each->handle);
    }
    for (const auto& each : tunnels_) {
      if (each->ends_on_cpu())
        add_stage(each->name.c_str(), each->handle, hand_out, each.get(), from_cpu_);
    }
    for (const Code& code : codes_) connect_kernel(code);
    for (const auto& each : matrices_) connect_matrix(*each);
    for (const auto& each : tunnels_) {
      if (each->starts_on_cpu()) weir::check(weir_feed_open(each->handle, &each->feed));
    }
    pipeline_->start();
  }

  weir_tunnel* make_tunnel(const std::string& name, std::size_t item_bytes) const {
    weir_tunnel_options options = WEIR_TUNNEL_OPTIONS_INIT;
    options.name = name.c_str();
    options.item_bytes = item_bytes;
    weir_tunnel* made = nullptr;
    weir::check(weir_pipeline_add_tunnel(pipeline_->handle(), &options, &made));
    return made;
  }
  void add_stage(const char* name, weir_tunnel* input, weir_stage_function function, void* payload,
                 const std::vector<weir_tunnel*>& outputs) const {
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.name = name;
    options.input = input;
    options.outputs = outputs.data();
    options.output_count = outputs.size();
    options.function = function;
    options.payload = payload;
    weir::check(weir_pipeline_add_stage(pipeline_->handle(), &options));
  }
  void connect_kernel(const Code& code) {
    const Tunnel& input = tunnel(code.input);
    std::vector<weir_tunnel*> outputs;
    for (const int output : code.outputs) outputs.push_back(tunnel(output).handle);
    const std::vector<weir_scalar> scalars(code.options.scalars.begin(),
                                           code.options.scalars.end());
    weir_stage_kernel kernel = WEIR_STAGE_KERNEL_INIT;
    kernel.kernel = code.kernel.handle();
    kernel.scalars = scalars.data();
    kernel.scalar_count = scalars.size();
    kernel.outputs = code.options.outputs.empty() ? nullptr : code.options.outputs.data();
    kernel.batch = input.batched ? code.options.batch : 1;
    kernel.in_flight = code.options.in_flight;
    kernel.tables = code.options.tables.data();
    kernel.table_count = code.options.tables.size();
    kernel.scratch_bytes = code.options.scratch_bytes;
    weir_stage_options options = WEIR_STAGE_OPTIONS_INIT;
    options.name = input.name.c_str();
    options.input = input.handle;
    options.outputs = outputs.data();
    options.output_count = outputs.size();
    options.place = code.place->handle();
    options.ordered = code.options.ordered;
    options.kernel = &kernel;
    weir::check(weir_pipeline_add_stage(pipeline_->handle(), &options));
  }
  void connect_matrix(Matrix& of) {
    const StencilConfig& config = of.config;
    of.result = runtime_->buffer(config.rows * config.columns * of.value_bytes, "stencil");
    of.ready = std::make_unique<std::atomic<bool>[]>(of.regions());
    weir_tunnel* const regions = make_tunnel("regions", sizeof(weir_stencil_region));
    weir_tunnel* const tiles = make_tunnel("tiles", sizeof(weir_stencil_region));
    weir_stencil_options options = WEIR_STENCIL_OPTIONS_INIT;
    options.input = regions;
    options.output = tiles;
    options.place = config.place->handle();
    options.kernel = config.kernel.handle();
    options.result = of.result.handle();
    options.rows = config.rows;
    options.columns = config.columns;
    options.value_bytes = of.value_bytes;
    options.region_rows = config.region_rows;
    options.region_columns = config.region_columns;
    options.halo = config.halo;
    options.corners = config.corners;
    options.sweeps = config.sweeps;
    weir::check(weir_pipeline_add_stencil(pipeline_->handle(), &options, &of.stencil));
    add_stage("set", tunnel(of.tunnel).handle, set_values, &of, {regions});
    add_stage("ready", tiles, note_tiles, &of, {});
  }

  static weir_status set_values(weir_batch* batch) {
    const auto& of = *static_cast<Matrix*>(batch->payload);
    const auto* item = static_cast<const std::byte*>(batch->items);
    const std::size_t bytes = sizeof(Spot) + of.value_bytes;
    for (std::size_t i = 0; i < batch->count; ++i, item += bytes) {
      Spot spot;
      std::memcpy(&spot, item, sizeof spot);
      const weir_status status = weir_stencil_set(of.stencil, batch->outlets[0], spot.row,
                                                  spot.column, 1, 1, item + sizeof spot, 1);
      if (status == WEIR_STATUS_OK) continue;
      batch->index = i;
      return weir_batch_fail(batch, status, "%s", weir_last_error());
    }
    return WEIR_STATUS_OK;
  }
  static weir_status note_tiles(weir_batch* batch) {
    const auto& of = *static_cast<Matrix*>(batch->payload);
    const auto* const tiles = static_cast<const weir_stencil_region*>(batch->items);
    for (std::size_t i = 0; i < batch->count; ++i) {
      of.ready[of.region_of(tiles[i].row, tiles[i].column)].store(true, std::memory_order_release);
    }
    return WEIR_STATUS_OK;
  }

  /// Withdraws the offered batches: no thread has to get them before the end.
  void fail() {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_ = true;
    wake_all();
  }

  /// Waits for the end, which get_h() and isTerminate_h() report.
  void watch() noexcept {
    std::exception_ptr error;
    try {
      pipeline_->wait();
    } catch (const weir::Error& failure) {
      if (failure.status() != WEIR_STATUS_CANCELLED) error = std::current_exception();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    error_ = error;
    ended_ = true;
    wake_all();
  }

  void stop() noexcept {
    if (!pipeline_) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
      wake_all();
    }
    weir_pipeline_cancel(pipeline_->handle());
    watcher_.join();
    for (const auto& each : tunnels_) {
      const std::lock_guard<std::mutex> lock(each->feeding);
      if (each->feed != nullptr) weir_feed_close(std::exchange(each->feed, nullptr));
    }
    pipeline_.reset();
  }

  // ---- Items for threads of the program ----

  /// A stage: its items are complete when a thread has ended them all.
  static weir_status hand_out(weir_batch* batch) {
    try {
      return instance().offer(batch);
    } catch (const std::exception& error) {
      return weir_batch_fail(batch, WEIR_STATUS_OUT_OF_MEMORY, "%s", error.what());
    }
  }
  weir_status offer(weir_batch* batch) {
    Tunnel& from = *static_cast<Tunnel*>(batch->payload);
    const auto made = std::make_shared<Offer>();
    made->batch = batch;
    std::unique_lock<std::mutex> lock(mutex_);
    offered_.reserve(offered_.size() + 1);
    from.offers.push_back(made);
    offered_.push_back(made.get());
    wake_for(from);
    made->answered.wait(lock, [&] { return made->complete || stopped_ || failed_; });
    std::erase(offered_, made.get());
    const std::lock_guard<std::mutex> leaving(made->mutex);
    made->batch = nullptr;
    if (made->complete && made->status == WEIR_STATUS_OK) return WEIR_STATUS_OK;
    std::erase(from.offers, made);
    if (made->complete) return weir_batch_fail(batch, made->status, "%s", made->message);
    return weir_batch_fail(batch, WEIR_STATUS_CANCELLED, "the service %s",
                           stopped_ ? "was shut down" : "has failed");
  }

  /// Waits for items of a tunnel, but not while another tunnel has items and no thread waits for
  /// it.
  bool take(Tunnel& from, int id, Holding& held) {
    std::unique_lock<std::mutex> lock(mutex_);
    ++from.consumers;
    const auto neglected = [](const std::unique_ptr<Tunnel>& each) {
      return !each->offers.empty() && each->consumers == 0;
    };
    const auto ready = [&] {
      return !from.offers.empty() || ended_ || stopped_ ||
             std::any_of(tunnels_.begin(), tunnels_.end(), neglected);
    };
    while (!ready()) {
      held.woken = false;
      held.next = std::exchange(from.waiting, &held);
      held.wake.wait(lock, [&] { return held.woken; });
    }
    if (from.offers.empty() || stopped_) {
      remove_consumer(from);
      lock.unlock();
      if (!ended()) std::this_thread::yield();  // to a thread that is about to take them
      return false;
    }
    const weir_batch& batch = *from.offers.front()->batch;
    const auto* const first = static_cast<const std::byte*>(batch.items);
    try {
      held.items.assign(first, first + batch.count * from.item_bytes);
    } catch (...) {
      remove_consumer(from);
      wake_for(from);
      throw;
    }
    held.offer = std::move(from.offers.front());
    from.offers.pop_front();
    held.service = number_;
    held.tunnel = id;
    held.index = held.offer->index;
    held.count = batch.count;
    held.taken = Clock::now();
    return true;
  }

  // The caller holds mutex_.
  /// Notifies of an offered batch: wakes one thread that waits for the tunnel, or all threads if
  /// none does.
  void wake_for(Tunnel& from) noexcept {
    if (from.consumers == 0) return wake_threads();
    if (from.waiting != nullptr) wake_one(from);
  }
  static void wake_one(Tunnel& from) noexcept {
    Holding& latest = *std::exchange(from.waiting, from.waiting->next);
    latest.woken = true;
    latest.wake.notify_one();
  }
  void wake_threads() noexcept {
    for (const auto& each : tunnels_) {
      while (each->waiting != nullptr) wake_one(*each);
    }
  }
  void remove_consumer(Tunnel& from) noexcept {
    if (--from.consumers == 0 && !from.offers.empty()) wake_for(from);
  }
  void wake_all() noexcept {
    wake_threads();
    for (Offer* const each : offered_) each->answered.notify_one();
  }

  /// Offers the rest of a batch again. Returns whether it could.
  bool give_back(Holding& held) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (held.service == number_ && !stopped_) {
      Tunnel& from = *tunnels_[static_cast<std::size_t>(held.tunnel)];
      if (held.offer->batch != nullptr) {  // else its worker has gone on after a failure
        try {
          from.offers.push_front(held.offer);
        } catch (...) {
          return false;
        }
        held.offer->index = held.index;
        held.offer->worked += Clock::now() - held.taken;
        wake_for(from);
      }
      remove_consumer(from);
    }
    held.offer.reset();
    return true;
  }

  /// Puts into the outlet of the worker that has handed out the item.
  void put_for(const Holding& held, int id, const void* item, std::size_t bytes) {
    std::size_t outlet = 0;
    for (int i = 0; i < id; ++i) outlet += tunnel(i).starts_on_cpu();
    const std::lock_guard<std::mutex> lock(held.offer->mutex);
    if (held.offer->batch == nullptr) {
      refuse(WEIR_STATUS_CANCELLED, "the service has failed or was shut down: the item is lost");
    }
    void* const room = weir_outlet_add(held.offer->batch->outlets[outlet]);
    if (room == nullptr) throw weir::Error(WEIR_STATUS_OUT_OF_MEMORY, weir_last_error());
    std::memcpy(room, item, bytes);
  }

  std::optional<weir::Runtime> own_;
  const weir::Runtime* runtime_ = nullptr;
  std::vector<std::unique_ptr<Tunnel>> tunnels_;
  std::vector<Code> codes_;
  std::vector<std::unique_ptr<Matrix>> matrices_;
  std::vector<weir_tunnel*> from_cpu_;  ///< outputs of all stages that hand items out
  std::optional<weir::Pipeline> pipeline_;
  std::thread watcher_;
  std::mutex mutex_;             ///< guards offers and all members below
  std::vector<Offer*> offered_;  ///< by workers that wait for an answer
  std::atomic<bool> ended_{false}, stopped_{false};
  bool failed_ = false;
  std::atomic<std::uint64_t> number_{1};
  std::exception_ptr error_;
};

inline Holding::~Holding() {
  if (offer == nullptr) return;
  Service::instance().leave(*this);
}

}  // namespace detail

// ---- Context -----------------------------------------------------------------------------------

/// Sets the runtime of the service; it outlives the service. Without this call the service opens a
/// runtime with the domains of WEIR_DOMAINS or the host.
inline void use(const weir::Runtime& runtime) { detail::Service::instance().use(runtime); }

/// Creates a tunnel. `isBatched`: a device gets items in batches, otherwise one at a time.
template <class Type>
void createTunnel(int& id, TunnelDirection direction, bool isBatched) {
  static_assert(std::is_trivially_copyable_v<Type>, "items of tunnels are copied as bytes");
  id = detail::Service::instance().add_tunnel(direction, sizeof(Type), isBatched);
}

/// Sets the code of a device: a kernel that takes items from one tunnel and puts items into others.
/// Contracts are those of weir_stage_kernel. The place outlives the service.
inline void configKernel(int input, std::vector<int> outputs, const weir::Kernel& kernel,
                         const weir::Place& place, weir::KernelStageOptions options = {}) {
  detail::Service::instance().add_code(
      {input, std::move(outputs), kernel, &place, std::move(options)});
}

/// Makes a tunnel CPU_TO_GPU the input of a stencil.
template <class StencilType>
void configStencilTunnel(int id, const StencilConfig& config) {
  static_assert(std::is_trivially_copyable_v<StencilType>, "values are copied as bytes");
  detail::Service::instance().add_matrix(id, sizeof(StencilType), config);
}

// ---- Control -----------------------------------------------------------------------------------

/// Starts the pipeline. Throws weir::Error when the shape is wrong: see weir_pipeline_start().
inline void setupService() { detail::Service::instance().setup(); }

/// Ends the service, cancels remaining work, and removes all tunnels. Throws the failure of an item
/// that ended it before. No thread may be inside another call.
inline void shutdownService() { detail::Service::instance().shutdown(); }

/// Whether all tunnels got their end flag and all items are complete, or the service has failed.
inline bool isTerminate_h() { return detail::Service::instance().ended(); }

/// Ends the item that get_h() gave this thread last.
inline void endTask_h(int id) { detail::Service::instance().end_task(id); }

// ---- Data --------------------------------------------------------------------------------------

/// Puts an item. A thread without an item waits for room in the tunnel.
/// endFlag_h closes the tunnel for such threads: once for each tunnel that begins on the CPU.
template <class Type>
void put_h(const Type& data, int id) {
  if constexpr (std::is_same_v<Type, EndFlag>) {
    detail::Service::instance().close(id);
  } else {
    detail::Service::instance().put(id, &data, sizeof data);
  }
}

/// Gets an item. Waits for one; false at the end, and when another tunnel has items that no thread
/// takes, so that one thread can serve several tunnels.
template <class Type>
bool get_h(Type* data, int id) {
  return detail::Service::instance().get(id, data, sizeof *data);
}

// ---- Stencils ----------------------------------------------------------------------------------

/// Sets a value of the matrix, once.
template <class StencilType>
void set_h(int id, int x, int y, const StencilType& content) {
  detail::Service::instance().set_value(id, x, y, &content, sizeof content);
}

/// Whether the value at (x, y) is computed and in host memory.
inline bool isStencilReady_h(int id, int x, int y) {
  return detail::Service::instance().ready(id, x, y);
}

/// Fetches such a value. Throws weir::Error{invalid argument} when it is not ready.
template <class StencilType>
void fetch_h(int id, int x, int y, StencilType* content) {
  detail::Service::instance().fetch(id, x, y, content, sizeof *content);
}

}  // namespace HiWayLib
