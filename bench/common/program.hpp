// What every benchmark program shares: the clock, repeats, arguments and its one line of JSON.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weir_bench {

/// Returns seconds of a monotonic clock.
inline double now() {
  using Seconds = std::chrono::duration<double>;
  return Seconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the seconds that work() takes.
template <class Work>
double time_of(Work&& work) {
  const double start = now();
  work();
  return now() - start;
}

/// Returns the median of at least one value.
inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Calls measure() `warmups` times for nothing, then returns the results of `repeats` calls.
template <class Measure>
std::vector<double> repeat(long warmups, long repeats, Measure&& measure) {
  for (long round = 0; round < warmups; ++round) static_cast<void>(measure());
  std::vector<double> values;
  for (long round = 0; round < repeats; ++round) values.push_back(measure());
  return values;
}

/// Arguments of the form `word... --name value...`.
class Arguments {
 public:
  Arguments(int count, char** values) : values_(values + 1, values + count) {}

  /// Returns the value after `name`, `otherwise` without it. Throws when it is missing or wrong.
  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = std::find(values_.begin(), values_.end(), name);
    if (found == values_.end()) return otherwise;
    if (found + 1 == values_.end()) throw std::invalid_argument(name + " needs a value");
    return *(found + 1);
  }
  long number(const std::string& name, long otherwise) const {
    return std::stol(text(name, std::to_string(otherwise)));
  }
  std::vector<long> numbers(const std::string& name, const std::string& otherwise) const {
    std::vector<long> found;
    const std::string list = text(name, otherwise);
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t comma = std::min(list.find(',', at), list.size());
      found.push_back(std::stol(list.substr(at, comma - at)));
      at = comma + 1;
    }
    return found;
  }
  /// Returns the first argument: what to do. Throws when there is none.
  const std::string& verb() const {
    if (values_.empty()) throw std::invalid_argument("say what to measure");
    return values_.front();
  }

 private:
  std::vector<std::string> values_;
};

/// The machine lacks the device that is to be measured.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs measure(arguments) and prints the JSON object it returns as one line; the exit status, 4
/// when that is Unavailable.
template <class Measure>
int run_program(int count, char** values, Measure&& measure) {
  try {
    const nlohmann::json line = measure(Arguments(count, values));
    std::printf("%s\n", line.dump().c_str());
    return 0;
  } catch (const Unavailable& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 4;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace weir_bench
