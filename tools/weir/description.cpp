#include "description.hpp"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "ranks.hpp"

namespace weir::cli {

Runtime open_runtime(const RuntimeChoice& choice) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  if (!choice.domains.empty()) options.domains = choice.domains.c_str();
  if (!choice.blas.empty()) options.blas = choice.blas.c_str();
  options.fabric = fabric_for(choice.domains);
  return Runtime(options);
}

nlohmann::ordered_json describe(const Runtime& runtime) {
  return nlohmann::ordered_json::parse(runtime.describe());
}

std::string version_line() {
  std::string kinds;
  const auto description = describe(Runtime("null"));
  for (const auto& backend : description.at("backends")) {
    kinds += (kinds.empty() ? "" : ", ") + backend.at("kind").get<std::string>();
  }
  const std::string commit = *WEIR_COMMIT == '\0' ? "" : fmt::format(" commit {}", WEIR_COMMIT);
  return fmt::format("weir {}{} (backends: {})", weir_version(), commit, kinds);
}

std::string installed_prefix() {
  std::error_code error;
  std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) program = std::filesystem::canonical(own_program());
  return program.parent_path().parent_path().string();
}

}  // namespace weir::cli
