#include "runtime/runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/config.hpp"
#include "base/counted.hpp"
#include "base/local_rank.hpp"
#include "base/log.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "base/thread_role.hpp"
#include "runtime/backends.hpp"
#include "runtime/fabric.hpp"
#include "runtime/runtime_pins.hpp"
#include "trace/export.hpp"

namespace weir::rt {

namespace {

bool names_domains(const weir_runtime_options& options) {
  return options.domains != nullptr && *options.domains != '\0';
}

std::string wanted_domains(const weir_runtime_options& options) {
  if (names_domains(options)) return options.domains;
  const char* text = sys::environment("WEIR_DOMAINS");
  return text != nullptr && *text != '\0' ? text : "host";
}

/// Opens the domains. If the program has not specified them, errors name their origin.
std::vector<std::unique_ptr<Device>> open_wanted(const weir_runtime_options& options,
                                                 const std::string& list, const Machine& machine,
                                                 std::vector<std::unique_ptr<Backend>>& backends) {
  try {
    return open_devices(list, machine, backends);
  } catch (const Error& error) {
    if (names_domains(options) || sys::environment("WEIR_DOMAINS") == nullptr) throw;
    throw Error(error.status(), fmt::format("WEIR_DOMAINS: {}", error.what()));
  }
}

std::uint64_t next_number() {
  static sys::Atomic<std::uint32_t> made{0};
  return made.fetch_add(1, std::memory_order_relaxed) + std::uint64_t{1};
}

/// Inserts words before the suffix of a file name: "out.2.json".
std::string with_words(std::string path, const std::string& words) {
  const std::size_t name = path.rfind('/') + 1;  // 0 without a folder
  const std::size_t dot = path.rfind('.');
  const bool has_suffix = dot != std::string::npos && dot > name;
  return path.insert(has_suffix ? dot : path.size(), words);
}

/// Returns the trace file of a new runtime, "": none. Each runtime has its own: on rank 1 of a
/// fabric "out.rank1.json" for "out.json", and for the second runtime there "out.rank1.2.json".
std::string next_trace_path() {
  static sys::Atomic<unsigned> made{0};
  const char* const wanted = sys::environment("WEIR_TRACE");
  if (wanted == nullptr || *wanted == '\0') return {};
  std::string path = wanted;
  if (const std::uint64_t rank = started_rank(); rank > 0) {
    log::info("rank {} writes its trace beside '{}'", rank, path);
    path = with_words(path, fmt::format(".rank{}", rank));
  }
  const unsigned number = made.fetch_add(1, std::memory_order_relaxed) + 1;
  return number == 1 ? path : with_words(path, fmt::format(".{}", number));
}

/// Returns the description of a failure, stored in `room`; without memory the message of the root
/// action.
const char* describe(const Failure& failure, bool poisoned, std::string& room) noexcept {
  try {
    room = failure.describe(poisoned);
    return room.c_str();
  } catch (...) {
    return failure.message.c_str();
  }
}

/// The waiter of weir_event_on_complete().
struct CallbackWaiter : Waiter {
  CallbackWaiter(sys::Atomic<std::uint64_t>& all, weir_event_callback function, void* argument)
      : counter(all), callback(function), payload(argument) {
    deliver = run;
    counter.fetch_add(1);
  }
  CallbackWaiter(const CallbackWaiter&) = delete;
  CallbackWaiter& operator=(const CallbackWaiter&) = delete;
  ~CallbackWaiter() { counter.fetch_sub(1); }

  sys::Atomic<std::uint64_t>& counter;
  const weir_event_callback callback;
  void* const payload;

  static void run(Waiter& self, weir_status status, const FailureRef& failure) {
    const std::unique_ptr<CallbackWaiter> owned(&static_cast<CallbackWaiter&>(self));
    owned->call(status, failure);
  }
  void call(weir_status status, const FailureRef& failure) const {
    const NoWaitScope no_wait;
    std::string described;
    const char* message = "";
    if (failure) {
      failure->mark_reported();
      message = describe(*failure.get(), status == WEIR_STATUS_POISONED, described);
    }
    try {
      callback(status, message, payload);
    } catch (const std::exception& error) {
      log::warning("a callback threw: {}", error.what());
    } catch (...) {
      log::warning("a callback threw");
    }
  }
};

bool try_to_cancel(Stream& stream) noexcept {
  try {
    stream.cancel_permanently();
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

Runtime::Runtime(const weir_runtime_options& options)
    : number_(next_number()),
      machine_(read_machine()),
      domain_list_(wanted_domains(options)),
      shutdown_timeout_ns_(options.shutdown_timeout_ns),
      watchdog_limit_ns_(config::watchdog_ns()),
      spin_ns_(config::spin_ns()),
      max_in_flight_(config::max_in_flight()),
      fabric_(options.fabric),
      backends_(make_backends(fabric_.port())) {
  config::check_values();
  for (auto& device : open_wanted(options, domain_list_, machine_, backends_)) {
    const std::size_t index = domains_.size();
    Owned<weir_domain> made(new weir_domain(*this, index, std::move(device)));
    weir_domain& domain = *domains_.emplace_back(std::move(made));
    const auto track = [&](const char* direction) {
      return recorder_.add_track({.name = fmt::format("{} {}", domain.name(), direction),
                                  .domain = domain.name(),
                                  .kind = trace::Kind::transfer,
                                  .width = 1});
    };
    domain.track_in = track("in");
    // At half duplex one track shows both directions.
    domain.track_out = domain.info().link_duplex == "half" ? domain.track_in : track("out");
    virtual_time_ = virtual_time_ || domain.info().virtual_time;
    if (domain.info().needs_polling) polled_devices_.push_back(&domain.device());
  }
  for (const std::string& name : config::unknown_variables()) {
    log::warning("unknown environment variable {}", name);
  }
  trace_path_ = next_trace_path();
  if (!trace_path_.empty()) recorder_.start(0);
  if (watched()) watchdog_ = std::make_unique<Watchdog>(*this, watchdog_limit_ns_);
  live_.begin(*this);
}

Runtime::~Runtime() {
  live_.end();
  const std::int64_t deadline = sys::deadline_after(shutdown_timeout_ns_);
  reaper_.stop(deadline);
  while (!pipelines_.empty()) destroy_pipeline(pipelines_.back().get());
  while (!queues_.empty()) {
    queues_.back()->finish_or_cancel(time_until(deadline));
    destroy_queue(queues_.back().get());
  }
  while (!shares_.empty()) {
    shares_.back()->finish_or_cancel(time_until(deadline));
    destroy_share(shares_.back().get());
  }
  shut_down(deadline);
  reaper_.join();
  watchdog_.reset();
  wait_until_no_owners();  // also of streams that the watchdog has queried
  write_requested_trace();
  report_unreported();
  for (auto& [key, stream] : std::exchange(streams_, {})) stream.reset();
  places_.clear();
  for (const auto& [end, owned] : buffers_) {
    forget_instances_of(*owned.buffer);
    unlock_host_memory(owned);
  }
  buffers_.clear();
  domains_.clear();
}

void Runtime::shut_down(std::int64_t deadline_ns) noexcept {
  try {
    const PinnedStreams all(*this);
    do {  // repeat if a callback has enqueued more work
      if (!await_end(all.list(), time_until(deadline_ns))) {
        for (weir_stream* stream : all.list()) stream->cancel_permanently();
        await_end(all.list(), WEIR_FOREVER);
      }
    } while (!wait_until_no_owners());
  } catch (...) {
    shut_down_without_memory(deadline_ns);
  }
}

void Runtime::shut_down_without_memory(std::int64_t deadline_ns) noexcept {
  do {
    for (const auto& [serial, stream] : streams_) {
      bool cancelled = false;
      while (!stream->is_complete()) {
        if (!cancelled && sys::now_ns() >= deadline_ns) cancelled = try_to_cancel(*stream);
        pass_time();
      }
    }
  } while (!wait_until_no_owners());
}

void Runtime::pass_time() noexcept {
  constexpr std::int64_t kNapNs = 50'000;
  if (!virtual_time_ || !drive()) sys::sleep_until(sys::now_ns() + kNapNs);
}

/// Waits until no thread owns the stream. A place in virtual time releases it when time advances.
void Runtime::wait_until_no_owner(const Stream& stream) noexcept {
  stream.wait_until_no_owner([this] {
    if (!virtual_time_ || !drive()) sys::yield();
  });
}

/// Waits until everything is complete and no thread owns a stream. Returns false at once if that
/// will not happen because a callback has enqueued more work.
bool Runtime::wait_until_no_owners() noexcept {
  const auto enqueued = [this]() WEIR_NOT_ANALYSED {
    std::uint64_t sum = 0;
    for (const auto& [serial, stream] : streams_) sum += stream->enqueued();
    return sum;
  };
  const std::uint64_t before = enqueued();
  const bool over = std::all_of(streams_.begin(), streams_.end(),
                                [](const auto& entry) { return entry.second->is_complete(); });
  if (!over) return false;
  for (const auto& [serial, stream] : streams_) {
    while (!stream->has_no_owner()) {
      if (enqueued() != before) return false;
      if (!virtual_time_ || !drive()) sys::yield();
    }
  }
  return enqueued() == before;
}

/// Waits until everything in a stream is complete.
void Runtime::wait_until_complete(const Stream& stream) noexcept {
  while (!stream.is_complete()) pass_time();
}

void Runtime::wait_for_users(const Buffer& buffer) noexcept {
  sys::Lock lock(mutex_);
  for (auto at = streams_.begin(); at != streams_.end();) {
    weir_stream& stream = *at->second;
    if (!stream.registration.being_destroyed && buffer.maybe_used_by(stream.serial())) {
      ++stream.registration.pins;
      lock.unlock();
      wait_until_complete(stream);
      lock.lock();
      --stream.registration.pins;
      stream_unpinned_.notify_all();
    }
    at = streams_.upper_bound(stream.serial());
  }
}

void Runtime::forget_instances_of(Buffer& buffer) noexcept {
  for (const auto& domain : domains_) {
    while (!domain->residency().free_instance(buffer)) pass_time();
  }
}

void Runtime::write_requested_trace() noexcept {
  if (trace_path_.empty()) return;
  try {
    trace::write_file(recorder_.recording(), trace_path_);
  } catch (const std::exception& error) {
    // The environment requested the trace, so this message is printed although no call reports it.
    std::fprintf(stderr, "weir: %sthe trace is not written: %s\n", rank_prefix().c_str(),
                 error.what());
  }
}

weir_domain& Runtime::find_domain(const std::string& name) const {
  weir_domain* found = nullptr;
  std::vector<std::string> names;
  std::size_t of_backend = 0;
  for (const auto& domain : domains_) {
    if (domain->name() == name) return *domain;
    names.push_back(domain->name());
    if (domain->info().backend == name) {
      found = domain.get();
      ++of_backend;
    }
  }
  if (of_backend == 1) return *found;
  if (of_backend > 1) {
    fail_argument("{} domains are of backend '{}': name one, such as '{}'", of_backend, name,
                  found->name());
  }
  fail(WEIR_STATUS_NOT_FOUND, "no domain '{}'{}; there is: {}", name, did_you_mean(name, names),
       fmt::join(names, ", "));
}

// ---- Places and streams ------------------------------------------------------------------------

weir_place* Runtime::create_place(Domain& domain, const weir_place_options& options) {
  if (options.cores != nullptr && options.core_count == 0) {
    fail_argument("a place of domain '{}' needs at least one core", domain.name());
  }
  const std::uint32_t number = domain.next_place_number();
  std::string name = options.name ? options.name : fmt::format("{}/p{}", domain.name(), number);
  std::vector<unsigned> cores = take_cores(domain, options);
  Owned<weir_place> place;
  try {
    place.reset(new weir_place(domain, std::move(name), cores));
  } catch (...) {
    domain.return_cores(cores);
    throw;
  }
  sys::Lock lock(mutex_);
  weir_place* const handle = place.get();
  places_.push_back(std::move(place));
  return handle;
}

/// If too few cores are free, or the request is for all free cores, waits for the places in
/// destruction.
std::vector<unsigned> Runtime::take_cores(Domain& domain, const weir_place_options& options) {
  const bool listed = options.cores != nullptr;
  std::vector<unsigned> wanted;
  if (listed) wanted.assign(options.cores, options.cores + options.core_count);
  const auto take = [&] {
    return domain.take_cores(wanted, listed ? 0 : options.core_count, options.oversubscribe);
  };
  if (options.core_count == 0) reaper_.settle();
  try {
    return take();
  } catch (const Error& error) {
    if (!reaper_.busy()) throw;
    if (NoWaitScope::active()) {
      fail(error.status(), "{}; places destroyed by kernels or callbacks give theirs back later",
           error.what());
    }
  }
  reaper_.settle();
  return take();
}

std::size_t Runtime::free_cores(const Domain& domain) noexcept {
  reaper_.settle();
  return domain.free_cores();
}

void Runtime::partition(Domain& domain, std::size_t count, bool oversubscribe,
                        weir_place** out_places) {
  const std::size_t cores = oversubscribe ? domain.info().cores : free_cores(domain);
  if (count == 0) fail_argument("domain '{}' cannot be divided into 0 places", domain.name());
  if (count > cores && !oversubscribe) {
    fail_argument(
        "{} {} more than domain '{}' has free cores, {}; set oversubscribe to share cores",
        counted(count, "place"), is_or_are(count), domain.name(), cores);
  }
  std::size_t made = 0;
  try {
    for (; made < count; ++made) {
      weir_place_options options = WEIR_PLACE_OPTIONS_INIT;
      options.core_count = std::max<std::size_t>(1, cores / count + (made < cores % count ? 1 : 0));
      options.oversubscribe = oversubscribe;
      out_places[made] = create_place(domain, options);
    }
  } catch (...) {
    while (made-- > 0) destroy_place(out_places[made]);
    throw;
  }
}

void Runtime::destroy_place(weir_place* place) noexcept {
  if (destroyed_elsewhere(place, &Runtime::destroy_place)) return;
  while (weir_stream* const stream = any_stream_of(*place)) destroy_stream(stream);
  Owned<weir_place> dead;
  sys::Lock lock(mutex_);
  const auto found = std::find_if(places_.begin(), places_.end(),
                                  [place](const auto& owned) { return owned.get() == place; });
  if (found == places_.end()) return;
  dead = std::move(*found);
  places_.erase(found);
  lock.unlock();
}

/// Returns a stream of a place, after pending destructions by other threads; nullptr if there is
/// none.
weir_stream* Runtime::any_stream_of(const Place& place) {
  sys::Lock lock(mutex_);
  for (;;) {
    bool leaving = false;
    for (const auto& [serial, stream] : streams_) {
      if (&stream->place() != &place) continue;
      if (!stream->registration.being_destroyed) return stream.get();
      leaving = true;
    }
    if (!leaving) return nullptr;
    stream_gone_.wait(lock);
  }
}

weir_stream* Runtime::create_stream(Place& place, const weir_stream_options& options) {
  if (options.priority < -1 || options.priority > 1) {
    fail_argument("priority {} of a stream of place '{}' is not -1, 0 or 1", options.priority,
                  place.name());
  }
  if (options.policy < WEIR_DEPENDENCE_POLICY_OPERANDS ||
      options.policy > WEIR_DEPENDENCE_POLICY_NONE) {
    fail_argument("dependence policy {} does not exist", static_cast<int>(options.policy));
  }
  const std::uint32_t number = place.next_stream_number();
  std::string name = options.name ? options.name : fmt::format("{}/s{}", place.name(), number);
  sys::Lock lock(mutex_);
  const std::uint64_t serial = next_serial();
  Owned<weir_stream> stream(new weir_stream(place, serial, std::move(name), options));
  weir_stream* const handle = stream.get();
  streams_.emplace(serial, std::move(stream));
  streams_made_.store(serial, std::memory_order_release);
  return handle;
}

/// Returns the serial number of a new stream or queue. The caller holds the mutex.
std::uint64_t Runtime::next_serial() const {
  constexpr std::uint64_t kMost = (std::uint64_t{1} << (63 - Action::kSequenceBits)) - 1;
  const std::uint64_t made = streams_made_.load(std::memory_order_relaxed);
  if (made == kMost) {
    fail(WEIR_STATUS_UNAVAILABLE, "{} streams and queues have been made: there are no ids for more",
         made);
  }
  return made + 1;
}

void Runtime::destroy_stream(weir_stream* stream) noexcept {
  if (destroyed_elsewhere(stream, &Runtime::destroy_stream)) return;
  {
    sys::Lock lock(mutex_);
    if (std::exchange(stream->registration.being_destroyed, true)) return;
    while (stream->registration.pins > 0) stream_unpinned_.wait(lock);
  }
  do {  // repeat if a callback has enqueued more work
    try {
      await_end({stream}, WEIR_FOREVER);
    } catch (...) {
      wait_until_complete(*stream);
    }
    wait_until_no_owner(*stream);
  } while (!stream->is_complete());
  Owned<weir_stream> dead;
  sys::Lock lock(mutex_);
  const auto found = streams_.find(stream->serial());
  if (found == streams_.end()) return;
  stream->add_to(finished_stats_);
  dead = std::move(found->second);
  streams_.erase(found);
  lock.unlock();
  dead->unreported().report("stream", dead->name());
  dead.reset();
  stream_gone_.notify_all();
}

// ---- Kernels -----------------------------------------------------------------------------------

weir_kernel& Runtime::service_kernel(const char* name, weir_host_function function) {
  sys::Lock lock(mutex_);
  if (const auto names = kernels_.names();
      std::find(names.begin(), names.end(), name) != names.end()) {
    return kernels_.find(name);
  }
  const weir_implementation implementation = {"host", function, nullptr};
  weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
  options.name = name;
  options.implementations = &implementation;
  options.implementation_count = 1;
  return add_kernel(options);
}

std::vector<std::string> Runtime::backend_kinds() const {
  std::vector<std::string> kinds;
  for (const auto& backend : backends_) kinds.emplace_back(backend->kind());
  return kinds;
}

// ---- Events ------------------------------------------------------------------------------------

bool Runtime::has_slot(std::uint64_t slot) const noexcept {
  return slot < Ticket::kMark ? actions_.at(slot) != nullptr : tickets_.at(slot) != nullptr;
}

void Runtime::check_event(const weir_event& event) const {
  const auto [name, id] = event.opaque;
  if (id == 0) return;
  const std::uint64_t stream = id >> Action::kSequenceBits;
  const std::uint64_t slot =
      name - (number_ << kSlotBits);  // large if the number of the runtime differs
  if (stream == 0 || stream > streams_made() || !has_slot(slot)) {
    fail_argument("not an event of this runtime (words {:#x} {:#x})", name, id);
  }
}

void Runtime::on_complete(const weir_event& event, weir_event_callback callback, void* payload) {
  if (callback == nullptr) fail_argument("the callback is NULL");
  check_event(event);
  const std::uint64_t id = event.opaque[1];
  auto waiter = std::make_unique<CallbackWaiter>(callbacks_, callback, payload);
  if (id != 0 && slot_of(event).watch(id, *waiter)) {
    static_cast<void>(waiter.release());
    return;
  }
  const FailureLog::Entry entry = id != 0 ? failures_.find(id) : FailureLog::Entry{};
  waiter->call(entry.status, entry.failure);
}

// ---- For others --------------------------------------------------------------------------------

void Runtime::with_streams(const std::function<void(const std::vector<weir_stream*>&)>& use) {
  const PinnedStreams all(*this);
  use(all.list());
}

void Runtime::with_queues(const std::function<void(const std::vector<weir_queue*>&)>& use) {
  const PinnedQueues all(*this);
  use(all.list());
}

void Runtime::each_place(const std::function<void(const Place&)>& use) const {
  sys::Lock lock(mutex_);
  for (const auto& place : places_) use(*place);
}

bool Runtime::drive() noexcept {
  if (!driving_.try_lock()) return false;
  const bool moved = std::any_of(domains_.begin(), domains_.end(),
                                 [](const auto& domain) { return domain->device().drive(); });
  driving_.unlock();
  return moved;
}

void Runtime::report_unreported() noexcept {
  sys::Lock lock(mutex_);
  for (const auto& pipeline : pipelines_) pipeline->report_unreported();
  for (const auto& queue : queues_) queue->report_unreported();
  for (const auto& share : shares_) share->report_unreported();
  for (const auto& [serial, stream] : streams_) {
    stream->unreported().report("stream", stream->name());
  }
}

void Runtime::get_stats(weir_stats& stats) const {
  const std::size_t struct_size = stats.struct_size;
  sys::Lock lock(mutex_);
  stats = finished_stats_;
  stats.struct_size = struct_size;
  for (const auto& [serial, stream] : streams_) stream->add_to(stats);
  for (const auto& domain : domains_) stats.bytes_evicted += domain->residency().bytes_evicted();
}

}  // namespace weir::rt
