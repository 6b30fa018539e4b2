#include "core/portable.hpp"

#include <algorithm>
#include <string>

#include "backend/launch_arguments.hpp"
#include "backend/team.hpp"
#include "base/config.hpp"
#include "base/error.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kChunkItems = 4096;  ///< a few microseconds for the simplest kernel
constexpr std::array<std::uint32_t, 3> kMostGroups = {0x7fff'ffff, 0xffff, 0xffff};

const weir_portable_kernel& checked(const weir_portable_options& options) {
  if (options.kernel == nullptr) {
    fail_argument("portable kernel '{}' has no kernel", options.name ? options.name : "");
  }
  const weir_portable_kernel& kernel = *options.kernel;
  if (kernel.name == nullptr || *kernel.name == '\0' || kernel.parameters == nullptr) {
    fail_argument("portable kernel '{}' lacks its {}", options.name ? options.name : "",
                  kernel.parameters == nullptr ? "parameters" : "name in the text");
  }
  const std::string_view letters = kernel.parameters;
  const std::size_t wrong = letters.find_first_not_of("piulmfd");
  if (wrong != std::string_view::npos) {
    fail_argument("portable kernel '{}' has a parameter '{}'; the letters are p i u l m f d",
                  kernel.name, letters[wrong]);
  }
  if (letters.size() > kMostLaunchParameters) {
    fail_argument("portable kernel '{}' has {} parameters: at most {}", kernel.name, letters.size(),
                  kMostLaunchParameters);
  }
  if (std::count(std::begin(kernel.group), std::end(kernel.group), 0u) > 0) {
    fail_argument("portable kernel '{}' has groups of {} x {} x {} items: none may be 0",
                  kernel.name, kernel.group[0], kernel.group[1], kernel.group[2]);
  }
  if (kernel.run == nullptr && options.source == nullptr) {
    fail_argument("portable kernel '{}' has neither code for the host nor a source", kernel.name);
  }
  if (options.resident && (kernel.run != nullptr || options.source == nullptr)) {
    fail_argument("portable kernel '{}' is resident: it is source in CUDA, and nothing else",
                  kernel.name);
  }
  if (options.grid == nullptr) fail_argument("portable kernel '{}' has no grid", kernel.name);
  return kernel;
}

/// Whether the line includes a weir header, except the tunnel header, which is for one device.
bool includes_weir(std::string_view line) noexcept {
  const auto skip = [&](std::string_view word) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with(word)) return false;
    line.remove_prefix(word.size());
    return true;
  };
  return skip("#") && skip("include") && (skip("<weir/") || skip("\"weir/")) &&
         !line.starts_with("device_tunnel.hpp");
}

/// Returns the text with empty lines in place of those that include weir headers.
std::string without_includes(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    kept += includes_weir(line) ? "\n" : line;
    text.remove_prefix(end);
  }
  return kept;
}

/// One call on the host.
struct Run {
  decltype(weir_portable_kernel::run) run;
  const std::uint32_t* groups;
  void* const* arguments;
};

}  // namespace

Portable::Portable(const weir_portable_options& options) {
  const weir_portable_kernel& kernel = checked(options);
  source_.entry = kernel.name;
  source_.parameters = kernel.parameters;
  std::copy_n(kernel.group, 3, source_.group.begin());
  if (options.source != nullptr) source_.text = without_includes(options.source);
  source_.file = options.source_name != nullptr ? options.source_name : kernel.name;
  const bool backwards = kernel.run_backwards != nullptr && config::portable_backwards();
  run_ = backwards ? kernel.run_backwards : kernel.run;
  source_.resident = options.resident;
  grid_ = options.grid;
}

void Portable::check(std::string_view kernel, std::size_t operands,
                     std::span<const weir_scalar> scalars) const {
  const std::string complaint = launch_complaint(source_.parameters, operands, scalars);
  if (!complaint.empty()) fail_argument("kernel '{}': {}", kernel, complaint);
}

std::array<std::uint32_t, 3> Portable::groups_of(const weir_call& call) const {
  std::array<std::uint32_t, 3> groups = {1, 1, 1};
  grid_(&call, groups.data());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] > kMostGroups[i]) {
      fail_argument("the grid of kernel '{}' has {} groups in {}: at most {}", source_.entry,
                    groups[i], "xyz"[i], kMostGroups[i]);
    }
  }
  return groups;
}

weir_status Portable::run(const weir_call* call) {
  const auto& self = *static_cast<const Portable*>(call->payload);
  LaunchArguments arguments(self.source_.parameters, *call);
  const std::array<std::uint32_t, 3> groups = self.groups_of(*call);
  const std::size_t count = std::size_t{groups[0]} * groups[1] * groups[2];
  const auto& size = self.source_.group;
  const std::size_t items = std::size_t{size[0]} * size[1] * size[2];
  Run run{self.run_, groups.data(), arguments.addresses()};
  const auto body = [](std::size_t begin, std::size_t end, std::size_t, void* payload) {
    const auto& mine = *static_cast<const Run*>(payload);
    mine.run(mine.groups, begin, end, mine.arguments);
  };
  SingleTeam single;
  weir_team& team = call->team != nullptr ? *call->team : single;
  // All threads of the team take part in any case, so that few groups, which may be long, are
  // divided as well.
  const std::size_t share = (count + team.size() - 1) / team.size();
  team.for_each(count, std::max<std::size_t>(1, std::min(kChunkItems / items, share)), body, &run);
  return WEIR_STATUS_OK;
}

}  // namespace weir::rt
