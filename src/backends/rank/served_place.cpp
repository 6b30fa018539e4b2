#include "backends/rank/served_place.hpp"

#include <algorithm>
#include <utility>

#include "backends/rank/rank_copy.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kDoneBytes = 64 * JobQueue::kWindow;
/// Size of copies after which completions are reported.
constexpr std::uint64_t kReportBytes = 256 << 10;

/// Returns the region of a view, relative to its address.
Region region_of(const weir_view& view) {
  const bool sound = view.extent[0] > 0 && view.extent[1] > 0 && view.extent[1] <= UINT32_MAX &&
                     view.extent[2] > 0 && view.extent[2] <= UINT16_MAX;
  if (!sound) WireReader::refuse("an operand is empty or too large");
  return {.offset = 0,
          .row = view.extent[0],
          .row_stride = view.stride[0],
          .plane_stride = view.stride[1],
          .rows = static_cast<std::uint32_t>(view.extent[1]),
          .planes = static_cast<std::uint16_t>(view.extent[2])};
}

}  // namespace

ServedPlace::ServedPlace(Port& port, ServedDevice& device, std::uint32_t number,
                         const PlaceRequest& request)
    : port_(port),
      device_(device),
      entries_(JobQueue::kWindow),
      done_(RankMessageKind::done, number) {
  done_start_ = done_.bytes().size();
  done_.reserve(kDoneBytes);
  cores_ = device.device().open_place(request, queue_);
  queue_.set_cores(*cores_);
}

ServedPlace::~ServedPlace() {
  constexpr std::int64_t kParkNs = 50'000;
  while (given_back_.load(std::memory_order_acquire) < arrived_.load(std::memory_order_relaxed) ||
         calls_.load(std::memory_order_acquire) > 0) {
    if (!port_.progress()) sys::sleep_until(sys::now_ns() + kParkNs);
  }
  queue_.wait_for_callers();
  cores_.reset();
}

// ---- Messages ----------------------------------------------------------------------------------

void ServedPlace::take(WireReader& message, const FindDevice& find) {
  at_once_.store(message.empty(), std::memory_order_release);
  try {
    while (!message.empty()) take_one(message, find);
  } catch (...) {
    serve();  // to complete the jobs before it
    throw;
  }
  serve();
}

void ServedPlace::take_one(WireReader& message, const FindDevice& find) {
  const auto number = message.get<std::uint64_t>();
  const std::uint64_t arrived = arrived_.load(std::memory_order_relaxed);
  if (number != arrived + 1) WireReader::refuse("a job is missing");
  if (arrived - given_back_.load(std::memory_order_acquire) >= JobQueue::kWindow) {
    WireReader::refuse("there are too many jobs");
  }
  Entry& entry = entry_of(number);
  entry.job = {};
  entry.job.id = number;
  read(entry, message, find);
  arrived_.store(number, std::memory_order_seq_cst);
}

void ServedPlace::read(Entry& entry, WireReader& message, const FindDevice& find) {
  Job& job = entry.job;
  entry.refused = {};
  const unsigned flags = message.get<std::uint8_t>();
  message.get(job.priority);
  if (job.priority >= Job::kPriorities) WireReader::refuse("a job is too urgent");
  job.is_copy = flags & kJobCopies;
  job.parallel = flags & kJobParallel;
  job.brief = flags & kJobBrief;
  job.timed = flags & kJobTimed;
  entry.waits.resize(message.get<std::uint16_t>());
  for (std::uint64_t& earlier : entry.waits) {
    message.get(earlier);
    if (earlier == 0 || earlier >= job.id) WireReader::refuse("a job waits for a later one");
  }
  job.waits = entry.waits;
  if (job.is_copy) {
    read_copy(entry, message, find);
  } else {
    read_call(entry, message, flags);
  }
}

void ServedPlace::read_call(Entry& entry, WireReader& message, unsigned flags) {
  Job& job = entry.job;
  const ServedKernel& kernel = device_.kernel(message.get<std::uint32_t>());
  entry.name = flags & kJobNamed ? message.text() : kernel.name;
  entry.scalars.resize(message.get<std::uint16_t>());
  for (weir_scalar& scalar : entry.scalars) scalar = message.scalar();
  entry.views.resize(message.get<std::uint16_t>());
  Outcome refused = kernel.missing;
  for (weir_view& view : entry.views) {
    view = message.view();
    try {
      view.address = device_.resolve(rank_address::number(view.address), region_of(view));
    } catch (const Error& error) {
      if (error.status() == WEIR_STATUS_NETWORK_ERROR) throw;
      refused = {error.status(), error.what()};
    }
  }
  if (flags & kJobSource) {
    for (std::uint32_t& groups : job.groups) message.get(groups);
  }
  job.function = kernel.function;
  job.cost = kernel.cost;
  job.source = kernel.source;
  job.kernel = kernel.name.c_str();
  job.call = {.scalars = entry.scalars.data(),
              .scalar_count = entry.scalars.size(),
              .operands = entry.views.data(),
              .operand_count = entry.views.size(),
              .team = nullptr,
              .name = entry.name.c_str(),
              .payload = kernel.payload,
              .queue = nullptr};
  if (!refused.ok()) refuse(entry, std::move(refused));
}

/// Describes the copy to the queue by the ends of its entry.
void ServedPlace::read_copy(Entry& entry, WireReader& message, const FindDevice& find) {
  for (ServedEnd& end : entry.ends) {
    try {
      end = served_end(message.end(), find);
    } catch (const Error& error) {
      if (error.status() == WEIR_STATUS_NETWORK_ERROR) throw;
      entry.refused = {error.status(), error.what()};
    }
  }
  entry.job.from.base = reinterpret_cast<std::byte*>(&entry);
}

/// Makes a call fail in dependence order: it becomes a copy, so that no core sees it.
void ServedPlace::refuse(Entry& entry, Outcome why) noexcept {
  entry.refused = std::move(why);
  entry.job.is_copy = true;
  entry.job.from.base = reinterpret_cast<std::byte*>(&entry);
}

// ---- Jobs --------------------------------------------------------------------------------------

bool ServedPlace::next(Worker&, Job& job) noexcept {
  if (!has_work()) return false;
  const std::uint64_t number = taken_.load(std::memory_order_relaxed) + 1;
  job = entry_of(number).job;
  taken_.store(number, std::memory_order_seq_cst);
  return true;
}

void ServedPlace::finish(Worker& worker, Job& job, Outcome outcome) noexcept {
  const std::size_t before = done_.bytes().size();
  try {
    note_done(job, worker.index, outcome);
  } catch (...) {  // no memory for the message of a failure
    done_.cut(before);
    send_done();
    outcome.message.clear();
    note_done(job, worker.index, outcome);
  }
}

/// Adds a job to the next report of completions.
void ServedPlace::note_done(const Job& job, unsigned worker, const Outcome& outcome) {
  done_.put(job.id, outcome, worker, job.started_ns, job.ended_ns);
  ++done_jobs_;
}

void ServedPlace::Queue::copy(const CopyJob& job) noexcept {
  Entry& entry = *reinterpret_cast<Entry*>(job.source.base);
  if (!entry.refused.ok()) {
    const std::int64_t now = sys::now_ns();
    return job.sink->copied(job.token, std::exchange(entry.refused, {}), now, now);
  }
  place_.copied_bytes_ += entry.ends[0].region.bytes();
  RankCopy::start(place_.port_, entry.ends[0], entry.ends[1], *job.sink, job.token);
}

/// Makes progress while a worker waits: rank 0 may need this core for what the worker waits for.
void ServedPlace::Queue::poll() noexcept {
  constexpr unsigned kPollsPerYield = 4;
  static thread_local unsigned polls = 0;
  if (!place_.port_.progress() && ++polls % kPollsPerYield == 0) sys::yield();
}

/// Serves the queue, unless another thread does; that thread then makes one more pass.
void ServedPlace::serve() noexcept {
  std::uint32_t calls = 1;
  if (calls_.fetch_add(1, std::memory_order_acq_rel) > 0) return;
  for (;;) {
    while (queue_.serve_once()) {
      if (copied_bytes_ >= kReportBytes) send_done();  // while further jobs run
    }
    send_done();
    const std::uint32_t remaining = calls_.fetch_sub(calls, std::memory_order_acq_rel) - calls;
    if (remaining == 0) return;
    calls = remaining;
  }
}

/// Reports completions to rank 0. The entries of these jobs are free afterwards.
void ServedPlace::send_done() noexcept {
  copied_bytes_ = 0;
  if (done_jobs_ == 0) return;
  given_back_.fetch_add(std::exchange(done_jobs_, 0), std::memory_order_release);
  try {
    port_.send(0, Channel::rank, done_.bytes());
  } catch (...) {  // rank 0 must not wait for completions that it never receives
    const Outcome why = current_exception_outcome(WEIR_STATUS_NETWORK_ERROR);
    port_.drop(0, "cannot be sent completions: ", why.message.c_str());
  }
  done_.cut(done_start_);
}

}  // namespace weir::rt
