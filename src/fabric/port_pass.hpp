// What one pass of a port's progress does.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "fabric/lost_ranks.hpp"
#include "fabric/port_messages.hpp"
#include "fabric/port_operations.hpp"
#include "fabric/transport.hpp"

namespace weir::rt {

/// Gives the transport what threads have submitted, and the messages, operations and losses that it
/// reports to those that wait for them. By the holder of the progress lock, unless stated
/// otherwise.
class PortPass final : private TransportSink {
 public:
  PortPass(Transport& transport, LostRanks& lost_ranks, PortMessages& messages,
           PortOperations& operations) noexcept
      : transport_(transport),
        lost_ranks_(lost_ranks),
        messages_(messages),
        operations_(operations) {}

  /// Makes one pass. Returns whether something happened.
  bool step() noexcept;
  /// Makes passes until everything is sent, or until the deadline.
  void send_all(std::int64_t deadline_ns) noexcept;
  /// Returns whether other threads have submitted something. Any thread.
  bool has_submissions() const noexcept {
    return messages_.has_submissions() || operations_.has_submissions();
  }
  /// Takes over submissions and sends as much as possible.
  void take_submissions() noexcept;
  /// Returns whether another step is needed that no external event will trigger.
  bool unfinished() const noexcept { return messages_.unfinished() || operations_.unfinished(); }

 private:
  static constexpr std::int64_t kBetweenPolls = 1'000'000;

  void arrived(Rank from, std::span<const std::byte> frame) noexcept override;
  void completed(void* token, std::int64_t old, Outcome outcome) noexcept override;
  void lost(Rank rank, const std::string& why) noexcept override;

  Transport& transport_;
  LostRanks& lost_ranks_;
  PortMessages& messages_;
  PortOperations& operations_;
};

}  // namespace weir::rt
