// The input of a fuzzer of calls: each byte is a choice of what is called, and how.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weir::fuzz {

/// The input as a list of choices; behind its end every choice is 0.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  bool exhausted() const noexcept { return at_ == end_; }
  std::uint8_t byte() noexcept { return exhausted() ? std::uint8_t{0} : *at_++; }
  std::size_t below(std::size_t bound) noexcept { return byte() % bound; }
  bool one_in(std::size_t count) noexcept { return below(count) == count - 1; }
  template <class T, std::size_t count>
  const T& from(const T (&list)[count]) noexcept {
    return list[below(count)];
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace weir::fuzz
