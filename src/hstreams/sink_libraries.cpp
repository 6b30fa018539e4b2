#include "hstreams/sink_libraries.hpp"

#include <filesystem>
#include <mutex>

#include <dlfcn.h>
#include <unistd.h>

#include "hstreams/builtin_sink.hpp"
#include "hstreams/log.hpp"

namespace weir::hs {

namespace {

/// Adds the folders of a path "a:b".
void add_path(std::vector<std::string>& folders, const std::string& path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
}

const std::vector<std::string>& list_of(const SinkLists& lists, HSTR_ISA_TYPE isa) {
  static const std::vector<std::string> none;
  const auto found = lists.find(isa);
  return found != lists.end() ? found->second : none;
}

}  // namespace

void SinkLibraries::Close::operator()(void* library) const noexcept { dlclose(library); }

SinkLibraries::SinkLibraries(const SinkLists& lists, const Environment& environment, bool with_blas)
    : with_blas_(with_blas) {
  std::error_code ignored;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  program_ = program.filename();
  add_path(device_folders_, environment.sink_path);
  add_path(device_folders_, environment.mic_path);
  add_path(host_folders_, environment.host_sink_path);
  for (Folders* folders : {&device_folders_, &host_folders_}) {
    folders->push_back(program.parent_path());
  }
  open_for_devices(lists);
  open_for_host(lists);
}

/// Opened libraries stay in the process: their OpenMP threads may outlive the last call.
SinkLibraries::Library SinkLibraries::open(const std::string& name, const Folders& folders,
                                           int scope, Side& side, std::string& why) {
  std::vector<std::string> paths;
  if (name.find('/') != std::string::npos) {
    paths.push_back(name);
  } else {
    for (const std::string& folder : folders) paths.push_back(fmt::format("{}/{}", folder, name));
  }
  why = fmt::format("library {} is in none of its folders", name);
  for (const std::string& path : paths) {
    if (access(path.c_str(), F_OK) != 0) continue;
    if (void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_NODELETE | scope)) {
      log(HSTR_LOG_LEVEL_DEBUG3, HSTR_INFO_TYPE_SINK_INVOKE, "sink library {}", path);
      return Library(opened);
    }
    why = dlerror();
    log(HSTR_LOG_LEVEL_ERROR, HSTR_INFO_TYPE_SINK_INVOKE, "a sink library cannot be loaded: {}",
        why);
    side.not_loaded += fmt::format("; not loaded: {}", why);
  }
  return nullptr;
}

bool SinkLibraries::open_all(const std::vector<std::string>& names, const Folders& folders,
                             int scope, Side& side, std::string& why) {
  for (const std::string& name : names) {
    Library library = open(name, folders, scope, side, why);
    if (library == nullptr) return false;
    side.libraries.push_back(std::move(library));
  }
  return true;
}

void SinkLibraries::open_for_devices(const SinkLists& lists) {
  std::string why, missing;
  bool wanted = false, satisfied = false;
  for (const HSTR_ISA_TYPE isa : {HSTR_ISA_KNC, HSTR_ISA_KNL, HSTR_ISA_x86_64}) {
    const std::vector<std::string>& names = list_of(lists, isa);
    if (names.empty()) continue;
    const Folders& folders = isa == HSTR_ISA_x86_64 ? host_folders_ : device_folders_;
    wanted = true;
    if (open_all(names, folders, RTLD_GLOBAL, devices_, why)) {
      satisfied = true;
    } else if (missing.empty()) {
      missing = why;
    }
  }
  if (wanted && !satisfied) fail(HSTR_RESULT_BAD_NAME, "{}", missing);
  for (const char* const suffix : {"_mic.so", "_x200.so", "_host.so"}) {
    Library library = open(program_ + suffix, device_folders_, RTLD_GLOBAL, devices_, why);
    if (library == nullptr) continue;
    devices_.libraries.push_back(std::move(library));
    break;
  }
}

void SinkLibraries::open_for_host(const SinkLists& lists) {
  std::string why;
  if (!open_all(list_of(lists, HSTR_ISA_x86_64), host_folders_, RTLD_LOCAL, host_, why)) {
    if (host_.not_loaded.empty()) {
      log(HSTR_LOG_LEVEL_ERROR, HSTR_INFO_TYPE_SINK_INVOKE, "{}", why);
    }
    return;
  }
  if (Library library = open(program_ + "_host.so", host_folders_, RTLD_LOCAL, host_, why)) {
    host_.libraries.push_back(std::move(library));
  }
}

void* SinkLibraries::find(bool host, const char* name) {
  Side& side = host ? host_ : devices_;
  {
    const std::shared_lock lock(mutex_);
    const auto known = side.known.find(name);
    if (known != side.known.end()) return known->second;
  }
  void* const function = look_up(side, name);
  if (function == nullptr) {
    fail(HSTR_RESULT_BAD_NAME,
         "there is no sink function '{}': export it from a sink library, or from the program and "
         "link that with -rdynamic{}",
         name, side.not_loaded);
  }
  log(HSTR_LOG_LEVEL_DEBUG3, HSTR_INFO_TYPE_SINK_INVOKE, "sink function {} is at {}", name,
      fmt::ptr(function));
  const std::unique_lock lock(mutex_);
  side.known.emplace(name, function);
  return function;
}

void* SinkLibraries::look_up(const Side& side, const char* name) const {
  for (const Library& library : side.libraries) {
    void* const function = dlsym(library.get(), name);
    if (function != nullptr && !is_builtin(function)) return function;
  }
  void* const function = dlsym(RTLD_DEFAULT, name);
  if (function != nullptr && !is_builtin(function)) return function;
  return find_builtin(name, with_blas_);
}

}  // namespace weir::hs
