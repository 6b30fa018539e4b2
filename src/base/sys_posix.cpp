#include "base/sys.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"

namespace weir::rt::sys {

namespace {

constexpr std::size_t kFlushBytes = 1 << 20;

}  // namespace

FileWriter::FileWriter(const std::string& path) : path_(path) {
  pending_.reserve(kFlushBytes);  // first: nothing may throw once there is a file
  struct stat status {};
  const bool plain = stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode);
  if (plain) {
    temporary_ = path + ".XXXXXX";
    descriptor_ = mkostemp(temporary_.data(), O_CLOEXEC);
    if (descriptor_ >= 0) fchmod(descriptor_, 0644);
  } else {
    descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  }
  if (descriptor_ < 0) {
    temporary_.clear();
    give_up("open");
  }
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

const char* environment(const char* name) noexcept { return std::getenv(name); }

}  // namespace weir::rt::sys
