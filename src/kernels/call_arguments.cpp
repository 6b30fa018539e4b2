#include "kernels/call_arguments.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <utility>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace weir::kernels {

using rt::fail_argument;

namespace {

std::size_t count_of(std::string_view names) {
  if (names.empty()) return 0;
  return static_cast<std::size_t>(std::count(names.begin(), names.end(), ',')) + 1;
}

/// "operand 2 (B)"
std::string describe(const char* kind, std::string_view names, std::size_t index) {
  std::string_view name = rt::split(names, ',')[index];
  name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
  return fmt::format("{} {} ({})", kind, index + 1, name);
}

void check_count(const char* kind, std::size_t given, std::string_view names) {
  if (given == count_of(names)) return;
  fail_argument("{} {} given where the kernel takes {} ({})", rt::counted(given, kind),
                rt::is_or_are(given), count_of(names), names.empty() ? "none" : names);
}

const char* type_name(weir_scalar_type type) {
  switch (type) {
    case WEIR_SCALAR_TYPE_I64: return "an i64";
    case WEIR_SCALAR_TYPE_U64: return "a u64";
    case WEIR_SCALAR_TYPE_F32: return "an f32";
    case WEIR_SCALAR_TYPE_F64: return "an f64";
  }
  return "of an unknown type";
}

std::string shown(std::int64_t letter) {
  return letter > ' ' && letter <= '~' ? fmt::format("'{}'", static_cast<char>(letter))
                                       : fmt::format("{}", letter);
}

}  // namespace

CallArguments::CallArguments(const weir_call& call, std::string_view scalars,
                             std::string_view operands)
    : call_(call), scalars_(scalars), operands_(operands) {
  check_count("scalar", call.scalar_count, scalars);
  check_count("operand", call.operand_count, operands);
}

std::string CallArguments::scalar_name(std::size_t index) const {
  return describe("scalar", scalars_, index);
}
std::string CallArguments::operand_name(std::size_t index) const {
  return describe("operand", operands_, index);
}

char CallArguments::letter(std::size_t scalar, std::string_view allowed) const {
  const std::int64_t given = integer(scalar);
  const std::int64_t upper = given >= 'a' && given <= 'z' ? given - 'a' + 'A' : given;
  const auto found = std::find(allowed.begin(), allowed.end(), upper);
  if (found != allowed.end()) return *found;
  fail_argument("{} is {}: expected a letter of {}", scalar_name(scalar), shown(given), allowed);
}

std::int64_t CallArguments::integer(std::size_t scalar) const {
  const weir_scalar& given = call_.scalars[scalar];
  if (given.type == WEIR_SCALAR_TYPE_I64) return given.value.i64;
  if (given.type == WEIR_SCALAR_TYPE_U64 && std::in_range<std::int64_t>(given.value.u64)) {
    return static_cast<std::int64_t>(given.value.u64);
  }
  fail_argument("{} is {}: expected an i64", scalar_name(scalar), type_name(given.type));
}

double CallArguments::real(std::size_t scalar) const {
  const weir_scalar& given = call_.scalars[scalar];
  if (given.type == WEIR_SCALAR_TYPE_F64) return given.value.f64;
  if (given.type == WEIR_SCALAR_TYPE_F32) return static_cast<double>(given.value.f32);
  fail_argument("{} is {}: expected an f64 or f32", scalar_name(scalar), type_name(given.type));
}

const weir_view& CallArguments::view(std::size_t operand, weir_access access) const {
  const weir_view& view = call_.operands[operand];
  if ((view.access & access) == access) return view;
  fail_argument("{} is enqueued for {}, but the kernel {} it", operand_name(operand),
                view.access == WEIR_ACCESS_READ ? "reading" : "writing",
                access == WEIR_ACCESS_READ ? "reads" : "writes");
}

Matrix<std::byte> CallArguments::check_matrix(std::size_t operand, weir_access access,
                                              std::size_t size) const {
  const weir_view& given = view(operand, access);
  const auto [row, rows, planes] = given.extent;
  const std::size_t stride = rows > 1 ? given.stride[0] : row;
  if (planes > 1) fail_argument("{} has {} planes: expected one", operand_name(operand), planes);
  if (row % size != 0 || stride % size != 0) {
    fail_argument("{} has columns of {} bytes, {} apart: expected multiples of {}",
                  operand_name(operand), row, stride, size);
  }
  if (reinterpret_cast<std::uintptr_t>(given.address) % size != 0) {
    fail_argument("{} starts at address {}: expected a multiple of {}", operand_name(operand),
                  given.address, size);
  }
  if (stride / size > INT_MAX || rows > INT_MAX) {
    fail_argument("{} has {} columns, {} elements apart: the most is {}", operand_name(operand),
                  rows, stride / size, INT_MAX);
  }
  return {static_cast<std::byte*>(given.address), static_cast<int>(row / size),
          static_cast<int>(rows), static_cast<int>(stride / size)};
}

}  // namespace weir::kernels
