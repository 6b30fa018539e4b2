// What an expert writes by hand for a CUDA GPU: the peer of weir.
#include "devices/cuda_by_hand.hpp"
#include "devices/cuda_cholesky.hpp"

namespace weir_bench {
namespace {

constexpr char kText[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";
constexpr std::size_t kStreams = 4;

/// A kernel that does nothing.
class EmptyKernel {
 public:
  explicit EmptyKernel(const Cuda& cuda) : launch_(cuda.library(), "cuLaunchKernel") {
    void* library = nullptr;
    cuda.call<void**, const void*, void*, void*, unsigned, void*, void*, unsigned>(
        "cuLibraryLoadData", &library, kText, nullptr, nullptr, 0U, nullptr, nullptr, 0U);
    cuda.call<void**, void*, const char*>("cuLibraryGetKernel", &kernel_, library, "nothing");
  }
  void launch(void* queue) const {
    launch_(kernel_, 1U, 1U, 1U, 64U, 1U, 1U, 0U, queue, nullptr, nullptr);
  }

 private:
  CudaEntry<void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
            void**, void**>
      launch_;
  void* kernel_ = nullptr;
};

/// Nanoseconds for each of many empty kernels, in one stream or in several in turn.
double launches(std::size_t streams, long count) {
  const Cuda cuda;
  const EmptyKernel empty(cuda);
  std::vector<void*> queues;
  for (std::size_t i = 0; i < streams; ++i) queues.push_back(cuda.stream());
  const auto once = [&] {
    return time_of([&] {
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        empty.launch(queues[i % streams]);
      }
      for (void* queue : queues) cuda.wait(queue);
    });
  };
  return median(repeat(1, 5, once)) / static_cast<double>(count) * 1e9;
}

/// A chain of empty kernels, captured from a stream.
class Graph {
 public:
  Graph(const Cuda& cuda, const EmptyKernel& empty, void* queue, long nodes)
      : cuda_(cuda), start_(cuda.library(), "cuGraphLaunch"), queue_(queue) {
    void* captured = nullptr;
    cuda.call<void*, int>("cuStreamBeginCapture_v2", queue, 0);
    for (long node = 0; node < nodes; ++node) empty.launch(queue);
    cuda.call<void*, void**>("cuStreamEndCapture", queue, &captured);
    cuda.call<void**, void*, unsigned long long>("cuGraphInstantiateWithFlags", &graph_, captured,
                                                 0ULL);
    cuda.call<void*>("cuGraphDestroy", captured);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() {
    try {
      cuda_.call<void*>("cuGraphExecDestroy", graph_);
    } catch (const std::exception&) {  // what was measured is known
    }
  }
  void start() const { start_(graph_, queue_); }

 private:
  const Cuda& cuda_;
  const CudaEntry<void*, void*> start_;
  void* const queue_;
  void* graph_ = nullptr;
};

/// Nanoseconds for each of many empty kernels that follow each other, so many as one graph that is
/// launched again and again.
double replays(long nodes, long count) {
  const Cuda cuda;
  void* const queue = cuda.stream();
  const Graph graph(cuda, EmptyKernel(cuda), queue, nodes);
  const long launches = std::max(1L, count / nodes);
  const auto once = [&] {
    return time_of([&] {
      for (long i = 0; i < launches; ++i) graph.start();
      cuda.wait(queue);
    });
  };
  return median(repeat(1, 5, once)) / static_cast<double>(launches * nodes) * 1e9;
}

/// Nanoseconds for each kernel of a graph of so many that is made, launched once and destroyed.
double graphs_made(long nodes) {
  const Cuda cuda;
  void* const queue = cuda.stream();
  const EmptyKernel empty(cuda);
  const auto once = [&] {
    return time_of([&] {
      const Graph graph(cuda, empty, queue, nodes);
      graph.start();
      cuda.wait(queue);
    });
  };
  return median(repeat(2, 9, once)) / static_cast<double>(nodes) * 1e9;
}

/// GB/s of copies from page-locked memory or to it, one after the other; of other memory each is
/// waited for.
double copies(bool to_device, bool pinned, std::size_t bytes, long count) {
  const Cuda cuda;
  std::vector<char> pageable(pinned ? 0 : bytes, 'w');
  void* const host = pinned ? cuda.pinned(bytes) : pageable.data();
  const CudaAddress there = cuda.memory(bytes);
  void* const queue = cuda.stream();
  const auto h2d_pinned =
      cuda.entry<CudaAddress, const void*, std::size_t, void*>("cuMemcpyHtoDAsync_v2");
  const auto d2h_pinned =
      cuda.entry<void*, CudaAddress, std::size_t, void*>("cuMemcpyDtoHAsync_v2");
  const auto h2d = cuda.entry<CudaAddress, const void*, std::size_t>("cuMemcpyHtoD_v2");
  const auto d2h = cuda.entry<void*, CudaAddress, std::size_t>("cuMemcpyDtoH_v2");
  const auto one = [&] {
    if (to_device && pinned) {
      h2d_pinned(there, host, bytes, queue);
    } else if (to_device) {
      h2d(there, host, bytes);
    } else if (pinned) {
      d2h_pinned(host, there, bytes, queue);
    } else {
      d2h(host, there, bytes);
    }
  };
  const auto once = [&] {
    return time_of([&] {
      for (long i = 0; i < count; ++i) one();
      cuda.wait(queue);
    });
  };
  return static_cast<double>(bytes) * static_cast<double>(count) / median(repeat(2, 5, once)) *
         1e-9;
}

/// GFLOP/s of a factorisation of doubles, from page-locked memory to it or on the GPU alone.
double cholesky(long order, bool copies) {
  const Cuda cuda;
  const CudaCholesky problem(cuda, static_cast<int>(order));
  const double n = static_cast<double>(order);
  return (n * n * n / 3 + n * n / 2 + n / 6) * 1e-9 /
         median(repeat(1, 3, [&] { return problem.seconds(copies); }));
}

nlohmann::json run(const Arguments& arguments) {
  const std::string& verb = arguments.verb();
  if (verb == "chain" || verb == "independent") {
    const std::size_t streams = verb == "chain" ? 1 : kStreams;
    return {{"value", launches(streams, arguments.number("--actions", 10'000))},
            {"config", std::to_string(streams) + " stream(s)"}};
  }
  if (verb == "replay" || verb == "capture") {
    const long nodes = std::max(1L, arguments.number("--nodes", 20));
    const double value = verb == "replay" ? replays(nodes, arguments.number("--actions", 10'000))
                                          : graphs_made(nodes);
    return {{"value", value}, {"config", "graphs of " + std::to_string(nodes) + " kernels"}};
  }
  if (verb == "cholesky") {
    const bool copies = arguments.text("--copies", "on") == "on";
    return {{"value", cholesky(arguments.number("--n", 16384), copies)},
            {"config", copies ? "cuSOLVER, page-locked memory" : "cuSOLVER, on the GPU"}};
  }
  if (verb != "h2d" && verb != "d2h") throw std::invalid_argument("unknown: " + verb);
  const bool pinned = arguments.text("--memory", "pinned") == "pinned";
  const auto bytes = static_cast<std::size_t>(arguments.number("--bytes", 1 << 20));
  return {{"value", copies(verb == "h2d", pinned, bytes, arguments.number("--count", 64))},
          {"config", pinned ? "page-locked memory, one stream" : "other memory"}};
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) { return weir_bench::run_program(argc, argv, weir_bench::run); }
