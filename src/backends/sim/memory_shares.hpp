// The bandwidth of a simulated device's memory, shared by the kernels that run on it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace weir::rt {

/// Divides bandwidth by generalised processor sharing: at any time each kernel with bytes to move
/// gets bandwidth in proportion to its threads, in all places, and at most `most_per_thread` for
/// each. So the end of a kernel changes when another one starts or ends. As the bound is in the
/// proportion of the threads, too, this is the max-min fair division.
///
/// Instead of the remaining bytes of each kernel it keeps the *service*: the bytes that one thread
/// would have moved since the beginning. A kernel ends when the service has grown by its bytes /
/// its threads, which no other kernel changes.
///
/// Example, at 10 MB/ms: kernel A, one thread and 40 MB, starts at 0 ms and kernel B, three threads
/// and 30 MB, at 2 ms. A moves 20 MB alone; then A gets 2.5 MB/ms and B 7.5, so that B ends at 6
/// ms. The last 10 MB of A take 1 ms, at full bandwidth again: A ends at 7 ms.
///
/// Times are in nanoseconds. Not thread-safe. Allocates nothing. add() takes O(kernels), O(1) where
/// the new kernel is the last to end; all else takes O(1).
class MemoryShares {
 public:
  /// A kernel that moves bytes. Must not be destroyed while it does.
  class Kernel {
   public:
    Kernel() = default;
    Kernel(const Kernel&) = delete;
    Kernel& operator=(const Kernel&) = delete;

    /// Called when all bytes are moved.
    virtual void moved() noexcept = 0;

   protected:
    ~Kernel() = default;

   private:
    friend class MemoryShares;
    double ends_at_ = 0;  ///< service
    double threads_ = 0;
    Kernel *before_ = nullptr, *after_ = nullptr;  ///< in the order of the ends
  };

  /// `most_per_thread` bounds what a thread gets while others leave it bandwidth. Either may be
  /// infinite.
  explicit MemoryShares(double bytes_per_s,
                        double most_per_thread = std::numeric_limits<double>::infinity())
      : bytes_per_ns_(bytes_per_s * 1e-9), most_per_thread_ns_(most_per_thread * 1e-9) {}

  bool empty() const noexcept { return first_ == nullptr; }

  /// Advances time. It ends no kernel: see take_ended().
  void advance(double ns) noexcept {
    if (empty()) return;
    service_ += ns * service_per_ns();
    if (service_ > kMostService) rebase();
  }

  /// Starts a kernel of finite bytes above 0 and at least one thread.
  void add(Kernel& kernel, double bytes, double threads) noexcept {
    if (empty()) service_ = 0;
    kernel.ends_at_ = service_ + bytes / threads;
    kernel.threads_ = threads;
    threads_ += threads;
    kernel.before_ = last_;
    kernel.after_ = nullptr;
    while (kernel.before_ != nullptr && kernel.before_->ends_at_ > kernel.ends_at_) {
      kernel.after_ = std::exchange(kernel.before_, kernel.before_->before_);
    }
    link(kernel.before_, &kernel);
    link(&kernel, kernel.after_);
  }

  /// Returns the time until the next end if nothing starts until then. Not when empty.
  double next_end_ns() const noexcept { return (first_->ends_at_ - service_) / service_per_ns(); }

  /// Removes the next kernel that ends now, to the nanosecond; null: none. Kernels that end at the
  /// same time are returned in the order in which they started.
  Kernel* take_ended() noexcept {
    if (empty() || !(next_end_ns() < kSameTimeNs)) return nullptr;
    Kernel* const ended = first_;
    link(nullptr, ended->after_);
    threads_ -= ended->threads_;
    return ended;
  }

 private:
  static constexpr double kSameTimeNs = 0.5;
  static constexpr double kMostService = 1e12;  ///< so that it stays exact

  double service_per_ns() const noexcept {
    return std::min(bytes_per_ns_ / threads_, most_per_thread_ns_);
  }

  void link(Kernel* before, Kernel* after) noexcept {
    (before != nullptr ? before->after_ : first_) = after;
    (after != nullptr ? after->before_ : last_) = before;
  }

  void rebase() noexcept {
    for (Kernel* each = first_; each != nullptr; each = each->after_) each->ends_at_ -= service_;
    service_ = 0;
  }

  const double bytes_per_ns_, most_per_thread_ns_;
  double service_ = 0;
  double threads_ = 0;  ///< of all kernels; whole numbers, so sums are exact
  Kernel *first_ = nullptr, *last_ = nullptr;
};

}  // namespace weir::rt
