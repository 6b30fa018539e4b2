// Shares over ranks.
//
//   share_client                       on ranks that a launcher has started
//   share_client shm RANKS             on processes that it starts itself
//   share_client inproc RANKS SEED     on threads of this process
//   share_client kill                  as above, on three; one is killed in a kernel
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <weir/fabric.hpp>

namespace {

std::atomic<int> failures{0};

void expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  ++failures;
}

constexpr std::array kChunks = {"static",    "one",     "fixed:7",           "guided",
                                "factoring", "learned", "weighted-factoring"};
constexpr std::array kSchedulers = {"onesided", "master"};

/// The result of an item: as many bytes as its number has ones, and one more.
constexpr std::size_t bytes_of(std::size_t item) {
  return 1 + static_cast<std::size_t>(__builtin_popcountll(item));
}

struct Case {
  std::size_t items = 100;
  const char* chunks = "learned";
  const char* scheduler = "onesided";
  const char* domains = "host:cores=1";
  std::size_t ways = 1;
  std::size_t bad_item = SIZE_MAX;  ///< whose kernel throws
  unsigned killed = UINT32_MAX;     ///< a rank whose process ends in its fourth kernel
  bool cancels = false;             ///< the last rank does
  bool bad_offsets = false;         ///< of its results
  bool at_once = false;             ///< the function itself does the work

  std::string name() const {
    return std::string(chunks) + " by " + scheduler + " on " + domains + ", " +
           std::to_string(items) + " items";
  }
};

/// One rank's part of a share.
class Trial {
 public:
  Trial(weir_fabric* fabric, const Case& wanted)
      : fabric_(fabric),
        case_(wanted),
        rank_(weir_fabric_rank(fabric)),
        runtime_(wanted.domains),
        offsets_(wanted.items + 1) {
    for (std::size_t i = 0; i < wanted.items; ++i) offsets_[i + 1] = offsets_[i] + bytes_of(i);
    results_.resize(offsets_.back() + 1);
    if (wanted.bad_offsets) std::swap(offsets_[1], offsets_[2]);
    buffer_ = runtime_.wrap(results_);
    kernel_ = runtime_.kernel("write results", [this](const weir::Call& call) { work(call); });
  }

  void run() {
    const weir::ShareOptions options{.name = "trial",
                                     .chunks = case_.chunks,
                                     .ways = case_.ways,
                                     .fabric = fabric_,
                                     .scheduler = case_.scheduler,
                                     .results = results_.data(),
                                     .result_offsets = offsets_};
    const weir::Share share = runtime_.share(
        case_.items, [this](const weir::Chunk& chunk) { return enqueue(chunk); }, options);
    if (case_.cancels && rank_ + 1 == weir_fabric_ranks(fabric_)) share.cancel();
    weir_status status = WEIR_STATUS_OK;
    std::string message;
    try {
      share.wait();
    } catch (const weir::Error& error) {
      status = error.status();
      message = error.what();
    }
    if (case_.cancels && status == WEIR_STATUS_CANCELLED) return;
    if (case_.bad_item < case_.items) {
      expect(status == WEIR_STATUS_KERNEL_ERROR && message.find("bad item") != std::string::npos,
             case_.name() + ": all ranks hear of the failure: " + message);
      return;
    }
    expect(status == WEIR_STATUS_OK, case_.name() + ": it succeeds: " + message);
    if (rank_ == 0) check_results(share);
  }

 private:
  void work(const weir::Call& call) {
    if (rank_ == case_.killed && ++kernels_ == 4) std::raise(SIGKILL);
    while (case_.killed != UINT32_MAX && rank_ != case_.killed &&
           weir_fabric_is_alive(fabric_, case_.killed)) {
    }
    const auto item = static_cast<std::size_t>(call.scalar<std::int64_t>(0));
    if (item == case_.bad_item) throw std::runtime_error("bad item");
    for (std::uint8_t& byte : call.span<std::uint8_t>(0)) byte = value(item);
  }

  static std::uint8_t value(std::size_t item) { return static_cast<std::uint8_t>(1 + item % 251); }

  weir::Event enqueue(const weir::Chunk& chunk) {
    if (case_.at_once) {
      for (std::size_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
        std::fill(results_.begin() + static_cast<std::ptrdiff_t>(offsets_[i]),
                  results_.begin() + static_cast<std::ptrdiff_t>(offsets_[i + 1]), value(i));
      }
      return {};
    }
    for (std::size_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
      const weir::Operand target = weir::write(part(i, i + 1));
      const weir::Scalar number(static_cast<std::int64_t>(i));
      chunk.stream.compute(kernel_, {&target, 1}, {&number, 1});
    }
    return chunk.stream.download(part(chunk.first, chunk.first + chunk.count));
  }

  weir::Region part(std::size_t from, std::size_t to) const {
    return buffer_.elements<std::uint8_t>(offsets_[from], offsets_[to] - offsets_[from]);
  }

  void check_results(const weir::Share& share) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < case_.items; ++i) {
      for (std::size_t at = offsets_[i]; at < offsets_[i + 1]; ++at) {
        wrong += results_[at] != value(i);
      }
    }
    expect(wrong == 0, case_.name() + ": all results are at rank 0");
    const weir_share_info info = share.info();
    expect(info.done == case_.items, case_.name() + ": all is done");
    std::uint64_t items = 0, visits = 0;
    unsigned ranks = 0;
    bool lost = false;
    for (const weir_share_part& part : share.parts()) {
      items += part.items;
      visits += part.visits;
      ranks = std::max(ranks, part.rank + 1);
      lost |= part.lost && part.rank == case_.killed;
      expect(part.idle_ns >= 0 && part.busy_ns >= 0, case_.name() + ": times of a place");
    }
    expect(items == case_.items, case_.name() + ": each item once, not " + std::to_string(items));
    expect(ranks == weir_fabric_ranks(fabric_), case_.name() + ": places of all ranks");
    expect(visits > 0 || case_.items == 0, case_.name() + ": visits");
    expect(lost == (case_.killed != UINT32_MAX), case_.name() + ": the lost rank");
  }

  weir_fabric* const fabric_;
  const Case case_;
  const unsigned rank_;
  int kernels_ = 0;
  weir::Runtime runtime_;
  std::vector<std::size_t> offsets_;
  std::vector<std::uint8_t> results_;
  weir::Buffer buffer_;
  weir::Kernel kernel_;
};

void run_all(weir_fabric* fabric) {
  const unsigned rank = weir_fabric_rank(fabric), ranks = weir_fabric_ranks(fabric);
  for (const char* scheduler : kSchedulers) {
    for (const char* chunks : kChunks) {
      for (const std::size_t items : {0u, 1u, 5u, 300u}) {
        Trial(fabric, {.items = items, .chunks = chunks, .scheduler = scheduler}).run();
      }
      Trial(fabric, {.items = 200, .chunks = chunks, .scheduler = scheduler, .bad_item = 60}).run();
      Trial(fabric, {.items = 200, .chunks = chunks, .scheduler = scheduler, .cancels = true})
          .run();
      // The device of the last rank breaks.
      const char* const domains = ranks > 1 && rank + 1 == ranks
                                      ? "sim:cores=1,gbps=50,latency_us=1,lost_at=5"
                                      : "host:cores=1";
      Trial(fabric, {.items = 90, .chunks = chunks, .scheduler = scheduler, .domains = domains})
          .run();
    }
    Trial(fabric, {.items = 400, .scheduler = scheduler, .ways = 3}).run();
    Trial(fabric, {.chunks = "fixed:9223372036854775808", .scheduler = scheduler}).run();
    Trial(fabric, {.items = 20000, .chunks = "one", .scheduler = scheduler, .at_once = true}).run();
  }
}

/// A rank that cannot start, and ranks that disagree, after which nothing goes any more.
void refuse(weir_fabric* fabric) {
  const unsigned rank = weir_fabric_rank(fabric), ranks = weir_fabric_ranks(fabric);
  if (ranks == 1) return;
  const bool last = rank + 1 == ranks;
  const auto status_of = [&](const Case& wanted) {
    try {
      Trial(fabric, wanted).run();
      return WEIR_STATUS_OK;
    } catch (const weir::Error& error) {
      return error.status();
    }
  };
  expect(status_of({.bad_offsets = last}) ==
             (last ? WEIR_STATUS_INVALID_ARGUMENT : WEIR_STATUS_NETWORK_ERROR),
         "all ranks hear that one could not start");
  Trial(fabric, {}).run();
  expect(status_of({.items = last ? 100u : 101u}) != WEIR_STATUS_OK, "ranks have to agree");
}

int run(weir_fabric* fabric, const std::string& what) {
  if (what == "kill") {
    for (const char* chunks : kChunks) {
      if (chunks != std::string(std::getenv("SHARE_CHUNKS"))) continue;
      Trial(fabric, {.items = 200,
                     .chunks = chunks,
                     .scheduler = std::getenv("SHARE_SCHEDULER"),
                     .killed = 2})
          .run();
    }
  } else {
    run_all(fabric);
    refuse(fabric);
  }
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int join(const std::string& what) {
  weir_fabric* fabric = nullptr;
  weir::check(weir_fabric_open(nullptr, &fabric));
  const int status = run(fabric, what);
  weir_fabric_close(fabric);
  return status;
}

int launch(const char* program, unsigned ranks, const char* what) {
  const char* const command[] = {program, what, nullptr};
  int status = 0;
  weir::check(weir_fabric_launch(nullptr, ranks, command, &status));
  return status;
}

int kill_one(const char* program) {
  for (const char* scheduler : kSchedulers) {
    for (const char* chunks : kChunks) {
      setenv("SHARE_CHUNKS", chunks, 1);
      setenv("SHARE_SCHEDULER", scheduler, 1);
      const int status = launch(program, 3, "kill");
      expect(status == 128 + SIGKILL, std::string(chunks) + " by " + scheduler + ": status " +
                                          std::to_string(status) + " of the launcher");
    }
  }
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int simulate(unsigned ranks, std::uint64_t seed) {
  weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
  options.transport = "inproc";
  options.seed = seed;
  const auto program = [](weir_fabric* fabric, void*) {
    run(fabric, "");
    return WEIR_STATUS_OK;
  };
  weir::check(weir_fabric_simulate(&options, ranks, program, nullptr));
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const bool is_rank = std::getenv("WEIR_RANK") != nullptr;
  try {
    if (what == "inproc") {
      return simulate(static_cast<unsigned>(std::atoi(argv[2])),
                      std::strtoull(argv[3], nullptr, 0));
    }
    if (what == "shm" && !is_rank) {
      return launch(argv[0], static_cast<unsigned>(std::atoi(argv[2])), "");
    }
    if (what == "kill" && !is_rank) return kill_one(argv[0]);
    return join(what);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "share_client: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
