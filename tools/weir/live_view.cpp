#include "live_view.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "common/pipeline_facts.hpp"
#include "launch_environment.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

constexpr std::chrono::milliseconds kFrame{250}, kLine{1000};

bool can_redraw() {
  const char* const term = std::getenv("TERM");
  return is_terminal(STDERR_FILENO) && term != nullptr && std::string_view(term) != "dumb";
}

/// "1.23 M", "45.6 k", "789".
std::string format_rate(double rate) {
  static constexpr std::array<std::pair<double, const char*>, 3> kUnits{
      {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}}};
  const auto digits = [](double value) { return value < 9.995 ? 2 : value < 99.95 ? 1 : 0; };
  for (const auto& [size, name] : kUnits) {
    if (rate >= 0.9995 * size) {
      return fmt::format("{:.{}f}{}", rate / size, digits(rate / size), name);
    }
  }
  return fmt::format("{:.{}f}", rate, digits(rate));
}

/// One stage between two states.
struct StageNow {
  std::string name, rate, items, busy, waiting, dropped;
  std::array<std::string, 3> ages;
};

std::uint64_t items_of(const weir_stage_state& stage) {
  return stage.input == SIZE_MAX ? stage.put : stage.complete;
}

StageNow between(const weir::PipelineState& state, const weir::PipelineState* before,
                 std::size_t index) {
  const weir_stage_state& stage = state.stages[index];
  weir_stage_state old = WEIR_STAGE_STATE_INIT;
  if (before != nullptr) old = before->stages[index];
  const std::uint64_t elapsed =
      state.info.elapsed_ns - (before != nullptr ? before->info.elapsed_ns : 0);
  weir_stage_state since = stage;
  since.busy_ns -= std::min(old.busy_ns, stage.busy_ns);
  const double seconds = static_cast<double>(elapsed) * 1e-9;
  const auto items = static_cast<double>(items_of(stage) - items_of(old));
  StageNow now{.name = stage.name,
               .rate = seconds > 0 ? format_rate(items / seconds) : "-",
               .items = format_count(items_of(stage)),
               .busy = fmt::format("{:.0f} %", 100 * apps::busy_share(since, elapsed)),
               .waiting = "",
               .dropped = "",
               .ages = {}};
  if (stage.input != SIZE_MAX) {
    const weir_tunnel_state& tunnel = state.tunnels[stage.input];
    now.waiting = fmt::format("{}/{}", tunnel.waiting, tunnel.capacity);
    if (tunnel.under_way > 0) now.waiting += fmt::format(" +{}", tunnel.under_way);
    if (tunnel.dropped > 0) now.dropped = format_count(tunnel.dropped);
  }
  const std::array<double, 3> percents{50, 95, 99};
  for (std::size_t i = 0; i < percents.size(); ++i) {
    const auto age = weir::percentile(stage.latency, percents[i], &old.latency);
    if (age.count() >= 0) {
      now.ages[i] = format_seconds(std::chrono::duration<double>(age).count());
    }
  }
  return now;
}

std::string table_of(const weir::PipelineState& state, const weir::PipelineState* before) {
  Table table;
  std::vector<std::string> head;
  for (const char* name :
       {"stage", "items/s", "items", "busy", "waiting", "dropped", "p50", "p95", "p99"}) {
    head.push_back(paint(name, Tone::faint, stderr));
  }
  table.add(std::move(head));
  for (std::size_t i = 0; i < state.stages.size(); ++i) {
    const StageNow now = between(state, before, i);
    table.add({now.name, now.rate, now.items, now.busy, now.waiting, now.dropped, now.ages[0],
               now.ages[1], now.ages[2]});
  }
  return table.text(2, {1, 2, 3, 4, 5, 6, 7, 8});
}

std::string line_of(const weir::PipelineState& state, const weir::PipelineState* before) {
  std::string line;
  for (std::size_t i = 0; i < state.stages.size(); ++i) {
    const StageNow now = between(state, before, i);
    line += fmt::format("; {} {}/s, {} items, busy {}", now.name, now.rate, now.items, now.busy);
    if (!now.waiting.empty()) line += ", waiting " + now.waiting;
    if (!now.dropped.empty()) line += ", dropped " + now.dropped;
    if (!now.ages[0].empty()) {
      line += fmt::format(", p50 {} p95 {} p99 {}", now.ages[0], now.ages[1], now.ages[2]);
    }
  }
  return line;
}

/// Whether `now` is a later state of the same pipeline: a run may have several.
bool goes_on(const weir::PipelineState& before, const weir::PipelineState& now) {
  bool same =
      before.info.elapsed_ns <= now.info.elapsed_ns && before.stages.size() == now.stages.size();
  for (std::size_t i = 0; same && i < now.stages.size(); ++i) {
    same = same && items_of(before.stages[i]) <= items_of(now.stages[i]);
  }
  return same;
}

}  // namespace

LiveView::LiveView(apps::WatchedPipeline* watched, std::string application)
    : watched_(watched), application_(std::move(application)), in_place_(can_redraw()) {
  if (watched_ == nullptr || !watched_->watch()) {
    throw weir::Error(
        WEIR_STATUS_UNSUPPORTED,
        fmt::format("{} runs no pipeline, which --live needs: use reyes, raster, evolution, "
                    "gene-alignment, face-detection or stencil, without --baseline",
                    application_));
  }
  watcher_ = std::thread([this] { watch(); });
}

LiveView::~LiveView() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  changed_.notify_all();
  watcher_.join();
}

void LiveView::begin_run(std::size_t run, std::size_t runs) {
  const std::lock_guard lock(mutex_);
  run_ = run;
  runs_ = runs;
  running_ = true;
  before_.reset();
}

void LiveView::end_run() {
  const std::lock_guard lock(mutex_);
  running_ = false;
  std::string text;
  watched_->observe([&](const weir::PipelineState& state) { text = drawn(state, nullptr); });
  show(text);
}

void LiveView::watch() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, in_place_ ? kFrame : kLine, [this] { return leaving_; })) {
    if (!running_) continue;
    try {
      std::string text;
      watched_->observe([&](const weir::PipelineState& state) { text = period(state); });
      show(text);
    } catch (const std::exception&) {
      running_ = false;  // a view that fails does not end the run
    }
  }
}

std::string LiveView::period(const weir::PipelineState& state) {
  if (state.info.at_end || state.info.elapsed_ns == 0) return "";
  if (before_ && !goes_on(*before_, state)) before_.reset();
  std::string text = drawn(state, before_ ? &*before_ : nullptr);
  before_ = state;
  return text;
}

std::string LiveView::title(const weir::PipelineState& state) const {
  return fmt::format("{}, run {} of {}, {}", application_, run_, runs_,
                     format_seconds(static_cast<double>(state.info.elapsed_ns) * 1e-9));
}

std::string LiveView::drawn(const weir::PipelineState& state, const weir::PipelineState* since) {
  if (!in_place_) {
    return fmt::format("weir: {}{}{}\n", title(state), since != nullptr ? "" : ", all of it",
                       line_of(state, since));
  }
  // Cuts long lines instead of wrapping them: the table must keep its height to be redrawn in
  // place.
  std::string text = lines_ > 0 ? fmt::format("\x1b[{}A\r\x1b[J", lines_) : "";
  const std::string table =
      paint(title(state), Tone::strong, stderr) + "\n" + table_of(state, since);
  lines_ = static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n'));
  return text + "\x1b[?7l" + table + "\x1b[?7h";
}

/// Not with the mutex held: the reader of the output may be slow. A failed write is ignored.
void LiveView::show(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace weir::cli
