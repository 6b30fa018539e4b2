#include "walk_fabric.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <weir/weir.h>

namespace faults {

namespace {

constexpr unsigned kRanks = 2;
constexpr std::size_t kMessages = 3, kWindowNumbers = 8, kPuts = 40, kSide = 8;
constexpr unsigned kOfOther = only(WEIR_STATUS_OK) | only(WEIR_STATUS_NETWORK_ERROR);
/// A rank that has failed destroys its window before it leaves.
constexpr unsigned kOfNoWindow = kOfOther | only(WEIR_STATUS_INVALID_ARGUMENT);

/// What one rank does and sees. A rank that a fault meets leaves; calls of the other may report it.
class Rank {
 public:
  Rank(const Route& route, Report& report, weir_fabric* fabric)
      : route_(route),
        report_(report),
        fabric_(fabric),
        me_(weir_fabric_rank(fabric)),
        other_(1 - me_) {}

  bool run() {
    return together() && groups() && messages() && window() && conveyor() && halo() && streams() &&
           took(weir_fabric_barrier(fabric_, kLong), "fabric_barrier");
  }

 private:
  bool took(weir_status status, const char* call, unsigned expected = kOfOther) const {
    return faults::took(route_, report_, status, call, expected);
  }
  bool right(bool holds, const char* what) const {
    if (!holds) report_.blame("rank %u: %s", me_, what);
    return holds;
  }

  // ---- What all ranks do together ----

  bool together() const {
    std::int64_t sum = me_ + 1;
    std::array<double, 2> values = {me_ == 0 ? 3.5 : 0, 0};
    return took(weir_fabric_barrier(fabric_, kLong), "fabric_barrier") &&
           took(weir_fabric_reduce_int64(fabric_, &sum, 1, WEIR_FABRIC_OP_SUM, kLong),
                "reduce_int64") &&
           right(sum == 3, "the sum is wrong") &&
           took(weir_fabric_broadcast(fabric_, 0, values.data(), sizeof values, kLong),
                "broadcast") &&
           right(values[0] == 3.5, "the broadcast is wrong");
  }

  // ---- Communicators ----

  /// A rank that has failed in weir_communicator_shrink() may have left before.
  bool use(weir_communicator* group) const {
    const unsigned rank = weir_communicator_rank(group), size = weir_communicator_size(group);
    std::array<double, 2> values = {1, 2.0 * (rank + 1)}, all{};
    std::int64_t before = me_;
    weir_reduction sum = WEIR_REDUCTION_INIT, of_numbers = WEIR_REDUCTION_INIT;
    of_numbers.type = WEIR_NUMBER_INT64;
    return took(weir_communicator_reduce(group, WEIR_ALL_RANKS, values.data(), 2, &sum, kLong),
                "communicator_reduce") &&
           right(values[0] == size && values[1] == size * (size + 1), "a group has a wrong sum") &&
           took(weir_communicator_gather(group, WEIR_ALL_RANKS, &values[rank], all.data(),
                                         sizeof(double), kLong),
                "communicator_gather") &&
           right(std::equal(all.begin(), all.begin() + size, values.begin()),
                 "a group has gathered something else") &&
           took(weir_communicator_scan(group, &before, 1, &of_numbers, kLong),
                "communicator_scan") &&
           right(before == (rank == 0 ? me_ : 1), "a rank has a wrong sum of those below");
  }

  /// The ranks in the other order, which is then shrunk.
  bool groups() const {
    weir_communicator *turned = nullptr, *left = nullptr;
    if (!took(weir_communicator_split(weir_fabric_communicator(fabric_), 0, other_, kLong, &turned),
              "communicator_split")) {
      return false;
    }
    const bool done =
        right(weir_communicator_rank(turned) == other_, "the order is wrong") && use(turned) &&
        took(weir_communicator_shrink(turned, kLong, &left), "communicator_shrink") && use(left);
    weir_communicator_destroy(left);
    weir_communicator_destroy(turned);
    return done;
  }

  // ---- Messages in streams ----

  /// Sends a number to the other rank, and sums what both have received.
  bool pass(weir_stream* stream, weir_buffer* buffer, const std::int64_t* values) const {
    weir_communicator* const all = weir_fabric_communicator(fabric_);
    const weir_region own = weir_region_range(0, 8), theirs = weir_region_range(8, 8);
    weir_collective sum = WEIR_COLLECTIVE_INIT;
    sum.kind = WEIR_COLLECTIVE_REDUCE;
    sum.root = WEIR_ALL_RANKS;
    sum.buffer = buffer;
    sum.region = theirs;
    sum.reduction.type = WEIR_NUMBER_INT64;
    constexpr unsigned kOfStream = kOfOther | only(WEIR_STATUS_POISONED);
    // The first message has arrived when its receive begins; the second may come before or later.
    return took(weir_stream_send(stream, all, other_, 1, buffer, own, nullptr), "stream_send") &&
           took(weir_stream_synchronize(stream, kLong), "stream_synchronize", kOfStream) &&
           took(weir_fabric_barrier(fabric_, kLong), "fabric_barrier") &&
           took(weir_stream_receive(stream, all, other_, 1, buffer, theirs, nullptr),
                "stream_receive") &&
           took(weir_stream_send(stream, all, other_, 2, buffer, own, nullptr), "stream_send") &&
           took(weir_stream_receive(stream, all, other_, 2, buffer, theirs, nullptr),
                "stream_receive") &&
           took(weir_stream_collective(stream, all, &sum, nullptr), "stream_collective") &&
           took(weir_stream_synchronize(stream, kLong), "stream_synchronize", kOfStream) &&
           right(values[1] == 11, "the streams have summed something else");
  }

  bool use_runtime(weir_runtime* runtime) const {
    weir_place_options one = WEIR_PLACE_OPTIONS_INIT;
    one.core_count = 1;
    one.oversubscribe = true;
    weir_place* place = nullptr;
    weir_stream* stream = nullptr;
    weir_buffer* buffer = nullptr;
    std::array<std::int64_t, 2> values{5 + me_, 0};
    const bool done =
        took(weir_place_create(weir_runtime_get_domain(runtime, 0), &one, &place),
             "place_create") &&
        took(weir_stream_create(place, nullptr, &stream), "stream_create") &&
        took(weir_buffer_wrap(runtime, values.data(), sizeof values, nullptr, &buffer),
             "buffer_wrap") &&
        pass(stream, buffer, values.data());
    weir_stream_destroy(stream);
    weir_buffer_destroy(buffer);
    weir_place_destroy(place);
    return done;
  }

  bool streams() const {
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = "host:cores=1";
    options.fabric = fabric_;
    weir_runtime* runtime = nullptr;
    if (!took(weir_runtime_create(&options, &runtime), "runtime_create")) return false;
    const bool done = use_runtime(runtime);
    weir_runtime_destroy(runtime);
    return done;
  }

  // ---- Messages ----

  static void receive(unsigned from, const void* message, std::size_t bytes, void* payload) {
    auto& self = *static_cast<Rank*>(payload);
    std::uint64_t number = 0;
    std::memcpy(&number, message, std::min(bytes, sizeof number));
    self.in_order_ = self.in_order_ && from == self.other_ && number == self.received_;
    ++self.received_;
  }

  bool exchange() {
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      if (!took(weir_fabric_send(fabric_, other_, &i, sizeof i), "fabric_send")) return false;
    }
    while (received_ < kMessages) {
      if (!took(weir_fabric_progress(fabric_, kLong), "fabric_progress")) return false;
    }
    return right(in_order_, "messages came in another order");
  }

  bool messages() {
    if (!took(weir_fabric_listen(fabric_, receive, this), "fabric_listen")) return false;
    const bool done = exchange();
    return took(weir_fabric_listen(fabric_, nullptr, nullptr), "fabric_listen") && done;
  }

  // ---- Windows ----

  bool reach(weir_window* window) const {
    std::array<std::int64_t, kWindowNumbers> sent{}, got{};
    sent.fill(me_ + 10);
    std::int64_t old = -1;
    const std::size_t counter = sizeof sent;
    if (!took(weir_window_put(window, other_, 0, sent.data(), sizeof sent), "window_put",
              kOfNoWindow) ||
        !took(weir_window_fetch_add(window, 0, counter, 5, &old), "window_fetch_add",
              kOfNoWindow) ||
        !took(weir_window_flush(window, other_, kLong), "window_flush", kOfNoWindow) ||
        !took(weir_fabric_barrier(fabric_, kLong), "fabric_barrier") ||
        !took(weir_window_get(window, other_, 0, got.data(), sizeof got), "window_get",
              kOfNoWindow) ||
        !took(weir_window_flush(window, other_, kLong), "window_flush", kOfNoWindow)) {
      return false;
    }
    std::int64_t sum = -1;
    return right(got == sent, "the window gives something else") &&
           right(old == 0 || old == 5, "the counter was something else") &&
           took(weir_window_compare_swap(window, 0, counter, 10, 10, &sum), "compare_swap",
                kOfNoWindow) &&
           right(sum == 10, "the counter is wrong") &&
           took(weir_fabric_barrier(fabric_, kLong), "fabric_barrier");
  }

  bool window() const {
    weir_window* made = nullptr;
    if (!took(weir_window_create(fabric_, nullptr, (kWindowNumbers + 1) * sizeof(std::int64_t),
                                 kLong, &made),
              "window_create")) {
      return false;
    }
    const bool done = reach(made);
    weir_window_destroy(made);
    return done;
  }

  // ---- Conveyors ----

  static weir_status count_items(const weir_items* items) {
    *static_cast<std::size_t*>(items->payload) += items->count;
    return WEIR_STATUS_OK;
  }

  bool put(weir_producer* producer) const {
    for (std::uint64_t i = 0; i < kPuts; ++i) {
      const std::uint64_t at = i % kWindowNumbers * sizeof(std::int64_t);
      const std::int64_t one = 1;
      if (!took(weir_producer_add(producer, other_, &at, &one, 1), "producer_add") ||
          !took(weir_producer_send(producer, other_, 0, &i, sizeof i, 1), "producer_send")) {
        return false;
      }
    }
    return took(weir_producer_flush(producer, kLong), "producer_flush");
  }

  bool load(weir_conveyor* conveyor) const {
    weir_producer* producer = nullptr;
    if (!took(weir_producer_open(conveyor, &producer), "producer_open")) return false;
    const bool done = put(producer);
    weir_producer_close(producer);
    return done && took(weir_conveyor_finish(conveyor, kLong), "conveyor_finish");
  }

  bool conveyor() const {
    std::array<std::int64_t, kWindowNumbers> table{};
    std::size_t items = 0;
    const weir_conveyor_handler handler = {count_items, &items, sizeof(std::uint64_t)};
    weir_conveyor_options options = WEIR_CONVEYOR_OPTIONS_INIT;
    options.memory = table.data();
    options.bytes = sizeof table;
    options.handlers = &handler;
    options.handler_count = 1;
    options.block_bytes = 1024;
    options.timeout_ns = kLong;
    weir_conveyor* made = nullptr;
    if (!took(weir_conveyor_create(fabric_, &options, &made), "conveyor_create")) return false;
    // The ranks that are left finish without a rank that never had a conveyor.
    std::int64_t loaded = load(made) ? 1 : 0;
    weir_conveyor_destroy(made);
    if (loaded == 0 ||
        !took(weir_fabric_reduce_int64(fabric_, &loaded, 1, WEIR_FABRIC_OP_SUM, kLong),
              "reduce_int64")) {
      return false;
    }
    const bool added = std::all_of(table.begin(), table.end(), [](std::int64_t value) {
      return value == static_cast<std::int64_t>(kPuts / kWindowNumbers);
    });
    return right(added, "the table of the conveyor is wrong") &&
           right(items == kPuts, "items of the conveyor are missing");
  }

  // ---- Halos ----

  bool step(const weir_grid* grid, float* cells, std::size_t row) const {
    const weir_halo_field field = {sizeof(float), "float"};
    const weir_grid_array array = {cells + row + 1, row * sizeof(float), 0};
    weir_halo_options options = WEIR_HALO_OPTIONS_INIT;
    options.fields = &field;
    options.field_count = 1;
    options.arrays = &array;
    options.array_count = 1;
    options.timeout_ns = kLong;
    weir_halo* halo = nullptr;
    if (!took(weir_halo_create(fabric_, grid, &options, &halo), "halo_create")) return false;
    const bool done = took(weir_halo_start(halo), "halo_start") &&
                      took(weir_halo_finish(halo, kLong), "halo_finish");
    weir_halo_destroy(halo);
    return done;
  }

  /// Two squares beside each other: the column between them is not contiguous.
  bool halo() const {
    constexpr std::size_t kRow = kSide + 2;
    std::array<float, kRow * kRow> cells{};
    for (std::size_t y = 1; y <= kSide; ++y) {
      for (std::size_t x = 1; x <= kSide; ++x) cells[y * kRow + x] = static_cast<float>(me_ + 1);
    }
    weir_grid_options options = WEIR_GRID_OPTIONS_INIT;
    options.dimensions = 2;
    options.cells[0] = kRanks * kSide;
    options.cells[1] = kSide;
    options.ranks = kRanks;
    options.blocks[0] = kRanks;
    options.blocks[1] = 1;
    weir_grid* grid = nullptr;
    if (!took(weir_grid_create(&options, &grid), "grid_create")) return false;
    const bool done = step(grid, cells.data(), kRow);
    weir_grid_destroy(grid);
    const std::size_t side = me_ == 0 ? kSide + 1 : 0;
    return done && right(cells[kRow + side] == static_cast<float>(other_ + 1) &&
                             cells[kSide * kRow + side] == static_cast<float>(other_ + 1),
                         "the halo is wrong");
  }

  const Route& route_;
  Report& report_;
  weir_fabric* const fabric_;
  const unsigned me_, other_;
  std::uint64_t received_ = 0;
  bool in_order_ = true;
};

struct Ranks {
  const Route& route;
  std::array<Report, kRanks>& reports;
};

weir_status run_rank(weir_fabric* fabric, void* payload) {
  const Ranks& ranks = *static_cast<Ranks*>(payload);
  Rank rank(ranks.route, ranks.reports[weir_fabric_rank(fabric)], fabric);
  return rank.run() ? WEIR_STATUS_OK : WEIR_STATUS_CANCELLED;
}

}  // namespace

void walk_fabric(const Route& route, const char*, Report& report) {
  static std::array<Report, kRanks> reports;
  reports = {};
  Ranks ranks{route, reports};
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.lost_after_ns = 1'000'000'000;  // what has no memory to be sent is given up after it
  const bool done = took(route, report, weir_fabric_simulate(&options, kRanks, run_rank, &ranks),
                         "fabric_simulate", kOfOther | only(WEIR_STATUS_CANCELLED));
  for (const Report& of_rank : reports) report.add(of_rank);
  if (!done) ++report.errors;
}

}  // namespace faults
