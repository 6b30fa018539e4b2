// The messages between rank 0 and the ranks that serve it, on Channel::rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backend/backend.hpp"
#include "base/error.hpp"
#include "fabric/link.hpp"

namespace weir::rt {

/// The first byte of a message. The comments list what follows.
enum class RankMessageKind : std::uint8_t {
  // From rank 0. Requests begin with a request number for the answer.
  hello,          ///< request; the answer has the clock
  open_device,    ///< request: its number, a specification; the answer has RankDeviceFacts
  open_place,     ///< request: device, its number, name, cores
  check_kernels,  ///< request: names of required kernels, to the end
  close_device,   ///< its number
  close_place,    ///< its number
  allocate,       ///< device, instance, bytes
  release,        ///< device, instance
  define,         ///< device, number of the kernel, name
  jobs,           ///< place, jobs to the end; without jobs: requests all completions
  copy,           ///< device, number of the copy, source, target
  lend,           ///< device, number of the copy, end: exposes a region to other ranks
  take_back,      ///< window that was lent
  leave,          ///< rank 0 needs no rank any more
  // To rank 0.
  answer,  ///< request, outcome, details that depend on the request
  done,    ///< place, completed jobs to the end
  copied,  ///< number of the copy, outcome, start and end time
  lent,    ///< number of the copy, outcome, window
  broken,  ///< why the rank has stopped serving
};

/// Encoding of a job: number, flags from this set, priority, predecessors, then fields that depend
/// on the flags.
inline constexpr unsigned kJobCopies = 1;
inline constexpr unsigned kJobParallel = 2;
inline constexpr unsigned kJobBrief = 4;
inline constexpr unsigned kJobTimed = 8;
inline constexpr unsigned kJobSource = 16;  ///< has groups
inline constexpr unsigned kJobNamed = 32;   ///< the action has a name other than its kernel's

/// Addresses of remote memory on rank 0: an instance number and an offset, invalid as pointers.
namespace rank_address {
inline constexpr unsigned kOffsetBits = 40;
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << kOffsetBits;
inline constexpr std::uint32_t kMostInstances = 1u << 22;
inline constexpr std::uint64_t kMark = std::uint64_t{1} << 62;

inline std::byte* of(std::uint32_t instance) noexcept {
  return reinterpret_cast<std::byte*>(kMark | std::uint64_t{instance} << kOffsetBits);
}
inline std::uint64_t number(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address);
}
inline std::uint32_t instance(std::uint64_t address) noexcept {
  return static_cast<std::uint32_t>((address & ~kMark) >> kOffsetBits);
}
inline std::uint64_t offset(std::uint64_t address) noexcept { return address & (kMostBytes - 1); }
}  // namespace rank_address

/// One end of a copy: in an instance of the serving rank, or in a window of any rank.
struct RankCopyEnd {
  bool remote = false;
  std::uint32_t device = 0;   ///< near end
  std::uint64_t address = 0;  ///< near end: of the instance
  Rank rank = 0;              ///< far end
  WindowId window = 0;        ///< far end
  Region region;
};

/// What rank 0 needs to know about a device of another rank.
struct RankDeviceFacts {
  DeviceInfo info;
  bool direct = false;  ///< other ranks reach its memory through windows
};

/// Writes a message.
class WireWriter {
 public:
  /// Begins with these fields.
  template <class... T>
  explicit WireWriter(RankMessageKind word, const T&... fields) {
    put(word);
    (put(fields), ...);
  }

  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void put(T value) {
    append(&value, sizeof value);
  }
  void put(std::string_view text);
  void put(const Outcome& outcome);
  void put(const Region& region);
  void put(const RankCopyEnd& end);
  void put(const RankDeviceFacts& facts);
  void put(const weir_scalar& scalar);
  void put(const weir_view& view);
  template <class A, class B, class... More>
  void put(const A& first, const B& second, const More&... more) {
    put(first);
    put(second);
    (put(more), ...);
  }

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  void append(const void* bytes, std::size_t count) {
    const std::size_t before = bytes_.size();
    bytes_.resize(before + count);
    if (count > 0) std::memcpy(bytes_.data() + before, bytes, count);
  }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes); }
  /// Truncates the message to `size` bytes.
  void cut(std::size_t size) noexcept { bytes_.resize(size); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads a message. Throws Error{network_error} if it is too short or malformed.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  template <class T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  T get() {
    if constexpr (std::is_same_v<T, bool>) {
      return get<std::uint8_t>() != 0;
    } else {
      T value;
      std::memcpy(&value, take(sizeof value), sizeof value);
      return value;
    }
  }
  template <class T>
  void get(T& value) {
    value = get<T>();
  }
  template <class A, class B, class... More>
  void get(A& first, B& second, More&... more) {
    get(first);
    get(second);
    (get(more), ...);
  }
  std::string text();
  Outcome outcome();
  Region region();
  RankCopyEnd end();
  RankDeviceFacts facts();
  weir_scalar scalar();
  /// The view's address is one of rank 0.
  weir_view view();

  bool empty() const noexcept { return bytes_.empty(); }
  std::span<const std::byte> rest() const noexcept { return bytes_; }
  [[noreturn]] static void refuse(const char* what);

 private:
  const std::byte* take(std::size_t bytes);

  std::span<const std::byte> bytes_;
};

}  // namespace weir::rt
