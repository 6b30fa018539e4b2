// The interface to the operating system: files, memory, the environment. threads.hpp has threads
// and the clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/threads.hpp"

namespace weir::rt::sys {

/// Writes a file atomically: it gets its name when it is complete. Until then it has no name, so
/// that not even a killed process leaves a partial file; on file systems without this feature it
/// has a temporary name. A link under the final name is replaced, not followed. Pipes and devices
/// are written directly. Throws Error naming path and reason.
class FileWriter {
 public:
  explicit FileWriter(const std::string& path);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter();

  void write(const void* data, std::size_t bytes);
  void write(const std::string& text) { write(text.data(), text.size()); }
  /// Gives the file its name. Without commit() the destructor removes the file.
  void commit();

 private:
  void open_special();
  void open_unnamed();
  void open_named();
  void name_it();
  void flush();
  [[noreturn]] void give_up(const char* verb);

  std::string path_;
  std::string temporary_;  ///< name until commit(), "": none
  std::vector<char> pending_;
  int descriptor_ = -1;
  bool unnamed_ = false;
};

/// Returns the size of the machine's memory.
std::uint64_t memory_bytes() noexcept;

/// Binds [address, address + bytes), which begins at a page and has not been accessed, to NUMA
/// nodes (operating system numbers): strictly with `only`, otherwise with a fallback to other nodes
/// when these are full. Returns false, with errno, when the system refuses.
bool bind_memory(void* address, std::size_t bytes, const std::vector<unsigned>& nodes,
                 bool only) noexcept;

/// Returns the value of an environment variable, or nullptr; always nullptr in a program that
/// runs with elevated privileges (such as setuid).
const char* environment(const char* name) noexcept;

}  // namespace weir::rt::sys
