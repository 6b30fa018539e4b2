#include "base/sys.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.hpp"

namespace weir::rt::sys {

namespace {

constexpr std::size_t kFlushBytes = 1 << 20;

/// Returns an unpredictable name for a temporary file beside another.
std::string beside(const std::string& path) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  std::array<unsigned char, sizeof(std::int64_t)> random{};
  if (getrandom(random.data(), random.size(), 0) < 0) {
    const std::int64_t now = now_ns();
    std::memcpy(random.data(), &now, sizeof now);
  }
  std::string name = path + ".";
  for (const unsigned char byte : random) name += kLetters[byte % kLetters.size()];
  return name;
}

}  // namespace

FileWriter::FileWriter(const std::string& path) : path_(path) {
  pending_.reserve(kFlushBytes);  // first: nothing may throw after a file exists
  open_special();
  if (descriptor_ < 0) open_unnamed();
  if (descriptor_ < 0) open_named();
}

void FileWriter::open_special() {
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return;
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0) give_up("open");
  if (fstat(descriptor_, &status) == 0 && !S_ISREG(status.st_mode)) return;
  close(std::exchange(descriptor_, -1));  // a file has been created there meanwhile
}

void FileWriter::open_unnamed() {
  const std::size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  if (access("/proc/self/fd", X_OK) != 0) return;  // name_it() needs it
  descriptor_ = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  unnamed_ = descriptor_ >= 0;
}

void FileWriter::open_named() {
  std::string name;
  do {
    name = beside(path_);
    descriptor_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) give_up("open");
  temporary_ = std::move(name);
}

/// Gives an unnamed file a temporary name, because link() cannot replace a file and rename() can.
void FileWriter::name_it() {
  const std::string open_file = "/proc/self/fd/" + std::to_string(descriptor_);
  std::string name;
  int refused = 0;
  do {
    name = beside(path_);
    refused = linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  } while (refused != 0 && errno == EEXIST);
  if (refused != 0) give_up("name");
  temporary_ = std::move(name);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void FileWriter::write(const void* data, std::size_t bytes) {
  const char* text = static_cast<const char*>(data);
  pending_.insert(pending_.end(), text, text + bytes);
  if (pending_.size() >= kFlushBytes) flush();
}

void FileWriter::flush() {
  std::size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t written = ::write(descriptor_, pending_.data() + done, pending_.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) give_up("write");
    done += static_cast<std::size_t>(written);
  }
  pending_.clear();
}

void FileWriter::commit() {
  flush();
  if (unnamed_) name_it();
  const int descriptor = std::exchange(descriptor_, -1);
  if (close(descriptor) != 0) give_up("close");
  if (!temporary_.empty() && rename(temporary_.c_str(), path_.c_str()) != 0) give_up("rename");
  temporary_.clear();
}

void FileWriter::give_up(const char* verb) {
  const int reason = errno;
  fail(WEIR_STATUS_UNAVAILABLE, "cannot {} '{}': {}", verb, path_, std::strerror(reason));
}

std::uint64_t memory_bytes() noexcept {
  const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
  return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
}

bool bind_memory(void* address, std::size_t bytes, const std::vector<unsigned>& nodes,
                 bool only) noexcept {
  constexpr unsigned kWordBits = 8 * sizeof(unsigned long);
  constexpr unsigned kMostNodes = 1024;  // maximum of Linux
  unsigned long mask[kMostNodes / kWordBits] = {};
  for (const unsigned node : nodes) {
    if (node < kMostNodes) mask[node / kWordBits] |= 1UL << (node % kWordBits);
  }
  return syscall(SYS_mbind, address, bytes, only ? MPOL_BIND : MPOL_PREFERRED, mask, kMostNodes + 1,
                 0) == 0;
}

const char* environment(const char* name) noexcept { return secure_getenv(name); }

}  // namespace weir::rt::sys
