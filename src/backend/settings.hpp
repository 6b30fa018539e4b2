// Reads the settings of a domain specification.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"

namespace weir::rt {

/// The settings of one specification, read by key. An invalid value throws Error naming the
/// specification, the key, the value and what is allowed.
class Settings {
 public:
  /// Throws Error for a key that is not in `allowed`, suggesting the nearest one, and for repeated
  /// keys.
  Settings(const DomainSpec& spec, std::span<const std::string_view> allowed);
  Settings(const DomainSpec& spec, std::initializer_list<std::string_view> allowed)
      : Settings(spec, std::span(allowed.begin(), allowed.size())) {}

  /// Returns a value from 1 to `most`.
  std::uint64_t count(std::string_view key, std::uint64_t otherwise, std::uint64_t most) const;
  /// Returns a value of at least 0.
  std::uint64_t index(std::string_view key) const;
  double real(std::string_view key, double otherwise, double least, double most) const;
  std::uint64_t size(std::string_view key, std::uint64_t otherwise) const;
  /// Returns the index of the value in `choices`; the first choice is the default.
  std::size_t choice(std::string_view key, std::initializer_list<std::string_view> choices) const;
  /// Returns the element of `devices` at the index given by the setting `device`. Throws
  /// Error{not_found} that lists the devices by `description`; `driver` is the driver's name for
  /// the message.
  template <class Device>
  const Device& device(const char* driver, const std::vector<Device>& devices) const {
    const std::uint64_t wanted = index("device");
    if (wanted < devices.size()) return devices[static_cast<std::size_t>(wanted)];
    std::string list;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      list += fmt::format("{}{} {}", i == 0 ? "" : ", ", i, devices[i].description);
    }
    fail(WEIR_STATUS_NOT_FOUND, "domain '{}': there is no device {}; {} has: {}", spec_.text,
         wanted, driver, list);
  }

 private:
  [[noreturn]] void refuse(std::string_view key, std::string_view expected) const;

  const DomainSpec& spec_;
};

}  // namespace weir::rt
