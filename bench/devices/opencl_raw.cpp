// What an expert writes by hand for an OpenCL device that runs code of the host: the peer of weir.
#include <array>
#include <utility>

#include "devices/opencl_by_hand.hpp"

namespace weir_bench {
namespace {

void CL_CALLBACK nothing(void*) {}

/// Nanoseconds for each of many empty native kernels: in order, or independent out of order.
double kernels(bool in_order, long count) {
  const Device device(in_order ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const auto once = [&] {
    return time_of([&] {
      for (long i = 0; i < count; ++i) {
        void* argument = nullptr;
        check(clEnqueueNativeKernel(device.queue(), nothing, &argument, sizeof argument, 0, nullptr,
                                    nullptr, 0, nullptr, nullptr),
              "enqueueing a kernel");
      }
      device.finish();
    });
  };
  return median(repeat(1, 5, once)) / static_cast<double>(count) * 1e9;
}

constexpr char kText[] = R"(
kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void increment(global int* x, int from) { x[from + get_local_id(0)] += 1; }
)";
constexpr std::size_t cell_items = 64;

/// Events of commands. Checks the oldest before it makes more, and so knows how each has ended, as
/// a program must that reports which failed.
class Ends {
 public:
  /// Where the event of the next command goes; null: no event.
  cl_event* next(const Device& device) {
    if (!known_) return nullptr;
    cl_event& slot = events_[count_++ % events_.size()];
    if (slot != nullptr) check_status(device, slot);
    return &slot;
  }
  void finish(const Device& device) {
    device.finish();
    for (cl_event& slot : events_) {
      if (slot != nullptr) check_status(device, slot);
    }
  }
  explicit Ends(bool known) : known_(known) {}

 private:
  static void check_status(const Device& device, cl_event& slot) {
    cl_int status = CL_QUEUED;
    const auto ask = [&] {
      check(
          clGetEventInfo(slot, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr),
          "asking for the end of a kernel");
    };
    ask();
    if (status > CL_COMPLETE) {
      check(clFlush(device.queue()), "flushing");
      check(clWaitForEvents(1, &slot), "waiting for a kernel");
      ask();
    }
    check(status, "a kernel");
    clReleaseEvent(std::exchange(slot, nullptr));
  }

  const bool known_;
  std::array<cl_event, 256> events_{};
  std::size_t count_ = 0;
};

/// The same of kernels that the driver compiles: on one cell, or each on its own. `known`: how each
/// has ended.
double source_kernels(bool in_order, long count, bool known) {
  const Device device(in_order ? 0 : CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const std::size_t cells = in_order ? 1 : static_cast<std::size_t>(count);
  std::vector<int> zeros(cells * cell_items, 0);
  cl_mem buffer = device.buffer(zeros.size() * sizeof(int));
  device.write(buffer, zeros.data(), zeros.size() * sizeof(int));
  cl_kernel kernel = device.kernel(kText, "increment");
  set_argument(kernel, 0, buffer);
  set_argument(kernel, 1, cl_int{0});
  Ends ends(known);
  const auto once = [&] {
    return time_of([&] {
      for (long i = 0; i < count; ++i) {
        if (!in_order) set_argument(kernel, 1, static_cast<cl_int>(i) * cl_int{cell_items});
        check(clEnqueueNDRangeKernel(device.queue(), kernel, 1, nullptr, &cell_items, &cell_items,
                                     0, nullptr, ends.next(device)),
              "enqueueing a kernel");
      }
      ends.finish(device);
    });
  };
  const double seconds = median(repeat(1, 5, once));
  clReleaseKernel(kernel);
  clReleaseMemObject(buffer);
  return seconds / static_cast<double>(count) * 1e9;
}

/// GB/s of copies of so many bytes to the device, or from it.
double copies(bool to_device, std::size_t bytes, long count) {
  const Device device(0);
  cl_mem buffer = device.buffer(bytes);
  std::vector<char> host(bytes, 1);
  // Pages that have not been written are all one, and in the nearest cache.
  check(clEnqueueWriteBuffer(device.queue(), buffer, CL_TRUE, 0, bytes, host.data(), 0, nullptr,
                             nullptr),
        "writing");
  const auto once = [&] {
    return time_of([&] {
      for (long i = 0; i < count; ++i) {
        check(to_device ? clEnqueueWriteBuffer(device.queue(), buffer, CL_FALSE, 0, bytes,
                                               host.data(), 0, nullptr, nullptr)
                        : clEnqueueReadBuffer(device.queue(), buffer, CL_FALSE, 0, bytes,
                                              host.data(), 0, nullptr, nullptr),
              "enqueueing a copy");
      }
      device.finish();
    });
  };
  const double seconds = median(repeat(2, 5, once));
  clReleaseMemObject(buffer);
  return static_cast<double>(bytes) * static_cast<double>(count) / seconds * 1e-9;
}

nlohmann::json run(const Arguments& arguments) {
  const std::string& verb = arguments.verb();
  const long actions = arguments.number("--actions", 10'000);
  if (verb == "chain" || verb == "independent") {
    const bool in_order = verb == "chain",
               source = arguments.text("--kernel", "native") == "source",
               known = arguments.text("--ends", "unknown") == "known";
    return {
        {"value", source ? source_kernels(in_order, actions, known) : kernels(in_order, actions)},
        {"config", in_order ? "one in-order queue" : "one out-of-order queue"}};
  }
  if (verb != "h2d" && verb != "d2h") throw std::invalid_argument("unknown: " + verb);
  const long bytes = arguments.number("--bytes", 1 << 20), count = arguments.number("--count", 64);
  return {{"value", copies(verb == "h2d", static_cast<std::size_t>(bytes), count)},
          {"config", "one in-order queue"}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::run); }
