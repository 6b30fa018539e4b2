#include "sched/performance_model.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "base/cache.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

constexpr std::string_view kHeading = "weir performance models 1";
constexpr double kLongestNs = 1e15;  // sums of many times fit

/// Fields of a line, which tabs divide.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t start = 0; start <= line.size();) {
    const std::size_t end = std::min(line.find('\t', start), line.size());
    fields.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return fields;
}

/// Whether text can be a field: programs may call kernels anything.
bool fits(std::string_view text) { return text.find_first_of("\t\n") == std::string_view::npos; }

template <class Number>
bool read_number(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void PerformanceModel::Curve::note(std::uint64_t bytes, std::int64_t ns) {
  Sample& sample = sizes_[bytes];
  const double time = std::clamp(static_cast<double>(ns), 1.0, kLongestNs);
  const bool first_was_slow = sample.count == 1 && !sample.replaced && time < sample.mean_ns;
  sample.replaced = sample.replaced || first_was_slow;
  sample.count = first_was_slow ? 1 : std::min(sample.count + 1, kMemory);
  sample.mean_ns += (time - sample.mean_ns) / static_cast<double>(sample.count);
}

std::int64_t PerformanceModel::Curve::estimate(std::uint64_t bytes) const {
  if (sizes_.empty()) return -1;
  const auto found = sizes_.find(bytes);
  if (found != sizes_.end()) return static_cast<std::int64_t>(found->second.mean_ns);
  return by_power_law(static_cast<double>(bytes));
}

/// Least squares of log(time) over log(bytes); with one size only, proportional to the bytes.
std::int64_t PerformanceModel::Curve::by_power_law(double bytes) const {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [size, sample] : sizes_) {
    const double lx = std::log(static_cast<double>(size) + 1), ly = std::log(sample.mean_ns);
    n += 1, x += lx, y += ly, xx += lx * lx, xy += lx * ly;
  }
  const double spread = n * xx - x * x;
  const double slope = n < 2 || spread <= 0 ? 1 : std::clamp((n * xy - x * y) / spread, 0.0, 3.0);
  const double log_ns = (y - slope * x) / n + slope * std::log(bytes + 1);
  return static_cast<std::int64_t>(std::min(std::exp(log_ns), kLongestNs));
}

PerformanceModel::Curve& PerformanceModel::curve(std::string_view kernel, std::string_view kind) {
  return curves_[std::pair(std::string(kernel), std::string(kind))];
}

double PerformanceModel::mean_of(const std::string& kernel, const std::string& kind,
                                 std::uint64_t bytes) const {
  const auto curve = curves_.find(std::pair(kernel, kind));
  if (curve == curves_.end()) return 0;
  const auto sample = curve->second.sizes_.find(bytes);
  return sample != curve->second.sizes_.end() ? sample->second.mean_ns : 0;
}

std::vector<double> PerformanceModel::speeds(std::span<const std::string> kinds) const {
  std::vector<double> logs(kinds.size()), times(kinds.size());
  double common = 0;
  each([&](const std::string& kernel, const std::string& kind, std::uint64_t bytes, std::uint64_t,
           double mean_ns) {
    if (kind != kinds.front()) return;
    for (std::size_t i = 0; i < kinds.size(); ++i) times[i] = mean_of(kernel, kinds[i], bytes);
    if (std::find(times.begin(), times.end(), 0) != times.end()) return;
    for (std::size_t i = 0; i < kinds.size(); ++i) logs[i] += std::log(mean_ns / times[i]);
    common += 1;
  });
  if (common == 0) return {};
  for (double& value : logs) value = std::exp(value / common);
  return logs;
}

std::string PerformanceModel::text(std::string_view machine) const {
  std::string text = fmt::format("{}\n{}\n", kHeading, machine);
  for (const auto& [key, curve] : curves_) {
    if (!fits(key.first) || !fits(key.second)) continue;
    for (const auto& [bytes, sample] : curve.sizes_) {
      text += fmt::format("{}\t{}\t{}\t{}\t{:.0f}\n", key.first, key.second, bytes, sample.count,
                          sample.mean_ns);
    }
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
    const auto fields = fields_of(line);
    std::uint64_t bytes = 0;
    Curve::Sample sample;
    if (fields.size() != 5 || fields[0].empty() || !read_number(fields[2], bytes) ||
        !read_number(fields[3], sample.count) || !read_number(fields[4], sample.mean_ns) ||
        sample.count == 0 || !(sample.mean_ns >= 1 && sample.mean_ns <= kLongestNs)) {
      fail_argument("line {} of '{}' is not a model: remove the file", number, file);
    }
    sample.count = std::min(sample.count, Curve::kMemory);
    read[std::pair(std::string(fields[0]), std::string(fields[1]))].sizes_[bytes] = sample;
  }
  for (auto& [key, curve] : read) curves_[key].sizes_.merge(curve.sizes_);
}

void PerformanceModel::recall(const std::string& machine) {
  const auto kept = Cache("models").read(cache_key(machine));
  if (!kept) return;
  try {
    read(*kept, machine, "weir/models of the user's cache");
  } catch (const Error& error) {
    log::warning("starting without performance models: {}", error.what());
  }
}

void PerformanceModel::keep(const std::string& machine) const {
  PerformanceModel all = *this;
  all.recall(machine);
  Cache("models").write(cache_key(machine), all.text(machine));
}

}  // namespace weir::rt
