// Fetch-and-add by MPI_Fetch_and_op on memory of a rank that computes, in microseconds: the median.
//
//   fetch_add_mpi [--count N]
//
// Over shared memory alone: elsewhere the other rank would have to call MPI.
#include <atomic>
#include <cstdio>

#include "common/mpi_main.hpp"
#include "fabric/put_pattern.hpp"

namespace weir_bench {
namespace {

void add(MPI_Win window, MPI_Aint word) {
  const std::int64_t one = 1;
  std::int64_t old = 0;
  MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 1, word * MPI_Aint{sizeof one}, MPI_SUM, window);
  MPI_Win_flush(1, window);
}

/// Rank 1 computes, and looks only at its own memory, until rank 0 has finished.
void work(const Arguments& arguments) {
  const long count = arguments.number("--count", 20'000);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::int64_t* words = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate(2 * sizeof *words, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &window);
  words[0] = words[1] = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  std::vector<double> seconds;
  if (rank == 0) {
    seconds = repeat(count / 10, count, [&] { return time_of([&] { add(window, 0); }); });
    add(window, 1);
  } else {
    const std::atomic_ref<std::int64_t> over(words[1]);
    while (over.load() == 0) {
    }
    if (words[0] != count + count / 10) throw std::runtime_error("some were not added");
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  if (rank > 0) return;
  const nlohmann::json line = {{"value", 1e6 * median(seconds)},
                               {"config", "Open MPI, MPI_Fetch_and_op, shm"}};
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  const auto check = [](const Arguments& arguments) {
    if (arguments.text("--network", "shm") == "shm") return;
    throw std::invalid_argument("--network is shm: the other rank calls no MPI");
  };
  return mpi_main(argc, argv, check, work);
}
