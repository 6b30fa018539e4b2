// Master and workers by plain MPI, as paper 004 has them: rank 0 computes as well. The others get
// items from it by a message and its answer, for which it looks between any two of its own items
// (--by messages), or add to a counter of it (--by window).
//
//   shares_mpi makespan [--by messages|window] [--chunk 1] [--network shm|hosts]
//   shares_mpi visits [--visits N]                            nanoseconds, by window
//
// With hosts the program has been started by scripts/two_hosts.py.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <utility>

#include "balance/rank_items.hpp"
#include "common/mpi_main.hpp"

namespace weir_bench {
namespace {

int own_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int rank_count() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

/// What hands out items.
class Counter {
 public:
  virtual ~Counter() = default;
  /// Adds, and returns what there was before.
  virtual std::int64_t fetch_add(std::int64_t count) = 0;
  /// Between two items of rank 0.
  virtual void poll() {}
  /// At rank 0, when it has no more items.
  virtual void serve_to_end() {}
};

class MessageCounter final : public Counter {
 public:
  explicit MessageCounter(std::int64_t items) : items_(items) {}

  std::int64_t fetch_add(std::int64_t count) override {
    if (own_rank() == 0) return std::exchange(next_, next_ + count);
    std::int64_t first = 0;
    MPI_Sendrecv(&count, 1, MPI_INT64_T, 0, kTag, &first, 1, MPI_INT64_T, 0, kTag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    return first;
  }

  void poll() override {
    if (own_rank() != 0) return;
    // Open MPI fetches what has come when it has found nothing, so the second probe finds it.
    for (int misses = 0; misses < 2;) {
      int found = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
      if (found == 0) {
        ++misses;
      } else {
        answer();
        misses = 0;
      }
    }
  }

  /// Each of the others asks once more than there is something for it.
  void serve_to_end() override {
    if (own_rank() != 0) return;
    while (refused_ + 1 < rank_count()) answer();
  }

 private:
  static constexpr int kTag = 0;

  void answer() {
    std::int64_t count = 0;
    MPI_Status from;
    MPI_Recv(&count, 1, MPI_INT64_T, MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &from);
    const std::int64_t first = std::exchange(next_, next_ + count);
    if (first >= items_) ++refused_;
    MPI_Send(&first, 1, MPI_INT64_T, from.MPI_SOURCE, kTag, MPI_COMM_WORLD);
  }

  const std::int64_t items_;
  std::int64_t next_ = 0;
  int refused_ = 0;
};

class WindowCounter final : public Counter {
 public:
  WindowCounter() {
    const MPI_Aint bytes = own_rank() == 0 ? sizeof(std::int64_t) : 0;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &word_, &window_);
    MPI_Win_lock_all(0, window_);
    if (own_rank() == 0) *word_ = 0;
    MPI_Win_sync(window_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~WindowCounter() override {
    MPI_Win_unlock_all(window_);
    MPI_Win_free(&window_);
  }

  std::int64_t fetch_add(std::int64_t count) override {
    std::int64_t first = 0;
    MPI_Fetch_and_op(&count, &first, MPI_INT64_T, 0, 0, MPI_SUM, window_);
    MPI_Win_flush(0, window_);
    return first;
  }

 private:
  std::int64_t* word_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
};

std::unique_ptr<Counter> make_counter(const std::string& by, std::uint64_t items) {
  if (by == "window") return std::make_unique<WindowCounter>();
  if (by == "messages") return std::make_unique<MessageCounter>(static_cast<std::int64_t>(items));
  throw std::invalid_argument("--by is messages or window");
}

nlohmann::json measure_makespan(const Arguments& arguments) {
  RankItems items(arguments, static_cast<unsigned>(own_rank()),
                  static_cast<unsigned>(rank_count()));
  const auto all = static_cast<std::int64_t>(items.count());
  const std::int64_t chunk = arguments.number("--chunk", 1);
  const std::unique_ptr<Counter> counter =
      make_counter(arguments.text("--by", "messages"), items.count());
  std::int64_t done = 0, total = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = time_of([&] {
    for (;;) {
      const std::int64_t first = counter->fetch_add(chunk);
      if (first >= all) break;
      for (std::int64_t item = first; item < std::min(first + chunk, all); ++item, ++done) {
        items.compute(1);
        counter->poll();
      }
    }
    counter->serve_to_end();
    MPI_Barrier(MPI_COMM_WORLD);
  });
  MPI_Allreduce(&done, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (total != all) throw std::runtime_error("not every item was handed out once");
  return {{"value", seconds / items.ideal_s()}};
}

/// Nanoseconds of an addition by rank 1 to the counter of rank 0, which computes meanwhile.
nlohmann::json measure_visits(const Arguments& arguments) {
  const long visits = arguments.number("--visits", 100'000);
  WindowCounter counter;
  double taken_ns = 0, most_ns = 0;
  if (own_rank() == 1) {
    const double seconds = time_of([&] {
      for (long i = 0; i < visits; ++i) counter.fetch_add(1);
    });
    taken_ns = 1e9 * seconds / static_cast<double>(visits);
  } else {
    const double end = now() + 0.1;
    while (now() < end) {
    }
  }
  MPI_Allreduce(&taken_ns, &most_ns, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return {{"value", most_ns}};
}

nlohmann::json measure(const Arguments& arguments) {
  if (arguments.verb() == "makespan") return measure_makespan(arguments);
  if (arguments.verb() == "visits") return measure_visits(arguments);
  throw std::invalid_argument("'" + arguments.verb() + "' is not one of makespan, visits");
}

void work(const Arguments& arguments) {
  nlohmann::json line = measure(arguments);
  line["config"] = "Open MPI, " + arguments.text("--network", "shm");
  if (own_rank() == 0) std::printf("%s\n", line.dump().c_str());
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::mpi_main(argc, argv, weir_bench::work); }
