#include "backend/launch_arguments.hpp"

#include <cstring>

namespace weir::rt {

namespace {

/// A value in the first bytes of a word.
template <class T>
std::uint64_t word_of(T value) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  return word;
}

bool is_real(const weir_scalar& scalar) noexcept {
  return scalar.type == WEIR_SCALAR_TYPE_F32 || scalar.type == WEIR_SCALAR_TYPE_F64;
}

double real_of(const weir_scalar& scalar) noexcept {
  return scalar.type == WEIR_SCALAR_TYPE_F32 ? static_cast<double>(scalar.value.f32)
                                             : scalar.value.f64;
}

std::size_t size_of(char letter) noexcept {
  return letter == 'i' || letter == 'u' || letter == 'f' ? 4 : 8;
}

std::uint64_t scalar_word(char letter, const weir_scalar& scalar, std::size_t parameter,
                          const char* entry) {
  const bool wants_real = letter == 'f' || letter == 'd';
  if (wants_real != is_real(scalar)) {
    fail_argument("parameter {} of kernel '{}' takes {}, and was given {}", parameter, entry,
                  wants_real ? "a real number" : "an integer",
                  wants_real ? "an integer" : "a real number");
  }
  switch (letter) {
    case 'f': return word_of(static_cast<float>(real_of(scalar)));
    case 'd': return word_of(real_of(scalar));
    case 'i':
    case 'u': return word_of(static_cast<std::uint32_t>(scalar.value.u64));
    case 'l':
    case 'm': return scalar.value.u64;
    default:
      fail(WEIR_STATUS_INTERNAL, "parameter {} of kernel '{}' has the unknown letter '{}'",
           parameter, entry, letter);
  }
}

}  // namespace

void LaunchArguments::pack_all(const KernelSource& source, const weir_call& call) {
  const std::size_t count = source.parameters.size();
  values_.resize(count);
  addresses_.resize(count);
  sizes_.resize(count);
  std::size_t operand = 0, scalar = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const char letter = source.parameters[i];
    const char* const entry = source.entry.c_str();
    if (letter == 'p' ? operand == call.operand_count : scalar == call.scalar_count) {
      fail_argument("kernel '{}' has {} parameters, and was given {} operands and {} scalars",
                    entry, count, call.operand_count, call.scalar_count);
    }
    values_[i] = letter == 'p' ? word_of(call.operands[operand++].address)
                               : scalar_word(letter, call.scalars[scalar++], i, entry);
    addresses_[i] = &values_[i];
    sizes_[i] = size_of(letter);
  }
}

Outcome LaunchArguments::pack(const KernelSource& source, const weir_call& call) noexcept {
  try {
    pack_all(source, call);
    return {};
  } catch (...) {
    return current_exception_outcome(WEIR_STATUS_INTERNAL);
  }
}

}  // namespace weir::rt
