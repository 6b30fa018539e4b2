// This process as one of several.
#pragma once

#include <memory>
#include <span>

#include <weir/weir.hpp>

namespace weir::apps {

/// The rank that this process was started as, or the only one.
class Membership {
 public:
  /// With the progress that weir_fabric_options names; nullptr: the usual one.
  explicit Membership(const char* progress = nullptr) {
    weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
    options.progress = progress;
    weir_fabric* joined = nullptr;
    weir::check(weir_fabric_open(&options, &joined));
    fabric_.reset(joined);
    rank_ = weir_fabric_rank(joined);
    ranks_ = weir_fabric_ranks(joined);
    if (ranks_ == 1) fabric_.reset();
  }

  /// nullptr: there are no others.
  weir_fabric* fabric() const noexcept { return fabric_.get(); }
  unsigned rank() const noexcept { return rank_; }
  unsigned ranks() const noexcept { return ranks_; }

  /// Waits for all ranks.
  void meet() const {
    if (fabric_ != nullptr) weir::check(weir_fabric_barrier(fabric(), WEIR_FOREVER));
  }
  /// Adds up over all ranks, in their order.
  void sum(std::span<double> values) const {
    if (fabric_ == nullptr) return;
    weir::check(weir_fabric_reduce_double(fabric(), values.data(), values.size(),
                                          WEIR_FABRIC_OP_SUM, WEIR_FOREVER));
  }

 private:
  struct Close {
    void operator()(weir_fabric* fabric) const noexcept { weir_fabric_close(fabric); }
  };
  std::unique_ptr<weir_fabric, Close> fabric_;
  unsigned rank_ = 0, ranks_ = 1;
};

}  // namespace weir::apps
