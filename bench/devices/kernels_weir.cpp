// Portable kernels in weir, on any domain.
#include <weir/portable.h>
#include <weir/weir.hpp>

#include "common/weir_program.hpp"
#include "devices/problems.hpp"

namespace weir_bench {
namespace {

namespace wk {
#include "devices/kernels.wk"
}  // namespace wk
#include <kernels.wk.h>

constexpr std::size_t cell_items = 64;

std::uint32_t groups(std::size_t items, std::size_t each) { return weir::group_count(items, each); }

template <class Grid>
weir::Kernel made(const weir::Runtime& runtime, const weir_portable_kernel& kernel, Grid grid) {
  return runtime.portable_kernel(
      {.kernel = &kernel, .source = kernels_wk, .source_name = "kernels.wk"}, grid);
}

weir::Kernel kernel_of(const weir::Runtime& runtime, const std::string& name) {
  const auto line = [](const weir::Call&) { return weir::Groups{groups(elements, group_width)}; };
  const auto rows = [](const weir::Call&) {
    return weir::Groups{groups(side, group_width), static_cast<std::uint32_t>(side)};
  };
  const auto sums = [](const weir::Call&) {
    return weir::Groups{groups(elements, group_width * parts)};
  };
  const auto tiles = [](const weir::Call&) {
    return weir::Groups{groups(order, tile), groups(order, tile)};
  };
  if (name == "saxpy") return made(runtime, wk::saxpy, line);
  if (name == "stencil") return made(runtime, wk::stencil, rows);
  if (name == "reduce") return made(runtime, wk::reduce, sums);
  return made(runtime, wk::multiply, tiles);
}

/// A problem in buffers of weir.
class Calls {
 public:
  Calls(const Problem& problem, const std::string& domains)
      : problem_(problem), runtime_(domains), kernel_(kernel_of(runtime_, problem.name)) {}

  double rate() const {
    const Arrays arrays{first_.data<float>(), second_.data<float>(), result_.data<float>()};
    arrays.fill(problem_);
    for (const weir::Buffer* buffer : {&first_, &second_, &result_}) stream_.upload(buffer->all());
    return rate_of(
        problem_, [&](long calls) { make(calls); },
        [&] {
          stream_.download(result_.all());
          stream_.synchronize();
          arrays.check(problem_);
        });
  }

 private:
  void make(long calls) const {
    const auto n = static_cast<int>(elements);
    for (long call = 0; call < calls; ++call) {
      if (problem_.name == "saxpy") {
        stream_.compute(kernel_, {weir::read(first_.all()), weir::readwrite(result_.all())},
                        {factor, n});
      } else if (problem_.name == "stencil") {
        stream_.compute(kernel_, {weir::read(first_.all()), weir::readwrite(result_.all())},
                        {static_cast<int>(side)});
      } else if (problem_.name == "reduce") {
        stream_.compute(kernel_, {weir::read(first_.all()), weir::write(result_.all())});
      } else {
        stream_.compute(
            kernel_,
            {weir::read(first_.all()), weir::read(second_.all()), weir::write(result_.all())},
            {static_cast<int>(order)});
      }
    }
    stream_.synchronize();
  }

  weir::Buffer floats(std::size_t count) const {
    return runtime_.buffer(std::max<std::size_t>(count, 1) * sizeof(float));
  }

  const Problem& problem_;
  weir::Runtime runtime_;
  weir::Kernel kernel_;
  weir::Place place_ = runtime_.domain(0).place();
  weir::Stream stream_ = place_.stream();
  weir::Buffer first_ = floats(problem_.first), second_ = floats(problem_.second),
               result_ = floats(problem_.result);
};

/// Nanoseconds for each of many small kernels: on one cell, or each on its own, over so many
/// places.
double small(const std::string& domains, bool chained, long count, std::size_t parts) {
  const weir::Runtime runtime(domains);
  const weir::Kernel kernel =
      made(runtime, wk::increment, [](const weir::Call&) { return weir::Groups{1}; });
  const std::vector<weir::Place> places = runtime.domain(0).partition(parts);
  std::vector<weir::Stream> streams;
  for (const weir::Place& place : places) streams.push_back(place.stream());
  const weir::Stream& stream = streams.front();
  const std::size_t cells = chained ? 1 : static_cast<std::size_t>(count);
  const weir::Buffer buffer = runtime.buffer(cells * cell_items * sizeof(int));
  std::fill_n(buffer.data<int>(), cells * cell_items, 0);
  stream.upload(buffer.all());
  runtime.synchronize();
  long calls = 0;
  const auto once = [&] {
    calls += chained ? count : 1;
    return time_of([&] {
      for (long i = 0; i < count; ++i) {
        const std::size_t cell = static_cast<std::size_t>(i) % cells;
        streams[static_cast<std::size_t>(i) % streams.size()].compute(
            kernel, {weir::readwrite(buffer.elements<int>(cell * cell_items, cell_items))});
      }
      runtime.synchronize();
    });
  };
  const double seconds = median(repeat(1, 5, once));
  stream.download(buffer.all());
  stream.synchronize();
  if (buffer.data<int>()[cells * cell_items - 1] != calls) throw std::runtime_error("wrong sums");
  return seconds / static_cast<double>(count) * 1e9;
}

nlohmann::json run(const Arguments& arguments) {
  const std::string domains = arguments.text("--domains", "opencl:0");
  const std::string& verb = arguments.verb();
  if (verb == "chain" || verb == "independent") {
    const bool chained = verb == "chain";
    const auto parts = static_cast<std::size_t>(chained ? 1 : arguments.number("--places", 1));
    const double value = small(domains, chained, arguments.number("--actions", 10'000), parts);
    return {{"value", value}, {"config", domains}};
  }
  const Problem problem = Problem::of(verb);
  return {{"value", Calls(problem, domains).rate()}, {"unit", problem.unit}, {"config", domains}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  return weir_bench::run_weir_program(argc, argv, weir_bench::run);
}
