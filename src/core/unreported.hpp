// Failures that the program has not seen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/spin_lock.hpp"
#include "core/failure.hpp"

namespace weir::rt {

/// The failures of one stream, queue or share that no synchronise has reported. Each is logged at
/// most once, and not if a wait, an event or a callback reported it. Any thread.
///
/// Keeps the first few in order, and counts the others. A failure costs no allocation.
class Unreported {
 public:
  /// Adds a failure, which may be null or known already.
  void add(const FailureRef& failure) noexcept;
  /// Moves the failures of another into this one.
  void take(Unreported& other) noexcept;
  /// Drops failures whose root action has at most this id: a synchronise has reported them.
  void forget_up_to(std::uint64_t id) noexcept;
  /// Logs a warning if there are unreported failures, and drops all. `owner`, as "stream", and its
  /// `name` are for the message.
  void report(const char* owner, const std::string& name) noexcept;

 private:
  static constexpr std::size_t kKept = 4;

  void remove_reported() noexcept WEIR_REQUIRES(lock_);

  SpinLock lock_;                                              // of the fields below
  std::array<FailureRef, kKept> kept_ WEIR_GUARDED_BY(lock_);  ///< without gaps
  std::uint64_t others_ WEIR_GUARDED_BY(lock_) = 0;            ///< number of those that did not fit
  std::uint64_t last_other_ WEIR_GUARDED_BY(lock_) = 0;  ///< largest id of a root action among them
};

}  // namespace weir::rt
