#include "runtime/watchdog.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/format.h>

#include "base/local_rank.hpp"
#include "fabric/port.hpp"
#include "pipeline/pipeline.hpp"
#include "runtime/work_registry.hpp"
#include "tasks/queue.hpp"

namespace weir::rt {

namespace {

constexpr std::int64_t kChecksInLimit = 32;
constexpr std::int64_t kAnswerNs = 200'000'000;

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

/// Returns "rank 1: " if there are other ranks, else "".
std::string speaker(const Port* port) {
  if (port == nullptr || port->ranks() == 1) return rank_prefix();
  return fmt::format("rank {}: ", port->rank());
}

std::uint64_t position(std::uint64_t id) {
  return id & ((std::uint64_t{1} << Action::kSequenceBits) - 1);
}

using Streams = std::vector<weir_stream*>;
using Queues = std::vector<weir_queue*>;

/// The streams and queues to which events may belong.
struct Owners {
  const Streams& streams;
  const Queues& queues;
};

/// Returns "action 7 of stream 'x'" or "task 7 of queue 'q'".
std::string name_of(std::uint64_t id, const Owners& owners) {
  const std::uint64_t serial = id >> Action::kSequenceBits;
  for (const weir_stream* stream : owners.streams) {
    if (stream->serial() != serial) continue;
    return fmt::format("action {} of stream '{}'", position(id), stream->name());
  }
  for (const weir_queue* queue : owners.queues) {
    if (queue->serial() != serial) continue;
    return fmt::format("task {} of queue '{}'", position(id), queue->name());
  }
  return fmt::format("action {} of a stream that is being destroyed", position(id));
}

void add_running(std::string& text, const Place& place, const Owners& owners) {
  for (const RunningActions::Entry& entry : place.running()) {
    fmt::format_to(std::back_inserter(text),
                   "  worker {} of place '{}' runs '{}', {}, for {:.1f} s\n", entry.worker,
                   place.name(), entry.label.data(), name_of(entry.id, owners),
                   seconds(sys::now_ns() - entry.since_ns));
  }
}

void add_stream(std::string& text, const Stream& stream, const StreamReport* report,
                const Owners& owners) {
  const auto out = std::back_inserter(text);
  const std::uint64_t in_flight = stream.in_flight();
  fmt::format_to(out, "  stream '{}' of place '{}': {} in flight\n", stream.name(),
                 stream.place().name(), in_flight);
  if (report == nullptr) {
    text += "    no worker has time to say what they wait for\n";
    return;
  }
  for (const StreamReport::Line& line : report->lines()) {
    text += "    " + line.text;
    for (const std::uint64_t id : line.events) text += ", the event of " + name_of(id, owners);
    text += "\n";
  }
  if (in_flight > report->lines().size()) {
    fmt::format_to(out, "    and {} more\n", in_flight - report->lines().size());
  }
}

std::string actions_of(WorkRegistry& runtime, const Owners& owners, std::int64_t for_ns) {
  const Streams& streams = owners.streams;
  std::vector<std::shared_ptr<StreamReport>> reports(streams.size());
  std::uint64_t in_flight = 0;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    in_flight += streams[i]->in_flight();
    if (streams[i]->in_flight() == 0) continue;
    reports[i] = std::make_shared<StreamReport>();
    streams[i]->request_report(reports[i]);
  }
  std::string text =
      fmt::format("no action has ended for {:.1f} s, {} in flight{}\n", seconds(for_ns), in_flight,
                  runtime.virtual_time() ? "; virtual time passes while a thread waits" : "");
  runtime.each_place([&](const Place& place) { add_running(text, place, owners); });
  const std::int64_t deadline = sys::now_ns() + kAnswerNs;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (reports[i] == nullptr) continue;
    add_stream(text, *streams[i], reports[i]->wait(deadline) ? reports[i].get() : nullptr, owners);
  }
  return text;
}

}  // namespace

Watchdog::Watchdog(WorkRegistry& runtime, const Port* port, std::int64_t limit_ns)
    : runtime_(runtime),
      port_(port),
      limit_ns_(limit_ns),
      thread_("weir watchdog", [this] { watch(); }) {}

Watchdog::~Watchdog() {
  sys::Lock lock(mutex_);
  leaving_ = true;
  lock.unlock();
  leave_.notify_all();
  thread_.join();
}

void Watchdog::watch() {
  const std::int64_t period = std::max<std::int64_t>(limit_ns_ / kChecksInLimit, 1'000'000);
  sys::Lock lock(mutex_);
  moved_ns_ = sys::now_ns();
  while (!leaving_) {
    leave_.wait_until(lock, sys::now_ns() + period);
    if (leaving_) return;
    lock.unlock();
    check(sys::now_ns());
    lock.lock();
  }
}

void Watchdog::check(std::int64_t now_ns) {
  weir_stats stats = WEIR_STATS_INIT;
  runtime_.get_stats(stats);
  bool in_flight = stats.actions_completed < stats.actions_enqueued;
  std::uint64_t completed = stats.actions_completed;
  runtime_.each_queue([&](const Queue& queue) {
    const std::uint64_t completed_tasks = queue.completed();
    completed += completed_tasks;
    in_flight = in_flight || completed_tasks < queue.submitted();
  });
  runtime_.each_pipeline([&](weir_pipeline& pipeline) {
    completed += pipeline.flow().movement();
    in_flight = in_flight || pipeline.flow().running();
  });
  if (!in_flight || completed != completed_) {
    completed_ = completed;
    moved_ns_ = now_ns;
    reported_ = false;
    return;
  }
  if (reported_ || now_ns - moved_ns_ < limit_ns_) return;
  reported_ = true;
  try {
    const std::string text = "weir: " + speaker(port_) + report(now_ns - moved_ns_);
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "weir: %snothing ends any more; the report failed: %s\n",
                 speaker(port_).c_str(), error.what());
  }
}

std::string Watchdog::report(std::int64_t for_ns) const {
  std::string text;
  runtime_.with_queues([&](const Queues& queues) {
    runtime_.with_streams([&](const Streams& streams) {
      text = actions_of(runtime_, {streams, queues}, for_ns);
    });
    for (weir_queue* queue : queues) text += queue->report(sys::now_ns() + kAnswerNs);
  });
  runtime_.each_pipeline([&](weir_pipeline& pipeline) {
    if (!pipeline.flow().running()) return;
    fmt::format_to(std::back_inserter(text), "  pipeline '{}' is not at its end: {}\n",
                   pipeline.name(), pipeline.flow().holders());
  });
  return text;
}

}  // namespace weir::rt
