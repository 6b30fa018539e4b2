// Checksums of the data that streams copy back, for comparing runs.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <weir/weir.hpp>

namespace weir::hs {

/// Writes a line for each payload to a file. A weir kernel reads the payload in its source memory,
/// so the domain must run host code.
class Checksums {
 public:
  /// Does nothing when path is empty. Throws Error{OUT_OF_RANGE} when it cannot be written.
  Checksums(const std::string& path, const weir::Runtime& runtime);

  bool wanted() const noexcept { return file_ != nullptr; }
  /// The kernel; its scalars are the numbers of the stream and of the transfer in it.
  const weir::Kernel& kernel() const noexcept { return kernel_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
  weir::Kernel kernel_;
};

}  // namespace weir::hs
