// Files that are read by mapping them, and files that appear when they are complete.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace weir::apps {

class FileDescriptor {
 public:
  explicit FileDescriptor(int value) : value_(value) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (value_ >= 0) close(value_);
  }

  int value() const { return value_; }
  int release() { return std::exchange(value_, -1); }

 private:
  int value_;
};

/// The bytes of a regular file, mapped read-only. Throws InputError with the path and the reason.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::string_view bytes() const { return {static_cast<const char*>(address_), size_}; }

 private:
  void* address_ = nullptr;
  std::size_t size_ = 0;
};

/// A file that appears under its path when it is complete and leaves nothing behind otherwise:
/// until then it has no name, or where file systems cannot do this a temporary one. A link under
/// that path is replaced, not followed. Pipes and devices are written to as they are. All functions
/// throw InputError with the path and the reason.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : path_(path), file_(create()) {}
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Adds a small piece, which is written later with others.
  void append(std::string_view text);
  /// Writes at once. What was appended before must have been flushed.
  void write(std::string_view bytes);
  void flush();
  /// Makes the file appear.
  void commit();

 private:
  int create();
  int open_special();
  int create_named();
  void name_it();
  [[noreturn]] void fail_write() const;

  std::string path_;
  std::string temporary_;  ///< name until commit(), "": none
  std::string buffer_;
  bool special_ = false;  ///< a pipe or a device, which has its name
  FileDescriptor file_;
};

}  // namespace weir::apps
