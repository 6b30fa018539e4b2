// Parts of a run that places fetch in chunks, instead of being dealt to streams.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weir/weir.hpp>

#include "common/app_streams.hpp"

namespace weir::apps {

/// The share of one run after the other. One thread calls it, except cancel().
class SharedParts {
 public:
  /// With a fabric its ranks share.
  SharedParts(const weir::Runtime& runtime, const AppStreams& app_streams,
              weir_fabric* fabric = nullptr)
      : runtime_(runtime), places_(app_streams.place_handles()), fabric_(fabric) {}

  /// Distributes the parts [0, parts) over the places of the streams: see weir::Runtime::share().
  template <class Enqueue>
  void start(std::size_t parts, Enqueue enqueue, weir::ShareOptions options) {
    const std::lock_guard<std::mutex> lock(mutex_);
    share_.reset();
    options.places = places_;
    options.fabric = fabric_;
    share_.emplace(runtime_.share(parts, std::move(enqueue), options));
  }
  void wait(std::chrono::nanoseconds timeout) { share_->wait(timeout); }
  void cancel() noexcept;

  const weir::Share& share() const noexcept { return *share_; }
  /// Time over the least time that was possible.
  double ratio() const;
  /// Returns rows of a report: the makespan, and the figures of each place. shape_of(part, place)
  /// adds the way of each, if it is not empty.
  template <class ShapeOf>
  std::vector<std::pair<std::string, std::string>> describe(ShapeOf&& shape_of) const {
    std::vector<std::string> shapes;
    const auto parts = share_->parts();
    for (std::size_t i = 0; i < parts.size(); ++i) shapes.emplace_back(shape_of(parts[i], i));
    return describe_with(shapes);
  }
  std::vector<std::pair<std::string, std::string>> describe() const {
    return describe([](const weir_share_part&, std::size_t) { return ""; });
  }

 private:
  std::vector<std::pair<std::string, std::string>> describe_with(
      const std::vector<std::string>& shapes) const;

  const weir::Runtime& runtime_;
  const std::vector<weir_place*> places_;
  weir_fabric* const fabric_;
  std::mutex mutex_;  ///< share_ is made, or cancelled
  std::optional<weir::Share> share_;
};

/// The ways to choose chunks, a line for each: what `--chunk help` prints.
std::string chunk_list();

}  // namespace weir::apps
