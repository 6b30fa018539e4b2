// A link in whose memory packets can be made, as in that of MPI.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "net/link.hpp"

namespace weir::rt::test {

/// Sends by another link, in order. A packet that has no room there waits, and keeps others back.
class MakingLink final : public Link {
 public:
  explicit MakingLink(std::unique_ptr<Link> link)
      : link_(std::move(link)), made_(link_->info().ranks) {}

  const LinkInfo& info() const noexcept override { return link_->info(); }
  bool send(Rank to, Parts parts) noexcept override { return flush(to) && link_->send(to, parts); }
  std::byte* open_packet(Rank to, std::size_t bytes) noexcept override {
    if (!flush(to)) return nullptr;
    opened_.resize(bytes);
    return opened_.data();
  }
  void close_packet(Rank to) noexcept override {
    made_[to].push_back(std::exchange(opened_, {}));
    flush(to);
  }
  bool receive(PacketSink& sink) noexcept override {
    for (Rank rank = 0; rank < info().ranks; ++rank) flush(rank);
    return link_->receive(sink);
  }
  bool drained() noexcept override {
    bool drained = link_->drained();
    for (Rank rank = 0; rank < info().ranks; ++rank) drained &= flush(rank);
    return drained;
  }
  std::string gone(Rank rank) noexcept override { return link_->gone(rank); }
  void cut(Rank rank, bool left) noexcept override {
    made_[rank].clear();
    link_->cut(rank, left);
  }
  std::uint64_t activity() const noexcept override { return link_->activity(); }
  std::string stalled(const char* what, std::uint64_t since) override {
    return link_->stalled(what, since);
  }
  void resumed() noexcept override { link_->resumed(); }
  std::uint32_t bell() const noexcept override { return link_->bell(); }
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override {
    link_->wait(bell, deadline_ns);
  }
  void wake() noexcept override { link_->wake(); }

 private:
  /// Returns whether nothing waits.
  bool flush(Rank to) noexcept {
    auto& packets = made_[to];
    for (; !packets.empty(); packets.pop_front()) {
      const std::span<const std::byte> packet(packets.front());
      if (!link_->send(to, {&packet, 1})) return false;
    }
    return true;
  }

  const std::unique_ptr<Link> link_;
  std::vector<std::byte> opened_;
  std::vector<std::deque<std::vector<std::byte>>> made_;  ///< for each rank
};

}  // namespace weir::rt::test
