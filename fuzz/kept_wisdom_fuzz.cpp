// What programs find in the user's wisdom.
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include <unistd.h>

#include "base/cache.hpp"
#include "target.hpp"
#include "tasks/wisdom.hpp"

namespace {

using weir::rt::Cache;
using weir::rt::Wisdom;

/// A cache of this process alone, and the one entry in it.
class Kept {
 public:
  Kept() {
    setenv("XDG_CACHE_HOME", path_.c_str(), 1);
    Wisdom("machine", "host", "wave", 64).keep({});
    key_ = std::filesystem::directory_iterator(path_ / "weir/wisdom")->path().filename().string();
    const std::string content = Cache("wisdom").read(key_).value();
    head_ = content.substr(0, content.rfind('\n') + 1);
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() { std::filesystem::remove_all(path_); }

  /// Puts a text in its place: sound for the cache, whatever it says.
  void become(std::string text) const {
    if (const std::size_t at = text.find("@head@"); at != std::string::npos) {
      text.replace(at, 6, head_);
    }
    Cache("wisdom").write(key_, text);
  }

 private:
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("weir-kept-" + std::to_string(getpid()));
  std::string key_, head_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Kept kept;
  kept.become(std::string(reinterpret_cast<const char*>(data), size));
  const Wisdom wisdom("machine", "host", "wave", 64);
  const auto found = wisdom.find();
  if (!found) {
    ++weir::fuzz::refused;
    return 0;
  }
  weir::fuzz::require(found->places > 0 && found->streams > 0 && found->aspect > 0,
                      "a division can be");
  wisdom.keep(*found);  // throws what it would not have kept
  weir::fuzz::require(wisdom.find() == found, "what is found can be kept");
  return 0;
}
