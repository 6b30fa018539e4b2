#include "walk_ranks.hpp"

#include <array>
#include <atomic>
#include <chrono>

#include <weir/weir.h>

#include "walk_flows.hpp"

namespace faults {

const Route kRankRoute = {
    .name = "ranks",
    .domains = "host:cores=1,rank:*/host:cores=1,rank:*/sim:cores=1,latency_us=0,memory=40KiB",
    .virtual_time = false,
    .leaves = true};

namespace {

constexpr std::int64_t kLostAfterNs = 1'000'000'000;
constexpr std::size_t kArrays = 3, kValues = 4096, kRounds = 3;

alignas(64) int arrays[kArrays][kValues];

std::int64_t clock_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- One domain --------------------------------------------------------------------------------

/// A stream of a domain, and arrays of which a device holds two.
struct Served {
  const Flows& flows;
  weir_place* place = nullptr;
  weir_stream* stream = nullptr;
  std::array<weir_buffer*, kArrays> buffers{};
};

bool open(Served& served, std::size_t domain) {
  const Flows& flows = served.flows;
  weir_domain* const wanted = weir_runtime_get_domain(flows.runtime, domain);
  if (!flows.took(weir_domain_partition(wanted, 1, false, &served.place), "a place of a rank") ||
      !flows.took(weir_stream_create(served.place, nullptr, &served.stream), "its stream")) {
    return false;
  }
  for (std::size_t i = 0; i < kArrays; ++i) {
    for (std::size_t k = 0; k < kValues; ++k) arrays[i][k] = static_cast<int>(i * kValues + k);
    if (!flows.took(weir_buffer_wrap(flows.runtime, arrays[i], sizeof arrays[i], nullptr,
                                     &served.buffers[i]),
                    "its buffer")) {
      return false;
    }
  }
  return true;
}

bool work(const Served& served) {
  const Flows& flows = served.flows;
  const weir_region all = weir_region_range(0, sizeof arrays[0]);
  for (weir_buffer* const buffer : served.buffers) {
    if (!flows.took(weir_stream_upload(served.stream, buffer, all, nullptr), "its upload")) {
      return false;
    }
  }
  for (std::size_t i = 0; i < kRounds * kArrays; ++i) {
    const weir_operand operand = {served.buffers[i % kArrays], all, WEIR_ACCESS_READ_WRITE};
    weir_compute call = WEIR_COMPUTE_INIT;
    call.kernel = flows.add;
    call.operands = &operand;
    call.operand_count = 1;
    if (!flows.took(weir_stream_compute(served.stream, &call, nullptr), "its compute")) {
      return false;
    }
  }
  for (weir_buffer* const buffer : served.buffers) {
    if (!flows.took(weir_stream_download(served.stream, buffer, all, nullptr), "its download")) {
      return false;
    }
  }
  return flows.took(weir_stream_synchronize(served.stream, kLong), "its stream_synchronize");
}

void compare(const Flows& flows, std::size_t domain) {
  for (std::size_t at = 0; at < kArrays * kValues; ++at) {
    const int found = arrays[at / kValues][at % kValues];
    if (found == static_cast<int>(at + kRounds)) continue;
    flows.report.blame("value %zu of domain %zu is %d", at, domain, found);
    return;
  }
}

void walk_domain(const Flows& flows, std::size_t domain) {
  Served served{flows};
  if (open(served, domain) && work(served)) compare(flows, domain);
  for (weir_buffer* const buffer : served.buffers) weir_buffer_destroy(buffer);
  weir_stream_destroy(served.stream);
  weir_place_destroy(served.place);
}

// ---- The ranks ---------------------------------------------------------------------------------

struct Crew {
  const Route& route;
  std::array<Report, 2>& reports;
  std::atomic<std::int64_t> left_ns{0};  ///< when rank 0 had done all, 0: it has not
};

void direct(Flows& flows) {
  for (std::size_t domain = 1; domain < weir_runtime_domain_count(flows.runtime); ++domain) {
    walk_domain(flows, domain);
  }
  if (!wrap_flows(flows)) return;
  walk_queue(flows);
  walk_share(flows);
}

/// A rank that serves goes soon after the other, also where that one cannot tell it.
void check_serving(const Crew& crew, Report& report, weir_status status, bool served) {
  const std::int64_t left = crew.left_ns.load();
  const bool to_the_end = status != WEIR_STATUS_OK || (served && left != 0);
  if (!to_the_end) report.blame("it does not serve to the end");
  if (left != 0 && clock_ns() - left > 5 * kLostAfterNs) {
    report.blame("it serves a rank that has left");
  }
}

weir_status run_crew(weir_fabric* fabric, void* payload) {
  Crew& crew = *static_cast<Crew*>(payload);
  const bool directs = weir_fabric_rank(fabric) == 0;
  Flows flows{crew.route, crew.reports[weir_fabric_rank(fabric)]};
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = crew.route.domains;
  options.fabric = fabric;
  if (open_flows(flows, options)) {
    bool served = false;
    const weir_status status = weir_rank_serve(flows.runtime, &served);
    const bool goes_on = flows.took(status, "rank_serve") && directs;
    if (goes_on) direct(flows);
    if (!directs) check_serving(crew, flows.report, status, served);
  }
  weir_runtime_destroy(flows.runtime);
  if (directs) crew.left_ns.store(clock_ns());
  return WEIR_STATUS_OK;
}

}  // namespace

void walk_ranks(const Route& route, const char*, Report& report) {
  static std::array<Report, 2> reports;
  reports = {};
  Crew crew{route, reports};
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.lost_after_ns = kLostAfterNs;  // what has no memory to be sent is given up after it
  took(route, report, weir_fabric_simulate(&options, 2, run_crew, &crew), "fabric_simulate");
  for (const Report& of_rank : reports) report.add(of_rank);
}

}  // namespace faults
