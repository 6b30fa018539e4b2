#include "base/cache.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/sys.hpp"

namespace weir::rt {

namespace {

/// FNV-1a.
std::uint64_t hash_of(std::string_view text, std::uint64_t seed) noexcept {
  std::uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash;
}

/// The header before the content in a file.
struct Header {
  std::array<char, 8> magic;
  std::uint64_t bytes, hash;

  static Header of(std::string_view content) noexcept {
    return {{'w', 'e', 'i', 'r', 'k', 'e', 'p', '1'}, content.size(), hash_of(content, 0)};
  }
};

std::filesystem::path absolute(const char* variable) {
  const char* const value = sys::environment(variable);
  std::filesystem::path path = value != nullptr ? value : "";
  return path.is_absolute() ? path : std::filesystem::path();
}

std::filesystem::path cache_folder() {
  std::filesystem::path given = absolute("XDG_CACHE_HOME");
  if (!given.empty()) return given;
  const std::filesystem::path home = absolute("HOME");
  return home.empty() ? home : home / ".cache";
}

}  // namespace

std::string cache_key(std::string_view text) {
  return fmt::format("{:016x}{:016x}", hash_of(text, 0), hash_of(text, text.size() + 1));
}

Cache::Cache(std::string_view name) {
  const std::filesystem::path folder = cache_folder();
  if (!folder.empty()) folder_ = folder / "weir" / name;
}

std::optional<std::string> Cache::read(std::string_view key) const noexcept {
  if (folder_.empty()) return {};
  try {
    const std::string path = fmt::format("{}/{}", folder_, key);
    std::ifstream file(path, std::ios::binary);
    if (!file) return {};
    Header header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const Header expected = Header::of(content);
    if (std::memcmp(&header, &expected, sizeof header) == 0) return content;
    log::warning("'{}' is damaged: going on without what was kept there", path);
    return {};
  } catch (...) {
    return {};
  }
}

void Cache::write(std::string_view key, std::string_view content) const noexcept {
  if (folder_.empty()) return;
  try {
    std::filesystem::create_directories(folder_);
    sys::FileWriter file(fmt::format("{}/{}", folder_, key));
    const Header header = Header::of(content);
    file.write(&header, sizeof header);
    file.write(content.data(), content.size());
    file.commit();
  } catch (...) {  // the caller repeats the work later
  }
}

}  // namespace weir::rt
