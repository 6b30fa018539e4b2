#include "common/pipeline_workload.hpp"
#include "common/command_options.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace weir::apps {

namespace {

constexpr const char* kOverlaps[] = {"none", "stages", "copies"};

}  // namespace

void add_pipeline_switches(CommandOptions& options, PipelineSwitches& switches) {
  add_pipeline_switches(
      options, switches,
      "Run the stages one after another in chunks, with a barrier after each (for comparison)");
  options
      .add(
          "--overlap",
          [&](const std::string& word) {
            const auto found = std::find(std::begin(kOverlaps), std::end(kOverlaps), word);
            switches.overlap = static_cast<ChunkOverlap>(found - std::begin(kOverlaps));
          },
          "What works on different chunks with --baseline: copies: the cores, the link and the "
          "device; stages: the cores and the device; none [copies]")
      .one_of({"none", "stages", "copies"});
}

PipelineWorkload::PipelineWorkload(const weir::Runtime& runtime, const AppStreams& app_streams,
                                   const char* name, const PipelineSwitches& switches,
                                   StagePlaces places)
    : runtime_(runtime),
      streams_(app_streams),
      name_(name),
      switches_(switches),
      runner_(runtime, switches) {
  PipelineSwitches usual;
  usual.baseline = switches.baseline;
  usual.overlap = switches.overlap;
  if (switches.baseline && switches != usual) {
    throw weir::Error(WEIR_STATUS_UNSUPPORTED,
                      "--no-batching, --batch, --in-flight, --end timeout and --relief change the "
                      "pipeline, and the baseline has none: leave --baseline out");
  }
  if (!switches.baseline && switches.overlap != ChunkOverlap::copies) {
    throw weir::Error(WEIR_STATUS_UNSUPPORTED, "--overlap changes the baseline: add --baseline");
  }
  find_places(places);
  if (switches_.baseline)
    chunks_.emplace(runtime, app_streams, places_, device_stream_, switches_.overlap);
}

void PipelineWorkload::find_places(StagePlaces wanted) {
  for (std::size_t i = 0; i < streams_.places(); ++i) {
    const std::size_t domain = streams_.urgent(i).domain;
    const weir_domain_info info = runtime_.domain(domain).info();
    const std::string_view backend = info.backend;
    const bool host = backend == "host" || (info.virtual_time && info.aliases_host);
    if (host) {
      places_.push_back(i);
    } else if (wanted == StagePlaces::hosts_and_device && device_ == nullptr) {
      device_ = &streams_.place(i);
      device_stream_ = &streams_.urgent(i);
      device_backend_ = backend;
    }
  }
}

void PipelineWorkload::reset() {
  runner_.reset();
  clear();
}

void PipelineWorkload::enqueue() {
  if (baseline()) return;
  weir::PipelineOptions options = wanted();
  options.name = name_.c_str();
  options.place = at(0, 0).place;
  runner_.begin(std::move(options), [this](const weir::Pipeline& pipeline) { connect(pipeline); });
}

void PipelineWorkload::await(std::chrono::nanoseconds timeout) {
  if (baseline()) {
    chunks_->begin(timeout);
    loop(*chunks_);
    stages_ = chunks_->stages();
    return;
  }
  runner_.wait(timeout);
  stages_.clear();
  for (const weir_stage_info& stage : runner_.stages()) {
    stages_.push_back({stage.name, tasks_of(stage), stage.most_kept});
  }
}

bool PipelineWorkload::watch() {
  runner_.watch();
  return !baseline();
}

weir::StageOptions PipelineWorkload::at(std::size_t index, double item_ns) const {
  return {.place = places_.empty() ? nullptr : &streams_.place(places_[index % places_.size()]),
          .item_ns = item_ns};
}

std::uint64_t PipelineWorkload::items(const char* stage) const {
  for (const ChunkLoop::Stage& known : stages_) {
    if (known.name == stage) return known.items;
  }
  return 0;
}

std::vector<std::pair<std::string, std::string>> PipelineWorkload::remarks() const {
  std::string items, most;
  for (const ChunkLoop::Stage& stage : stages_) {
    items += fmt::format("{}{} {}", items.empty() ? "" : "; ", stage.name, stage.items);
    most += fmt::format("{}{} {}", most.empty() ? "" : "; ", stage.name, stage.most);
  }
  if (!baseline()) return {{"stages", items}, {"kept", most + " items by one worker at most"}};
  return {{"stages", items},
          {"held", most + " items at once"},
          {"meetings", std::to_string(chunks_->synchronizations())}};
}

std::string PipelineWorkload::details() const {
  nlohmann::ordered_json json;
  json["form"] = baseline() ? "baseline" : "pipeline";
  if (baseline()) json["overlap"] = kOverlaps[static_cast<unsigned>(switches_.overlap)];
  runner_.describe(json);
  json["stages"] = nlohmann::ordered_json::object();
  for (const ChunkLoop::Stage& stage : stages_) json["stages"][stage.name] = stage.items;
  for (const ChunkLoop::Stage& stage : stages_) {
    json[baseline() ? "held" : "kept"][stage.name] = stage.most;
  }
  json["meetings"] = baseline() ? chunks_->synchronizations() : 0;
  describe(json);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace weir::apps
