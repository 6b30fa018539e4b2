// A link within one process that has memory of which packets are sent without a copy, as that over
// MPI does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "forwarding_link.hpp"

namespace weir::rt::test {

/// Counts the memory that is out, and has none every `declines`-th time; 0: always.
class ReservingLink final : public ForwardingLink {
 public:
  static constexpr std::size_t kReservedBytes = 32u << 10;

  ReservingLink(std::unique_ptr<Link> link, std::atomic<int>& out, unsigned declines = 0)
      : ForwardingLink(std::move(link)), info_(link_->info()), out_(out), declines_(declines) {
    info_.reserved_bytes = kReservedBytes;
  }

  const LinkInfo& info() const noexcept override { return info_; }
  std::byte* reserve(Rank, std::size_t bytes) noexcept override {
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

 private:
  LinkInfo info_;
  std::atomic<int>& out_;
  const unsigned declines_;
  std::atomic<unsigned> asked_{0};
};

}  // namespace weir::rt::test
