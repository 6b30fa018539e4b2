// Matrix products, Cholesky factorisations and stencils as tasks on modelled machines, in virtual
// time.
//
// The bytes of operands and the rates of links are scaled down alike: copies take as long as those
// of whole tiles, and no study needs the memory of the matrices.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <weir/weir.hpp>

namespace weir_study {

constexpr double kScale = 512;

/// Cores of a rate, and the link to them; a host has none.
struct Processor {
  unsigned cores;
  double gflops;
  double gbps = 1e6, latency_us = 0;
  const char* duplex = "full";
  double launch_us = 0;

  double rate() const { return cores * gflops; }
  std::string domain() const {
    char text[192];
    std::snprintf(text, sizeof text,
                  "sim:clock=virtual,cores=%u,gflops=%g,gbps=%.9g,latency_us=%g,duplex=%s,"
                  "launch_us=%g,kernels=skip",
                  cores, gflops, gbps / kScale, latency_us, duplex, launch_us);
    return text;
  }
};

struct Machine {
  std::string name;
  std::vector<Processor> processors;

  std::string domains() const {
    std::string text;
    for (const Processor& each : processors) text += (text.empty() ? "" : ",") + each.domain();
    return text;
  }
  double rate() const {
    double sum = 0;
    for (const Processor& each : processors) sum += each.rate();
    return sum;
  }
};

/// Adds machines with one device beside a host, with two, and so on.
inline void add_machines(std::vector<Machine>& machines, const std::string& host_name,
                         const Processor& host, const std::string& device_name,
                         const Processor& device, std::initializer_list<std::size_t> counts) {
  for (const std::size_t count : counts) {
    Machine machine{host_name + " + ", {host}};
    if (count > 1) machine.name += std::to_string(count) + " ";
    machine.name += device_name;
    machine.processors.insert(machine.processors.end(), count, device);
    machines.push_back(std::move(machine));
  }
}

/// Hosts and devices of different proportions: with the rates of data sheets and published
/// measurements, devices that are as fast as a host or several times so, and devices alone.
inline std::vector<Machine> machines() {
  const Processor hsw{28, 32.2}, ivb{24, 19.4}, few{16, 40}, grace{72, 42}, small{8, 20};
  const Processor knc{60, 16.5, 6.5, 15, "half", 20}, phi{56, 16.4, 6.9, 10, "half", 20};
  const Processor k40x{15, 85, 10, 8, "full", 7}, wide{4, 250, 12, 10, "half"};
  const Processor h100_pcie{114, 380, 55, 8, "full", 5}, h100_sxm{132, 417, 55, 8, "full", 5};
  const Processor hopper{132, 417, 375, 8, "full", 5}, mi300x{304, 322, 55, 10, "full", 5};
  std::vector<Machine> all;
  add_machines(all, "HSW", hsw, "KNC", knc, {1, 2});
  add_machines(all, "IVB", ivb, "KNC", knc, {1, 2});
  add_machines(all, "IVB", ivb, "Phi 31SP", phi, {1, 2});
  add_machines(all, "host", few, "K40x", k40x, {1, 2});
  add_machines(all, "small", small, "wide", wide, {1, 2});
  add_machines(all, "HSW", hsw, "H100 PCIe", h100_pcie, {1, 2});
  add_machines(all, "HSW", hsw, "H100 SXM", h100_sxm, {1, 4});
  add_machines(all, "Grace", grace, "Hopper", hopper, {1, 2});
  add_machines(all, "HSW", hsw, "MI300X", mi300x, {1, 2});
  const Processor even{16, 20};
  for (const double speed : {1, 2, 4}) {
    const Processor device{16, 20 * speed, 12, 10, "half"};
    add_machines(all, "1", even, "1:" + std::to_string(static_cast<int>(speed)), device, {1, 2, 4});
  }
  const Processor eight{8, 35, 8, 10}, four{4, 35, 8, 10};
  all.push_back({"8 + 4 + 8 cores", {eight, four, eight}});
  return all;
}

struct Problem {
  bool cholesky;
  std::size_t n, tile;
  double slower = 1;  ///< how many times as long kernels take as their operations say

  std::size_t tiles() const { return n / tile; }
  double flops() const {
    const auto order = static_cast<double>(n);
    return order * order * order * (cholesky ? 1.0 / 3 : 2.0);
  }
  std::string name() const {
    return (cholesky ? "cholesky " : "matmul ") + std::to_string(n) + "/" + std::to_string(tile);
  }
};

/// Steps of a stencil on a square grid, divided into strips of rows.
struct Stencil {
  std::size_t n, strips, steps;

  double flops_of_strip() const { return 6.0 * static_cast<double>(n * n / strips); }
};

/// A queue on a modelled machine.
class Study {
 public:
  /// Places are those of `places`, of all cores of each domain; none: one for each domain.
  Study(const std::string& domains, const char* policy, bool models = false)
      : runtime_(domains.c_str()) {
    for (const char* name : {"gemm", "syrk", "trsm", "potrf"}) kernels_.push_back(add_kernel(name));
    open(policy, models);
  }

  const weir::Runtime& runtime() const { return runtime_; }
  const weir::Queue& queue() const { return queue_; }

  /// Makes another queue, on the first domain alone if wanted.
  void open(const char* policy, bool models, bool first_alone = false) {
    queue_ = {};
    place_ = {};
    weir_queue_options options = WEIR_QUEUE_OPTIONS_INIT;
    options.policy = policy;
    options.no_models = !models;
    weir_place* handle = nullptr;
    if (first_alone) {
      place_ = runtime_.domain(0).place();
      handle = place_.handle();
      options.places = &handle;
      options.place_count = 1;
    }
    queue_ = runtime_.queue(options);
  }

  /// Returns how many seconds of virtual time a problem takes.
  double run(const Problem& problem) const {
    const weir::Buffer buffer = runtime_.buffer(bytes_of(problem));
    return seconds_of([&] {
      if (problem.cholesky) {
        submit_cholesky(buffer, problem);
      } else {
        submit_matmul(buffer, problem);
      }
    });
  }
  double run(const Stencil& stencil) const {
    const std::size_t bytes = stencil.n * scaled(1, stencil.n);
    const weir::Buffer even = runtime_.buffer(bytes), odd = runtime_.buffer(bytes);
    return seconds_of([&] {
      for (std::size_t step = 0; step < stencil.steps; ++step) {
        submit_step(step % 2 == 0 ? even : odd, step % 2 == 0 ? odd : even, stencil);
      }
    });
  }

 private:
  template <class Submit>
  double seconds_of(const Submit& submit) const {
    const auto start = runtime_.now();
    submit();
    queue_.synchronize();
    return std::chrono::duration<double>(runtime_.now() - start).count();
  }
  weir::Kernel add_kernel(const char* name) const {
    weir_implementation code = {"host", [](const weir_call*) { return WEIR_STATUS_OK; }, nullptr};
    weir_kernel_options options = WEIR_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.implementations = &code;
    options.implementation_count = 1;
    options.cost = [](const weir_call* call) { return weir_cost{call->scalars[0].value.f64, 0}; };
    weir::check(weir_kernel_register(runtime_.handle(), &options, nullptr));
    return runtime_.kernel(name);
  }

  static std::size_t scaled(std::size_t rows, std::size_t columns) {
    return std::max<std::size_t>(
        8, rows * columns * sizeof(double) / static_cast<std::size_t>(kScale));
  }
  static std::size_t bytes_of(const Problem& problem) {
    const std::size_t tiles = problem.tiles();
    const std::size_t panels = problem.cholesky ? 0 : 2 * tiles * scaled(problem.tile, problem.n);
    return panels + tiles * tiles * scaled(problem.tile, problem.tile);
  }

  /// As the application does: a row of tiles times a column of tiles, to and fro.
  void submit_matmul(const weir::Buffer& buffer, const Problem& problem) const {
    const std::size_t tiles = problem.tiles(), panel = scaled(problem.tile, problem.n);
    const std::size_t tile = scaled(problem.tile, problem.tile);
    const double flops = problem.slower * problem.flops() / static_cast<double>(tiles * tiles);
    for (std::size_t j = 0; j < tiles; ++j) {
      for (std::size_t step = 0; step < tiles; ++step) {
        const std::size_t i = j % 2 == 0 ? step : tiles - 1 - step;
        queue_.submit(kernels_[0],
                      {weir::read(buffer.range(i * panel, panel)),
                       weir::read(buffer.range((tiles + j) * panel, panel)),
                       weir::write(buffer.range(2 * tiles * panel + (j * tiles + i) * tile, tile))},
                      {flops});
      }
    }
  }

  void submit_cholesky(const weir::Buffer& buffer, const Problem& problem) const {
    const std::size_t tiles = problem.tiles(), tile = scaled(problem.tile, problem.tile);
    const auto edge = static_cast<double>(problem.tile);
    const double flops = problem.slower * edge * edge * edge;
    const auto at = [&](std::size_t i, std::size_t j) {
      return buffer.range((i * tiles + j) * tile, tile);
    };
    for (std::size_t k = 0; k < tiles; ++k) {
      queue_.submit(kernels_[3], {weir::readwrite(at(k, k))}, {flops / 3}, {.priority = 1});
      for (std::size_t i = k + 1; i < tiles; ++i) {
        queue_.submit(kernels_[2], {weir::read(at(k, k)), weir::readwrite(at(i, k))}, {flops},
                      {.priority = 1});
      }
      for (std::size_t j = k + 1; j < tiles; ++j) {
        const int priority = j == k + 1 ? 1 : 0;
        queue_.submit(kernels_[1], {weir::read(at(j, k)), weir::readwrite(at(j, j))}, {flops},
                      {.priority = priority});
        for (std::size_t i = j + 1; i < tiles; ++i) {
          queue_.submit(kernels_[0],
                        {weir::read(at(i, k)), weir::read(at(j, k)), weir::readwrite(at(i, j))},
                        {2 * flops}, {.priority = priority});
        }
      }
    }
  }

  /// A strip is its first row, its last one and those between. Each reads the rows beside it, too.
  void submit_step(const weir::Buffer& now, const weir::Buffer& next,
                   const Stencil& stencil) const {
    const std::size_t row = scaled(1, stencil.n), strip = stencil.n / stencil.strips * row;
    for (std::size_t at = 0; at < stencil.strips * strip; at += strip) {
      std::vector<weir::Operand> operands;
      if (at > 0) operands.push_back(weir::read(now.range(at - row, row)));
      if (at + strip < stencil.strips * strip)
        operands.push_back(weir::read(now.range(at + strip, row)));
      for (const auto& [first, bytes] : {std::pair{at, row}, std::pair{at + row, strip - 2 * row},
                                         std::pair{at + strip - row, row}}) {
        operands.push_back(weir::read(now.range(first, bytes)));
        operands.push_back(weir::write(next.range(first, bytes)));
      }
      const weir::Scalar flops[] = {stencil.flops_of_strip()};
      queue_.submit(kernels_[0], operands, flops);
    }
  }

  weir::Runtime runtime_;
  std::vector<weir::Kernel> kernels_;
  weir::Place place_;
  weir::Queue queue_;
};

}  // namespace weir_study
