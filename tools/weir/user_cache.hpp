// Where the tool keeps what it found out.
#pragma once

#include <filesystem>

namespace weir::cli {

/// Returns the folder "weir" in XDG_CACHE_HOME, or in ~/.cache without it; "" when there is none,
/// as in a setuid program. It may have to be made.
std::filesystem::path user_cache();

}  // namespace weir::cli
