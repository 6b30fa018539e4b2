// The built-in sink functions.
#pragma once

#include <string_view>

namespace weir::hs {

/// Finds a built-in function by its name, nullptr for other names. Without a BLAS it does not find
/// functions that need one.
void* find_builtin(std::string_view name, bool with_blas);

/// Whether an address from the dynamic loader is that of a built-in function.
bool is_builtin(const void* function);

}  // namespace weir::hs
