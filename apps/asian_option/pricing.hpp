// A list of options that the places of a run price together.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <weir/weir.hpp>

#include "asian_option/option.hpp"
#include "asian_option/path_kernels.hpp"
#include "common/app_streams.hpp"
#include "common/shared_parts.hpp"

namespace weir::apps {

/// How a place prices the options of a chunk (paper 004): "mt" one after the other, each on all of
/// its threads; "mo" one on each thread; "hybrid" mo on the host and mt elsewhere; "automatic" the
/// one that is measured to be faster.
enum class OptionShape { mt, mo, hybrid, automatic };

/// Settings of the pricing. Only `seed` and `control` change the results.
struct PricingOptions {
  std::string chunks = "learned";
  OptionShape shape = OptionShape::automatic;
  std::uint64_t seed = 1;
  bool control = true;                 ///< the geometric average
  weir_fabric* fabric = nullptr;       ///< whose ranks share the options
  std::string scheduler = "onesided";  ///< see weir_share_options
};

/// Prices options. One thread calls it, except cancel().
class Pricing {
 public:
  Pricing(const weir::Runtime& runtime, const AppStreams& app_streams, const PathKernels& kernels,
          std::vector<Option> options, const PricingOptions& wanted);

  void start();
  void wait(std::chrono::nanoseconds timeout) { parts_.wait(timeout); }
  void cancel() noexcept { parts_.cancel(); }

  const std::vector<Option>& options() const noexcept { return options_; }
  /// Of all options, once they are priced; at rank 0 of several.
  std::vector<Valuation> valuations() const;
  /// Steps of paths of all options.
  double path_steps() const noexcept;
  const SharedParts& parts() const noexcept { return parts_; }
  /// Returns "mt" or "mo", the way that a place used last.
  const char* shape_of(const weir_share_part& part, std::size_t place) const noexcept;

 private:
  bool on_threads(std::size_t place, std::size_t way) const noexcept;
  weir::Event enqueue(const weir::Chunk& chunk) const;

  const PathKernels& kernels_;
  const PricingOptions wanted_;
  const std::vector<Option> options_;
  std::vector<double> work_;
  std::vector<std::size_t> first_group_;  ///< of each option, and behind the last
  std::vector<std::size_t> offsets_;      ///< of these groups in bytes
  std::vector<PathSums> sums_;
  weir::Buffer buffer_;
  std::vector<bool> is_host_;  ///< of the places, which are the same on all ranks
  SharedParts parts_;
};

}  // namespace weir::apps
