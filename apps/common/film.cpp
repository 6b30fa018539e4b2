#include "common/film.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.hpp"
#include "common/input_error.hpp"
#include "common/parsing.hpp"

namespace weir::apps {

namespace {

std::string words_for(int error) { return std::generic_category().message(error); }

/// A running ffmpeg process: its output comes through a pipe, its error messages are kept in
/// memory.
class Ffmpeg {
 public:
  Ffmpeg(const std::string& path, std::size_t most) : path_(path) {
    int ends[2];
    if (complaints_.value() < 0 || pipe2(ends, O_CLOEXEC) != 0) fail(words_for(errno));
    output_ = ends[0];
    const FileDescriptor input(ends[1]);
    const int refused = start(input.value(), most);
    if (refused == 0) return;
    close(output_);
    fail(refused == ENOENT ? "ffmpeg, which takes pictures out of films, is not installed"
                           : "cannot start ffmpeg: " + words_for(refused));
  }
  Ffmpeg(const Ffmpeg&) = delete;
  Ffmpeg& operator=(const Ffmpeg&) = delete;
  ~Ffmpeg() {
    close(output_);
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    static_cast<void>(wait());
  }

  /// Returns how many bytes came; fewer than wanted at the end.
  std::size_t read(char* to, std::size_t wanted) const {
    std::size_t found = 0;
    while (found < wanted) {
      const ssize_t got = ::read(output_, to + found, wanted - found);
      if (got < 0 && errno != EINTR) fail("cannot be read: " + words_for(errno));
      if (got == 0) break;
      found += got < 0 ? 0 : static_cast<std::size_t>(got);
    }
    return found;
  }

  /// Waits for its end, after its output has ended. Throws InputError with its error message.
  void end() {
    const int status = wait();
    process_ = 0;
    if (status != 0) fail("ffmpeg says: " + complaint());
  }

  [[noreturn]] void fail(const std::string& what) const { fail_input("{}: {}", path_, what); }

 private:
  int start(int output, std::size_t most) {
    const std::string file = "file:" + path_, pictures = std::to_string(most);
    std::vector<const char*> arguments;
    const auto add = [&](std::initializer_list<const char*> more) {
      arguments.insert(arguments.end(), more);
    };
    add({"ffmpeg", "-nostdin", "-v", "error", "-xerror", "-protocol_whitelist", "file"});
    add({"-i", file.c_str(), "-map", "0:v:0", "-fps_mode", "passthrough"});
    if (most > 0) add({"-frames:v", pictures.c_str()});
    add({"-pix_fmt", "rgb24", "-c:v", "ppm", "-f", "image2pipe", "pipe:1", nullptr});
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, complaints_.value(), STDERR_FILENO);
    // ffmpeg must get the signals that this process blocks and ignores.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigaddset(&signals, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const int refused = posix_spawnp(&process_, arguments[0], &files, &attributes,
                                     const_cast<char* const*>(arguments.data()), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (refused != 0) process_ = 0;
    return refused;
  }

  int wait() const {
    int status = 0;
    while (waitpid(process_, &status, 0) < 0 && errno == EINTR) continue;
    return status;
  }

  /// The last line, which says what the others led to.
  std::string complaint() const {
    std::array<char, 4096> text;
    const off_t length = lseek(complaints_.value(), 0, SEEK_END);
    const off_t first = std::max<off_t>(0, length - static_cast<off_t>(text.size()));
    const ssize_t got = pread(complaints_.value(), text.data(), text.size(), first);
    std::string_view all(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
    while (!all.empty() && all.back() == '\n') all.remove_suffix(1);
    const std::size_t newline = all.rfind('\n');
    if (newline != std::string_view::npos) all.remove_prefix(newline + 1);
    return all.empty() ? "nothing, but it failed" : std::string(all);
  }

  const std::string path_;
  const FileDescriptor complaints_{memfd_create("ffmpeg", MFD_CLOEXEC)};
  int output_ = -1;
  pid_t process_ = 0;
};

/// A number of the header, which a blank follows. False at the end of the film.
bool read_number(const Ffmpeg& film, std::size_t& number) {
  std::array<char, 12> digits;
  std::size_t count = 0;
  while (count < digits.size() && film.read(&digits[count], 1) == 1 && !is_blank(digits[count]) &&
         digits[count] != '\n') {
    ++count;
  }
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + count, number);
  return count > 0 && error == std::errc() && end == digits.data() + count;
}

/// Reads the next picture, which is a PPM as ffmpeg writes it: "P6\n640 480\n255\n" and the
/// colours.
bool read_picture(Ffmpeg& film, const std::string& path, std::uint64_t room, ColourImage& picture) {
  std::array<char, 3> magic;
  const std::size_t found = film.read(magic.data(), magic.size());
  if (found == 0) return false;
  std::size_t white = 0;
  if (found < magic.size() || std::string_view(magic.data(), 3) != "P6\n" ||
      !read_number(film, picture.width) || !read_number(film, picture.height) ||
      !read_number(film, white) || white != 255) {
    film.fail("ffmpeg gave something else than pictures");
  }
  if (picture.width == 0 || picture.height == 0) {
    film.fail(fmt::format("a picture has {} x {} pixels", picture.width, picture.height));
  }
  check_size(path, {picture.height, picture.width}, 3, {room});
  picture.colours.resize(3 * picture.width * picture.height);
  auto* const colours = reinterpret_cast<char*>(picture.colours.data());
  if (film.read(colours, picture.colours.size()) < picture.colours.size()) {
    film.end();
    film.fail("ffmpeg gave a picture that is cut");
  }
  return true;
}

}  // namespace

bool is_film(std::string_view path) {
  constexpr std::string_view kKnown[] = {".mp4", ".m4v", ".mkv",  ".webm", ".avi",
                                         ".mov", ".mpg", ".mpeg", ".y4m"};
  std::string extension = std::filesystem::path(path).extension().string();
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(std::begin(kKnown), std::end(kKnown), extension) != std::end(kKnown);
}

std::vector<ColourImage> read_film(const std::string& path, std::size_t most,
                                   const ReadLimits& limits) {
  static_cast<void>(MappedFile(path));  // says what is wrong with the file itself
  Ffmpeg film(path, most);
  std::vector<ColourImage> pictures;
  std::uint64_t bytes = 0;
  for (ColourImage next; read_picture(film, path, limits.bytes, next); next = {}) {
    bytes += next.colours.size();
    if (bytes > limits.bytes) {
      film.fail(fmt::format("the first {} pictures take {} bytes, expected at most {}: take fewer",
                            pictures.size() + 1, bytes, limits.bytes));
    }
    pictures.push_back(std::move(next));
  }
  film.end();
  if (pictures.empty()) film.fail("found no picture in the film");
  return pictures;
}

}  // namespace weir::apps
