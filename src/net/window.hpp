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
  /// This rank's part, of which the others know once they have met. Null: allocates. Throws Error;
  /// {timeout} when somebody else has held the port's turn until the deadline, or the memory was
  /// not there then.
  Window(Port& port, void* memory, std::size_t bytes, std::int64_t deadline_ns);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  /// Collective: calls make(deadline), which returns this rank's part, and makes all parts known,
  /// when all ranks have come in time. If it throws on one rank it does on all: nothing that may
  /// fail is to be left for afterwards.
  template <class Make>
  static void meet(Collectives& collectives, std::int64_t timeout_ns, const Make& make) {
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

  void* memory() const noexcept { return own_.memory(); }
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

  /// Memory of this rank that the others may reach meanwhile.
  class Own {
   public:
    Own(Port& port, void* memory, std::size_t bytes, std::int64_t deadline_ns);
    Own(const Own&) = delete;
    Own& operator=(const Own&) = delete;
    ~Own();

    void* memory() const noexcept { return memory_; }
    WindowId id() const noexcept { return id_; }

   private:
    Port& port_;
    bool allocated_;
    void* memory_;
    WindowId id_;
  };

  static void decline(Collectives& collectives, std::int64_t deadline_ns) noexcept;
  void learn(Collectives& collectives, std::int64_t deadline_ns);

  Port& port_;
  std::vector<Part> parts_;
  Own own_;
};

}  // namespace weir::rt
