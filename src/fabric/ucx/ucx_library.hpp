// Finds and loads the library for UCX, and connects the ranks of a fabric by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "fabric/link.hpp"
#include "fabric/wire_up.hpp"

namespace weir::rt {

/// A link over UCX. Ranks exchange addresses over another link, which started them, connect, and
/// give that link to this one.
class UcxLink : public Link {
 public:
  /// Returns where other ranks reach this one.
  virtual std::span<const std::byte> address() const noexcept = 0;
  /// Prepares packets to a rank. Returns why that is impossible, "" if it is not.
  virtual std::string connect(Rank rank, std::span<const std::byte> address) noexcept = 0;
  /// All ranks are connected. The other link carries no packets any more, but ends the ranks.
  virtual void begin(std::unique_ptr<Link> starter) noexcept = 0;
};

/// Debian packages that are needed to build weir's library for UCX.
inline constexpr const char* kUcxPackages = "libucx-dev";
/// Returns the path of weir's library for UCX; "" if it does not exist.
std::string ucx_library_path();

/// Returns a link over UCX, if all ranks can use it, or `starter` itself, and logs why. All ranks
/// call it with the same `required`: whether to throw Error instead. `early`: packets of `starter`
/// that have arrived before; what is left of them afterwards. Throws Error if a rank has died, or
/// has not answered within a time.
std::unique_ptr<Link> ucx_link(std::unique_ptr<Link> starter, EarlyPackets& early,
                               std::int64_t within_ns, bool required);

// Symbols that the library exports, beside weir_ucx_link_build: its link_build().
/// weir_ucx_link_open: returns null with a message when UCX cannot be used.
using UcxLinkOpen = UcxLink* (*)(Rank rank, Rank ranks, char* message, std::size_t bytes);

}  // namespace weir::rt
