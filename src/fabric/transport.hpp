// What a rank sends over its link: frames, one-sided operations, and the signs that it lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabric/link.hpp"
#include "fabric/liveness.hpp"
#include "fabric/one_sided.hpp"
#include "fabric/packet_streams.hpp"
#include "fabric/remote_operations.hpp"
#include "fabric/transport_sink.hpp"
#include "fabric/window_server.hpp"

namespace weir::rt {

/// Constant properties of a transport.
struct TransportInfo : LinkInfo {
  std::size_t frame_bytes = 0;     ///< maximum for send()
  std::int64_t patience_ns = 0;    ///< maximum time for unsent data when it leaves
  std::int64_t lost_after_ns = 0;  ///< silence after which a rank is lost; 0: unlimited
};

/// A network as one rank sees it. The same code runs over every link.
///
/// One thread at a time calls it, the holder of the progress lock, except reserve(), offset_of()
/// and wait(): any thread, concurrently with other calls. What needs no packet is asked of link().
///
/// A rank that leaves announces it, and whether it has closed the fabric; to the other ranks it is
/// lost without a failure of its own. The destructor leaves, and waits a bounded time until
/// everything has been sent.
class Transport final : private PacketSink {
 public:
  /// Joins: waits until all ranks have sent their hello. Throws Error.
  Transport(std::unique_ptr<Link> link, const Membership& membership);
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  ~Transport();

  const TransportInfo& info() const noexcept { return info_; }
  Link& link() const noexcept { return *link_; }

  /// Sends a frame; the bytes are copied before it returns. False: no room now; try again after
  /// progress(). Not to the own rank.
  bool send(Rank to, Parts parts) noexcept {
    return liveness_.is_lost(to) || packets_.send(to, PacketKind::frame, {}, parts);
  }
  /// As Link::reserve(). Null where packets carry checksums, which follow the last part.
  std::byte* reserve(Rank to, std::size_t bytes) noexcept {
    return packets_.sends_checksums() ? nullptr : link_->reserve(to, bytes);
  }
  /// Like send(), with the last part at the begin of reserved memory, which returns to the link.
  /// The other parts have at most 64 bytes. False: the caller keeps the memory.
  bool send_reserved(Rank to, Parts parts) noexcept;
  /// Nothing where packets carry checksums: data read in place would have none.
  std::optional<std::uint64_t> offset_of(const void* memory) const noexcept {
    return packets_.sends_checksums() ? std::nullopt : link_->offset_of(memory);
  }

  /// Starts an operation. False: no room now. Operations are not ordered relative to each other or
  /// to frames; a caller that needs order waits for completed(). Not on the own rank.
  bool start(const OneSided& operation) { return operations_.start(operation); }
  /// Makes memory accessible to the other ranks under a number that this rank has not used before.
  void expose(WindowId window, void* memory, std::size_t bytes);
  /// As Link::withdraw().
  bool withdraw(WindowId window) noexcept;
  /// The windows of this rank.
  WindowTable& windows() noexcept { return windows_; }

  /// Makes progress. Returns whether something happened.
  bool progress(TransportSink& sink) noexcept;
  /// Returns whether operations need progress() although no external event will trigger it.
  bool unfinished() const noexcept {
    return operations_.unfinished() || liveness_.has_unreported();
  }
  /// Declares a rank lost. The next progress() reports it.
  void drop(Rank rank, const char* what, const char* detail = "") noexcept {
    liveness_.mark_lost(rank, reason(what, detail));
  }
  /// Leaves before the transport is destroyed, because the process ends. The other ranks learn that
  /// this rank has not closed the fabric. For this rank all of them are lost, as the next
  /// progress() reports.
  void leave_at_exit() noexcept;

  /// As Link::wait(), but no longer than until progress() must check the ranks.
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept;

 private:
  bool receive() noexcept;
  void leave(PacketKind notice) noexcept;
  void packet(Rank from, std::span<const std::byte> bytes) noexcept override;
  void take(Rank from, PacketKind kind, std::span<const std::byte> body);
  bool progress_link() noexcept;
  bool deliver_lost(TransportSink& sink) noexcept;

  const std::unique_ptr<Link> link_;
  TransportInfo info_;
  PacketStreams packets_;
  Liveness liveness_;
  WindowTable windows_;
  WindowServer server_;
  RemoteOperations operations_;
  const Liveness::Receive receive_ = [this] { return receive(); };
  unsigned passes_ = 0;
  bool receiving_ = false;  ///< also during a handler, which may end the process
  bool has_left_ = false;
  /// Frames that arrived before all ranks had joined.
  std::deque<std::pair<Rank, std::vector<std::byte>>> early_;
  TransportSink* sink_ = nullptr;  ///< of the running progress()
};

}  // namespace weir::rt
