#include "user_cache.hpp"

#include <cstdlib>

namespace weir::cli {

namespace {

std::filesystem::path absolute(const char* variable) {
  const char* const value = secure_getenv(variable);
  std::filesystem::path path = value != nullptr ? value : "";
  return path.is_absolute() ? path : std::filesystem::path();
}

}  // namespace

std::filesystem::path user_cache() {
  std::filesystem::path folder = absolute("XDG_CACHE_HOME");
  if (!folder.empty()) return folder / "weir";
  folder = absolute("HOME");
  return folder.empty() ? folder : folder / ".cache" / "weir";
}

}  // namespace weir::cli
