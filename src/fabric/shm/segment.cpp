#include "fabric/shm/segment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads.hpp"

namespace weir::rt {

namespace {

// address space; memory is allocated when it is reserved
constexpr std::uint64_t kHeapBytes = 16ull << 30;

constexpr std::uint64_t whole_pages(std::uint64_t bytes) noexcept {
  return (bytes + Segment::kPage - 1) / Segment::kPage * Segment::kPage;
}

/// Throws Error if the file size limit is too small: the system would end this process with a
/// signal.
void check_file_limit(std::uint64_t bytes, Rank ranks) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return;
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes) return;
  fail(WEIR_STATUS_UNAVAILABLE,
       "no shared memory for {} ranks: it is a file of {} GiB, nearly all of it empty, and files "
       "are limited to {} KiB (ulimit -f)",
       ranks, bytes >> 30, limit.rlim_cur >> 10);
}

/// Returns the number of an open file; 0 if there is none.
std::uint64_t file_of(int descriptor) noexcept {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

struct Segment::Header {
  static constexpr std::uint64_t kMagic = 0x3130676573776572;
  std::uint64_t magic;
  std::uint64_t ranks;
  std::int64_t maker;
};

Segment::Segment(Rank ranks) : Segment(memfd_create("weir-fabric", MFD_CLOEXEC), ranks, true) {}

Segment::Segment(int descriptor, Rank ranks, bool fresh) : descriptor_(descriptor), ranks_(ranks) {
  if (descriptor_ < 0) {
    fail(WEIR_STATUS_UNAVAILABLE, "no shared memory for the fabric: {}", std::strerror(errno));
  }
  bytes_ = heap(ranks_);
  try {
    if (fresh) check_file_limit(bytes_, ranks_);
    if (fresh && ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0) {
      fail(WEIR_STATUS_UNAVAILABLE, "no shared memory for {} ranks: {}", ranks_,
           std::strerror(errno));
    }
    map();
  } catch (...) {
    close(descriptor_);
    throw;
  }
  if (fresh) *reinterpret_cast<Header*>(base_) = {Header::kMagic, ranks_, getpid()};
}

std::unique_ptr<Segment> Segment::attach(int descriptor, Rank ranks) {
  struct stat status {};
  Header header{};
  if (fstat(descriptor, &status) != 0 ||
      pread(descriptor, &header, sizeof header, 0) != sizeof header ||
      header.magic != Header::kMagic || header.ranks != ranks) {
    fail(
        WEIR_STATUS_UNAVAILABLE,
        "descriptor {} is not a segment of a fabric of {} ranks: start ranks with weir run --ranks",
        descriptor, ranks);
  }
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return std::unique_ptr<Segment>(new Segment(descriptor, ranks, false));
}

std::unique_ptr<Segment> Segment::open(std::int64_t process, int descriptor, std::uint64_t file,
                                       Rank ranks) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) {
    fail(WEIR_STATUS_UNAVAILABLE, "cannot open {}: {}", path, std::strerror(errno));
  }
  if (file_of(opened) == file) return attach(opened, ranks);
  close(opened);
  fail(WEIR_STATUS_UNAVAILABLE, "{} is another file: is /proc that of this container?", path);
}

std::uint64_t Segment::file() const noexcept { return file_of(descriptor_); }

void Segment::map() {
  void* const mapped =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor_, 0);
  if (mapped == MAP_FAILED) {
    fail(WEIR_STATUS_UNAVAILABLE,
         "cannot map {} GiB of addresses for {} ranks: {}; is there a limit (ulimit -v)?",
         bytes_ >> 30, ranks_, std::strerror(errno));
  }
  base_ = static_cast<std::byte*>(mapped);
}

Segment::~Segment() {
  munmap(base_, bytes_);
  close(descriptor_);
}

std::int64_t Segment::maker() const noexcept {
  return reinterpret_cast<const Header*>(base_)->maker;
}

ShmRank& Segment::rank(Rank rank) const noexcept {
  return reinterpret_cast<ShmRank*>(base_ + kPage)[rank];
}

ShmRing& Segment::ring(Rank from, Rank to) const noexcept {
  std::byte* const rings = base_ + kPage + whole_pages(ranks_ * sizeof(ShmRank));
  return reinterpret_cast<ShmRing*>(rings)[std::size_t{from} * ranks_ + to];
}

std::uint64_t Segment::heap_bytes() const noexcept { return kHeapBytes; }

std::uint64_t Segment::heap(Rank rank) const noexcept {
  const std::uint64_t pairs = std::uint64_t{ranks_} * ranks_;
  return kPage + whole_pages(ranks_ * sizeof(ShmRank)) + whole_pages(pairs * sizeof(ShmRing)) +
         rank * kHeapBytes;
}

weir_status Segment::reserve(std::uint64_t offset, std::uint64_t bytes,
                             std::int64_t deadline_ns) noexcept {
  constexpr std::uint64_t kWithoutCheck = 16u << 20;  // some ms, for blocks of conveyors
  constexpr std::uint64_t kPiece = 256u << 10;  // older systems undo the whole call on a signal
  for (std::uint64_t done = 0; done < bytes;) {
    const bool checks = done >= kWithoutCheck && deadline_ns != sys::kNever;
    if (checks && sys::now_ns() >= deadline_ns) return WEIR_STATUS_TIMEOUT;
    const std::uint64_t piece = std::min(kPiece, bytes - done);
    if (fallocate(descriptor_, 0, static_cast<off_t>(offset + done), static_cast<off_t>(piece)) ==
        0) {
      done += piece;
    } else if (errno != EINTR) {
      return WEIR_STATUS_OUT_OF_MEMORY;
    }
  }
  return WEIR_STATUS_OK;
}

void Segment::discard(std::uint64_t offset, std::uint64_t bytes) noexcept {
  fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(bytes));
}

}  // namespace weir::rt
