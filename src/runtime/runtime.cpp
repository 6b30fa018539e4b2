#include "runtime/runtime.hpp"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "base/config.hpp"
#include "base/local_rank.hpp"
#include "base/log.hpp"
#include "base/sys.hpp"
#include "base/threads.hpp"
#include "runtime/backends.hpp"
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

/// Called by a Residency when an action that waited for memory should try again.
void retry(Action& action) { action.stream->post_back(action, Message::Kind::retry); }

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

/// The runtimes that the program has not destroyed. When the process exits, each of them logs its
/// unreported failures.
class LiveRuntimes {
 public:
  /// Never destroyed, because a runtime may outlive static objects.
  static LiveRuntimes& get() noexcept {
    alignas(LiveRuntimes) static std::byte room[sizeof(LiveRuntimes)];
    static LiveRuntimes& all = *new (room) LiveRuntimes;
    return all;
  }

  /// Without memory for it, the process exits without a report of the runtime.
  void add(Runtime& runtime) noexcept try {
    const sys::Lock lock(mutex_);
    runtimes_.insert(runtimes_.begin(), &runtime);
  } catch (...) {
  }
  /// Waits until an exiting process has logged.
  void remove(Runtime& runtime) noexcept {
    const sys::Lock lock(mutex_);
    std::erase(runtimes_, &runtime);
  }

 private:
  LiveRuntimes() : process_(getpid()) {
    static_cast<void>(std::atexit([] { get().report(); }));
  }

  /// Does nothing in a forked child: other threads may have held locks.
  void report() noexcept {
    if (getpid() != process_) return;
    const sys::Lock lock(mutex_);
    for (Runtime* const runtime : runtimes_) runtime->report_unreported();
  }

  const pid_t process_;
  sys::Mutex mutex_;
  std::vector<Runtime*> runtimes_ WEIR_GUARDED_BY(mutex_);
};

}  // namespace

Runtime::Runtime(const weir_runtime_options& options)
    : domain_list_(wanted_domains(options)),
      shutdown_timeout_ns_(options.shutdown_timeout_ns),
      fabric_(options.fabric),
      backends_(make_backends(fabric_.port())) {
  config::check_values();
  for (const auto& backend : backends_) add_backend_kind(backend->kind());
  for (auto& device : open_wanted(options, domain_list_, machine(), backends_)) {
    const std::size_t index = domains_.size();
    Owned<weir_domain> made(new weir_domain(*this, index, std::move(device), retry));
    weir_domain& domain = *domains_.emplace_back(std::move(made));
    const auto track = [&](const char* direction) {
      return recorder().add_track({.name = fmt::format("{} {}", domain.name(), direction),
                                   .domain = domain.name(),
                                   .kind = trace::Kind::transfer,
                                   .width = 1});
    };
    domain.track_in = track("in");
    // At half duplex one track shows both directions.
    domain.track_out = domain.info().link_duplex == "half" ? domain.track_in : track("out");
    add_domain(domain);
  }
  for (const std::string& name : config::unknown_variables()) {
    log::warning("unknown environment variable {}", name);
  }
  trace_path_ = next_trace_path();
  if (!trace_path_.empty()) recorder().start(0);
  if (watched()) watchdog_ = std::make_unique<Watchdog>(*this, port(), watchdog_limit_ns());
  LiveRuntimes::get().add(*this);
}

Runtime::~Runtime() {
  LiveRuntimes::get().remove(*this);
  const std::int64_t deadline = sys::deadline_after(shutdown_timeout_ns_);
  reaper().stop(deadline);
  end_work(deadline);
  shut_down(deadline);
  reaper().join();
  watchdog_.reset();
  wait_until_no_owners();  // also of streams that the watchdog has queried
  destroy_graphs();
  write_requested_trace();
  report_unreported();
  clear();
}

void Runtime::write_requested_trace() noexcept {
  if (trace_path_.empty()) return;
  try {
    trace::write_file(recorder().recording(), trace_path_);
  } catch (const std::exception& error) {
    // The environment requested the trace, so this message is printed although no call reports it.
    std::fprintf(stderr, "weir: %scannot write the trace: %s\n", rank_prefix().c_str(),
                 error.what());
  }
}

}  // namespace weir::rt
