#include "hstreams/checksums.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <span>

#include "hstreams/error.hpp"

namespace weir::hs {

namespace {

/// FNV-1a of 64 bits.
std::uint64_t checksum(std::span<const unsigned char> bytes) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const unsigned char byte : bytes) sum = (sum ^ byte) * 0x100000001b3;
  return sum;
}

}  // namespace

Checksums::Checksums(const std::string& path, const weir::Runtime& runtime) {
  if (path.empty()) return;
  file_.reset(std::fopen(path.c_str(), "ae"));
  if (file_ == nullptr) {
    fail(HSTR_RESULT_OUT_OF_RANGE, "WEIR_HSTREAMS_CHECKSUMS is '{}': {}", path,
         std::strerror(errno));
  }
  kernel_ = runtime.kernel("hstreams.checksum", [file = file_.get()](weir::Call& call) {
    const auto payload = call.span<const unsigned char>(0);
    std::fprintf(file,
                 "stream %" PRIu64 " transfer %" PRIu64 ": %zu bytes, checksum %016" PRIx64 "\n",
                 call.scalar<std::uint64_t>(0), call.scalar<std::uint64_t>(1), payload.size(),
                 checksum(payload));
    std::fflush(file);
  });
}

}  // namespace weir::hs
