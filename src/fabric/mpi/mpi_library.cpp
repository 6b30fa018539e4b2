#include "fabric/mpi/mpi_library.hpp"

#include <string_view>

#include <dlfcn.h>
#include <unistd.h>

#include "base/sys.hpp"

namespace weir::rt {

namespace {

constexpr MpiKind kKinds[] = {
    {"Open MPI", "libweir_openmpi.so", "mpirun.openmpi", "libopenmpi-dev openmpi-bin"},
    {"MPICH", "libweir_mpich.so", "mpirun.mpich", "libmpich-dev mpich"},
    {nullptr, nullptr, nullptr, nullptr},
};

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&started_by_mpi), &info) == 0) return {};
  const std::string path = info.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

const MpiKind* mpi_kinds() noexcept { return kKinds; }

const MpiKind* started_by_mpi() noexcept {
  const auto has = [](const char* variable) { return sys::environment(variable) != nullptr; };
  if (has("OMPI_COMM_WORLD_SIZE") || has("PMIX_RANK")) return &kKinds[0];
  if (has("PMI_SIZE") || has("PMI_RANK")) return &kKinds[1];
  return nullptr;
}

const char* rank_by_mpi() noexcept {
  for (const char* const variable :
       {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* const rank = sys::environment(variable)) return rank;
  }
  return nullptr;
}

std::string mpi_library_path(const MpiKind& kind) {
  const std::string folder = own_folder();
  for (const char* const below : {"/", "/../lib/"}) {
    std::string path = folder + below + kind.library;
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return {};
}

std::unique_ptr<Link> mpi_link() {
  const MpiKind* const kind = started_by_mpi();
  if (kind == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE, "this process was not started by mpirun: mpirun -n 4 PROGRAM");
  }
  const std::string path = mpi_library_path(*kind);
  if (path.empty()) {
    fail(WEIR_STATUS_UNAVAILABLE,
         "{} is not beside weir's library: weir was built without {} (Debian: install {} and build "
         "it again)",
         kind->library, kind->name, kind->packages);
  }
  // MPI loads plug-ins, which look for its symbols in the global scope.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
  if (library == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE, "cannot open {}: {}; install {}", path, dlerror(),
         kind->packages);
  }
  const auto build = reinterpret_cast<MpiLinkBuild>(dlsym(library, "weir_mpi_link_build"));
  const auto open = reinterpret_cast<MpiLinkOpen>(dlsym(library, "weir_mpi_link_open"));
  const std::string_view theirs = build != nullptr ? build() : "an older weir";
  if (open == nullptr || theirs != link_build()) {
    fail(WEIR_STATUS_UNAVAILABLE, "{} is of {}, the library of {}: build and install both again",
         path, theirs, link_build());
  }
  char message[256] = "";
  std::unique_ptr<Link> link(open(message, sizeof message));
  if (link == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE, "{} cannot be used: {}", kind->name, message);
  }
  return link;
}

}  // namespace weir::rt
