// Options that three processes price, of which one is killed while it does: pricing_client
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <weir/fabric.hpp>

#include "asian_option/book.hpp"
#include "asian_option/pricing.hpp"
#include "common/membership.hpp"

namespace {

using weir::apps::Membership;
using weir::apps::Pricing;
using weir::apps::PricingOptions;
using weir::apps::Valuation;

constexpr unsigned kRanks = 3, kKilled = 2;
constexpr std::size_t kOptions = 120;

std::vector<Valuation> price(const PricingOptions& wanted, bool killed) {
  const weir::Runtime runtime("host:cores=1");
  const weir::apps::AppStreams streams(runtime, {});
  const weir::apps::PathKernels kernels(runtime);
  Pricing pricing(runtime, streams, kernels, weir::apps::generate_book(kOptions, 1).options,
                  wanted);
  pricing.start();
  if (killed) std::raise(SIGKILL);  // its place has options, or asks for them
  pricing.wait(weir::forever);
  const auto parts = pricing.parts().share().parts();
  std::uint64_t priced = 0;
  for (const weir_share_part& part : parts) priced += part.items;
  if (parts[0].rank == 0 && priced != kOptions) {
    throw std::runtime_error(std::to_string(priced) + " options were priced");
  }
  return pricing.valuations();
}

bool equal(const std::vector<Valuation>& left, const std::vector<Valuation>& right) {
  return std::memcmp(left.data(), right.data(), left.size() * sizeof(Valuation)) == 0;
}

int run_rank() {
  const Membership member;
  PricingOptions wanted;
  wanted.fabric = member.fabric();
  wanted.scheduler = std::getenv("PRICING_SCHEDULER");
  wanted.chunks = std::getenv("PRICING_CHUNKS");
  const std::vector<Valuation> together = price(wanted, member.rank() == kKilled);
  if (member.rank() > 0) return EXIT_SUCCESS;
  if (equal(together, price({}, false))) return EXIT_SUCCESS;
  std::fprintf(stderr, "failed: the prices differ from those of one process\n");
  return EXIT_FAILURE;
}

int start_ranks(const char* program) {
  int failures = 0;
  for (const char* scheduler : {"onesided", "master"}) {
    for (const char* chunks : {"learned", "static", "one"}) {
      setenv("PRICING_SCHEDULER", scheduler, 1);
      setenv("PRICING_CHUNKS", chunks, 1);
      const char* const command[] = {program, nullptr};
      int status = 0;
      weir::check(weir_fabric_launch(nullptr, kRanks, command, &status));
      if (status == 128 + SIGKILL) continue;
      std::fprintf(stderr, "failed: %s by %s: status %d\n", chunks, scheduler, status);
      ++failures;
    }
  }
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int, char** argv) {
  try {
    return std::getenv("WEIR_RANK") != nullptr ? run_rank() : start_ranks(argv[0]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pricing_client: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
