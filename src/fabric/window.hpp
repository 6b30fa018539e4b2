// A window that all ranks have created together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/collectives.hpp"
#include "fabric/port.hpp"

namespace weir::rt {

/// Memory of every rank, of individual sizes that all ranks know. The destructor withdraws this
/// rank's part.
class Window {
 public:
  /// Exposes this rank's part; the other ranks learn of it in create_on_all_ranks(). Null:
  /// allocates memory. Throws Error; {timeout} if another thread holds the progress lock until the
  /// deadline, or the memory is not allocated by then.
  Window(Port& port, void* memory, std::size_t bytes, std::int64_t deadline_ns);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window();

  /// Collective: calls make(deadline), which returns this rank's window, and exchanges the parts of
  /// all ranks. If it throws on one rank, it throws on all ranks; nothing that can fail may be left
  /// for afterwards.
  template <class Make>
  static void create_on_all_ranks(Collectives& collectives, std::int64_t timeout_ns,
                                  const Make& make) {
    const std::int64_t deadline = sys::deadline_after(timeout_ns);
    Window* own = nullptr;
    try {
      own = &make(deadline);
    } catch (...) {
      decline(collectives, deadline);
      throw;
    }
    own->learn(collectives, deadline);
  }

  void* memory() const noexcept { return memory_; }
  std::size_t bytes(Rank rank) const noexcept { return parts_[rank].bytes; }
  /// Returns the number of a rank's part.
  WindowId id(Rank rank) const noexcept { return parts_[rank].id; }
  /// Throws Error unless the rank's part contains these bytes.
  void check_range(Rank rank, std::uint64_t offset, std::uint64_t bytes) const;

 private:
  struct Part {
    std::uint64_t bytes;
    WindowId id;
  };

  static void decline(Collectives& collectives, std::int64_t deadline_ns) noexcept;
  void learn(Collectives& collectives, std::int64_t deadline_ns);

  Port& port_;
  std::vector<Part> parts_;  ///< by rank
  const bool allocated_;
  void* const memory_;
};

}  // namespace weir::rt
