#include "pipeline/flow.hpp"

#include "base/log.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kUsualBatch = 64, kMostBatch = 65'536;
constexpr std::size_t kMostEpochs = 65'536;
constexpr std::size_t kUsualKeepBytes = std::size_t{256} << 20;

weir_pipeline_options checked(weir_pipeline_options options, const std::string& name) {
  if (options.batch > kMostBatch) {
    fail_argument("a batch of {} items is too large for pipeline '{}': at most {}", options.batch,
                  name, kMostBatch);
  }
  if (options.epochs > kMostEpochs) {
    fail_argument("{} epochs at once are too many for pipeline '{}': at most {}", options.epochs,
                  name, kMostEpochs);
  }
  if (options.relief < WEIR_RELIEF_BOTH || options.relief > WEIR_RELIEF_OFF) {
    fail_argument("relief {} of pipeline '{}' is none", static_cast<int>(options.relief), name);
  }
  if (options.epochs == 0 && options.on_epoch != nullptr) {
    fail_argument("pipeline '{}' has on_epoch, but epochs is 0: say how many may be in flight",
                  name);
  }
  if (options.batch == 0) options.batch = kUsualBatch;
  if (options.keep_bytes == 0) options.keep_bytes = kUsualKeepBytes;
  return options;
}

}  // namespace

Flow::Flow(const std::string& called, const weir_pipeline_options& given)
    : name(called),
      options(checked(given, called)),
      epochs(options.epochs),
      access(options.relief, epochs, groups) {}

Flow::~Flow() {
  const std::string kept = retained.abandon();
  if (!kept.empty()) log::warning("pipeline '{}' is destroyed while {}", name, kept);
  completion.wait_for_calls();
}

void Flow::seal(const std::vector<std::size_t>& group_workers) {
  detector.set_components(graph.arrange(group_workers));
  workers_.clear();
  counts.workers.clear();
  const auto add_counts = [this]() -> WorkerCounts& {
    return *counts.workers.emplace_back(std::make_unique<WorkerCounts>(
        graph.tunnels().size(), graph.stages().size(), epochs.most()));
  };
  retained.count_in(add_counts());
  for (WorkerGroup& group : groups.all()) {
    for (std::size_t i = 0; i < group.workers; ++i) {
      workers_.push_back(std::make_unique<FlowWorker>(*this, group, add_counts(), workers_.size()));
    }
  }
  feeds.locked([this](const FeedList&) {
    clock.start();
    groups.seal();
  });
}

}  // namespace weir::rt
