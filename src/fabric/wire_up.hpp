// What ranks tell each other before the first packet of a fabric: where they run, which networks
// they can use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "fabric/link.hpp"
#include "fabric/wire.hpp"

namespace weir::rt {

/// Packets that arrived before a rank expected them, with their senders.
using EarlyPackets = std::deque<std::pair<Rank, std::vector<std::byte>>>;

/// Sends and receives structs over a link, one rank after the other. A struct has a magic number
/// of its own; bytes may follow it. One thread.
class WireUp final : private PacketSink {
 public:
  /// `early`: what an earlier one has left.
  WireUp(Link& link, std::int64_t within_ns, EarlyPackets early = {});

  /// Throws Error if the rank will not answer.
  template <class Fixed>
  void send(Rank to, const Fixed& fixed, std::span<const std::byte> rest = {}) {
    send_parts(to, bytes_of(fixed), rest);
  }
  /// Waits for the next packet of a rank; `rest` receives what follows the struct, null: nothing
  /// may. Returns nothing, and keeps the packet, if it is another one: the rank runs another weir.
  /// Throws Error if the rank has died, or has not answered within the time.
  template <class Fixed>
  std::optional<Fixed> take(Rank from, std::vector<std::byte>* rest = nullptr) {
    const auto found = next_of(from);
    std::span<const std::byte> bytes = found->second;
    const bool fits = rest != nullptr ? bytes.size() >= sizeof(Fixed)  //
                                      : bytes.size() == sizeof(Fixed);
    if (!fits) return std::nullopt;
    const auto fixed = cut_off<Fixed>(bytes);
    if (fixed.magic != Fixed::kMagic) return std::nullopt;
    if (rest != nullptr) rest->assign(bytes.begin(), bytes.end());
    packets_.erase(found);
    return fixed;
  }
  /// Returns the packets that were not taken.
  EarlyPackets rest() noexcept { return std::move(packets_); }

 private:
  void packet(Rank from, std::span<const std::byte> bytes) noexcept override;
  void send_parts(Rank to, std::span<const std::byte> first, std::span<const std::byte> second);
  EarlyPackets::iterator next_of(Rank from);
  void advance(Rank rank);

  Link& link_;
  const std::int64_t within_ns_, deadline_ns_;
  EarlyPackets packets_;
  bool no_memory_ = false;
};

}  // namespace weir::rt
