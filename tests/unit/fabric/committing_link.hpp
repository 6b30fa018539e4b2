// A link that has memory for windows, which comes when a test says so.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>

#include "forwarding_link.hpp"

namespace weir::rt::test {

/// Ranks do not reach each other's memory by it: packets do.
class CommittingLink final : public ForwardingLink {
 public:
  CommittingLink(std::unique_ptr<Link> link, std::function<weir_status()> commit)
      : ForwardingLink(std::move(link)), commit_(std::move(commit)) {}

  void* allocate(std::size_t bytes) noexcept override { return std::calloc(bytes, 1); }
  weir_status commit(void*, std::size_t, std::int64_t) noexcept override { return commit_(); }
  bool release(void* memory) noexcept override {
    std::free(memory);
    return true;
  }

 private:
  const std::function<weir_status()> commit_;
};

}  // namespace weir::rt::test
