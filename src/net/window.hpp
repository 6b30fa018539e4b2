// A window as all ranks know it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/collectives.hpp"
#include "net/port.hpp"

namespace weir::rt {

/// Memory of every rank, of sizes of their own, which all know. Not exposed any more when it ends.
class Window {
 public:
  /// Collective. Null: allocates. Throws Error.
  Window(Port& port, Collectives& collectives, void* memory, std::size_t bytes);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window();

  void* memory() const noexcept { return memory_; }
  std::size_t bytes(Rank rank) const noexcept { return parts_[rank].bytes; }
  /// The number of a rank's part.
  WindowId id(Rank rank) const noexcept { return parts_[rank].id; }
  /// Throws Error unless a rank has these bytes.
  void check_range(Rank rank, std::uint64_t offset, std::uint64_t bytes) const;

 private:
  struct Part {
    std::uint64_t bytes;
    WindowId id;
  };

  Port& port_;
  void* memory_;
  bool allocated_;
  std::vector<Part> parts_;
};

}  // namespace weir::rt
