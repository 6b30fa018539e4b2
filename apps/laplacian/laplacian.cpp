#include "laplacian/laplacian.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <weir/grid.hpp>

#include "common/command_options.hpp"
#include "common/counted.hpp"
#include "common/dense.hpp"
#include "common/membership.hpp"
#include "laplacian/jacobi_blocks.hpp"
#include "laplacian/jacobi_kernels.hpp"
#include "laplacian/jacobi_rank.hpp"
#include "laplacian/reference_jacobi.hpp"

namespace weir::apps {

namespace {

constexpr Preset kPresets[] = {
    {"tiny", 24, 0, 0, 20}, {"small", 128, 0, 0, 50}, {"paper", 512, 0, 0, 100}};

struct LaplacianOptions {
  unsigned dimensions = 3;
  std::string blocks;   ///< "4x4x4", "": one for each place or rank
  std::string weights;  ///< "2,1" in the slowest dimension, "1x1x2,1" in each, "": equal
  std::string start = "random";
  std::string transport;     ///< "inproc": the ranks are threads of this process
  unsigned simulate = 4;     ///< so many
  std::size_t delivery = 0;  ///< their messages come in an order drawn from this; 0: as they come
  unsigned fuse = 1;         ///< steps in one sweep over memory
  bool check = false;
};

using Weights = std::array<std::vector<double>, 3>;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    if (c == separator) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

/// "2,1" as numbers, in a text that has to be quoted when they are none. Throws InputError.
std::vector<double> read_list(const std::string& list, const std::string& text) {
  std::vector<double> weights;
  for (const std::string& word : split(list, ',')) {
    double weight = 0;
    const char* const end = word.data() + word.size();
    const auto [at, error] = std::from_chars(word.data(), end, weight);
    if (error != std::errc{} || at != end || !(weight > 0) || !std::isfinite(weight)) {
      fail_input("--weights '{}': found '{}', expected numbers above 0, as 2,1", text, word);
    }
    weights.push_back(weight);
  }
  return weights;
}

/// Weights of the blocks in each dimension. Throws InputError.
Weights read_weights(const LaplacianOptions& options) {
  const std::string& text = options.weights;
  std::vector<std::vector<double>> lists;
  for (const std::string& list : split(text, 'x')) lists.push_back(read_list(list, text));
  if (lists.size() != 1 && lists.size() != options.dimensions) {
    fail_input("--weights '{}': found {} lists, expected 1, or {} as {}", text, lists.size(),
               options.dimensions, options.dimensions == 2 ? "1x2,1" : "1x1x2,1");
  }
  Weights weights;
  const std::size_t first = options.dimensions - lists.size();
  for (std::size_t i = 0; i < lists.size(); ++i) weights[first + i] = std::move(lists[i]);
  return weights;
}

/// Takes the number of blocks from the weights, or compares them with --blocks, where a single
/// weight stands for all. Throws InputError.
void set_weights(weir::GridOptions& grid, const LaplacianOptions& options) {
  grid.weights = read_weights(options);
  for (std::size_t d = 0; d < 3; ++d) {
    std::vector<double>& weights = grid.weights[d];
    if (options.blocks.empty()) {
      grid.blocks[d] = std::max<std::size_t>(weights.size(), 1);
    } else if (weights.size() == 1) {
      weights.clear();
    } else if (!weights.empty() && weights.size() != grid.blocks[d]) {
      fail_input("--weights '{}': found {} in {}, where --blocks {} has {}", options.weights,
                 weights.size(), "xyz"[d], options.blocks, counted(grid.blocks[d], "block"));
    }
  }
}

/// "4x4x2" as numbers. Throws InputError.
std::array<std::size_t, 3> read_blocks(const LaplacianOptions& options, std::size_t n) {
  std::array<std::size_t, 3> blocks{1, 1, 1};
  std::size_t d = 0, at = 0;
  const std::string& text = options.blocks;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find('x', at), text.size());
    const std::string word = text.substr(at, end - at);
    const bool number = !word.empty() && word.size() < 8 &&
                        word.find_first_not_of("0123456789") == std::string::npos;
    if (d == options.dimensions || !number || std::stoul(word) == 0) {
      fail_input("--blocks '{}': expected {} numbers, as {}", text, options.dimensions,
                 options.dimensions == 2 ? "4x4" : "4x4x4");
    }
    blocks[d] = std::stoul(word);
    if (blocks[d] > n) {
      fail_input("--blocks '{}': {} blocks do not fit {}", text, blocks[d], counted(n, "cell"));
    }
    ++d;
    at = end + 1;
  }
  if (d != options.dimensions) {
    fail_input("--blocks '{}': found {} numbers, expected {}", text, d, options.dimensions);
  }
  return blocks;
}

template <class T>
class Laplacian final : public Workload {
 public:
  Laplacian(const JacobiProblem& problem, const LaplacianOptions& options,
            const Parameters& parameters, const weir::Runtime& runtime,
            const AppStreams& app_streams)
      : runtime_(runtime),
        problem_(problem),
        simulated_(options.transport == "inproc" ? options.simulate : 0),
        delivery_(options.delivery),
        check_(options.check),
        fuse_(options.fuse),
        overlap_(parameters.transform),
        output_(parameters.output),
        cores_(app_streams.cores()),
        grid_(make_grid(options, app_streams)),
        kernel_(fuse_ == 1 ? make_jacobi<T>(runtime, problem.dimensions)
                           : make_jacobi_steps<T>(runtime, problem.dimensions)) {
    if (simulated_ > 0 && member_.ranks() > 1) {
      fail_input("--transport inproc makes ranks of one process: start it without others");
    }
    if (fuse_ > 1 && grid_.blocks().size() > 1) check_slabs();
    const unsigned shares = simulated_ > 0 ? simulated_ : 1;
    std::vector<std::vector<std::size_t>> numbers;
    for (unsigned share = 0; share < shares; ++share) {
      numbers.push_back(grid_.blocks_of(simulated_ > 0 ? share : member_.rank()));
    }
    std::size_t next = 0;
    std::vector<double> work;
    for (const auto& each : numbers) {
      for (const std::size_t block : each) {
        work.push_back(static_cast<double>(weir_grid_range_cells(grid_.blocks()[block].cells)));
      }
    }
    const std::size_t here = work.size();
    const std::vector<const AppStream*> dealt =
        options.weights.empty() ? app_streams.spread_in_order(here) : app_streams.spread(work);
    const std::size_t parts =
        std::max<std::size_t>(1, (2 * cores_ + here - 1) / std::max<std::size_t>(here, 1));
    for (const auto& each : numbers) {
      const auto first = dealt.begin() + static_cast<std::ptrdiff_t>(next);
      next += each.size();
      shares_.push_back(std::make_unique<JacobiBlocks<T>>(
          runtime, problem_, grid_, kernel_, static_cast<std::int64_t>(fuse_), each,
          std::vector(first, dealt.begin() + static_cast<std::ptrdiff_t>(next)), parts));
    }
  }

  std::size_t n() const override { return problem_.n; }
  /// The longest edge of a block.
  std::size_t tile() const override {
    std::int64_t most = 0;
    for (const weir_grid_block& block : grid_.blocks()) {
      for (int d = 0; d < 3; ++d) most = std::max(most, weir::GridRange(block.cells).extent(d));
    }
    return static_cast<std::size_t>(most);
  }
  std::size_t tiles() const override { return grid_.blocks().size(); }
  std::size_t iterations() const override { return problem_.iterations; }
  double operations() const override { return jacobi_operations(problem_.dimensions) * updates(); }
  double traffic() const override {
    return 2 * sizeof(T) * problem_.cells() * static_cast<double>(sweeps());
  }

  void reset() override {
    for (const auto& share : shares_) {
      for (JacobiBlock<T>& block : share->all()) block.fill(problem_);
    }
    member_.meet();
  }

  void enqueue() override {
    if (ranks() > 1 || simulated_ > 0) return;  // ranks have steps of their own, in await()
    const JacobiBlocks<T>& blocks = *shares_.front();
    blocks.upload();
    const std::vector<std::int64_t> counts = steps_of_sweeps();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      blocks.sweep((i + 1) % 2, counts[i], overlap_, i + 1 < counts.size());
    }
    blocks.download(newest());
  }

  void await(std::chrono::nanoseconds timeout) override {
    using Clock = JacobiClock;
    const Clock::time_point now = Clock::now();
    deadline_ = timeout < Clock::time_point::max() - now ? now + timeout : Clock::time_point::max();
    if (timeout < std::chrono::nanoseconds::zero()) deadline_ = Clock::time_point::max();
    breakdown_ = {};
    failure_ = nullptr;
    if (member_.fabric() != nullptr) return run_rank(member_.fabric(), 0);
    if (simulated_ == 0) return;
    const auto program = [](weir_fabric* fabric, void* self) {
      auto* const laplacian = static_cast<Laplacian*>(self);
      return laplacian->simulate_rank(fabric);
    };
    weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
    options.seed = delivery_;
    const weir_status status = weir_fabric_simulate(&options, simulated_, program, this);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    weir::check(status);
  }
  void cancel() noexcept override { cancelled_ = true; }

  void save() const override {
    if (output_.empty()) return;
    Matrix<T> cells = make_matrix<T>(problem_.n, lines(), 1);
    std::fill_n(cells.data(), cells.size(), T(0));
    for_each_cell([&](const T& value, std::int64_t x, std::int64_t y, std::int64_t z) {
      cells(static_cast<std::size_t>(x),
            static_cast<std::size_t>(y) + problem_.n * static_cast<std::size_t>(z)) = value;
    });
    gather({cells.data(), cells.size()});
    if (member_.rank() == 0) write_matrix(output_, cells);
  }

  std::vector<Verification> verify(const ReferenceBlas&) const override {
    std::vector<Verification> checks{{"cells that differ from one domain", differing(), 0}};
    if (problem_.mode) {
      constexpr double kLimit = 10;
      const double expected = std::pow(problem_.decay(), static_cast<double>(problem_.iterations));
      const double rounding = static_cast<double>(std::numeric_limits<T>::epsilon()) *
                              static_cast<double>(problem_.iterations + 1);
      checks.push_back({"|amplitude / analytic - 1| / ((iterations + 1) eps)",
                        std::abs(amplitude() / expected - 1) / rounding, kLimit});
    }
    return checks;
  }

  std::vector<std::pair<std::string, std::string>> remarks() const override {
    const Breakdown spent = breakdown();
    return {
        {"ranks", fmt::format("{}{}", ranks(), simulated_ > 0 ? " in this process" : "")},
        {"breakdown", fmt::format("compute {:.4g} s, communicate {:.4g} s, synchronise {:.4g} s",
                                  spent.compute, spent.communicate, spent.synchronise)}};
  }
  std::string details() const override {
    const Breakdown spent = breakdown();
    return fmt::format(
        R"({{"ranks": {}, "blocks": {}, "dimensions": {}, "breakdown": {{"compute_s": {:.9g}, )"
        R"("communicate_s": {:.9g}, "synchronise_s": {:.9g}}}}})",
        ranks(), grid_.blocks().size(), problem_.dimensions, spent.compute, spent.communicate,
        spent.synchronise);
  }
  bool silent() const override { return member_.rank() > 0; }

 private:
  weir::Grid make_grid(const LaplacianOptions& options, const AppStreams& app_streams) const {
    weir::GridOptions wanted;
    wanted.cells.assign(problem_.dimensions, problem_.n);
    wanted.ranks = ranks();
    if (!options.blocks.empty()) wanted.blocks = read_blocks(options, problem_.n);
    if (!options.weights.empty()) {
      set_weights(wanted, options);
    } else if (options.blocks.empty() && (ranks() == 1 || fuse_ > 1)) {
      // Cut where planes, or lines, stay whole.
      wanted.blocks = {1, 1, 1};
      const std::size_t most = std::max<std::size_t>(1, problem_.n / fuse_);
      wanted.blocks[problem_.dimensions - 1] =
          ranks() > 1 ? ranks() : std::min(app_streams.places(), most);
    }
    return weir::Grid(wanted);
  }

  /// Steps that are made at once need all of a slice, and halos as wide as there are steps.
  void check_slabs() const {
    const int slowest = static_cast<int>(problem_.dimensions) - 1;
    for (const weir_grid_block& block : grid_.blocks()) {
      const weir::GridRange cells(block.cells);
      for (int d = 0; d < slowest; ++d) {
        if (cells.extent(d) == grid_.all().extent(d)) continue;
        fail_input("--fuse {} takes blocks that are cut in {} alone: choose --blocks {}{}", fuse_,
                   "xyz"[slowest], slowest == 2 ? "1x1x" : "1x", grid_.blocks().size());
      }
      if (cells.extent(slowest) >= static_cast<std::int64_t>(fuse_)) continue;
      fail_input(
          "--fuse {} takes blocks of {} cells in {} or more, and there is one of {}: choose "
          "fewer blocks or steps",
          fuse_, fuse_, "xyz"[slowest], cells.extent(slowest));
    }
  }

  unsigned ranks() const noexcept { return simulated_ > 0 ? simulated_ : member_.ranks(); }
  /// Over all cells.
  std::size_t sweeps() const noexcept { return (problem_.iterations + fuse_ - 1) / fuse_; }
  std::size_t newest() const noexcept { return sweeps() % 2; }
  /// The first makes those that are over: later ones read all of the halos.
  std::vector<std::int64_t> steps_of_sweeps() const {
    std::vector<std::int64_t> counts(sweeps(), static_cast<std::int64_t>(fuse_));
    counts.front() -= static_cast<std::int64_t>(sweeps() * fuse_ - problem_.iterations);
    return counts;
  }
  std::size_t lines() const noexcept {
    return problem_.dimensions == 2 ? problem_.n : problem_.n * problem_.n;
  }
  double updates() const { return problem_.cells() * static_cast<double>(problem_.iterations); }

  weir_status simulate_rank(weir_fabric* fabric) noexcept {
    try {
      run_rank(fabric, weir_fabric_rank(fabric));
      return WEIR_STATUS_OK;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (failure_ == nullptr) failure_ = std::current_exception();
      return WEIR_STATUS_KERNEL_ERROR;
    }
  }

  void run_rank(weir_fabric* fabric, std::size_t share) {
    JacobiRank<T> rank(*shares_[share], grid_, fabric, check_);
    const Breakdown spent = rank.run(steps_of_sweeps(), overlap_, deadline_, cancelled_);
    const std::lock_guard lock(mutex_);
    breakdown_ += spent;
  }

  /// Of all ranks together, or of the places of this process.
  Breakdown breakdown() const {
    if (ranks() > 1 || simulated_ > 0) {
      if (!total_) {
        std::array<double, 3> sums{breakdown_.compute, breakdown_.communicate,
                                   breakdown_.synchronise};
        member_.sum(sums);
        total_ = Breakdown{sums[0], sums[1], sums[2]};
      }
      return *total_;
    }
    const weir_trace_summary summary = runtime_.trace_summary();
    return {summary.compute_s, summary.transfer_s,
            summary.idle_share * summary.measured_s * static_cast<double>(cores_)};
  }

  /// Calls visit(value, x, y, z) for each cell of the result that is in this process.
  template <class Visit>
  void for_each_cell(const Visit& visit) const {
    for (const auto& share : shares_) {
      for (const JacobiBlock<T>& block : share->all()) {
        block.for_each(block.cells(), [&](std::int64_t x, std::int64_t y, std::int64_t z) {
          visit(block.at(newest(), x, y, z), x, y, z);
        });
      }
    }
  }

  /// Adds up what the processes have, which is 0 in the cells of others: exactly the result.
  void gather(std::span<T> cells) const {
    constexpr std::size_t kAtOnce = 1 << 15;
    if (member_.ranks() == 1) return;
    std::vector<double> piece;
    for (std::size_t at = 0; at < cells.size(); at += piece.size()) {
      const auto part = cells.subspan(at, std::min(kAtOnce, cells.size() - at));
      piece.assign(part.begin(), part.end());
      member_.sum(piece);
      std::transform(piece.begin(), piece.end(), part.begin(),
                     [](double value) { return static_cast<T>(value); });
    }
  }

  double differing() const {
    const std::vector<T> expected = reference_jacobi<T>(problem_);
    double count = 0;
    for_each_cell([&](const T& value, std::int64_t x, std::int64_t y, std::int64_t z) {
      const auto n = static_cast<std::int64_t>(problem_.n);
      const T& wanted = expected[static_cast<std::size_t>((z * n + y) * n + x)];
      // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bits are what counts
      count += std::memcmp(&value, &wanted, sizeof value) != 0;
    });
    member_.sum({&count, 1});
    return count;
  }

  /// Returns the amplitude of the mode in the result.
  double amplitude() const {
    std::array<double, 2> sums{};
    for_each_cell([&](const T& value, std::int64_t x, std::int64_t y, std::int64_t z) {
      const double mode = problem_.mode_at(x, y, z);
      sums[0] += static_cast<double>(value) * mode;
      sums[1] += mode * mode;
    });
    member_.sum(sums);
    return sums[0] / sums[1];
  }

  const weir::Runtime& runtime_;
  const JacobiProblem problem_;
  const unsigned simulated_;  ///< ranks of this process, 0: none
  const std::size_t delivery_;
  const bool check_;
  const std::size_t fuse_;
  const bool overlap_;
  const std::string output_;
  const std::size_t cores_;
  Membership member_;
  weir::Grid grid_;
  weir::Kernel kernel_;
  std::vector<std::unique_ptr<JacobiBlocks<T>>> shares_;  ///< of the ranks in this process

  JacobiClock::time_point deadline_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
  Breakdown breakdown_;
  mutable std::optional<Breakdown> total_;
};

template <class T>
std::unique_ptr<Workload> prepare_in(const Parameters& parameters, const LaplacianOptions& options,
                                     const weir::Runtime& runtime, const AppStreams& app_streams) {
  if (!parameters.output.empty()) check_output_format(parameters.output);
  JacobiProblem problem;
  problem.n = parameters.n;
  problem.dimensions = options.dimensions;
  problem.iterations = parameters.iterations;
  problem.mode = options.start == "mode";
  problem.seed = parameters.seed;
  const double needed = 2 * problem.cells() * sizeof(T);
  if (needed > 2.0 * static_cast<double>(half_of_memory())) {
    fail_input("{} cells an edge in {} dimensions need {:.1f} GiB of memory: choose a smaller --n",
               problem.n, problem.dimensions, needed / 0x1p30);
  }
  return std::make_unique<Laplacian<T>>(problem, options, parameters, runtime, app_streams);
}

class LaplacianApplication final : public Application {
 public:
  const char* name() const override { return "laplacian"; }
  const char* example() const override {
    return "weir run laplacian --n 256 --blocks 2x2x2 --ranks 2 --verify";
  }
  bool has_tiles() const override { return false; }
  bool runs_on_ranks() const override { return false; }
  bool has_parts() const override { return true; }
  const char* summary() const override {
    return "iterate X = X + c Laplacian(X) on --n cells an edge, in --dims dimensions and --blocks";
  }
  bool iterates() const override { return true; }
  bool uses(std::string_view option) const override { return option != "--input"; }
  std::span<const Preset> presets() const override { return kPresets; }
  void add_options(CommandOptions& options) override {
    options.add("--dims", options_.dimensions, "Dimensions, 2 or 3 [3]").within(2, 3);
    options.add("--blocks", options_.blocks,
                "Blocks in x, y and z, as 4x4x4 [one for each place or rank]");
    options.add("--weights", options_.weights,
                "Relative sizes of the blocks in the last dimension, such as 2,1, or in x, y and "
                "z, such as 1x1x2,1 [equal]");
    options
        .add("--start", options_.start,
             "random: random numbers with a border of 1; mode: the lowest mode with a border of 0 "
             "[random]")
        .one_of({"random", "mode"});
    const CommandOption transport = options
                                        .add("--transport", options_.transport,
                                             "inproc: run the ranks as threads of this process")
                                        .one_of({"inproc"});
    options.add("--simulate", options_.simulate, "Number of ranks in this process [4]")
        .within(1, 1024)
        .needs(transport);
    options
        .add("--delivery", options_.delivery,
             "Seed for the delivery order of messages [0: order of arrival]")
        .needs(transport);
    options.add("--fuse", options_.fuse, "Iterations per sweep over memory, on the host [1]")
        .within(1, 16);
    options.flag("--check", options_.check,
                 "Check that each halo cell is written to the right place");
  }
  std::unique_ptr<Workload> prepare(const Parameters& parameters, const weir::Runtime& runtime,
                                    const AppStreams& app_streams) override {
    if (!parameters.input.empty()) {
      fail_input("'{}': laplacian generates its grid: use --n and --start", parameters.input);
    }
    const Parameters filled = with_usual(parameters, kPresets[1]);
    return filled.single ? prepare_in<float>(filled, options_, runtime, app_streams)
                         : prepare_in<double>(filled, options_, runtime, app_streams);
  }

 private:
  LaplacianOptions options_;
};

}  // namespace

std::unique_ptr<Application> make_laplacian() { return std::make_unique<LaplacianApplication>(); }

}  // namespace weir::apps
