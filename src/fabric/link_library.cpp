#include "fabric/link_library.hpp"

#include <string_view>

#include <dlfcn.h>
#include <unistd.h>

#include "base/error.hpp"

namespace weir::rt {

namespace {

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&link_library_path), &info) == 0) return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

std::string link_library_path(const char* file) {
  const std::string folder = own_folder();
  for (const char* const below : {"/", "/../lib/"}) {
    std::string path = folder + below + file;
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return {};
}

void* open_link_library(const std::string& path, const char* build, const char* packages) {
  // MPI loads plug-ins, which look for its symbols in the global scope.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (library == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE, "cannot open {}: {}; install {}", path, dlerror(), packages);
  }
  const auto build_of_library = reinterpret_cast<LinkBuild>(dlsym(library, build));
  const std::string_view theirs =
      build_of_library != nullptr ? build_of_library() : "an older weir";
  if (theirs != link_build()) {
    fail(WEIR_STATUS_UNAVAILABLE, "{} is of {}, the library of {}: build and install both again",
         path, theirs, link_build());
  }
  return library;
}

}  // namespace weir::rt
