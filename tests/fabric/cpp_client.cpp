// The C++ interface of the fabric, on ranks of whatever launcher started this, or of its own:
// cpp_client shm RANKS.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include <weir/communicator.hpp>
#include <weir/conveyor.hpp>
#include <weir/fabric.hpp>
#include <weir/grid.hpp>
#include <weir/stream_messages.hpp>

namespace {

int failures = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  ++failures;
}

/// A ring of blocks, each of two cells with a halo of one: the neighbours' numbers come.
void exchange(const weir::Fabric& fabric) {
  const unsigned rank = fabric.rank(), ranks = fabric.ranks();
  const weir::Grid grid({.cells = {2 * ranks, 1},
                         .periodic = {true, false, false},
                         .ranks = ranks,
                         .blocks = {ranks, 1, 1}});
  std::array<double, 4> cells = {-1, rank + 0.25, rank + 0.75, -1};
  const weir::Halo halo(fabric, grid,
                        {.width = {1, 0, 0},
                         .fields = {{sizeof(double), "double"}},
                         .arrays = {{&cells[1], sizeof cells, 0}}});
  halo.start();
  halo.finish();
  expect(cells[0] == (rank + ranks - 1) % ranks + 0.75, "the cell of the rank before");
  expect(cells[3] == (rank + 1) % ranks + 0.25, "the cell of the rank after");
}

/// Each rank adds one to the first word of every rank.
void count_ranks(const weir::Fabric& fabric) {
  std::vector<std::int64_t> counts(1);
  weir::ConveyorOptions options;
  options.memory = std::as_writable_bytes(std::span(counts));
  const weir::Conveyor conveyor(fabric, options);
  const weir::Producer producer = conveyor.producer();
  for (unsigned to = 0; to < fabric.ranks(); ++to) producer.add(to, 0, 1);
  conveyor.finish();
  expect(counts[0] == fabric.ranks(), "each rank has added one");
}

/// All-to-all, a reduction by a function, and a group of the upper half.
void communicate(const weir::Fabric& fabric) {
  const weir::Communicator all(fabric);
  const unsigned rank = all.rank(), ranks = all.size();
  std::vector<unsigned> sent(ranks, rank), received(ranks);
  all.all_to_all(std::span<const unsigned>(sent), std::span(received));
  std::vector<unsigned> numbers(ranks);
  std::iota(numbers.begin(), numbers.end(), 0u);
  expect(received == numbers && all.all_gather(rank) == numbers, "parts of all ranks");
  struct Last {
    unsigned rest, rank;
  } last{rank % 3, rank};  // the largest rest, then the first rank
  all.reduce(std::span(&last, 1), [](Last& into, const Last& from) {
    if (from.rest > into.rest) into = from;
  });
  expect(last.rank == std::min(2u, ranks - 1), "a reduction by a function");
  std::int16_t before = 1;
  all.exclusive_scan(std::span(&before, 1));
  expect(before == std::max<int>(1, static_cast<int>(rank)), "an exclusive scan");
  const weir::Communicator upper = all.split(rank >= ranks / 2 ? 0 : WEIR_NO_COLOR);
  expect(static_cast<bool>(upper) == (rank >= ranks / 2), "a split by half");
  if (upper) expect(upper.fabric_rank(0) == ranks / 2, "the first rank of the upper half");
}

/// Streams of all ranks pass short and long messages round a ring, and sum them.
void pass_in_streams(const weir::Fabric& fabric) {
  const weir::Communicator all(fabric);
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host:cores=1";
  options.fabric = fabric.handle();
  const weir::Runtime runtime(options);
  const weir::Place place = runtime.domain(0).place();
  const weir::Stream stream = place.stream();
  const unsigned rank = all.rank(), size = all.size();
  for (const std::size_t count : {std::size_t{1}, std::size_t{100'000}}) {
    std::vector<double> own(count, rank + 1.0), left(count);
    const weir::Buffer mine = runtime.wrap(own), theirs = runtime.wrap(left);
    weir::send(stream, all, (rank + 1) % size, mine.all(), 7);
    weir::receive(stream, all, (rank + size - 1) % size, theirs.all(), 7);
    stream.synchronize();
    const double before = (rank + size - 1) % size + 1.0;
    expect(left == std::vector<double>(count, before), "a stream has received what was sent");
    weir::all_reduce<double>(stream, all, mine.all());
    weir::broadcast(stream, all, size - 1, theirs.all());
    stream.synchronize();
    expect(own == std::vector<double>(count, size * (size + 1) / 2), "the streams have summed");
    expect(left == std::vector<double>(count, size == 1 ? 1 : size - 1), "the last rank's copy");
  }
  fabric.barrier();
}

/// A stream puts a square into the next rank and gets the one of the rank before that.
void put_in_streams(const weir::Fabric& fabric) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "host:cores=1";
  options.fabric = fabric.handle();
  const weir::Window<double> window(fabric, 4);
  {
    const weir::Runtime runtime(options);
    const weir::Place place = runtime.domain(0).place();
    const weir::Stream stream = place.stream();
    const unsigned rank = fabric.rank(), size = fabric.ranks();
    std::vector<double> own(2);
    const weir::Buffer mine = runtime.wrap(own);
    const weir::Kernel square = runtime.kernel(
        "square", [rank](weir::Call& call) { call.span<double>(0)[0] = rank * rank; });
    stream.compute(square, {weir::write(mine.all())});
    weir::put(stream, window, (rank + 1) % size, 3, mine.range(0, sizeof(double)));
    stream.synchronize();
    fabric.barrier();
    weir::get(stream, window, rank, 3, mine.range(sizeof(double), sizeof(double))).wait();
    const double before = (rank + size - 1) % size;
    expect(window.memory()[3] == before * before, "the rank before has put its square");
    expect(own[1] == before * before, "a stream has got it");
    fabric.barrier();
  }
}

void run(weir::Fabric& fabric) {
  communicate(fabric);
  const unsigned rank = fabric.rank(), ranks = fabric.ranks(), next = (rank + 1) % ranks;
  expect(fabric.sum(std::int64_t{1}) == ranks, "sum of integers");
  expect(fabric.sum(0.5) == 0.5 * ranks, "sum of reals");
  std::vector<int> numbers(10);
  if (rank == ranks - 1) std::iota(numbers.begin(), numbers.end(), 3);
  fabric.broadcast(ranks - 1, std::span(numbers));
  expect(numbers[9] == 12, "broadcast");

  unsigned from = ranks, word = 0;
  fabric.listen([&](unsigned sender, std::span<const std::byte> message) {
    from = sender;
    std::memcpy(&word, message.data(), sizeof word);
  });
  fabric.send(next, std::span<const unsigned>(&rank, 1));
  expect(fabric.progress(), "a message came");
  expect(from == (rank + ranks - 1) % ranks && word == from, "its sender and its text");
  fabric.listen({});
  expect(!fabric.progress(std::chrono::nanoseconds(0)), "no other message");
  fabric.barrier();  // the former handler hears none of what follows

  bool gone = false, lasted = false;
  const auto say_gone = [&gone](void*) { gone = true; };
  fabric.listen(
      [&, mark = std::shared_ptr<void>(nullptr, say_gone)](unsigned, std::span<const std::byte>) {
        bool &is_gone = gone, &has_lasted = lasted;
        fabric.listen({});
        has_lasted = !is_gone;
      });
  fabric.send(next, std::span<const unsigned>(&rank, 1));
  expect(fabric.progress(), "a message came to a handler that is replaced by it");
  expect(lasted && gone, "a handler goes when it has returned");

  const weir::Window<std::int64_t> window(fabric, 4);
  const std::int64_t mine = 10 + rank;
  window.put(next, 1, std::span(&mine, 1));
  window.flush(next);
  window.fetch_add(0, 2, 1);
  fabric.barrier();
  expect(window.memory()[1] == 10 + (rank + ranks - 1) % ranks, "put");
  std::int64_t count = 0;
  window.get(0, 2, std::span(&count, 1));
  window.flush(0);
  expect(count == ranks, "get");
  fabric.barrier();
  if (rank == 0) expect(window.compare_swap(0, 2, ranks, 7) == ranks, "compare and swap");
  try {
    window.put(0, 4, std::span(&mine, 1));
    expect(false, "a put outside the window throws");
  } catch (const weir::Error& error) {
    expect(error.status() == WEIR_STATUS_INVALID_ARGUMENT, "it is an invalid argument");
  }
  fabric.barrier();
  exchange(fabric);
  count_ranks(fabric);
  pass_in_streams(fabric);
  put_in_streams(fabric);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::strcmp(argv[1], "shm") == 0) {
      const char* const arguments[] = {argv[0], nullptr};
      int status = 0;
      weir::check(weir_fabric_launch(nullptr, static_cast<unsigned>(std::atoi(argv[2])), arguments,
                                     &status));
      return status;
    }
    weir::Fabric fabric;
    run(fabric);
  } catch (const weir::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return failures > 0;
}
