#include "asian_option/pricing.hpp"

#include <numeric>
#include <utility>

#include "asian_option/valuation.hpp"

namespace weir::apps {

Pricing::Pricing(const weir::Runtime& runtime, const AppStreams& app_streams,
                 const PathKernels& kernels, std::vector<Option> options,
                 const PricingOptions& wanted)
    : kernels_(kernels),
      wanted_(wanted),
      options_(std::move(options)),
      parts_(runtime, app_streams, wanted.fabric) {
  first_group_.push_back(0);
  for (const Option& option : options_) {
    work_.push_back(option.work());
    first_group_.push_back(first_group_.back() + PathKernels::groups(option));
  }
  for (const std::size_t group : first_group_) offsets_.push_back(group * sizeof(PathSums));
  sums_.resize(first_group_.back());
  buffer_ = runtime.wrap(sums_, "sums");
  for (std::size_t place = 0; place < app_streams.places(); ++place) {
    const auto info = runtime.domain(app_streams.urgent(place).domain).info();
    is_host_.push_back(std::string(info.backend) == "host");
  }
}

void Pricing::start() {
  parts_.start(options_.size(), [this](const weir::Chunk& chunk) { return enqueue(chunk); },
               {.name = "options",
                .chunks = wanted_.chunks.c_str(),
                .work = work_,
                .ways = wanted_.shape == OptionShape::automatic ? std::size_t{2} : std::size_t{1},
                .scheduler = wanted_.scheduler.c_str(),
                .results = sums_.data(),
                .result_offsets = offsets_});
}

/// Whether options go to single threads.
bool Pricing::on_threads(std::size_t place, std::size_t way) const noexcept {
  switch (wanted_.shape) {
    case OptionShape::mt: return false;
    case OptionShape::mo: return true;
    case OptionShape::hybrid: return is_host_[place];
    default: return way == 1;
  }
}

weir::Event Pricing::enqueue(const weir::Chunk& chunk) const {
  const std::size_t end = chunk.first + chunk.count;
  const weir::Kernel& kernel =
      on_threads(chunk.place, chunk.way) ? kernels_.one_thread : kernels_.whole_place;
  const auto sums = [this](std::size_t from, std::size_t to) {
    return buffer_.elements<PathSums>(first_group_[from], first_group_[to] - first_group_[from]);
  };
  for (std::size_t i = chunk.first; i < end; ++i) {
    const weir::Operand target = weir::write(sums(i, i + 1));
    const auto scalars = PathKernels::scalars(options_[i], i, wanted_.seed);
    chunk.stream.compute(kernel, {&target, 1}, scalars);
  }
  return chunk.stream.download(sums(chunk.first, end));
}

std::vector<Valuation> Pricing::valuations() const {
  std::vector<Valuation> values;
  for (std::size_t i = 0; i < options_.size(); ++i) {
    values.push_back(valuate(
        options_[i], {sums_.data() + first_group_[i], first_group_[i + 1] - first_group_[i]},
        wanted_.control));
  }
  return values;
}

double Pricing::path_steps() const noexcept {
  return std::accumulate(work_.begin(), work_.end(), 0.0);
}

const char* Pricing::shape_of(const weir_share_part& part, std::size_t place) const noexcept {
  return on_threads(place % is_host_.size(), part.way) ? "mo" : "mt";
}

}  // namespace weir::apps
