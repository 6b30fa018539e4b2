// The seam to the operating system: files, memory, the environment; threads.hpp has the rest of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/threads.hpp"

namespace weir::rt::sys {

/// Writes a whole file, which gets its name when it is complete: until then it has none, so that
/// not even a killed process leaves a part behind, or on file systems that cannot do this a
/// temporary one beside it. A link under that name is replaced, not followed. Pipes and devices are
/// written to as they are. Throws Error naming path and reason.
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

/// Asks for pages of [address, address + bytes), which begin at a page and have not been touched,
/// from NUMA nodes by operating system number: from nowhere else, or if not `only` from others when
/// these have none left. Returns false, with errno, when the system refuses.
bool bind_memory(void* address, std::size_t bytes, const std::vector<unsigned>& nodes,
                 bool only) noexcept;

/// Returns the value of an environment variable, or nullptr; always that in a program that has more
/// rights than its user (setuid and the like).
const char* environment(const char* name) noexcept;

}  // namespace weir::rt::sys
