#include "fabric/mpi/mpi_library.hpp"

#include <dlfcn.h>

#include "base/sys.hpp"
#include "fabric/link_library.hpp"

namespace weir::rt {

namespace {

constexpr MpiKind kKinds[] = {
    {"Open MPI", "libweir_openmpi.so", "mpirun.openmpi", "libopenmpi-dev openmpi-bin"},
    {"MPICH", "libweir_mpich.so", "mpirun.mpich", "libmpich-dev mpich"},
    {nullptr, nullptr, nullptr, nullptr},
};

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

std::string mpi_library_path(const MpiKind& kind) { return link_library_path(kind.library); }

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
  void* const library = open_link_library(path, "weir_mpi_link_build", kind->packages);
  const auto open = reinterpret_cast<MpiLinkOpen>(dlsym(library, "weir_mpi_link_open"));
  char message[256] = "";
  std::unique_ptr<Link> link(open(message, sizeof message));
  if (link == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE, "{} cannot be used: {}", kind->name, message);
  }
  return link;
}

}  // namespace weir::rt
