// Blocks of small items, as another rank may send them.
#include <array>
#include <cstring>
#include <vector>

#include "conveyor/item_block.hpp"
#include "target.hpp"

namespace {

using weir::fuzz::require;

constexpr std::size_t kWindow = 512, kAround = 64;
constexpr std::byte kUntouched{0xa5};
constexpr std::array<std::uint32_t, 3> kHandlers = {8, 16, 256};

class Reader final : public weir::rt::ItemHandler {
 public:
  void handle(std::uint16_t handler, const std::byte* items, std::size_t count) override {
    require(handler < kHandlers.size(), "the handler is there");
    require(reinterpret_cast<std::uintptr_t>(items) % 16 == 0, "items are aligned");
    for (std::size_t at = 0; at < count * kHandlers[handler]; ++at) sum_ ^= items[at];
    handled_ += count;
  }
  std::size_t handled() const noexcept { return handled_; }

 private:
  std::byte sum_{};
  std::size_t handled_ = 0;
};

/// Applies a block that lies `shift` bytes behind an aligned address.
std::string apply(const std::uint8_t* data, std::size_t size, std::size_t shift) {
  std::vector<std::byte> message(shift + size), scratch;
  if (size > 0) std::memcpy(message.data() + shift, data, size);
  std::vector<std::byte> memory(kWindow + 2 * kAround, kUntouched);
  const std::vector<std::byte> before = memory;
  Reader reader;
  const std::string wrong =
      weir::rt::apply_block(std::span<const std::byte>(message).subspan(shift),
                            {memory.data() + kAround, kWindow, kHandlers, &reader}, scratch);
  for (std::size_t at = 0; at < kAround; ++at) {
    require(memory[at] == kUntouched && memory[kAround + kWindow + at] == kUntouched,
            "nothing is written outside of the window");
  }
  require(wrong.empty() || (memory == before && reader.handled() == 0),
          "a block that is refused is not applied in part");
  return wrong;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = apply(data, size, 0);
  require(apply(data, size, 8) == wrong, "where a block lies does not matter");
  if (wrong.empty()) return 0;
  weir::fuzz::require_one_line(wrong);
  ++weir::fuzz::refused;
  return 0;
}
