// The kernels of the suite for devices that run code of the host.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>

#include "suite.hpp"

namespace weir::conformance {

namespace {

using Numbers = std::span<std::int64_t>;

Numbers numbers(const Call& call, std::size_t operand) { return call.span<std::int64_t>(operand); }

/// Two calls that wait for each other.
class Rendezvous {
 public:
  explicit Rendezvous(std::chrono::milliseconds patience) : patience_(patience) {}

  void arrive() {
    const unsigned mine = arrived_.fetch_add(1) + 1;
    const unsigned wanted = mine + mine % 2;
    const auto limit = std::chrono::steady_clock::now() + patience_;
    while (arrived_.load() < wanted) {
      if (std::chrono::steady_clock::now() > limit) throw std::runtime_error("no call came");
      std::this_thread::yield();
    }
  }

 private:
  const std::chrono::milliseconds patience_;
  std::atomic<unsigned> arrived_{0};
};

}  // namespace

Kernels host_code(const Runtime& runtime) { return host_code(runtime, std::chrono::minutes(1)); }

Kernels host_code(const Runtime& runtime, std::chrono::milliseconds patience) {
  Kernels made;
  made.fill = runtime.kernel("fill", [](const Call& call) {
    for (std::int64_t& x : numbers(call, 0)) x = call.scalar<std::int64_t>(0);
  });
  made.add = runtime.kernel("add", [](const Call& call) {
    for (std::int64_t& x : numbers(call, 0)) x += call.scalar<std::int64_t>(0);
  });
  made.mix = runtime.kernel("mix", [](const Call& call) {
    const Numbers x = numbers(call, 0), y = numbers(call, 1);
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = static_cast<std::int64_t>(3 * static_cast<std::uint64_t>(y[i]) +
                                       static_cast<std::uint64_t>(x[i]) +
                                       call.scalar<std::uint64_t>(0));
  });
  made.number = runtime.kernel("number", [](const Call& call) {
    const auto tile = call.tile<std::int64_t>(0);
    for (std::size_t column = 0; column < tile.columns; ++column) {
      for (std::size_t row = 0; row < tile.rows; ++row) {
        tile(row, column) = static_cast<std::int64_t>(1000 * column + row);
      }
    }
  });
  made.scalars = runtime.kernel("scalars", [](const Call& call) {
    const std::span<double> values = call.span<double>(0);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = call.scalar<double>(i);
  });
  made.gather = runtime.kernel("gather", [](const Call& call) {
    const std::size_t last = call.handle()->operand_count - 1;
    for (std::size_t i = 0; i < last; ++i) numbers(call, last)[i] = numbers(call, i)[0];
  });
  made.parallel = runtime.kernel(
      "parallel",
      [](const Call& call) {
        const Numbers x = numbers(call, 0);
        call.parallel_for(x.size(), 1, [&](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) x[i] += static_cast<std::int64_t>(i);
        });
      },
      WEIR_KERNEL_SHAPE_PARALLEL);
  made.fail =
      runtime.kernel("fail", [](const Call&) { throw std::runtime_error("tile 7 is broken"); });
  const auto rendezvous = std::make_shared<Rendezvous>(patience);
  made.meet = runtime.kernel("meet", [rendezvous](const Call&) { rendezvous->arrive(); });
  made.held = runtime.kernel("held", [](const Call&) { holding.wait(true); });
  return made;
}

}  // namespace weir::conformance
