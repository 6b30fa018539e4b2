// Files in the user's cache folder: they save work when they are there, and are never an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::rt {

/// Returns a name for a file that depends on all of the text: 32 letters and digits.
std::string cache_key(std::string_view text);

/// A folder of files, "weir/NAME" in XDG_CACHE_HOME, or in ~/.cache without it.
class Cache {
 public:
  explicit Cache(std::string_view name);

  /// Returns what was kept under a key; nullopt when nothing was, or, with a warning in the log,
  /// when it is damaged.
  std::optional<std::string> read(std::string_view key) const noexcept;
  /// Keeps a content, if that is possible. Readers see all of it or nothing.
  void write(std::string_view key, std::string_view content) const noexcept;

 private:
  std::string folder_;  ///< "": there is none
};

}  // namespace weir::rt
