// Arguments of a call of a portable kernel, as functions that launch kernels take them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "backend/backend.hpp"

namespace weir::rt {

/// So many parameters has a portable kernel at most.
constexpr std::size_t kMostLaunchParameters = 64;

/// Returns what is wrong with so many operands and these scalars for parameters with the letters of
/// KernelSource::parameters, "" if nothing is: their counts, a fraction for an integer, or a value
/// that the parameter cannot hold. An integer may be given for a float or double.
std::string launch_complaint(std::string_view parameters, std::size_t operands,
                             std::span<const weir_scalar> scalars);

/// The arguments of one call in the order of the parameters, each in its own type. Allocates
/// nothing; points into itself.
class LaunchArguments {
 public:
  /// Of a call that launch_complaint() has no complaint about.
  LaunchArguments(std::string_view parameters, const weir_call& call) noexcept;
  LaunchArguments(const LaunchArguments&) = delete;
  LaunchArguments& operator=(const LaunchArguments&) = delete;

  std::size_t count() const noexcept { return letters_.size(); }
  bool is_operand(std::size_t index) const noexcept { return letters_[index] == 'p'; }
  /// Bytes of an argument: of a pointer for an operand.
  std::size_t size(std::size_t index) const noexcept;
  /// The value of an operand's pointer.
  void* operand(std::size_t index) const noexcept { return values_[index].address; }
  /// Where each argument is, as cuLaunchKernel() wants to know it.
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
