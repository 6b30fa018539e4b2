#include "fabric/mpi/mpi_library.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>

#include <dlfcn.h>
#include <unistd.h>

#include "base/sys.hpp"
#include "fabric/link_library.hpp"

namespace weir::rt {

namespace {

constexpr MpiKind kKinds[] = {
    {"Open MPI", "libweir_openmpi.so", "mpirun.openmpi", "libopenmpi-dev openmpi-bin"},
    {"MPICH", "libweir_mpich.so", "mpirun.mpich", "libmpich-dev mpich"},
    {nullptr, nullptr, nullptr, nullptr},
};
constexpr MpiKind kStandard = {"the standard ABI of MPI", "libweir_mpi_abi.so", nullptr, "MPICH 5"};
constexpr const char* kStandardMpi = "libmpi_abi.so.1";

bool is_loaded(const char* library) noexcept {
  return dlopen(library, RTLD_LAZY | RTLD_NOLOAD) != nullptr;
}

/// Returns the path of the program of a process; "" if that is unknown.
std::string program_of(pid_t process) {
  std::array<char, PATH_MAX> path{};
  const std::string link = fmt::format("/proc/{}/exe", process);
  const ssize_t bytes = readlink(link.c_str(), path.data(), path.size());
  return {path.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

/// Returns 0 if that is unknown.
pid_t parent_of(pid_t process) {
  const std::string name = fmt::format("/proc/{}/stat", process);
  std::FILE* const file = std::fopen(name.c_str(), "r");
  if (file == nullptr) return 0;
  std::array<char, 512> text{};
  const std::size_t bytes = std::fread(text.data(), 1, text.size() - 1, file);
  std::fclose(file);
  // "PID (NAME) STATE PARENT ...", where the name may contain anything.
  const std::string stat(text.data(), bytes);
  int parent = 0;
  const std::size_t end = stat.rfind(')');
  if (end == std::string::npos) return 0;
  return std::sscanf(stat.c_str() + end, ") %*c %d", &parent) == 1 ? parent : 0;
}

/// Returns the libmpi_abi of the MPI that started this process: the launcher is an ancestor,
/// perhaps of a shell.
std::string standard_mpi_of_launcher() {
  constexpr int kMostAncestors = 8;
  pid_t process = getppid();
  for (int i = 0; i < kMostAncestors && process > 1; ++i) {
    std::string found = standard_mpi_beside(program_of(process));
    if (!found.empty()) return found;
    process = parent_of(process);
  }
  return {};
}

/// Returns which libmpi_abi to open; "" to open the library for the launcher.
std::string standard_mpi(const MpiKind& launcher) {
  if (mpi_library_path(kStandard).empty()) return {};
  if (is_loaded(kStandardMpi)) return kStandardMpi;
  const auto others = {"libmpi.so.40", "libmpich.so.12", "libmpi.so.12"};
  if (std::any_of(others.begin(), others.end(), is_loaded)) return {};
  std::string found = standard_mpi_of_launcher();
  if (!found.empty() || !mpi_library_path(launcher).empty()) return found;
  return dlopen(kStandardMpi, RTLD_LAZY) != nullptr ? kStandardMpi : "";
}

}  // namespace

std::string standard_mpi_beside(const std::string& program) {  // .../bin/mpiexec
  std::size_t slash = program.rfind('/');
  if (slash != std::string::npos && slash > 0) slash = program.rfind('/', slash - 1);
  if (slash == std::string::npos) return {};
  std::string path = program.substr(0, slash) + "/lib/" + kStandardMpi;
  return access(path.c_str(), R_OK) == 0 ? path : std::string();
}

const MpiKind* mpi_kinds() noexcept { return kKinds; }
const MpiKind& standard_mpi_kind() noexcept { return kStandard; }

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
  const MpiKind* const launcher = started_by_mpi();
  if (launcher == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE, "this process was not started by mpirun: mpirun -n 4 PROGRAM");
  }
  const std::string standard = standard_mpi(*launcher);
  const MpiKind& kind = standard.empty() ? *launcher : kStandard;
  const std::string path = mpi_library_path(kind);
  if (path.empty()) {
    fail(WEIR_STATUS_UNAVAILABLE,
         "{} is not beside weir's library: weir was built without {} (Debian: install {} and build "
         "it again)",
         kind.library, kind.name, kind.packages);
  }
  if (!standard.empty() &&
      dlopen(standard.c_str(), RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE) == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE, "cannot open the library of {}: {}", kind.name, dlerror());
  }
  void* const library = open_link_library(path, "weir_mpi_link_build", kind.packages);
  const auto open = reinterpret_cast<MpiLinkOpen>(dlsym(library, "weir_mpi_link_open"));
  char message[256] = "";
  std::unique_ptr<Link> link(open(message, sizeof message));
  if (link == nullptr) {
    fail(WEIR_STATUS_UNAVAILABLE, "{} cannot be used: {}", kind.name, message);
  }
  return link;
}

}  // namespace weir::rt
