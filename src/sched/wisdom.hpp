// How programs divide their work, kept in the user's cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::rt {

struct Division {
  std::size_t places = 1, streams = 1, tiles = 0, aspect = 1;
  double seconds = 0;
  std::string policy;

  bool operator==(const Division&) const = default;
};

/// The entry of one problem. Saves work when it is there, and is never an error.
class Wisdom {
 public:
  /// Throws Error unless the name of the problem is one line of text.
  Wisdom(std::string_view machine, std::string_view domains, std::string_view problem,
         std::uint64_t size);

  /// Nothing when none was kept, or what is there cannot be used.
  std::optional<Division> find() const;
  /// Throws Error for a division that cannot be.
  void keep(const Division& division) const;

 private:
  std::string head_;  ///< of the file: what it is for
};

}  // namespace weir::rt
