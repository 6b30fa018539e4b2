#include "tasks/performance_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/cache.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

constexpr std::string_view kHeading = "weir performance models 1";
constexpr double kLongestNs = 1e15;  // limit, so that sums of many times fit
constexpr double kAlike = 1.0 / 16;  // log(size) distance within which sizes share times
constexpr double kOutlier = 2;       // largest factor by which one time may change the mean
constexpr int kChange = 4;           // number of successive outliers that count as a change
constexpr std::uint64_t kFew = 3;    // fewer times cannot tell which one is an outlier
constexpr double kPrior = 0.05;  // prior for slope 1; weighs as much as two sizes with ratio 1.4

double log_of(std::uint64_t bytes) { return std::log(static_cast<double>(bytes) + 1); }
double ratio(std::uint64_t bytes, std::uint64_t of) {
  return (static_cast<double>(bytes) + 1) / (static_cast<double>(of) + 1);
}

/// Whether the text can be a field: kernels may have any name.
bool fits(std::string_view text) { return text.find_first_of("\t\n") == std::string_view::npos; }

}  // namespace

// ---- Curves -------------------------------------------------------------------------------------

PerformanceModel::Curve::Sample PerformanceModel::Curve::Sample::of(std::uint64_t bytes,
                                                                    double mean_ns,
                                                                    std::uint64_t count) {
  Sample sample;
  sample.bytes = bytes;
  sample.count = count;
  sample.x = log_of(bytes);
  sample.set_mean(mean_ns);
  return sample;
}

void PerformanceModel::Curve::Sample::set_mean(double ns) {
  mean_ns = std::clamp(ns, 1.0, kLongestNs);
  y = std::log(mean_ns);
}

void PerformanceModel::Curve::Sample::note(double ns) {
  if (std::exchange(earlier, false)) {
    count = 1;
    replaced = false;
  }
  const double time = bounded(std::clamp(ns, 1.0, kLongestNs));
  const bool first_was_slow = count == 1 && !replaced && time < mean_ns;
  replaced = replaced || first_was_slow;
  count = first_was_slow ? 1 : std::min(count + 1, kMemory);
  set_mean(mean_ns + (time - mean_ns) / static_cast<double>(count));
}

/// Returns the time after limiting outliers.
double PerformanceModel::Curve::Sample::bounded(double time) {
  if (time > kOutlier * mean_ns) {
    outliers = std::max(outliers, 0) + 1;
  } else if (time < mean_ns / kOutlier) {
    outliers = std::min(outliers, 0) - 1;
  } else {
    outliers = 0;
  }
  if (count < kFew) return time;
  if (std::abs(outliers) < kChange) return std::clamp(time, mean_ns / kOutlier, kOutlier * mean_ns);
  count = 1;  // half old, half new
  return time;
}

/// Merges the times of another size, converted to this size.
void PerformanceModel::Curve::Sample::absorb(const Sample& other, double slope) {
  const double all = static_cast<double>(count + other.count);
  const double moved = other.y + slope * (x - other.x) - y;
  set_mean(std::exp(y + moved * static_cast<double>(other.count) / all));
  count = std::min(count + other.count, kMemory);
  earlier = earlier && other.earlier;
}

void PerformanceModel::Curve::note(std::uint64_t bytes, std::int64_t ns) {
  age_ = 0;
  const auto time = static_cast<double>(ns);
  const std::size_t known = sample_of(bytes);
  if (known == samples_.size()) return add(Sample::of(bytes, time, 1));
  samples_[known].note(time * ratio(samples_[known].bytes, bytes));
}

std::int64_t PerformanceModel::Curve::estimate(std::uint64_t bytes) const {
  if (samples_.empty()) return -1;
  if (const double mean_ns = measured_mean(bytes); mean_ns > 0)
    return static_cast<std::int64_t>(mean_ns);
  if (last_query_.power_law_ns < 0) last_query_.power_law_ns = by_power_law(bytes);
  return last_query_.power_law_ns;
}

PerformanceModel::Source PerformanceModel::Curve::source(std::uint64_t bytes) const {
  if (samples_.empty()) return Source::nothing;
  const std::size_t known = sample_of(bytes);
  if (known == samples_.size()) return Source::guess;
  return samples_[known].earlier ? Source::earlier : Source::measured;
}

std::int64_t PerformanceModel::Curve::by_power_law(std::uint64_t bytes) const {
  const Line law = line();
  const double ns = std::exp(law.y + law.slope * (log_of(bytes) - law.x));
  return static_cast<std::int64_t>(std::clamp(ns, 1.0, kLongestNs));
}

/// Returns the index of the sample that covers a size, samples_.size() if there is none.
std::size_t PerformanceModel::Curve::sample_of(std::uint64_t bytes) const {
  if (!last_query_.valid || last_query_.bytes != bytes)
    last_query_ = {bytes, find(bytes), -1, true};
  return last_query_.sample;
}

/// Sizes with exact samples need no logarithm.
std::size_t PerformanceModel::Curve::find(std::uint64_t bytes) const {
  const auto exact = std::ranges::lower_bound(samples_, bytes, {}, &Sample::bytes);
  if (exact == samples_.end() || exact->bytes != bytes) return find_similar(log_of(bytes));
  return static_cast<std::size_t>(exact - samples_.begin());
}

/// Returns the index of the sample of almost the same size, samples_.size() if there is none.
std::size_t PerformanceModel::Curve::find_similar(double x) const {
  const auto distance = [x](const Sample& sample) { return std::abs(sample.x - x); };
  const auto closest = std::ranges::min_element(samples_, {}, distance);
  if (closest == samples_.end() || distance(*closest) >= kAlike) return samples_.size();
  return static_cast<std::size_t>(closest - samples_.begin());
}

/// Returns the mean time of a measured size, or of almost the same size; 0: not measured.
double PerformanceModel::Curve::measured_mean(std::uint64_t bytes) const {
  const std::size_t known = sample_of(bytes);
  if (known == samples_.size()) return 0;
  const Sample& sample = samples_[known];
  return std::clamp(sample.mean_ns * ratio(bytes, sample.bytes), 1.0, kLongestNs);
}

/// Adds a sample of another curve, unless this one has that size.
void PerformanceModel::Curve::learn(const Sample& sample) {
  if (find_similar(sample.x) == samples_.size()) add(sample);
}

void PerformanceModel::Curve::add(const Sample& sample) {
  last_query_.valid = false;
  samples_.insert(std::ranges::upper_bound(samples_, sample.x, {}, &Sample::x), sample);
  if (samples_.size() > kMostSizes) merge_closest();
}

/// Merges the two closest sizes; the size with more times remains.
void PerformanceModel::Curve::merge_closest() {
  const auto gap = [this](std::size_t i) { return samples_[i + 1].x - samples_[i].x; };
  std::size_t closest = 0;
  for (std::size_t i = 1; i + 1 < samples_.size(); ++i) {
    if (gap(i) < gap(closest)) closest = i;
  }
  std::size_t kept = closest, absorbed = closest + 1;
  if (samples_[absorbed].count > samples_[kept].count) std::swap(kept, absorbed);
  samples_[kept].absorb(samples_[absorbed], line().slope);
  samples_.erase(samples_.begin() + static_cast<std::ptrdiff_t>(absorbed));
}

/// A least squares fit of log(time) over log(bytes) with a prior of slope 1, because close sizes
/// say little about the slope.
PerformanceModel::Curve::Line PerformanceModel::Curve::line() const {
  const auto n = static_cast<double>(samples_.size());
  Line line;
  for (const Sample& sample : samples_) line.x += sample.x / n, line.y += sample.y / n;
  double xx = kPrior, xy = kPrior;
  for (const Sample& sample : samples_) {
    xx += (sample.x - line.x) * (sample.x - line.x);
    xy += (sample.x - line.x) * (sample.y - line.y);
  }
  line.slope = std::clamp(xy / xx, 0.0, 3.0);
  return line;
}

// ---- All of them --------------------------------------------------------------------------------

PerformanceModel::Curve& PerformanceModel::curve(std::string_view kernel, std::string_view kind) {
  return curves_[std::pair(std::string(kernel), std::string(kind))];
}

std::vector<double> PerformanceModel::speeds(std::span<const std::string> kinds) const {
  std::vector<double> logs(kinds.size()), times(kinds.size());
  double common = 0;
  each([&](const std::string& kernel, const std::string& kind, std::uint64_t bytes, std::uint64_t,
           double mean_ns) {
    if (kind != kinds.front()) return;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const auto curve = curves_.find(std::pair(kernel, kinds[i]));
      times[i] = curve != curves_.end() ? curve->second.measured_mean(bytes) : 0;
    }
    if (std::find(times.begin(), times.end(), 0) != times.end()) return;
    for (std::size_t i = 0; i < kinds.size(); ++i) logs[i] += std::log(mean_ns / times[i]);
    common += 1;
  });
  if (common == 0) return {};
  for (double& value : logs) value = std::exp(value / common);
  return logs;
}

std::string PerformanceModel::text(std::string_view machine) const {
  std::vector<const decltype(curves_)::value_type*> by_age;
  for (const auto& each : curves_) {
    if (fits(each.first.first) && fits(each.first.second)) by_age.push_back(&each);
  }
  std::ranges::stable_sort(by_age, {}, [](const auto* each) { return each->second.age_; });
  std::string text = fmt::format("{}\n{}\n", kHeading, machine);
  for (const auto* each : by_age) {
    std::string lines;
    for (const Curve::Sample& sample : each->second.samples_) {
      lines += fmt::format("{}\t{}\t{}\t{}\t{:.0f}\n", each->first.first, each->first.second,
                           sample.bytes, sample.count, sample.mean_ns);
    }
    if (text.size() + lines.size() <= kMostBytes) text += lines;
  }
  return text;
}

void PerformanceModel::read(std::string_view text, std::string_view machine,
                            std::string_view file) {
  std::istringstream lines{std::string(text)};
  std::string line;
  if (!std::getline(lines, line) || line != kHeading) {
    fail_argument("'{}' has no performance models of this version: remove it", file);
  }
  if (!std::getline(lines, line) || line != machine) {
    fail_argument("the models in '{}' are of another machine, '{}': remove the file", file,
                  one_line(line));
  }
  decltype(curves_) read;
  for (unsigned number = 3; std::getline(lines, line); ++number) {
    std::vector<std::string_view> fields = split(line, '\t');
    fields.resize(std::max<std::size_t>(fields.size(), 5) + (line.ends_with('\t') ? 1 : 0));
    const auto bytes = parse_unsigned(fields[2]), count = parse_unsigned(fields[3]);
    const auto mean_ns = parse_real(fields[4]);
    if (fields.size() != 5 || fields[0].empty() || !bytes || count.value_or(0) == 0 ||
        !(mean_ns >= 1 && mean_ns <= kLongestNs)) {
      fail_argument("line {} of '{}' is not a model: remove the file", number, file);
    }
    Curve& curve = read[std::pair(std::string(fields[0]), std::string(fields[1]))];
    if (curve.age_ == 0) curve.age_ = read.size();
    Curve::Sample sample = Curve::Sample::of(*bytes, *mean_ns, std::min(*count, Curve::kMemory));
    sample.earlier = true;
    curve.learn(sample);
  }
  for (const auto& [key, curve] : read) {
    Curve& own = curves_[key];
    if (own.samples_.empty()) own.age_ = curve.age_;
    for (const Curve::Sample& sample : curve.samples_) own.learn(sample);
  }
}

void PerformanceModel::load_cached(const std::string& machine) {
  const auto kept = Cache("models").read(cache_key(machine));
  if (!kept) return;
  try {
    read(*kept, machine, "weir/models of the user's cache");
  } catch (const Error& error) {
    log::warning("starting without performance models: {}", error.what());
  }
}

void PerformanceModel::store_cached(const std::string& machine) const {
  PerformanceModel all;
  for (const auto& [key, curve] : curves_) {
    if (curve.age_ == 0 && !curve.samples_.empty()) all.curves_.emplace(key, curve);
  }
  if (all.curves_.empty()) return;
  all.load_cached(machine);
  Cache("models").write(cache_key(machine), all.text(machine));
}

}  // namespace weir::rt
