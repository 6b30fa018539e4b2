#include "installation_checks.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <weir/weir.h>

#include "child.hpp"
#include "ranks.hpp"

namespace weir::cli {

namespace {

namespace fs = std::filesystem;

/// Returns the path without links; "" if there is no such file.
fs::path real_path(const fs::path& path) {
  std::error_code missing;
  fs::path real = fs::canonical(path, missing);
  return missing ? fs::path() : real;
}

std::vector<std::string> parts_of(const char* list, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(list != nullptr ? list : "");
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

/// Where this tool is, and what belongs to it.
struct OwnFiles {
  fs::path prefix;             ///< without links
  fs::path library;            ///< of the prefix; "" if it has none
  fs::path loaded;             ///< library that this process uses; "" if the loader does not say
  fs::path pkg_config, cmake;  ///< folders of weir.pc and weir-config.cmake; "" without them
};

fs::path loaded_library() {
  Dl_info info{};
  void* const symbol = dlsym(RTLD_DEFAULT, "weir_version");
  return symbol != nullptr && dladdr(symbol, &info) != 0 ? real_path(info.dli_fname) : fs::path();
}

OwnFiles find_own_files() {
  OwnFiles own;
  own.loaded = loaded_library();
  own.prefix = real_path(own_program()).parent_path().parent_path();
  if (own.prefix.empty()) return own;
  std::error_code ignored;
  for (const char* const folder : {WEIR_LIBDIR, "lib"}) {
    const fs::path libraries = own.prefix / folder;
    if (own.library.empty()) own.library = real_path(libraries / WEIR_LIBRARY_FILE);
    if (own.pkg_config.empty() && fs::exists(libraries / "pkgconfig/weir.pc", ignored)) {
      own.pkg_config = real_path(libraries / "pkgconfig");
    }
    if (own.cmake.empty() && fs::exists(libraries / "cmake/weir/weir-config.cmake", ignored)) {
      own.cmake = real_path(libraries / "cmake/weir");
    }
  }
  return own;
}

// ---- The loader ---------------------------------------------------------------------------------

Finding check_loaded(const OwnFiles& own) {
  const std::string check = "loader";
  if (own.loaded.empty()) return {Level::ok, check, "does not say which libweir it has loaded"};
  if (own.library.empty() || own.library == own.loaded) {
    return {Level::ok, check, "loads " + own.loaded.string()};
  }
  const bool by_variable = std::getenv("LD_LIBRARY_PATH") != nullptr;
  return {Level::warning, check,
          fmt::format("loads {}, not {} of this weir", own.loaded.string(), own.library.string()),
          by_variable ? fmt::format("unset LD_LIBRARY_PATH, or begin it with {}",
                                    own.library.parent_path().string())
                      : "unset LD_PRELOAD, or remove the other library"};
}

/// The files with the names of libweir that the loader may open: in LD_LIBRARY_PATH, then in its
/// cache.
std::vector<fs::path> libraries_of_loader() {
  std::vector<fs::path> found;
  const auto add = [&](const fs::path& path) {
    const fs::path real = real_path(path);
    if (!real.empty() && std::find(found.begin(), found.end(), real) == found.end()) {
      found.push_back(real);
    }
  };
  for (const std::string& folder : parts_of(secure_getenv("LD_LIBRARY_PATH"), ':')) {
    for (const char* const name : {WEIR_LIBRARY_FILE, "libweir.so"}) add(fs::path(folder) / name);
  }
  std::string ldconfig = find_program("ldconfig");
  if (ldconfig.empty()) ldconfig = "/sbin/ldconfig";  // users do not have it in PATH
  std::istringstream lines(run_child({ldconfig, "-p"}).output);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t arrow = line.find(" => ");
    if (arrow == std::string::npos || line.find("libweir.so") == std::string::npos) continue;
    add(line.substr(arrow + 4));
  }
  return found;
}

/// Returns "version 0.1.0", or why the library cannot be opened.
std::string version_of_library(const fs::path& library) {
  const ChildResult result = call_in_child([&]() -> std::string {
    void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) return fmt::format("cannot be opened: {}", dlerror());
    const auto version = reinterpret_cast<const char* (*)()>(dlsym(opened, "weir_version"));
    return version != nullptr ? fmt::format("version {}", version()) : "no library of weir";
  });
  return result.succeeded() ? result.output : "opening it " + in_words(result);
}

Finding check_other_libraries(const OwnFiles& own) {
  const std::string expected = fmt::format("version {}", weir_version());
  std::vector<std::string> others;
  std::vector<std::string> folders;
  for (const fs::path& library : libraries_of_loader()) {
    if (library == own.loaded) continue;
    const std::string version = version_of_library(library);
    if (version == expected) continue;
    others.push_back(fmt::format("{} ({})", library.string(), version));
    folders.push_back(library.parent_path().string());
  }
  const std::string check = "other libweir";
  if (others.empty())
    return {Level::ok, check, "none of another version where the loader searches"};
  return {Level::warning, check,
          fmt::format("programs may load {} instead of version {}", fmt::join(others, ", "),
                      weir_version()),
          fmt::format("remove it, or take {} out of LD_LIBRARY_PATH or /etc/ld.so.conf and run "
                      "ldconfig",
                      fmt::join(folders, ", "))};
}

// ---- pkg-config and CMake -----------------------------------------------------------------------

std::string first_line_of(const std::string& text) {
  std::string line = text.substr(0, text.find('\n'));
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) {
    line.pop_back();
  }
  return line;
}

/// A package description that a build tool finds first.
struct FoundPackage {
  std::string version;
  fs::path folder;
};

/// Compares what a tool finds with this installation. `variable` is what leads the tool elsewhere,
/// `value` what it should be.
Finding compare_package(const std::string& check, const FoundPackage& found, const fs::path& own,
                        const std::string& variable, const std::string& value) {
  const bool same_version = found.version == weir_version();
  const bool same_place = own.empty() || own == found.folder;
  if (same_version && same_place) {
    return {Level::ok, check, fmt::format("finds {} in {}", found.version, found.folder.string())};
  }
  if (own.empty()) {
    return {Level::warning, check,
            fmt::format("finds {} in {}, but the library is {}; this weir has no headers beside it",
                        found.version, found.folder.string(), weir_version()),
            fmt::format("install the headers of {} (apt install libweir-dev), or set {}",
                        weir_version(), variable)};
  }
  return {Level::warning, check,
          fmt::format("finds {} in {} before {} in {}", found.version, found.folder.string(),
                      weir_version(), own.string()),
          fmt::format("export {}={}", variable, value)};
}

Finding check_pkg_config(const OwnFiles& own) {
  const std::string check = "pkg-config";
  const std::string program = find_program("pkg-config");
  if (program.empty()) {
    return {Level::ok, check, "not installed; weir.pc is not asked for",
            "apt install pkg-config, to build programs with it"};
  }
  const std::string prepend = own.pkg_config.string() + ":$PKG_CONFIG_PATH";
  const ChildResult version = run_child({program, "--modversion", "weir"});
  if (version.end != ChildResult::End::exited) {
    return {Level::warning, check, fmt::format("'{}' {}", program, in_words(version)),
            fmt::format("run '{} --modversion weir' to see why", program)};
  }
  if (version.status != 0) {
    if (own.pkg_config.empty()) {
      return {Level::ok, check, "finds no weir.pc; this weir has no headers beside it",
              "apt install libweir-dev, or cmake --install, to build programs"};
    }
    return {Level::ok, check, fmt::format("does not search {}", own.pkg_config.string()),
            "export PKG_CONFIG_PATH=" + prepend};
  }
  const ChildResult folder = run_child({program, "--variable=pcfiledir", "weir"});
  return compare_package(check,
                         {first_line_of(version.output), real_path(first_line_of(folder.output))},
                         own.pkg_config, "PKG_CONFIG_PATH", prepend);
}

/// The prefixes that find_package() searches first, by the environment.
std::vector<fs::path> prefixes_of_cmake() {
  std::vector<fs::path> prefixes;
  for (const char* const variable : {"weir_ROOT", "WEIR_ROOT", "CMAKE_PREFIX_PATH", "weir_DIR"}) {
    for (const std::string& part : parts_of(secure_getenv(variable), ':')) {
      prefixes.emplace_back(part);
    }
  }
  for (const std::string& folder : parts_of(secure_getenv("PATH"), ':')) {
    const fs::path path(folder);
    const bool programs = path.filename() == "bin" || path.filename() == "sbin";
    prefixes.push_back(programs ? path.parent_path() : path);
  }
  prefixes.insert(prefixes.end(), {"/usr/local", "/usr"});
  return prefixes;
}

/// Reads the version out of the file that find_package() reads it from.
std::string cmake_version_in(const fs::path& folder) {
  std::ifstream file(folder / "weir-config-version.cmake");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::smatch match;
  const std::regex version("set\\(PACKAGE_VERSION \"([^\"]*)\"\\)");
  return std::regex_search(text, match, version) ? match[1].str() : "an unknown version";
}

constexpr const char* kCMakeFolder = WEIR_LIBDIR "/cmake/weir";

Finding check_cmake(const OwnFiles& own) {
  const std::string check = "CMake";
  for (const fs::path& prefix : prefixes_of_cmake()) {
    for (const char* const below :
         {"", kCMakeFolder, "lib/cmake/weir", "lib64/cmake/weir", "share/cmake/weir"}) {
      const fs::path folder = real_path(prefix / below);
      std::error_code ignored;
      if (folder.empty() || !fs::exists(folder / "weir-config.cmake", ignored)) continue;
      return compare_package(check, {cmake_version_in(folder), folder}, own.cmake,
                             "CMAKE_PREFIX_PATH", own.prefix.string() + ":$CMAKE_PREFIX_PATH");
    }
  }
  if (own.cmake.empty()) return {Level::ok, check, "finds no package of weir"};
  return {Level::ok, check, fmt::format("does not search {}", own.prefix.string()),
          fmt::format("cmake -DCMAKE_PREFIX_PATH={}", own.prefix.string())};
}

// ---- Python -------------------------------------------------------------------------------------

/// Prints a line with a mark, as modules may print others. The folder in which the doctor was
/// started is not searched.
constexpr const char* kAskPython = R"python(
import importlib.util, sys
sys.path = [folder for folder in sys.path if folder]
if importlib.util.find_spec('weir') is None:
    print('weir doctor: absent')
else:
    try:
        import weir
        print('weir doctor: version', weir.__version__, 'in', weir.__path__[0])
    except BaseException as error:
        print('weir doctor: broken', ' '.join(str(error).split()))
)python";

Finding check_python() {
  const std::string check = "Python";
  const std::string python = find_program("python3");
  if (python.empty()) return {Level::ok, check, "there is no python3"};
  const ChildResult result = run_child({python, "-B", "-c", kAskPython});
  constexpr std::string_view kMark = "weir doctor: ";
  const std::size_t mark = result.output.rfind(kMark);
  if (!result.succeeded() || mark == std::string::npos) {
    return {Level::warning, check, fmt::format("'{}' {}", python, in_words(result)),
            fmt::format("see what '{} -c \"import weir\"' says", python)};
  }
  const std::string answer = first_line_of(result.output.substr(mark + kMark.size()));
  if (answer == "absent") {
    return {Level::ok, check, fmt::format("{} has no package weir", python),
            "pip install weir-runtime, or apt install python3-weir, to use it"};
  }
  if (answer.starts_with("broken")) {
    const bool numpy_is_missing = answer.find("No module named 'numpy'") != std::string::npos;
    return {Level::warning, check,
            fmt::format("{} cannot import weir:{}", python, answer.substr(6)),
            numpy_is_missing
                ? fmt::format("{} -m pip install numpy, or apt install python3-numpy", python)
                : fmt::format("{} -m pip install --force-reinstall weir-runtime", python)};
  }
  const std::string own = fmt::format("version {} in ", weir_version());
  if (answer.starts_with(own)) return {Level::ok, check, fmt::format("{}: {}", python, answer)};
  return {Level::warning, check,
          fmt::format("{} has {}, but this weir is {}", python, answer, weir_version()),
          fmt::format("{} -m pip install weir-runtime=={}, or install both from one version",
                      python, weir_version())};
}

}  // namespace

Findings check_installation() {
  const OwnFiles own = find_own_files();
  return {check_loaded(own), check_other_libraries(own), check_pkg_config(own), check_cmake(own),
          check_python()};
}

}  // namespace weir::cli
