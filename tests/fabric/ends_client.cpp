// Ways in which the program of a rank ends, also without closing the fabric, and what the others
// see of it. As a rank of a launcher:
//
//   ends_client WAY              does this
//   ends_client shm RANKS WAY    starts itself with it, and exits with what the launcher says
//
// Every way begins with a reduction; rank 0 prints "sum S". In the ways early-*, the last rank ends
// then, and each other rank prints "rank R told: MESSAGE". In the way deadlock, rank 1 waits for a
// message for ever, and the others in a barrier.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <weir/fabric.hpp>
#include <weir/weir.hpp>

#include "../support/sanitizers.h"

namespace {

std::unique_ptr<weir::Fabric>
    global;  // ends after whatever begins at the end of weir_fabric_open()
std::unique_ptr<weir::Runtime> global_runtime;
bool is_child = false;

}  // namespace

#ifdef WEIR_ADDRESS_SANITIZER
/// A child does not leak what other threads of its parent hold, which it does not have.
extern "C" int __lsan_is_turned_off() { return is_child; }
#endif

namespace {

int give_up(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, weir_last_error());
  return 1;
}

weir_fabric* opened() {
  weir_fabric* fabric = nullptr;
  if (weir_fabric_open(nullptr, &fabric) != WEIR_STATUS_OK) std::exit(give_up("open"));
  return fabric;
}

weir_status sum_up(weir_fabric* fabric) {
  std::int64_t sum = weir_fabric_rank(fabric) + 1;
  const weir_status status =
      weir_fabric_reduce_int64(fabric, &sum, 1, WEIR_FABRIC_OP_SUM, WEIR_FOREVER);
  if (status != WEIR_STATUS_OK || weir_fabric_rank(fabric) != 0) return status;
  std::printf("sum %d\n", static_cast<int>(sum));
  std::fflush(stdout);
  return status;
}

void exit_inside(unsigned, const void*, std::size_t, void*) { std::exit(0); }

/// Ends inside the handler of a message, on whichever thread moves the fabric on.
int end_in_handler(weir_fabric* fabric) {
  weir_fabric_listen(fabric, exit_inside, nullptr);
  weir_fabric_send(fabric, weir_fabric_rank(fabric), "x", 1);
  for (;;) weir_fabric_progress(fabric, WEIR_FOREVER);
}

/// Ends while another thread waits for a message that no rank sends.
int end_beside_thread(weir_fabric* fabric) {
  static std::atomic<bool> begun{false};
  std::thread([fabric] {
    begun = true;
    while (weir_fabric_progress(fabric, WEIR_FOREVER) == WEIR_STATUS_OK) {
    }
    for (;;) pause();
  }).detach();
  while (!begun) std::this_thread::yield();
  return 0;
}

/// A process that was forked ends by exit(): it is not a rank.
int end_after_fork(weir_fabric* fabric) {
  const pid_t child = fork();
  if (child == 0) {
    is_child = true;
    std::exit(0);
  }
  int status = 1;
  if (waitpid(child, &status, 0) != child || status != 0) return 1;
  if (sum_up(fabric) != WEIR_STATUS_OK) return give_up("after fork()");
  weir_fabric_close(fabric);
  return 0;
}

/// A runtime keeps the fabric, which is closed.
int end_with_runtime(weir_fabric* fabric) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host:cores=1";
  options.fabric = fabric;
  weir_runtime* runtime = nullptr;
  if (weir_runtime_create(&options, &runtime) != WEIR_STATUS_OK) return give_up("runtime");
  weir_fabric_close(fabric);
  return 0;
}

/// Rank 0 has domains of the others, which serve it, and its runtime ends after main().
int end_with_ranks(weir_fabric* fabric) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "rank:*/host:cores=1";
  options.fabric = fabric;
  global_runtime = std::make_unique<weir::Runtime>(options);
  try {
    if (!global_runtime->serve()) global_runtime->synchronize();
  } catch (const weir::Error& error) {
    std::printf("rank %u told: %s\n", weir_fabric_rank(fabric), error.what());
  }
  return 0;
}

/// The others are in a collective meanwhile.
int end_early(weir_fabric* fabric, std::string_view way) {
  const unsigned rank = weir_fabric_rank(fabric);
  if (rank == weir_fabric_ranks(fabric) - 1) {
    if (way == "early-close") weir_fabric_close(fabric);
    if (way == "early-fail") std::exit(3);
    return 0;
  }
  if (sum_up(fabric) == WEIR_STATUS_OK) return give_up("should have failed");
  std::printf("rank %u told: %s\n", rank, weir_last_error());
  return 0;
}

int wait_for_each_other(weir_fabric* fabric) {
  if (weir_fabric_rank(fabric) == 1) weir_fabric_progress(fabric, WEIR_FOREVER);
  weir_fabric_barrier(fabric, WEIR_FOREVER);
  return give_up("deadlock");
}

int end(std::string_view way) {
  if (way == "static") {
    static weir::Fabric fabric;
    return sum_up(fabric.handle()) != WEIR_STATUS_OK;
  }
  if (way == "local") {
    weir::Fabric fabric;
    if (sum_up(fabric.handle()) != WEIR_STATUS_OK) return give_up("sum");
    std::exit(0);
  }
  if (way == "global") {
    global = std::make_unique<weir::Fabric>();
    return sum_up(global->handle()) != WEIR_STATUS_OK;
  }
  weir_fabric* const fabric = opened();
  if (sum_up(fabric) != WEIR_STATUS_OK) return give_up("sum");
  if (way == "handler") return end_in_handler(fabric);
  if (way == "thread") return end_beside_thread(fabric);
  if (way == "fork") return end_after_fork(fabric);
  if (way == "runtime") return end_with_runtime(fabric);
  if (way == "deadlock") return wait_for_each_other(fabric);
  if (way == "ranks") return end_with_ranks(fabric);
  if (way.starts_with("early")) return end_early(fabric, way);
  return 0;  // "return"
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "shm") == 0) {
    const char* const arguments[] = {argv[0], argv[3], nullptr};
    int status = 0;
    const auto ranks = static_cast<unsigned>(std::atoi(argv[2]));
    if (weir_fabric_launch(nullptr, ranks, arguments, &status) != WEIR_STATUS_OK) {
      return give_up("launch");
    }
    return status;
  }
  return argc == 2 ? end(argv[1]) : 2;
}
