// Memory of actions in flight, and allocations of actions in steady state.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>

#include <unistd.h>
#include <weir/weir.hpp>

#include "common/program.hpp"

namespace {

std::atomic<long> allocations{0};

}  // namespace

// The program's allocator, which the library uses too: glibc's with a counter in front.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  *out = aligned_alloc(alignment, bytes);
  return *out == nullptr ? 12 : 0;
}
}

namespace weir_bench {
namespace {

/// Returns the resident memory of the program in MB.
double resident_mb() {
  std::ifstream file("/proc/self/statm");
  double size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) * 1e-6;
}

/// One stream whose actions can be held back: a gate goes first that all depend on.
class Subject {
 public:
  Subject()
      : empty_(runtime_.kernel("empty", [](weir::Call&) {})),
        gate_(runtime_.kernel("gate", [this](weir::Call&) { open_.wait(false); })),
        buffer_(runtime_.buffer(cells * cell_bytes)),
        place_(runtime_.domain(0).place()),
        stream_(place_.stream({.max_in_flight = SIZE_MAX})) {}

  /// Enqueues `actions` actions, each with a region to read and write and one to read.
  void enqueue(long actions) const {
    weir_operand operands[2] = {{buffer_.handle(), {}, WEIR_ACCESS_READ},
                                {buffer_.handle(), {}, WEIR_ACCESS_READ_WRITE}};
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel = empty_.handle();
    compute.operands = operands;
    compute.operand_count = 2;
    for (long action = 0; action < actions; ++action) {
      const auto cell = static_cast<std::size_t>(action) % (cells - 1);
      operands[0].region = weir_region_range(cell * cell_bytes, cell_bytes);
      operands[1].region = weir_region_range((cell + 1) * cell_bytes, cell_bytes);
      weir::check(weir_stream_compute(stream_.handle(), &compute, nullptr));
    }
  }
  void block() {
    open_ = false;
    stream_.compute(gate_, {weir::readwrite(buffer_.all())});
  }
  void unblock() {
    open_ = true;
    open_.notify_all();
  }
  void finish() const { stream_.synchronize(); }

 private:
  static constexpr std::size_t cells = 1025, cell_bytes = 64;

  weir::Runtime runtime_{"host"};
  std::atomic<bool> open_{true};
  weir::Kernel empty_, gate_;
  weir::Buffer buffer_;
  weir::Place place_;
  weir::Stream stream_;
};

nlohmann::json measure_in_flight(long actions) {
  Subject subject;
  const double before = resident_mb();
  subject.block();
  subject.enqueue(actions);
  const double used = resident_mb() - before;
  subject.unblock();
  subject.finish();
  return {{"value", used},
          {"unit", "MB"},
          {"config", std::to_string(actions) + " actions in flight, two operands each"}};
}

nlohmann::json measure_allocations(long actions) {
  Subject subject;
  subject.block();
  subject.enqueue(actions);
  subject.unblock();
  subject.finish();
  const long before = allocations;
  subject.enqueue(actions);
  subject.finish();
  const long made = allocations - before;
  return {{"value", made},
          {"unit", "allocations"},
          {"config", std::to_string(actions) + " actions, two operands each, after a warm-up"}};
}

nlohmann::json run(const Arguments& arguments) {
  const long actions = arguments.number("--actions", 1'000'000);
  if (arguments.verb() == "in-flight") return measure_in_flight(actions);
  if (arguments.verb() == "allocations") return measure_allocations(actions);
  throw std::invalid_argument("unknown measurement '" + arguments.verb() + "'");
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::run); }
