// A link that does what another one does: tests change a part of it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "fabric/link.hpp"

namespace weir::rt::test {

/// Only packets go by it: no memory is shared.
class ForwardingLink : public Link {
 public:
  explicit ForwardingLink(std::unique_ptr<Link> link) : link_(std::move(link)) {}

  const LinkInfo& info() const noexcept override { return link_->info(); }
  bool send(Rank to, Parts parts) noexcept override { return link_->send(to, parts); }
  bool receive(PacketSink& sink) noexcept override { return link_->receive(sink); }
  bool drained() noexcept override { return link_->drained(); }
  std::string why_lost(Rank rank) noexcept override { return link_->why_lost(rank); }
  void cut(Rank rank, bool left) noexcept override { link_->cut(rank, left); }
  std::uint32_t bell() const noexcept override { return link_->bell(); }
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override {
    link_->wait(bell, deadline_ns);
  }
  void wake() noexcept override { link_->wake(); }

 protected:
  const std::unique_ptr<Link> link_;
};

/// Counts how often it is asked for packets.
class PolledLink final : public ForwardingLink {
 public:
  PolledLink(std::unique_ptr<Link> link, std::atomic<int>& receives)
      : ForwardingLink(std::move(link)), receives_(receives) {}
  bool receive(PacketSink& sink) noexcept override {
    ++receives_;
    return link_->receive(sink);
  }

 private:
  std::atomic<int>& receives_;
};

}  // namespace weir::rt::test
