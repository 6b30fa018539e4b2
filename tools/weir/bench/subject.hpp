// A domain that benchmarks measure, and the operations that all of them need.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <weir/weir.hpp>

namespace weir::cli::bench {

using Json = nlohmann::ordered_json;

/// The kernels of hBench: B[i] = A[i] + alpha, `iterations` times. Registered once in a runtime.
struct Kernels {
  explicit Kernels(const weir::Runtime& runtime);
  weir::Kernel add;    ///< on the whole place
  weir::Kernel empty;  ///< does nothing, on one core
};

/// Two arrays of floats, A and B, in blocks of equal size, and actions on the blocks.
class Arrays {
 public:
  static constexpr float kAlpha = 1;

  /// Fills A with small integers: sums stay exact. Throws weir::Error.
  Arrays(const weir::Runtime& runtime, const Kernels& kernels, std::size_t blocks,
         std::size_t block_bytes);

  std::size_t blocks() const noexcept { return blocks_; }
  weir::Event upload(const weir::Stream& stream, std::size_t block) const;
  weir::Event download(const weir::Stream& stream, std::size_t block) const;
  /// On `count` blocks from `block` in one action.
  weir::Event add(const weir::Stream& stream, int iterations, std::size_t block,
                  std::size_t count = 1) const;
  /// Returns how many elements of B are wrong after `iterations`.
  std::size_t wrong(int iterations) const;

 private:
  std::size_t blocks_, elements_;  ///< elements of a block
  const Kernels& kernels_;
  weir::Buffer a_, b_;
};

/// One domain, to be divided into places and measured.
class Subject {
 public:
  Subject(const weir::Runtime& runtime, std::size_t domain, std::size_t repeat)
      : runtime_(runtime), domain_(runtime.domain(domain)), repeat_(repeat) {}

  const weir::Runtime& runtime() const noexcept { return runtime_; }
  const weir::Domain& domain() const noexcept { return domain_; }
  weir_domain_info info() const { return domain_.info(); }
  /// Cores, where hardware threads share them.
  std::size_t whole_cores() const;

  /// Runs `work`, which enqueues actions, and waits for them, several times after one warm-up run;
  /// returns the median time in seconds, on the platform's clock.
  double seconds(const std::function<void()>& work) const;
  /// Name, description, cores and clock.
  Json facts() const;

 private:
  double once(const std::function<void()>& work) const;

  const weir::Runtime& runtime_;
  const weir::Domain domain_;
  const std::size_t repeat_;
};

/// Places of a domain with one or more streams each.
class Rig {
 public:
  Rig(const Subject& subject, std::size_t places, std::size_t streams_each = 1);
  /// Returns a stream; consecutive numbers are on different places.
  const weir::Stream& operator[](std::size_t number) const {
    return streams_[number % streams_.size()];
  }

 private:
  std::vector<weir::Place> places_;
  std::vector<weir::Stream> streams_;
};

double median(std::vector<double> samples);

}  // namespace weir::cli::bench
