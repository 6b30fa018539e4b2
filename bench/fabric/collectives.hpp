// The loop that collectives_weir and collectives_mpi measure.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "common/program.hpp"

namespace weir_bench {

/// Measures a collective operation in microseconds, and prints the result on rank 0. `Group` has
/// rank(), size(), barrier(), broadcast(bytes) and reduce(doubles), the last in place on all ranks.
template <class Group>
void measure_collectives(const Arguments& arguments, Group& group, const std::string& name) {
  const std::string& verb = arguments.verb();
  const auto bytes = static_cast<std::size_t>(arguments.number("--bytes", 8));
  const long count = arguments.number("--count", bytes > 65'536 ? 500 : 5'000);
  std::vector<double> numbers(bytes / sizeof(double));
  const auto once = [&] {
    if (verb == "barrier") {
      group.barrier();
    } else if (verb == "broadcast") {
      group.broadcast(numbers);
    } else if (verb == "reduce") {
      group.reduce(numbers);
    } else {
      throw std::invalid_argument("choose from barrier, broadcast, reduce");
    }
  };
  // A broadcast does not wait for the other ranks, so the mean of many is taken, up to a barrier.
  const auto many = [&] {
    group.barrier();
    return time_of([&] {
      for (long i = 0; i < count; ++i) once();
      group.barrier();
    });
  };
  many();
  std::vector<double> seconds;
  for (int i = 0; i < 3; ++i) seconds.push_back(many());
  for (double& number : numbers) number = group.rank() + 1.0;
  once();
  const double expected = verb == "reduce" ? 0.5 * group.size() * (group.size() + 1) : 1;
  if (verb != "barrier" && !numbers.empty() && numbers.back() != expected) {
    throw std::runtime_error("the result of the collective operation is wrong");
  }
  if (group.rank() > 0) return;
  const nlohmann::json line = {{"value", 1e6 * median(seconds) / static_cast<double>(count)},
                               {"config", name + ", " + std::to_string(group.size()) + " ranks"}};
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace weir_bench
