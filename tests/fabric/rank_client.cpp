// Domains of other ranks that are real processes. The arguments say what is to happen, and how:
//
//   rank_client CASE            as a rank, of whatever launcher started it
//   rank_client CASE shm RANKS  starts itself
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/weir.hpp>

namespace {

using Numbers = std::vector<std::int64_t>;

constexpr std::size_t kTile = 16, kTiles = 6, kOrder = kTile * kTiles;
constexpr std::int64_t kLostAfterNs = 1'000'000'000;

void expect(bool so, const std::string& what) {
  if (!so) throw std::runtime_error("expected " + what);
}

struct Kernels {
  explicit Kernels(const weir::Runtime& runtime)
      : multiply(runtime.kernel("multiply",
                                [](const weir::Call& call) {
                                  const auto c = call.tile<std::int64_t>(0);
                                  const auto a = call.tile<std::int64_t>(1);
                                  const auto b = call.tile<std::int64_t>(2);
                                  for (std::size_t j = 0; j < c.columns; ++j)
                                    for (std::size_t k = 0; k < a.columns; ++k)
                                      for (std::size_t i = 0; i < c.rows; ++i)
                                        c(i, j) += a(i, k) * b(k, j);
                                })),
        add(runtime.kernel("add",
                           [](const weir::Call& call) {
                             for (std::int64_t& x : call.span<std::int64_t>(0)) {
                               x += call.scalar<std::int64_t>(0);
                             }
                           })),
        die(runtime.kernel("die",
                           [](const weir::Call& call) { std::raise(call.scalar<int>(0)); })) {}

  weir::Kernel multiply, add, die;
};

/// A tile of a matrix that is stored by columns.
weir::Region tile(const weir::Buffer& matrix, std::size_t row, std::size_t column) {
  const std::size_t offset = 8 * (column * kTile * kOrder + row * kTile);
  return {matrix.handle(), {offset, {8 * kTile, kTile, 1}, {8 * kOrder, 0}}};
}

/// A product in tiles by tasks, whose operands go from rank to rank.
void work(const weir::Runtime& runtime, const Kernels& kernels) {
  Numbers a(kOrder * kOrder), b(kOrder * kOrder), c(kOrder * kOrder), expected(kOrder * kOrder);
  std::iota(a.begin(), a.end(), -4000);
  std::iota(b.begin(), b.end(), 100);
  for (std::size_t j = 0; j < kOrder; ++j)
    for (std::size_t k = 0; k < kOrder; ++k)
      for (std::size_t i = 0; i < kOrder; ++i)
        expected[j * kOrder + i] += a[k * kOrder + i] * b[j * kOrder + k];
  {
    const weir::Buffer left = runtime.wrap(a), right = runtime.wrap(b), product = runtime.wrap(c);
    const weir::Queue queue = runtime.queue("round-robin");
    for (std::size_t k = 0; k < kTiles; ++k)
      for (std::size_t j = 0; j < kTiles; ++j)
        for (std::size_t i = 0; i < kTiles; ++i)
          queue.submit(kernels.multiply,
                       {weir::readwrite(tile(product, i, j)), weir::read(tile(left, i, k)),
                        weir::read(tile(right, k, j))});
    queue.synchronize();
    for (const weir_queue_share& share : queue.shares()) expect(share.tasks > 0, "work for all");
  }
  expect(c == expected, "the product");
}

/// The last rank ends by a signal while it works; the others go on.
void lose(const weir::Runtime& runtime, const Kernels& kernels, int signal) {
  const std::size_t last = runtime.domain_count() - 1;
  const std::string name = "rank " + std::to_string(last + 1);
  std::vector<weir::Place> places;
  std::vector<weir::Stream> streams;
  std::vector<Numbers> numbers(last + 1, Numbers(1000, 1));
  std::vector<weir::Buffer> buffers;
  for (std::size_t i = 0; i <= last; ++i) {
    places.push_back(runtime.domain(i).place());
    streams.push_back(places.back().stream());
    buffers.push_back(runtime.wrap(numbers[i]));
    streams[i].upload(buffers[i].all());
    streams[i].compute(kernels.add, {weir::readwrite(buffers[i].all())}, {i});
  }
  streams[last].compute(kernels.die, {weir::readwrite(buffers[last].all())}, {signal});
  for (std::size_t i = 0; i <= last; ++i) {
    streams[i].compute(kernels.add, {weir::readwrite(buffers[i].all())}, {10});
    streams[i].download(buffers[i].all());
  }
  for (int round = 0; round < 2; ++round) {  // what was there only is lost
    try {
      streams[last].synchronize();
      expect(false, "a failure");
    } catch (const weir::Error& error) {
      expect(error.status() == WEIR_STATUS_NETWORK_ERROR, "a network error");
      expect(std::string(error.what()).find(name) != std::string::npos, name + ": " + error.what());
    }
    streams[last].download(buffers[last].all());
  }
  for (std::size_t i = 0; i < last; ++i) {
    streams[i].synchronize();
    const auto sum = static_cast<std::int64_t>(11 + i);
    expect(numbers[i] == Numbers(1000, sum), "the results of others");
  }
}

void run(const std::string& what, weir_fabric* fabric) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "rank:*/host:cores=1";
  options.fabric = fabric;
  const weir::Runtime runtime(options);
  const Kernels kernels(runtime);
  if (runtime.serve()) return;
  if (what == "work") work(runtime, kernels);
  if (what == "kill") lose(runtime, kernels, SIGKILL);
  if (what == "stop") lose(runtime, kernels, SIGSTOP);
}

}  // namespace

int main(int argc, char** argv) {
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.lost_after_ns = kLostAfterNs;
  try {
    if (argc < 2) throw std::runtime_error("expected work, kill or stop");
    if (argc == 4) {
      const char* const again[] = {argv[0], argv[1], nullptr};
      int status = 0;
      weir::check(
          weir_fabric_launch(&options, static_cast<unsigned>(std::atoi(argv[3])), again, &status));
      // A rank that a signal has ended is what was wanted.
      return std::string(argv[1]) == "work" ? status : (status > 128 ? 0 : status);
    }
    weir_fabric* fabric = nullptr;
    weir::check(weir_fabric_open(&options, &fabric));
    run(argv[1], fabric);
    weir_fabric_close(fabric);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank_client: %s\n", error.what());
    return 1;
  }
}
