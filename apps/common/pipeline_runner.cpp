#include "common/pipeline_runner.hpp"
#include "common/command_options.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>

#include "common/pipeline_facts.hpp"

namespace weir::apps {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kSilence{20}, kBetweenLooks{1};

constexpr const char* kReliefs[] = {"both", "warp", "off"};

weir_relief relief_of(const std::string& word) {
  const auto found = std::find(std::begin(kReliefs), std::end(kReliefs), word);
  return static_cast<weir_relief>(found - std::begin(kReliefs));
}

/// Everything that was ever counted.
std::uint64_t counted(const weir::Pipeline& pipeline) {
  std::uint64_t all = 0;
  for (const weir_stage_info& stage : pipeline.stages()) all += stage.created + stage.complete;
  return all;
}

/// Whether the pipeline is over. Throws its failure.
bool is_over(const weir::Pipeline& pipeline, std::chrono::nanoseconds timeout) {
  const weir_status status = weir_pipeline_wait(pipeline.handle(), timeout.count());
  if (status != WEIR_STATUS_TIMEOUT) weir::check(status);
  return status == WEIR_STATUS_OK;
}

}  // namespace

void add_pipeline_switches(CommandOptions& options, PipelineSwitches& switches,
                           const char* baseline_help) {
  options.flag("--baseline", switches.baseline, baseline_help);
  options.flag(
      "--no-batching", [&] { switches.batching = false; },
      "Give stages one item at a time (for comparison)");
  options
      .add("--batch", switches.batch,
           "Most items in a batch of a stage on a device [chosen from measured times]")
      .within(std::size_t{1}, std::size_t{1} << 24);
  options
      .add("--in-flight", switches.in_flight,
           "Most batches of a stage that are on a device at once [as many as full batches wait]")
      .within(std::size_t{1}, std::size_t{64});
  options
      .add(
          "--end", [&](const std::string& word) { switches.end_tracking = word == "tracking"; },
          "tracking: end when all items are counted as complete; timeout: end after 20 ms without "
          "progress (for comparison) [tracking]")
      .one_of({"tracking", "timeout"});
  options
      .add(
          "--relief", [&](const std::string& word) { switches.relief = relief_of(word); },
          "both: workers keep their own items and claim batches; warp: only claim batches; off: "
          "claim single items (for comparison) [both]")
      .one_of({"both", "warp", "off"});
}

PipelineRunner::PipelineRunner(const weir::Runtime& runtime, const PipelineSwitches& switches)
    : runtime_(runtime), switches_(switches) {
  if (!switches.end_tracking && runtime.domain(0).info().virtual_time) {
    throw weir::Error(WEIR_STATUS_UNSUPPORTED,
                      "--end timeout needs time that passes by itself: leave clock=virtual out");
  }
}

void PipelineRunner::begin(weir::PipelineOptions options,
                           const std::function<void(const weir::Pipeline&)>& connect) {
  if (!switches_.batching) options.batch = 1;
  options.relief = switches_.relief;
  const std::lock_guard lock(mutex_);
  if (cancelled_) throw weir::Error(WEIR_STATUS_CANCELLED, "the run was cancelled");
  prop_.close();
  pipeline_.emplace(runtime_, std::move(options));
  try {
    connect(*pipeline_);
    if (!switches_.end_tracking) prop_open();
    if (watched_) pipeline_->state();
    pipeline_->start();
  } catch (...) {
    prop_.close();
    pipeline_.reset();  // others would look at half of it
    throw;
  }
}

/// Behind everything else: observe() leaves it out.
void PipelineRunner::prop_open() {
  const auto tunnel = pipeline_->tunnel<char>("prop", {.capacity = 1});
  pipeline_->stage("prop", tunnel, [](char) {});
  prop_ = pipeline_->feed(tunnel);
}

void PipelineRunner::wait(std::chrono::nanoseconds timeout) {
  try {
    if (switches_.end_tracking) {
      pipeline_->wait(timeout);
    } else {
      wait_for_silence(timeout);
    }
  } catch (...) {
    reset();  // its stages work on members of those who made it
    throw;
  }
}

void PipelineRunner::wait_for_silence(std::chrono::nanoseconds timeout) {
  const Clock::time_point begin = Clock::now();
  const auto late = [&] { return timeout >= timeout.zero() && Clock::now() - begin >= timeout; };
  Clock::time_point last = begin;
  std::uint64_t seen = counted(*pipeline_);
  while (Clock::now() - last < kSilence && !late()) {
    is_over(*pipeline_, kBetweenLooks);
    const std::uint64_t now = counted(*pipeline_);
    if (now != seen) last = Clock::now();
    seen = now;
  }
  if (!late()) prop_.close();
  pipeline_->wait(late() ? std::chrono::nanoseconds(0) : timeout);
  waited_s_ = std::chrono::duration<double>(Clock::now() - last).count();
}

void PipelineRunner::reset() noexcept {
  const std::lock_guard lock(mutex_);
  prop_.close();
  pipeline_.reset();
}

std::vector<weir_stage_info> PipelineRunner::stages() const {
  std::vector<weir_stage_info> stages = pipeline_->stages();
  if (!switches_.end_tracking) stages.pop_back();
  return stages;
}

void PipelineRunner::watch() noexcept {
  const std::lock_guard lock(mutex_);
  watched_ = true;
}

void PipelineRunner::observe(const UsePipeline& use) const {
  const std::lock_guard lock(mutex_);
  if (!pipeline_) return;
  weir::PipelineState state = pipeline_->state();
  if (!switches_.end_tracking) {
    state.stages.pop_back();
    state.tunnels.pop_back();
  }
  use(state);
}

void PipelineRunner::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (pipeline_) weir_pipeline_cancel(pipeline_->handle());
}

void PipelineRunner::describe(nlohmann::ordered_json& json) const {
  json["batching"] = switches_.batching;
  if (switches_.batch > 0) json["batch"] = switches_.batch;
  if (switches_.in_flight > 0) json["in_flight"] = switches_.in_flight;
  json["end"] = switches_.end_tracking ? "tracking" : "timeout";
  if (!switches_.end_tracking) json["end_wait_s"] = waited_s_;
  json["relief"] = kReliefs[switches_.relief];
  observe([&](const weir::PipelineState& last) { json["pipeline"] = facts_of(last); });
}

}  // namespace weir::apps
