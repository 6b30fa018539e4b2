// The seam to the operating system: files, memory, the environment; threads.hpp has the rest of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/threads.hpp"

namespace weir::rt::sys {

/// Writes a whole file: to a temporary beside it, then renamed. Throws Error naming path and
/// reason.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  void write(const void* data, std::size_t bytes);
  void write(const std::string& text) { write(text.data(), text.size()); }
  /// Makes the file appear under its name. Without it nothing is left behind.
  void commit();

 private:
  void flush();
  [[noreturn]] void give_up(const char* verb);

  std::string path_;
  std::string temporary_;
  std::vector<char> pending_;
  int descriptor_ = -1;
};

/// Returns the size of the machine's memory.
std::uint64_t memory_bytes() noexcept;

/// Returns the value of an environment variable, or nullptr.
const char* environment(const char* name) noexcept;

}  // namespace weir::rt::sys
