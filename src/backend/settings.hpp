// Reading the settings of a domain specification.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "backend/backend.hpp"

namespace weir::rt {

/// The settings of one specification, read by key. Values that are wrong throw Error naming the
/// specification, the key, the value and what is allowed.
class Settings {
 public:
  /// Throws Error for a key that is not in `allowed`, with the nearest one, and for repeated keys.
  Settings(const DomainSpec& spec, std::initializer_list<std::string_view> allowed);

  /// From 1 to `most`.
  std::uint64_t count(std::string_view key, std::uint64_t otherwise, std::uint64_t most) const;
  /// From 0 on.
  std::uint64_t index(std::string_view key) const;
  double real(std::string_view key, double otherwise, double least, double most) const;
  std::uint64_t size(std::string_view key, std::uint64_t otherwise) const;
  /// Returns the index of the value in `choices`; the first is the default.
  std::size_t choice(std::string_view key, std::initializer_list<std::string_view> choices) const;

 private:
  const std::string* find(std::string_view key) const noexcept;
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

  const DomainSpec& spec_;
};

}  // namespace weir::rt
