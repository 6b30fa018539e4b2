// Reading and checking the arguments of a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <weir/kernel.h>

#include "kernels/matrix.hpp"

namespace weir::kernels {

/// The arguments of one call. All functions throw rt::Error{invalid_argument}, which names the
/// argument and the error. Indices count from 0, in the messages from 1.
class CallArguments {
 public:
  /// Checks the counts against the names, "alpha, beta"; "" are none. The texts must outlive this.
  CallArguments(const weir_call& call, std::string_view scalars, std::string_view operands);

  /// An option of BLAS in upper case, one of `allowed`.
  char letter(std::size_t scalar, std::string_view allowed) const;
  std::int64_t integer(std::size_t scalar) const;
  double real(std::size_t scalar) const;

  /// An operand as it is, enqueued at least for `access`.
  const weir_view& view(std::size_t operand, weir_access access) const;

  /// An operand as a column-major matrix of T.
  template <class T>
  Matrix<T> matrix(std::size_t operand, weir_access access) const {
    const Matrix<std::byte> checked = check_matrix(operand, access, sizeof(T));
    return {reinterpret_cast<T*>(checked.data), checked.rows, checked.columns, checked.stride};
  }

 private:
  std::string scalar_name(std::size_t index) const;
  std::string operand_name(std::size_t index) const;
  Matrix<std::byte> check_matrix(std::size_t operand, weir_access access, std::size_t size) const;

  const weir_call& call_;
  std::string_view scalars_, operands_;
};

}  // namespace weir::kernels
