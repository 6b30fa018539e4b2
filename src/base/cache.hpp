// Files in the user's cache folder. They save work; a missing or damaged one is never an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::rt {

/// Returns a file name that is a hash of the whole text: 32 letters and digits.
std::string cache_key(std::string_view text);

/// A folder of files, "weir/NAME" in XDG_CACHE_HOME, or in ~/.cache without it.
class Cache {
 public:
  explicit Cache(std::string_view name);

  /// Returns the content stored under a key; nullopt when there is none or, with a warning in the
  /// log, when it is damaged.
  std::optional<std::string> read(std::string_view key) const noexcept;
  /// Stores a content, if possible. Readers see all of it or nothing.
  void write(std::string_view key, std::string_view content) const noexcept;

 private:
  std::string folder_;  ///< "": no cache folder
};

}  // namespace weir::rt
