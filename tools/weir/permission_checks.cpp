#include "permission_checks.hpp"

#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "terminal.hpp"
#include "user_cache.hpp"

namespace weir::cli {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLittleSharedMemory = std::uint64_t{64} << 20;  // what containers get

/// Returns why a file may not be used in this mode; "" if it may.
std::string refusal(const fs::path& path, int mode) {
  return access(path.c_str(), mode) == 0 ? "" : std::strerror(errno);
}

Finding check_proc() {
  const std::string refused = refusal("/proc/self/status", R_OK);
  if (refused.empty()) return {Level::ok, "proc", "mounted"};
  return {Level::warning, "proc",
          fmt::format("/proc is not mounted ({}): free memory and limits of the control group are "
                      "unknown",
                      refused),
          "mount -t proc proc /proc"};
}

Finding check_sys() {
  const std::string refused = refusal("/sys/devices/system/cpu", R_OK | X_OK);
  if (refused.empty()) return {Level::ok, "sys", "mounted"};
  return {Level::warning, "sys",
          fmt::format("/sys is not mounted ({}): OpenCL is not opened, and caches and NUMA nodes "
                      "may be unknown",
                      refused),
          "mount -t sysfs sysfs /sys"};
}

/// MPI libraries put their shared memory there; weir's own has no name.
Finding check_shared_memory() {
  const std::string check = "shared memory";
  const fs::path folder = "/dev/shm";
  const std::string refused = refusal(folder, W_OK | X_OK);
  if (!refused.empty()) {
    return {Level::warning, check,
            fmt::format("/dev/shm cannot be written: {}; MPI needs it, weir run --ranks does not",
                        refused),
            "mount -t tmpfs -o mode=1777 tmpfs /dev/shm"};
  }
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) return {Level::ok, check, "/dev/shm can be written"};
  const std::uint64_t free = std::uint64_t{status.f_bavail} * status.f_frsize;
  const std::string found = fmt::format("{} free in /dev/shm", format_bytes(free));
  if (free > kLittleSharedMemory) return {Level::ok, check, found};
  return {Level::warning, check, found + ", which is little for MPI",
          "mount -o remount,size=1G /dev/shm, or docker run --shm-size=1g"};
}

/// Returns the nearest folder or file above a path that exists, or the path itself.
fs::path existing_part(fs::path path) {
  std::error_code ignored;
  while (path.has_relative_path() && !fs::exists(fs::symlink_status(path, ignored))) {
    path = path.parent_path();
  }
  return path;
}

Finding check_cache() {
  const std::string check = "cache";
  const fs::path folder = user_cache();
  const std::string fix = "name a folder that can be written in XDG_CACHE_HOME";
  if (folder.empty()) {
    return {Level::warning, check,
            "neither XDG_CACHE_HOME nor HOME names a folder: rates, compiled kernels and wisdom "
            "are not kept",
            fix};
  }
  const fs::path existing = existing_part(folder);
  std::error_code ignored;
  const bool usable = fs::is_directory(existing, ignored);
  const std::string refused = usable ? refusal(existing, W_OK | X_OK) : "it is not a folder";
  if (refused.empty()) return {Level::ok, check, folder.string() + " can be written"};
  return {Level::warning, check,
          fmt::format("rates, compiled kernels and wisdom are not kept in {}: {}: {}",
                      folder.string(), existing.string(), refused),
          fix};
}

bool is_device_file(const std::string& name) {
  return name.starts_with("renderD") || name == "kfd" || name == "nvidiactl" ||
         (name.starts_with("nvidia") && name.size() > 6 &&
          name.find_first_not_of("0123456789", 6) == std::string::npos);
}

std::vector<fs::path> device_files() {
  std::vector<fs::path> found;
  for (const char* const folder : {"/dev", "/dev/dri"}) {
    std::error_code ignored;
    for (fs::directory_iterator file(folder, ignored), end; !ignored && file != end;
         file.increment(ignored)) {
      if (is_device_file(file->path().filename().string())) found.push_back(file->path());
    }
  }
  return found;
}

std::string group_of(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "render";
  const group* const entry = getgrgid(status.st_gid);
  return entry != nullptr ? entry->gr_name : std::to_string(status.st_gid);
}

Finding check_device_files() {
  const std::string check = "GPU files";
  const std::vector<fs::path> files = device_files();
  if (files.empty()) return {Level::ok, check, "none in /dev"};
  for (const fs::path& file : files) {
    const std::string refused = refusal(file, R_OK | W_OK);
    if (refused.empty()) continue;
    return {Level::warning, check, fmt::format("{} cannot be opened: {}", file.string(), refused),
            fmt::format("usermod -aG {} USER, and log in again", group_of(file))};
  }
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(file.string());
  return {Level::ok, check, fmt::format("{} can be opened", fmt::join(names, ", "))};
}

Finding check_opencl_vendors() {
  const std::string check = "OpenCL drivers";
  const char* const chosen = secure_getenv("OCL_ICD_VENDORS");
  const fs::path folder = chosen != nullptr ? chosen : "/etc/OpenCL/vendors";
  std::error_code refused;
  std::vector<std::string> names;
  const bool one_file = fs::is_regular_file(folder, refused);
  if (one_file) names.push_back(folder.string());
  for (fs::directory_iterator file(folder, refused), end; !one_file && !refused && file != end;
       file.increment(refused)) {
    if (file->path().extension() != ".icd") continue;
    if (const std::string why = refusal(file->path(), R_OK); !why.empty()) {
      return {Level::warning, check, fmt::format("{}: {}", file->path().string(), why),
              fmt::format("chmod a+r {}", file->path().string())};
    }
    names.push_back(file->path().filename().string());
  }
  if (refused && refused != std::errc::no_such_file_or_directory && !one_file) {
    return {Level::warning, check, fmt::format("{}: {}", folder.string(), refused.message()),
            fmt::format("chmod a+rx {}", folder.string())};
  }
  if (names.empty()) {
    return {Level::ok, check, fmt::format("none in {}", folder.string()),
            "apt install pocl-opencl-icd, or the package of the device"};
  }
  return {Level::ok, check, fmt::format("{}", fmt::join(names, ", "))};
}

/// Buffers are pinned by drivers, which do not count; networks with RDMA do.
Finding check_locked_memory() {
  const std::string check = "locked memory";
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return {Level::ok, check, "no limit"};
  const std::string found = fmt::format("at most {} (ulimit -l)", format_bytes(limit.rlim_cur));
  std::error_code ignored;
  if (!fs::exists("/dev/infiniband", ignored)) return {Level::ok, check, found};
  return {Level::warning, check, found + ", and MPI over InfiniBand locks its buffers",
          "ulimit -l unlimited, or memlock in /etc/security/limits.conf"};
}

/// Whether this process may copy from its own memory; filters of system calls forbid that, too.
bool copies_are_allowed() {
  char from = 1, to = 0;
  const iovec source{&from, 1}, target{&to, 1};
  return process_vm_readv(getpid(), &target, 1, &source, 1, 0) == 1;
}

/// CAP_SYS_PTRACE is bit 19 of the effective set.
bool may_trace_all() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("CapEff:")) continue;
    return (std::strtoull(line.c_str() + 7, nullptr, 16) >> 19 & 1) != 0;
  }
  return false;
}

/// Ranks of one machine copy large data directly from process to process.
Finding check_copies() {
  const std::string check = "copies of ranks";
  const std::string slower = "ranks of one machine send large data in packets, which is slower";
  if (!copies_are_allowed()) {
    return {Level::warning, check,
            fmt::format("process_vm_readv() is refused: {}; {}", std::strerror(errno), slower),
            "docker run --cap-add=SYS_PTRACE, or another seccomp profile"};
  }
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (scope == 0 || (scope < 3 && may_trace_all())) {
    return {Level::ok, check, "go directly from process to process"};
  }
  return {Level::warning, check, fmt::format("kernel.yama.ptrace_scope is {}: {}", scope, slower),
          "sysctl kernel.yama.ptrace_scope=0"};
}

}  // namespace

Findings check_permissions() {
  return {check_proc(),          check_sys(),          check_shared_memory(),
          check_cache(),         check_device_files(), check_opencl_vendors(),
          check_locked_memory(), check_copies()};
}

}  // namespace weir::cli
