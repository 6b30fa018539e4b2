// What a tuner finds in the user's cache.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>
#include <weir/weir.h>

#include "target.hpp"
#include "tuner/samples.hpp"

namespace {

/// A cache of this process alone.
class Folder {
 public:
  Folder() {
    setenv("XDG_CACHE_HOME", path_.c_str(), 1);
    std::filesystem::create_directories(path_ / "weir/tuned");
  }
  ~Folder() { std::filesystem::remove_all(path_); }

 private:
  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("weir-wisdom-" + std::to_string(getpid()));
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Folder folder;
  const weir::cli::tuner::Samples samples({"machine", "host", "wave", "", 64});
  std::string text(reinterpret_cast<const char*>(data), size);
  if (const std::size_t at = text.find("@version@"); at != std::string::npos) {
    text.replace(at, 9, weir_version());
  }
  std::ofstream(samples.path()) << text;
  const auto evaluations = samples.evaluations();
  for (const auto& each : evaluations) {
    weir::fuzz::require(each.point.places > 0 && each.point.streams > 0 && each.seconds() >= 0,
                        "an evaluation can be");
  }
  if (evaluations.empty()) ++weir::fuzz::refused;
  return 0;
}
