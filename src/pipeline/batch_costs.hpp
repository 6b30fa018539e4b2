// What the batches of a kernel cost on a device.
#pragma once

#include <cstddef>

namespace weir::rt {

/// A busy device completes a batch of n items launch_ns + n item_ns + (n - m) tail_ns after the
/// batch before, which had m items; see BatchTarget.
struct BatchCosts {
  double launch_ns = 0, item_ns = 0, tail_ns = 0;
  std::size_t target = 0;  ///< items of a batch; 0: nothing is known

  bool known() const noexcept { return target > 0; }
};

}  // namespace weir::rt
