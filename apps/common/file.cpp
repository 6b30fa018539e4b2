#include "common/file.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/input_error.hpp"

namespace weir::apps {

namespace {

constexpr std::size_t capacity = std::size_t{1} << 20;

std::string reason(int error) { return std::generic_category().message(error); }

/// Returns a name for a temporary file beside another.
std::string beside(const std::string& path) {
  static std::atomic<unsigned> serial{0};
  return fmt::format("{}.{}-{}.part", path, getpid(), serial++);
}

[[noreturn]] void fail_read(const std::string& path, int error) {
  fail_input("{}: cannot be read: {}", path, reason(error));
}

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.value() < 0 || fstat(file.value(), &status) != 0) fail_read(path, errno);
  if (S_ISDIR(status.st_mode)) fail_input("{}: found a directory, expected a file", path);
  if (!S_ISREG(status.st_mode)) {
    fail_input("{}: found a pipe or a device, expected a regular file", path);
  }
  if (status.st_size == 0) return;
  size_ = static_cast<std::size_t>(status.st_size);
  address_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.value(), 0);
  if (address_ == MAP_FAILED) fail_read(path, errno);
  madvise(address_, size_, MADV_SEQUENTIAL);
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(address_, size_);
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void OutputFile::append(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= capacity) flush();
}

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.value(), bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail_write();
    bytes.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

void OutputFile::flush() {
  write(buffer_);
  buffer_.clear();
}

void OutputFile::commit() {
  flush();
  if (temporary_.empty() && !special_) name_it();
  if (close(file_.release()) != 0) fail_write();
  if (special_) return;
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail_write();
  temporary_.clear();
}

int OutputFile::create() {
  const int special = open_special();
  if (special >= 0) return special;
  const std::size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const bool can_name = access("/proc/self/fd", X_OK) == 0;
  const int file = can_name ? open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;
  return file >= 0 ? file : create_named();
}

/// Returns -1 where there is nothing, or a file.
int OutputFile::open_special() {
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0 || S_ISREG(status.st_mode)) return -1;
  FileDescriptor found(open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  if (found.value() < 0) fail_write();
  special_ = fstat(found.value(), &status) == 0 && !S_ISREG(status.st_mode);
  return special_ ? found.release() : -1;  // another process may have put a file there
}

int OutputFile::create_named() {
  std::string name;
  int file = -1;
  do {
    name = beside(path_);
    file = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file < 0 && errno == EEXIST);
  if (file < 0) fail_write();
  temporary_ = std::move(name);
  return file;
}

/// Gives a file without a name a temporary one: link() replaces nothing, rename() does.
void OutputFile::name_it() {
  const std::string open_file = fmt::format("/proc/self/fd/{}", file_.value());
  std::string name;
  int refused = 0;
  do {
    name = beside(path_);
    refused = linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  } while (refused != 0 && errno == EEXIST);
  if (refused != 0) fail_write();
  temporary_ = std::move(name);
}

void OutputFile::fail_write() const {
  fail_input("{}: cannot be written: {}", path_, reason(errno));
}

}  // namespace weir::apps
