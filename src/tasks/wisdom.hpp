// Measured divisions of work, in the user's cache.
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

/// The entry of one problem. It saves work if it exists; a missing entry is not an error.
class Wisdom {
 public:
  /// Throws Error if the name of the problem is not one line of text.
  Wisdom(std::string_view machine, std::string_view domains, std::string_view problem,
         std::uint64_t size);

  /// Returns the stored division, nothing if there is none or it is unusable.
  std::optional<Division> find() const;
  /// Stores a division. Throws Error if it is invalid.
  void keep(const Division& division) const;

 private:
  std::string head_;  ///< first lines of the file: what the entry is for
};

}  // namespace weir::rt
