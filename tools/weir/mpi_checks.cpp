#include "mpi_checks.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "child.hpp"

namespace weir::cli {

namespace {

using Json = nlohmann::ordered_json;

/// A kind of MPI, or UCX, and weir's library for it.
struct NetworkModule {
  std::string name = {};      ///< "Open MPI"
  std::string launcher = {};  ///< "mpirun.openmpi"; "" of UCX
  std::string packages = {};
  std::string mpi = {};      ///< path of the MPI that must be opened before; "" for none
  std::string library = {};  ///< path; "" if weir was built without it
  std::string version = {};  ///< of the MPI or UCX that it opens; "" if that does not say
  std::string problem = {};  ///< of the loader; "" if the library can be opened
  std::string fix = {};      ///< for the problem
};

/// Returns the first word that is like "4.1.4", without "v" before it.
std::string version_in(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (word.size() > 1 && word.front() == 'v') word.erase(0, 1);
    const std::size_t end = std::min(word.find_first_not_of("0123456789."), word.size());
    const bool number = std::isdigit(static_cast<unsigned char>(word.front())) != 0;
    if (number && word.substr(0, end).find('.') != std::string::npos) return word.substr(0, end);
  }
  return {};
}

std::string version_of_mpi(void* opened) {
  constexpr const char* kFunction = "MPI_Get_library_version";
  void* found = dlsym(opened, kFunction);
  if (found == nullptr) found = dlsym(RTLD_DEFAULT, kFunction);  // of an MPI opened before
  const auto version = reinterpret_cast<int (*)(char*, int*)>(found);
  static std::array<char, 16384> text{};  // MPICH allows itself 8192
  int length = 0;
  if (version != nullptr) version(text.data(), &length);
  return text.data();
}

std::string version_of_ucx(void* opened) {
  const auto version = reinterpret_cast<const char* (*)()>(dlsym(opened, "ucp_get_version_string"));
  return version != nullptr ? version() : "";
}

/// What differs between the libraries for MPI and for UCX.
struct ModuleKind {
  const char* build;                        ///< symbol that returns of which build it is
  std::string (*version_of)(void* opened);  ///< what the network library says about itself
};
constexpr ModuleKind kMpi{"weir_mpi_link_build", version_of_mpi};
constexpr ModuleKind kUcx{"weir_ucx_link_build", version_of_ucx};

/// Returns "+" and the version, "-" and why the library cannot be opened, or "!" and of which build
/// it is.
std::string open_library(const NetworkModule& module, const std::string& build,
                         const ModuleKind& kind) {
  const bool has_mpi =
      module.mpi.empty() || dlopen(module.mpi.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr;
  void* const opened = has_mpi ? dlopen(module.library.c_str(), RTLD_NOW | RTLD_GLOBAL) : nullptr;
  if (opened == nullptr) return std::string("-") + dlerror();
  const auto build_of = reinterpret_cast<const char* (*)()>(dlsym(opened, kind.build));
  const std::string theirs = build_of != nullptr ? build_of() : "an older weir";
  if (theirs != build) return fmt::format("!it is of {}, libweir of {}", theirs, build);
  return "+" + kind.version_of(opened);
}

/// Opens weir's library of a module, as `description` names it, in a child process.
NetworkModule try_module(NetworkModule module, const Json& description, const ModuleKind& kind) {
  module.packages = description.at("packages");
  module.library = description.at("library");
  if (module.library.empty()) return module;
  const auto build = description.value("build", std::string("a library before 0.2"));
  const ChildResult result = call_in_child([&] { return open_library(module, build, kind); });
  module.fix = module.mpi.empty() ? "apt install " + module.packages
                                  : "install that MPI again, or put another one first in PATH";
  if (!result.succeeded() || result.output.empty()) {
    module.problem = "opening it " + in_words(result);
  } else if (result.output.front() == '+') {
    module.version = version_in(result.output.substr(1));
  } else {
    module.problem = result.output.substr(1);
    if (result.output.front() == '!') module.fix = "build and install both again";
  }
  return module;
}

std::string how_to_get(const NetworkModule& module) {
  return fmt::format("apt install {}, and build weir again; of packages: apt install libweir-mpi",
                     module.packages);
}

std::string with_version(const std::string& name, const std::string& version) {
  return version.empty() ? name : name + " " + version;
}

/// MPI is optional: without it, ranks are processes of one machine.
Finding check_module(const NetworkModule& module) {
  const std::string check = "mpi";
  const bool starts = !find_program(module.launcher).empty();
  if (module.library.empty()) {
    if (!starts) {
      return {Level::ok, check, fmt::format("{} is not installed", module.name),
              how_to_get(module)};
    }
    return {Level::warning, check,
            fmt::format("{} is here, but weir was built without it", module.name),
            how_to_get(module)};
  }
  if (!module.problem.empty()) {
    return {starts ? Level::warning : Level::ok, check,
            fmt::format("{} cannot be opened: {}", module.library, module.problem),
            fmt::format("{}, for ranks that {} starts", module.fix, module.name)};
  }
  const std::string name = with_version(module.name, module.version);
  if (starts) return {Level::ok, check, fmt::format("ranks that {} starts work", name)};
  return {Level::ok, check, fmt::format("weir opens {}; there is no {}", name, module.launcher),
          "apt install " + module.packages};
}

/// UCX is optional: without it, MPI carries packets between nodes.
Finding check_ucx(const NetworkModule& module) {
  const std::string check = "ucx";
  if (module.library.empty()) {
    return {Level::ok, check, "weir was built without UCX: MPI carries packets between nodes",
            how_to_get(module)};
  }
  if (!module.problem.empty()) {
    return {Level::warning, check,
            fmt::format("{} cannot be opened: {}; MPI carries packets between nodes",
                        module.library, module.problem),
            module.fix};
  }
  return {Level::ok, check, with_version("UCX", module.version) + " carries packets between nodes"};
}

/// Returns the name of the MPI whose launcher says this of itself; "" for others. Those that are
/// made from MPICH set the same variables, by which weir recognises it.
std::string mpi_that_says(const std::string& text) {
  const auto says = [&](const char* words) { return text.find(words) != std::string::npos; };
  if (says("Open MPI") || says("OpenRTE") || says("open-mpi.org")) return "Open MPI";
  if (says("HYDRA") || says("MPICH") || says("Intel(R) MPI") || says("mpich")) return "MPICH";
  return {};
}

/// Returns the first line that is not empty, in at most 80 characters.
std::string excerpt_of(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (line.empty() && std::getline(lines, line)) {
  }
  return line.substr(0, 80);
}

/// Checks a launcher of an MPI that has the standard ABI: a library beside it.
Finding check_standard(const std::string& name, const std::string& path,
                       const NetworkModule& module) {
  if (!module.problem.empty()) {
    return {Level::warning, name,
            fmt::format("{} belongs to the MPI of {}, which cannot be opened: {}", path, module.mpi,
                        module.problem),
            module.fix};
  }
  return {Level::ok, name,
          fmt::format("{} belongs to {}, which weir opens by the standard ABI of MPI", path,
                      with_version("MPI", module.version))};
}

Finding check_launcher(const std::string& name, const std::string& path,
                       const std::vector<NetworkModule>& modules) {
  const ChildResult result = run_child({path, "--version"});
  if (result.end != ChildResult::End::exited) {
    return {Level::warning, name, fmt::format("'{} --version' {}", path, in_words(result)),
            "repair it, or use weir run --ranks N on one machine"};
  }
  const std::string kind = mpi_that_says(result.output);
  const auto module = std::find_if(modules.begin(), modules.end(),
                                   [&](const NetworkModule& each) { return each.name == kind; });
  if (module == modules.end()) {
    return {Level::warning, name,
            fmt::format("{} belongs to an MPI that weir does not know: '{}'", path,
                        excerpt_of(result.output)),
            "use mpirun of Open MPI or MPICH (apt install openmpi-bin), or weir run --ranks N"};
  }
  const std::string mpi = with_version(kind, version_in(result.output));
  if (module->library.empty()) {
    return {Level::warning, name,
            fmt::format("{} belongs to {}, and weir has no library for it", path, mpi),
            how_to_get(*module)};
  }
  if (!module->problem.empty()) {
    return {Level::warning, name,
            fmt::format("{} belongs to {}, but {} cannot be opened: {}", path, mpi, module->library,
                        module->problem),
            module->fix};
  }
  const std::string opened = with_version(kind, module->version);
  if (opened != mpi) {
    return {Level::warning, name,
            fmt::format("{} belongs to {}, but weir opens {}", path, mpi, opened),
            "put the bin and lib of one of them first in PATH and LD_LIBRARY_PATH"};
  }
  return {Level::ok, name, fmt::format("{} belongs to {}, which weir opens", path, mpi)};
}

}  // namespace

Findings check_mpi(const Json& description) {
  std::vector<NetworkModule> modules;
  Findings findings;
  for (const Json& mpi : description.at("mpi")) {
    modules.push_back(
        try_module({.name = mpi.at("name"), .launcher = mpi.at("launcher")}, mpi, kMpi));
    findings.push_back(check_module(modules.back()));
  }
  findings.push_back(check_ucx(try_module({.name = "UCX"}, description.at("ucx"), kUcx)));
  std::vector<std::filesystem::path> seen;  // mpirun and mpiexec are often links to one program
  for (const char* const name : {"mpirun", "mpiexec"}) {
    const std::string path = find_program(name);
    if (path.empty()) continue;
    std::error_code ignored;
    const auto real = std::filesystem::canonical(path, ignored);
    if (std::find(seen.begin(), seen.end(), real) != seen.end()) continue;
    seen.push_back(real);
    const auto mpi = real.parent_path().parent_path() / "lib" / "libmpi_abi.so.1";
    const Json& standard = description.at("standard_mpi");
    const bool is_standard = standard.at("library") != "" && std::filesystem::exists(mpi, ignored);
    findings.push_back(
        is_standard
            ? check_standard(name, path, try_module({.name = "", .mpi = mpi}, standard, kMpi))
            : check_launcher(name, path, modules));
  }
  if (seen.empty()) {
    findings.push_back({Level::ok, "mpirun", "not in PATH; not needed for ranks on one machine",
                        "weir run --ranks N"});
  }
  return findings;
}

}  // namespace weir::cli
