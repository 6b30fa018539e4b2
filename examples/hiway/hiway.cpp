// Searches numbers for primes with the interface of HiWayLib (paper 002, figure 9): a device tests
// blocks of numbers, and threads of the host process the primes.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include <hiway/hiway.hpp>

namespace {

constexpr std::uint32_t limit = 100000, block = 100;

bool is_prime(std::uint32_t number) {
  for (std::uint32_t i = 2; i * i <= number; ++i) {
    if (number % i == 0) return false;
  }
  return number > 1;
}

/// Gets first numbers of blocks, and puts the primes of each.
void search(const weir::Call& call) {
  const auto blocks = call.span<const std::uint32_t>(0);
  const auto primes = call.span<std::uint32_t>(1);
  const auto counts = call.span<std::uint32_t>(2);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    counts[i] = 0;
    for (std::uint32_t number = blocks[i]; number < blocks[i] + block; ++number) {
      if (is_prime(number)) primes[i * block + counts[i]++] = number;
    }
  }
}

struct Found {
  std::atomic<std::uint64_t> primes{0}, twins{0};
};

void consume(int primes, Found& found) {
  std::uint32_t prime = 0;
  while (!HiWayLib::isTerminate_h()) {
    if (!HiWayLib::get_h(&prime, primes)) continue;
    ++found.primes;
    if (is_prime(prime + 2)) ++found.twins;
    HiWayLib::endTask_h(primes);
  }
}

void run(const char* domains) {
  const weir::Runtime runtime(domains);
  const weir::Place device = runtime.domain(runtime.domain_count() - 1).place(1);
  int blocks = 0, primes = 0;
  HiWayLib::use(runtime);
  HiWayLib::createTunnel<std::uint32_t>(blocks, HiWayLib::CPU_TO_GPU, true);
  HiWayLib::createTunnel<std::uint32_t>(primes, HiWayLib::GPU_TO_CPU, true);
  HiWayLib::configKernel(blocks, {primes}, runtime.kernel("search", search), device,
                         {.outputs = {{block, WEIR_STAGE_COUNTING_PER_ITEM}}});
  HiWayLib::setupService();

  Found found;
  std::vector<std::thread> consumers;
  for (int i = 0; i < 2; ++i) consumers.emplace_back(consume, primes, std::ref(found));
  for (std::uint32_t first = 0; first < limit; first += block) HiWayLib::put_h(first, blocks);
  HiWayLib::put_h(HiWayLib::endFlag_h, blocks);
  for (std::thread& consumer : consumers) consumer.join();
  HiWayLib::shutdownService();
  std::printf("%llu primes below %u, %llu pairs of twins\n",
              static_cast<unsigned long long>(found.primes), limit,
              static_cast<unsigned long long>(found.twins));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc > 1 ? argv[1] : "host,sim:cores=1,gbps=6");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hiway: %s\n", error.what());
    return 1;
  }
}
