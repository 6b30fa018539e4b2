// Libraries of weir beside libweir that contain a link, so that libweir does not need the network
// library beneath it.
#pragma once

#include <string>

namespace weir::rt {

/// Returns a text that is equal in libraries of one build.
const char* link_build() noexcept;
/// A symbol of each of these libraries: its link_build().
using LinkBuild = const char* (*)();

/// Returns the path of such a library, in the folder of libweir; "" if it does not exist.
std::string link_library_path(const char* file);

/// Opens a library, and checks that it is of this build. `build`: the name of its LinkBuild.
/// `packages`: what it needs. Throws Error{unavailable}.
void* open_link_library(const std::string& path, const char* build, const char* packages);

}  // namespace weir::rt
