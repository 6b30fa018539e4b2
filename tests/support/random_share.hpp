// Random shares that check themselves, for real threads and for the seeded scheduler.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <weir/weir.hpp>

namespace weir::random_share {

/// A share and what happens to it: a function of its seed.
struct Plan {
  std::uint64_t seed;
  std::string domains;
  std::size_t items, ways;
  const char* chunks;
  std::vector<double> work;
  std::size_t lost_cards, cards;  ///< devices with a fault, and all of them
  bool has_host;
  std::int64_t bad_item;      ///< whose kernel throws, -1: none
  std::int64_t bad_chunk_at;  ///< the function throws when it gets this item, -1: never
  bool cancels;               ///< right after the start

  std::string describe() const {
    return fmt::format(
        "seed {}: {} items on {} by {}, {} ways{}; bad item {}, function throws at {}{}", seed,
        items, domains, chunks, ways, work.empty() ? "" : ", with work", bad_item, bad_chunk_at,
        cancels ? ", cancelled" : "");
  }
};

inline Plan plan_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  constexpr const char* kChunks[] = {"static",    "one",     "fixed:7",           "guided",
                                     "factoring", "learned", "weighted-factoring"};
  Plan plan{};
  plan.seed = seed;
  plan.items = below(8) == 0 ? below(3) : 1 + below(120);
  plan.ways = below(3) == 0 ? 1 + below(3) : 1;
  plan.chunks = kChunks[below(std::size(kChunks))];
  if (below(3) == 0) {
    for (std::size_t i = 0; i < plan.items; ++i) {
      plan.work.push_back(static_cast<double>(1 + below(9)));
    }
  }
  // Devices in virtual time do not go with domains in real time.
  const bool virtual_time = below(3) == 0;
  plan.has_host = !virtual_time && below(4) != 0;
  if (plan.has_host) plan.domains = fmt::format("host:cores={}", 1 + below(2));
  plan.cards = below(3) + (plan.has_host ? 0 : 1);
  for (std::size_t card = 0; card < plan.cards; ++card) {
    const bool faulty = below(3) == 0;
    plan.domains += fmt::format(
        "{}sim:cores=1,gbps=50,latency_us=1{}{}", plan.domains.empty() ? "" : ",",
        virtual_time ? fmt::format(",clock=virtual,gflops=1,speed={}", 1 + below(4)) : "",
        faulty ? fmt::format(",lost_at={}", 1 + below(40)) : "");
    plan.lost_cards += faulty ? 1 : 0;
  }
  const auto rarely = [&](std::size_t most) {
    return below(6) == 0 ? static_cast<std::int64_t>(below(most)) : -1;
  };
  plan.bad_item = rarely(plan.items + 1);
  plan.bad_chunk_at = rarely(plan.items + 1);
  plan.cancels = below(8) == 0;
  return plan;
}

/// Runs a share by its plan.
class Trial {
 public:
  explicit Trial(const Plan& plan)
      : plan_(plan), sources_(plan.items + 1, 1), results_(plan.items + 1) {}

  /// Returns what went wrong, "" when nothing did.
  std::string run() {
    Runtime runtime(plan_.domains);
    const Buffer sources = runtime.wrap(sources_), results = runtime.wrap(results_);
    const Kernel add = kernel(runtime);
    weir_status status = WEIR_STATUS_OK;
    std::string message;
    const Share share = runtime.share(
        plan_.items, [&](const Chunk& chunk) { return enqueue(chunk, add, sources, results); },
        options());
    if (plan_.cancels) share.cancel();
    try {
      share.wait();
    } catch (const Error& error) {
      status = error.status();
      message = error.what();
    } catch (const std::out_of_range& error) {
      status = WEIR_STATUS_INTERNAL;  // the function's own
      message = error.what();
    }
    const std::string wrong = check_outcome(share, status, message);
    return wrong.empty() ? "" : plan_.describe() + "\n" + wrong + "\n";
  }

 private:
  Kernel kernel(const Runtime& runtime) {
    return runtime.kernel("add one", [this](const Call& call) {
      const auto first = call.scalar<std::int64_t>(0);
      const auto items = call.span<const int>(0);
      const auto results = call.span<int>(1);
      const auto bad = plan_.bad_item;
      if (bad >= first && bad < first + static_cast<std::int64_t>(items.size())) {
        throw std::runtime_error("bad item");
      }
      for (std::size_t i = 0; i < items.size(); ++i) results[i] = items[i] + 1;
      worked_.fetch_add(items.size());
    });
  }

  ShareOptions options() const {
    ShareOptions options;
    options.chunks = plan_.chunks;
    options.work = plan_.work;
    options.ways = plan_.ways;
    return options;
  }

  Event enqueue(const Chunk& chunk, const Kernel& add, const Buffer& sources,
                const Buffer& results) const {
    const auto at = static_cast<std::uint64_t>(plan_.bad_chunk_at);
    if (plan_.bad_chunk_at >= 0 && at >= chunk.first && at < chunk.first + chunk.count) {
      throw std::out_of_range("no such item");
    }
    const Region from = sources.elements<int>(chunk.first, chunk.count);
    const Region to = results.elements<int>(chunk.first, chunk.count);
    chunk.stream.upload(from);
    chunk.stream.compute(add, {read(from), write(to)}, {static_cast<std::int64_t>(chunk.first)});
    return chunk.stream.download(to);
  }

  std::string check_outcome(const Share& share, weir_status status,
                            const std::string& message) const {
    const weir_share_info info = share.info();
    std::uint64_t of_parts = 0;
    for (const weir_share_part& part : share.parts()) of_parts += part.items;
    if (of_parts != info.done) return fmt::format("places did {} of {}", of_parts, info.done);
    if (info.done > plan_.items) return fmt::format("{} items were done", info.done);
    const auto done = std::count(results_.begin(), results_.end(), 2);
    if (static_cast<std::uint64_t>(done) < info.done) {
      return fmt::format("{} items are said to be done, and {} are", info.done, done);
    }
    if (results_.back() != 0) return "an item that is not there was done";
    if (plan_.lost_cards == 0 && worked_ > plan_.items) {
      return fmt::format("{} items were worked on", worked_.load());
    }
    return check_status(info.done, status, message);
  }

  std::string check_status(std::uint64_t done, weir_status status,
                           const std::string& message) const {
    const auto items = static_cast<std::int64_t>(plan_.items);
    const bool bad_item = plan_.bad_item >= 0 && plan_.bad_item < items;
    const bool bad_call = plan_.bad_chunk_at >= 0 && plan_.bad_chunk_at < items;
    const bool all_may_be_lost = !plan_.has_host && plan_.lost_cards == plan_.cards;
    bool possible = false;
    switch (status) {
      case WEIR_STATUS_OK: possible = done == plan_.items && !bad_item && !bad_call; break;
      case WEIR_STATUS_CANCELLED: possible = plan_.cancels; break;
      case WEIR_STATUS_KERNEL_ERROR: possible = bad_item; break;
      case WEIR_STATUS_INTERNAL: possible = bad_call; break;
      case WEIR_STATUS_DEVICE_ERROR: possible = all_may_be_lost; break;
      default: break;
    }
    if (possible) return "";
    return fmt::format("ended with {} of {} items done as {}: {}", done, plan_.items,
                       weir_status_name(status), message);
  }

  const Plan plan_;
  std::vector<int> sources_, results_;
  std::atomic<std::uint64_t> worked_{0};
};

}  // namespace weir::random_share
