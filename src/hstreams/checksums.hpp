// Checksums of what streams bring back, for comparing runs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <weir/weir.hpp>

namespace weir::hs {

/// Writes a line for each payload to a file. A kernel of weir reads the payload in the memory that
/// it comes from, so it needs a domain that runs code of the host.
class Checksums {
 public:
  /// Does nothing when path is empty. Throws Error{OUT_OF_RANGE} when it cannot be written.
  Checksums(const std::string& path, const weir::Runtime& runtime);

  bool wanted() const noexcept { return file_ != nullptr; }
  /// Takes the number of the stream and that of the transfer in it.
  const weir::Kernel& kernel() const noexcept { return kernel_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  weir::Kernel kernel_;
};

}  // namespace weir::hs
