// Arguments of a portable kernel in the form that kernel launch functions take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "backend/backend.hpp"

namespace weir::rt {

/// Maximum number of parameters of a portable kernel.
constexpr std::size_t kMostLaunchParameters = 64;

/// Returns what is wrong with this number of operands and these scalars for the parameter letters
/// of KernelSource::parameters, "" if nothing is: wrong counts, a fraction for an integer, or a
/// value that the parameter cannot hold. An integer is accepted for a float or double.
std::string launch_complaint(std::string_view parameters, std::size_t operands,
                             std::span<const weir_scalar> scalars);

/// The arguments of one call in the order of the parameters, each in its own type. Allocates
/// nothing. Holds pointers into itself.
class LaunchArguments {
 public:
  /// Requires that launch_complaint() returns "" for the call.
  LaunchArguments(std::string_view parameters, const weir_call& call) noexcept;
  LaunchArguments(const LaunchArguments&) = delete;
  LaunchArguments& operator=(const LaunchArguments&) = delete;

  std::size_t count() const noexcept { return letters_.size(); }
  bool is_operand(std::size_t index) const noexcept { return letters_[index] == 'p'; }
  /// Returns the bytes of an argument; for an operand those of a pointer.
  std::size_t size(std::size_t index) const noexcept;
  /// Returns the address of an operand.
  void* operand(std::size_t index) const noexcept { return values_[index].address; }
  /// Returns the addresses of all arguments, for cuLaunchKernel().
  void** addresses() noexcept { return addresses_.data(); }

 private:
  union Value {
    void* address;
    std::int32_t i;
    std::uint32_t u;
    std::int64_t l;
    std::uint64_t m;
    float f;
    double d;
  };
  static Value converted(char letter, const weir_scalar& scalar) noexcept;

  std::string_view letters_;
  std::array<Value, kMostLaunchParameters> values_;
  std::array<void*, kMostLaunchParameters> addresses_;
};

}  // namespace weir::rt
