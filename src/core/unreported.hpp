// Failures that the program has not been told of.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/spin_lock.hpp"
#include "core/failure.hpp"

namespace weir::rt {

/// The failures of one stream, queue or share that no synchronise has told. Each is logged once at
/// most: not again when it was told by a wait, an event or a callback. Any thread.
///
/// Keeps the first of them in order, and of others the number. A failure costs no allocation.
class Unreported {
 public:
  /// Notes a failure, which may be null or known already.
  void add(const FailureRef& failure) noexcept;
  /// Takes over the failures of another.
  void take(Unreported& other) noexcept;
  /// Forgets failures whose root action has this id or a smaller one: a synchronise has told them.
  void forget_up_to(std::uint64_t id) noexcept;
  /// Logs a warning if there are unreported failures, and forgets all. `owner`, as
  /// "stream", and its name say where they are from.
  void report(const char* owner, const std::string& name) noexcept;

 private:
  static constexpr std::size_t kKept = 4;

  void remove_reported() noexcept WEIR_REQUIRES(lock_);

  SpinLock lock_;                                              // of what follows
  std::array<FailureRef, kKept> kept_ WEIR_GUARDED_BY(lock_);  ///< without gaps
  std::uint64_t others_ WEIR_GUARDED_BY(lock_) = 0;            ///< there was no room for
  std::uint64_t last_other_ WEIR_GUARDED_BY(lock_) = 0;  ///< id of the last root action among them
};

}  // namespace weir::rt
