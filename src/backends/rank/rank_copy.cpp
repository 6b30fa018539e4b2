#include "backends/rank/rank_copy.hpp"

#include <array>
#include <span>
#include <utility>

#include "backend/copy_bytes.hpp"

namespace weir::rt {

namespace {

Region contiguous(const Region& region) noexcept { return {.offset = 0, .row = region.bytes()}; }

/// Returns how many bytes from the start of a row are contiguous in both regions.
std::uint64_t run_bytes(const Region& a, const Region& b) noexcept {
  return std::min(joined(a).row, joined(b).row);
}

/// Returns the offset of run number `run` in a region.
std::uint64_t run_offset(const Region& region, std::uint64_t run, std::uint64_t bytes) noexcept {
  const std::uint64_t at = run * bytes;  // in the bytes of the region without gaps
  const std::uint64_t row = at / region.row;
  const std::uint64_t plane = row / region.rows;
  return region.offset + plane * region.plane_stride + (row % region.rows) * region.row_stride +
         at % region.row;
}

}  // namespace

RankCopy::RankCopy(Port& port, const ServedEnd& source, const ServedEnd& target, CopySink& sink,
                   void* token) noexcept
    : port_(port),
      source_(source),
      target_(target),
      sink_(sink),
      token_(token),
      started_ns_(sys::now_ns()) {}

void RankCopy::start(Port& port, const ServedEnd& source, const ServedEnd& target, CopySink& sink,
                     void* token) noexcept {
  RankCopy* copy = nullptr;
  try {
    copy = new RankCopy(port, source, target, sink, token);
    copy->begin();
  } catch (...) {
    Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    if (copy != nullptr) return copy->finish(std::move(outcome));
    const std::int64_t now = sys::now_ns();
    sink.copied(token, std::move(outcome), now, now);
  }
}

void RankCopy::begin() {
  if (source_.device != nullptr && target_.device != nullptr) return begin_near();
  if (source_.device == nullptr && target_.device == nullptr) {
    WireReader::refuse("it copies between two ends that are far");
  }
  begin_far();
}

/// Copies between two devices of this rank.
void RankCopy::begin_near() {
  const auto end = [](const ServedEnd& served, bool as_host) {
    return CopyEnd{as_host ? nullptr : &served.device->device(), served.base, served.region};
  };
  const bool from_direct = source_.device->direct(), to_direct = target_.device->direct();
  if (from_direct && to_direct) {
    copy_bytes(target_.base, target_.region, source_.base, source_.region);
    return finish({});
  }
  ServedDevice& maker = to_direct ? *source_.device : *target_.device;
  copy_within(maker.device(), end(source_, from_direct), end(target_, to_direct));
}

/// Starts a copy by a device of this rank, which calls copied().
void RankCopy::copy_within(Device& device, const CopyEnd& source, const CopyEnd& target) noexcept {
  device.copy({.source = source, .target = target, .sink = this, .token = nullptr});
}

void RankCopy::begin_far() {
  inward_ = source_.device == nullptr;
  const ServedEnd& near = inward_ ? target_ : source_;
  there_ = inward_ ? source_.region : target_.region;
  here_ = near.region;
  base_ = near.base;
  if (!near.device->direct()) {
    staged_.reset(new std::byte[near.region.bytes()]);
    base_ = staged_.get();
    here_ = contiguous(near.region);
  }
  runs_ = here_.bytes() / run_bytes(here_, there_);
  if (staged_ != nullptr && !inward_) {
    return copy_within(near.device->device(), {&near.device->device(), near.base, near.region},
                       {nullptr, base_, here_});
  }
  move_runs();
}

/// Starts runs until kAtOnce are in flight; the thread that completes the last of them continues.
void RankCopy::move_runs() noexcept {
  for (;;) {
    const std::uint64_t most = move_directly() ? 1 : kAtOnce;
    const std::uint64_t until = std::min(runs_, next_run_ + most);
    open_.store(until - next_run_ + 1, std::memory_order_relaxed);
    while (next_run_ < until) start_run(next_run_++);
    if (open_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    if (next_run_ == runs_ || !outcome_.ok()) return moved();
  }
}

WindowRun RankCopy::window_run(std::uint64_t run) const noexcept {
  const std::uint64_t bytes = run_bytes(here_, there_);
  return {run_offset(there_, run, bytes), base_ + run_offset(here_, run, bytes), bytes};
}

/// Moves many short runs at once, if the network does so itself; returns whether it does. Large
/// copies are moved in several calls, so that the thread that makes progress can do other work
/// between them.
bool RankCopy::move_directly() noexcept {
  const ServedEnd& far = far_end();
  const std::uint64_t bytes = run_bytes(here_, there_);
  const std::uint64_t end = std::min(runs_, next_run_ + kDirectBytes / bytes);
  bool works = false;
  std::array<WindowRun, kDirectRuns> some;
  while (next_run_ < end) {
    const std::size_t count = std::min<std::uint64_t>(kDirectRuns, end - next_run_);
    for (std::size_t i = 0; i < count; ++i) some[i] = window_run(next_run_ + i);
    works = port_.move_runs(inward_ ? OneSidedKind::get : OneSidedKind::put, far.rank, far.window,
                            std::span(some).first(count));
    if (!works) break;
    next_run_ += count;
  }
  return works;
}

void RankCopy::start_run(std::uint64_t run) noexcept {
  const ServedEnd& far = far_end();
  const WindowRun one = window_run(run);
  const std::span<std::byte> here(one.local, one.bytes);
  try {
    if (inward_) {
      port_.get(far.rank, far.window, one.offset, here, this);
    } else {
      port_.put(far.rank, far.window, one.offset, here, this);
    }
  } catch (...) {
    completed(0, current_exception_outcome(WEIR_STATUS_NETWORK_ERROR));
  }
}

void RankCopy::completed(std::int64_t, const Outcome& outcome) noexcept {
  if (!outcome.ok()) note(outcome);
  if (open_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  if (next_run_ == runs_ || !outcome_.ok()) {
    moved();
  } else {
    move_runs();
  }
}

void RankCopy::note(const Outcome& outcome) noexcept {
  const sys::Lock lock(mutex_);
  if (!outcome_.ok()) return;
  outcome_.status = outcome.status;
  try {
    outcome_.message = outcome.message;
  } catch (...) {  // the status is enough
  }
}

/// The transfer over the network is complete.
void RankCopy::moved() noexcept {
  if (staged_ == nullptr || !inward_ || !outcome_.ok()) return finish(std::move(outcome_));
  Device& device = target_.device->device();
  copy_within(device, {nullptr, base_, here_}, {&device, target_.base, target_.region});
}

/// The copy by the device is complete.
void RankCopy::copied(void*, Outcome outcome, std::int64_t, std::int64_t) noexcept {
  const bool goes_on = staged_ != nullptr && !inward_ && outcome.ok();
  if (goes_on) {
    move_runs();
  } else {
    finish(std::move(outcome));
  }
}

void RankCopy::finish(Outcome outcome) noexcept {
  const std::unique_ptr<RankCopy> self(this);
  sink_.copied(token_, std::move(outcome), started_ns_, sys::now_ns());
}

}  // namespace weir::rt
