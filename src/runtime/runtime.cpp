#include "runtime/runtime.hpp"

#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/local_rank.hpp"
#include "base/log.hpp"
#include "base/sys.hpp"
#include "graph/graph.hpp"
#include "pipeline/pipeline.hpp"
#include "runtime/backends.hpp"
#include "share/share.hpp"
#include "tasks/queue.hpp"
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

}  // namespace

Runtime::Runtime(const weir_runtime_options& options)
    : domain_list_(wanted_domains(options)),
      shutdown_timeout_ns_(options.shutdown_timeout_ns),
      fabric_(options.fabric),
      backends_(make_backends(fabric_.port())) {
  config::check_values();
  for (const auto& backend : backends_) add_backend_kind(backend->kind());
  before_destruction_ = [this](weir_buffer& buffer) { release_from_queues(buffer); };
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
  if (watched()) watchdog_ = std::make_unique<Watchdog>(*this, watchdog_limit_ns());
  live_.begin(*this);
}

Runtime::~Runtime() {
  live_.end();
  const std::int64_t deadline = sys::deadline_after(shutdown_timeout_ns_);
  reaper().stop(deadline);
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
  reaper().join();
  watchdog_.reset();
  wait_until_no_owners();  // also of streams that the watchdog has queried
  while (!graphs_.empty()) destroy_graph(graphs_.back().get());
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
