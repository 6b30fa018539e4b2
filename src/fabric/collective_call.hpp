// Describes a call of a collective operation.
#pragma once

#include <cstdint>
#include <string>

namespace weir::rt {

enum class Collective : std::uint8_t {
  barrier,
  broadcast,
  gather,
  scatter,
  all_to_all,
  reduce,
  scan,
  exclusive_scan,
  split,
  shrink,
};

/// The arguments of a collective operation that must be the same on all ranks. Sent with each of
/// its messages.
struct CollectiveCall {
  static constexpr std::uint32_t kAllRanks = UINT32_MAX;  ///< all ranks receive the result

  Collective what{};
  std::uint8_t type = 0;       ///< of the numbers of a reduction: weir_number
  std::uint8_t operation = 0;  ///< of a reduction: weir_fabric_op
  std::uint8_t unused = 0;
  std::uint32_t root = 0;   ///< the rank that sends or receives, or kAllRanks
  std::uint64_t count = 0;  ///< of bytes of a rank, or of numbers

  bool operator==(const CollectiveCall&) const = default;
};

/// Returns "broadcast of 8 bytes from rank 0", "sum of 3 doubles to all ranks".
std::string text_of(const CollectiveCall& call);

}  // namespace weir::rt
