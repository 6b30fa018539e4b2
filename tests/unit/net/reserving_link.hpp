// A link within one process that has memory of which packets are sent without a copy, as that over
// MPI does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "net/link.hpp"

namespace weir::rt::test {

/// Counts the memory that is out, and has none every `declines`-th time; 0: always.
class ReservingLink final : public Link {
 public:
  static constexpr std::size_t kReservedBytes = 32u << 10;

  ReservingLink(std::unique_ptr<Link> link, std::atomic<int>& out, unsigned declines = 0)
      : link_(std::move(link)), info_(link_->info()), out_(out), declines_(declines) {
    info_.reserved_bytes = kReservedBytes;
  }

  const LinkInfo& info() const noexcept override { return info_; }
  bool send(Rank to, Parts parts) noexcept override { return link_->send(to, parts); }
  std::byte* reserve(std::size_t bytes) noexcept override {
    if (bytes > kReservedBytes) return nullptr;
    if (declines_ > 0 && ++asked_ % declines_ == 0) return nullptr;
    auto* const memory = new (std::align_val_t{64}, std::nothrow) std::byte[bytes];
    if (memory != nullptr) ++out_;
    return memory;
  }
  void unreserve(std::byte* memory) noexcept override {
    --out_;
    operator delete[](memory, std::align_val_t{64});
  }
  bool send_reserved(Rank to, Parts parts) noexcept override {
    std::size_t front = 0;
    for (const auto& part : parts.first(parts.size() - 1)) front += part.size();
    if (front > kReservedFront || !link_->send(to, parts)) return false;
    unreserve(const_cast<std::byte*>(parts.back().data()));
    return true;
  }
  bool receive(PacketSink& sink) noexcept override { return link_->receive(sink); }
  bool drained() noexcept override { return link_->drained(); }
  std::string gone(Rank rank) noexcept override { return link_->gone(rank); }
  void cut(Rank rank, bool left) noexcept override { link_->cut(rank, left); }
  std::uint32_t bell() const noexcept override { return link_->bell(); }
  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override {
    link_->wait(bell, deadline_ns);
  }
  void wake() noexcept override { link_->wake(); }

 private:
  const std::unique_ptr<Link> link_;
  LinkInfo info_;
  std::atomic<int>& out_;
  const unsigned declines_;
  std::atomic<unsigned> asked_{0};
};

}  // namespace weir::rt::test
