// Multiplies tiled matrices through a task queue, with a policy of its own.
//
// Nothing below copies, or says which processor computes what: the queue does. Its policy keeps a
// tile of the result where its first product was computed.
#include <cstddef>
#include <cstdio>
#include <exception>
#include <vector>

#include <weir/weir.hpp>

namespace {

constexpr std::size_t tiles = 6;           // of a matrix, in each direction
constexpr std::size_t edge = 32;           // of a tile
constexpr std::size_t n = tiles * edge;    // of a matrix
constexpr std::size_t tile = edge * edge;  // elements, one after the other

/// C += A B
void multiply(const weir::Call& call) {
  const auto a = call.span<double>(0);
  const auto b = call.span<double>(1);
  const auto c = call.span<double>(2);
  for (std::size_t i = 0; i < edge; ++i) {
    for (std::size_t k = 0; k < edge; ++k) {
      for (std::size_t j = 0; j < edge; ++j) {
        c[i * edge + j] += a[i * edge + k] * b[k * edge + j];
      }
    }
  }
}

/// The place that wrote the result last; for the first product of a tile round robin.
std::size_t choose_owner(const char*, const weir_candidate* candidates, std::size_t count,
                         void* payload) {
  std::size_t& next = *static_cast<std::size_t*>(payload);
  for (std::size_t i = 0; i < count; ++i) {
    if (candidates[i].owned_bytes > 0) return i;  // when it is full, the task waits for it
  }
  const std::size_t choice = next % count;
  if (candidates[choice].full) return WEIR_POLICY_LATER;
  ++next;
  return choice;
}

double a_of(std::size_t row, std::size_t column) {
  return static_cast<double>((row + 2 * column) % 7);
}
double b_of(std::size_t row, std::size_t column) {
  return static_cast<double>((3 * row + column) % 5);
}

weir::Region tile_of(const weir::Buffer& matrix, std::size_t row, std::size_t column) {
  return matrix.elements<double>((row * tiles + column) * tile, tile);
}

/// Where an element is in a matrix of tiles.
std::size_t at(std::size_t row, std::size_t column) {
  const std::size_t start = (row / edge * tiles + column / edge) * tile;
  return start + row % edge * edge + column % edge;
}

std::size_t wrong_elements(const std::vector<double>& c) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;  // of small integers: exact in any order
      for (std::size_t k = 0; k < n; ++k) sum += a_of(i, k) * b_of(k, j);
      if (c[at(i, j)] != sum) ++wrong;
    }
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) try {
  std::size_t next = 0;  // outlives the runtime
  const weir::Runtime runtime(argc > 1 ? argv[1] : "host,sim:cores=1,gbps=6");
  weir_policy_options policy = WEIR_POLICY_OPTIONS_INIT;
  policy.name = "stay-at-home";
  policy.summary = "the place that has the result; round robin at first";
  policy.choose = choose_owner;
  policy.payload = &next;
  weir::check(weir_policy_register(runtime.handle(), &policy));

  std::vector<double> a(n * n), b(n * n), c(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      a[at(i, j)] = a_of(i, j);
      b[at(i, j)] = b_of(i, j);
    }
  }
  const weir::Buffer A = runtime.wrap(a, "A"), B = runtime.wrap(b, "B"), C = runtime.wrap(c, "C");
  const weir::Kernel kernel = runtime.kernel("multiply", multiply);
  const weir::Queue queue = runtime.queue("stay-at-home");

  for (std::size_t k = 0; k < tiles; ++k) {
    for (std::size_t i = 0; i < tiles; ++i) {
      for (std::size_t j = 0; j < tiles; ++j) {
        queue.submit(kernel, {weir::read(tile_of(A, i, k)), weir::read(tile_of(B, k, j)),
                              weir::readwrite(tile_of(C, i, j))});
      }
    }
  }
  queue.acquire(tile_of(C, 0, 0));  // the others may still be computed
  std::printf("C[0][0] = %g\n", c[at(0, 0)]);
  queue.synchronize();

  const weir_queue_info info = queue.info();
  std::printf("%zu places, %llu tasks by policy %s\n", info.place_count,
              static_cast<unsigned long long>(info.completed), info.policy);
  for (const weir_queue_share& share : queue.shares()) {
    std::printf("%s: %llu tasks, %llu KiB in, %llu KiB out\n", share.place,
                static_cast<unsigned long long>(share.tasks),
                static_cast<unsigned long long>(share.bytes_in / 1024),
                static_cast<unsigned long long>(share.bytes_out / 1024));
  }
  std::printf("%zu elements are wrong\n", wrong_elements(c));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "queue: %s\n", error.what());
  return 1;
}
