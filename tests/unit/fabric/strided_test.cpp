#include "fabric/strided.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <vector>

namespace weir::rt {
namespace {

constexpr std::size_t kBytes = 1 << 16;

Strided random_box(std::byte* memory) {
  using rc::gen::inRange;
  Strided box;
  box.row_bytes = *rc::gen::element<std::size_t>(1, 2, 3, 4, 8, 12, 16, 24, 32, 40, 48, 64, 65);
  box.rows = *inRange<std::size_t>(1, 9);
  box.planes = *inRange<std::size_t>(1, 5);
  const auto gap = [] { return *rc::gen::element<std::ptrdiff_t>(0, 0, 1, 8, 100); };
  box.row = static_cast<std::ptrdiff_t>(box.row_bytes) + gap();
  box.plane = static_cast<std::ptrdiff_t>(box.rows) * box.row + gap();
  box.first = memory + *inRange<std::size_t>(0, 50);
  return box;
}

std::vector<std::byte> plainly(const Strided& box) {
  std::vector<std::byte> bytes;
  for (std::size_t z = 0; z < box.planes; ++z) {
    for (std::size_t y = 0; y < box.rows; ++y) {
      const std::byte* const row = box.first + static_cast<std::ptrdiff_t>(z) * box.plane +
                                   static_cast<std::ptrdiff_t>(y) * box.row;
      bytes.insert(bytes.end(), row, row + box.row_bytes);
    }
  }
  return bytes;
}

std::vector<std::byte> random_bytes() {
  std::vector<std::byte> bytes(kBytes);
  std::uint32_t state = 1;
  for (std::byte& each : bytes) each = static_cast<std::byte>((state = state * 1664525u + 1) >> 24);
  return bytes;
}

RC_GTEST_PROP(Strided, PacksAndUnpacksAnyBox, ()) {
  std::vector<std::byte> source = random_bytes();
  const Strided from = random_box(source.data());
  const std::vector<std::byte> expected = plainly(from);
  std::vector<std::byte> packed(from.bytes() + 8, std::byte{0x55});
  pack(from, packed.data());
  RC_ASSERT(std::memcmp(packed.data(), expected.data(), expected.size()) == 0);
  RC_ASSERT(packed[from.bytes()] == std::byte{0x55});
  RC_ASSERT(joined(from).bytes() == from.bytes());
  RC_ASSERT(plainly(joined(from)) == expected);

  std::vector<std::byte> target(kBytes), untouched;
  Strided to = from;
  to.first = target.data() + 10;
  to.row += 16;
  to.plane = static_cast<std::ptrdiff_t>(to.rows) * to.row + 24;
  unpack(packed.data(), to);
  RC_ASSERT(plainly(to) == expected);
  std::vector<std::byte> second(kBytes);
  Strided copied = to;
  copied.first = second.data() + 10;
  copy(from, copied);
  RC_ASSERT(plainly(copied) == expected);
  RC_ASSERT(second == target);  // and nothing beside it
}

}  // namespace
}  // namespace weir::rt
