// Searches the interleavings that the C++ memory model allows for races, lost wake-ups, deadlocks
// and leaks in the lock-free parts, compiled from the sources of the library.
//
//   relacy [ITERATIONS [PART [FIRST]]]
//
// ITERATIONS is the number of random iterations of each check, by default 50,000; the long amount
// is 10,000,000. Each random iteration has its number for a seed, and FIRST is the number of the
// first. A check of two threads is searched in full, or up to a number of forced switches, besides.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "checker.hpp"
#include "parts.hpp"

// Relacy's own allocation functions are inline: they are to serve the libraries too, and sized
// forms.
void* (*const volatile kNew)(std::size_t) = &operator new;
void* (*const volatile kNewArray)(std::size_t) = &operator new[];
void (*const volatile kDelete)(void*) noexcept = &operator delete;
void (*const volatile kDeleteArray)(void*) noexcept = &operator delete[];
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
void operator delete[](void* block, std::size_t) noexcept { operator delete[](block); }

namespace weir::rt::checker {

void Run::count(const char* name, const rl::test_params& params, const rl::string& log) {
  const bool random = params.search_type == rl::sched_random;
  const std::uint64_t iterations = params.stop_iteration - (random ? amount_.first - 1 : 0);
  iterations_ += iterations;
  if (amount_.verbose) {
    std::printf("  %s (%s): %" PRIu64 " iterations\n", name, rl::format(params.search_type),
                iterations);
  }
  if (params.test_result == rl::test_result_success) return;
  ++findings_;
  std::printf("%s: %s: %s in iteration %" PRIu64 "\n%s", part_.c_str(), name,
              rl::test_result_str(params.test_result), params.stop_iteration, log.c_str());
  std::printf("replay: relacy 1 %s %" PRIu64 "\n", part_.c_str(),
              random ? params.stop_iteration : amount_.first);
}

}  // namespace weir::rt::checker

int main(int argc, char** argv) {
  using namespace weir::rt::checker;
  Amount amount;
  if (argc > 1) amount.iterations = std::strtoull(argv[1], nullptr, 10);
  if (argc > 3) amount.first = std::strtoull(argv[3], nullptr, 10);
  amount.verbose = argc > 2;
  unsigned parts = 0, findings = 0;
  std::uint64_t iterations = 0;
  for (const Part& part : kParts) {
    if (argc > 2 && std::strcmp(argv[2], part.name) != 0) continue;
    Run run(part.name, amount);
    part.check(run);
    ++parts;
    iterations += run.iterations();
    findings += run.findings();
    std::printf("%s: %llu iterations, %u findings\n", part.name,
                static_cast<unsigned long long>(run.iterations()), run.findings());
    std::fflush(stdout);
  }
  if (parts == 0 || amount.iterations == 0) {
    std::fprintf(stderr, "relacy: no such part, or no iterations\n");
    return 2;
  }
  std::printf("proof: %u parts, %llu iterations, %u findings\n", parts,
              static_cast<unsigned long long>(iterations), findings);
  return findings == 0 ? 0 : 1;
}
