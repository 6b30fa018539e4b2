#include "base/control_group.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace weir::rt {

namespace {

std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Lowers `least` to `value`, if that is less; 0 means unlimited.
template <class T>
void limit(T& least, T value) {
  if (value > 0 && (least == 0 || value < least)) least = value;
}

void limit_cores(GroupLimits& limits, std::string_view quota, std::string_view period) {
  const auto quota_us = parse_real(quota), period_us = parse_real(period);
  if (quota_us && period_us && *quota_us > 0 && *period_us > 0)
    limit(limits.cores, *quota_us / *period_us);
}

/// Reads the limits in the folder of a group; missing files are treated as empty.
void read_folder(GroupLimits& limits, const std::string& folder) {
  const std::string unified = first_line_of(folder + "/cpu.max");
  if (const auto parts = split(unified, ' '); parts.size() == 2) {
    limit_cores(limits, parts[0], parts[1]);
  }
  limit_cores(limits, first_line_of(folder + "/cpu.cfs_quota_us"),
              first_line_of(folder + "/cpu.cfs_period_us"));
  for (const char* const file : {"/memory.max", "/memory.limit_in_bytes"}) {
    limit(limits.memory_bytes, parse_unsigned(first_line_of(folder + file)).value_or(0));
  }
}

/// Reads a group and its ancestors; for a group outside of the mounted hierarchy only the root.
void read_groups(GroupLimits& limits, const std::string& root, std::string_view group) {
  const bool outside = !group.starts_with('/') || group.find("/..") != std::string_view::npos;
  std::string path(outside ? "" : group);
  while (path.size() > 1) {
    read_folder(limits, root + path);
    path.resize(path.rfind('/'));
  }
  read_folder(limits, root);
}

}  // namespace

/// A line is "NUMBER:CONTROLLERS:PATH", without controllers in version 2.
GroupLimits read_group_limits(const std::string& mount, const std::string& groups) {
  GroupLimits limits;
  for (const std::string_view line : split(groups, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view path = line.substr(second + 1);
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) read_groups(limits, mount, path);
    for (const std::string_view controller : split(controllers, ',')) {
      if (controller == "cpu" || controller == "memory") {
        read_groups(limits, mount + "/" + std::string(controller), path);
      }
    }
  }
  return limits;
}

GroupLimits read_group_limits() {
  std::ifstream file("/proc/self/cgroup");
  const std::string groups{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return read_group_limits("/sys/fs/cgroup", groups);
}

}  // namespace weir::rt
