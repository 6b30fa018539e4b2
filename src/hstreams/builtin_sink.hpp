// The sink functions that are always there.
#pragma once

#include <string_view>

namespace weir::hs {

/// Finds one by its name, nullptr for any other. Those that need a BLAS are not found without one.
void* find_builtin(std::string_view name, bool with_blas);

/// Whether an address that the system found is that of one of them.
bool is_builtin(const void* function);

}  // namespace weir::hs
