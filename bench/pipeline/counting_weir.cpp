// What it takes to count items, so that the end is exact: the two counts that a worker keeps for a
// tunnel, as it keeps them, once for a batch.
//
//   counting_weir [--batch N]   ns an item more than without
#include <cstdint>
#include <cstdio>

#include "common/program.hpp"
#include "pipeline/tally.hpp"

namespace weir_bench {
namespace {

constexpr std::uint64_t kItems = 64'000'000;

/// Seconds for all items, of which each takes a little; done(count) is called for each batch.
template <class Done>
double time_for(std::uint64_t batch, Done&& done) {
  return time_of([&] {
    std::uint64_t sum = 0;
    for (std::uint64_t first = 0; first < kItems; first += batch) {
      for (std::uint64_t i = first; i < first + batch; ++i) {
        sum += i;
        asm volatile("" : "+r"(sum));
      }
      done(batch);
    }
  });
}

nlohmann::json measure(const Arguments& arguments) {
  const auto batch = static_cast<std::uint64_t>(arguments.number("--batch", 64));
  weir::rt::Count count;
  const auto values = repeat(1, 15, [&] {
    const double without = time_for(batch, [](std::uint64_t) {});
    const double with = time_for(batch, [&](std::uint64_t items) {
      count.create(items);
      count.complete(items);
    });
    return (with - without) / kItems * 1e9;
  });
  if (count.created() != count.completed()) throw std::runtime_error("items were lost");
  return {{"value", median(values)}, {"config", "batches of " + std::to_string(batch)}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::measure); }
