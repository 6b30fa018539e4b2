// The environment: each line of an input is a variable, NAME=VALUE, that a new runtime finds.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>
#include <weir/weir.h>
#include <nlohmann/json.hpp>

#include "base/config.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "target.hpp"

namespace {

using weir::fuzz::require;

void clear_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "WEIR_", 5) == 0)
      names.emplace_back(*entry, std::strcspn(*entry, "="));
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

/// Whether a variable leads to files of the machine that runs the test.
bool reaches_files(const std::string& name, const std::string& value) {
  static const std::set<std::string> libraries = {"WEIR_BLAS", "WEIR_CUBLAS", "WEIR_CUDA_DRIVER",
                                                  "WEIR_CUSOLVER", "WEIR_NVRTC"};
  if (libraries.contains(name)) return value.find('/') != std::string::npos;
  return name == "WEIR_TRACE" || name == "WEIR_HSTREAMS_CHECKSUMS";
}

bool is_known(const std::string& name) {
  const auto& all = weir::rt::config::variables();
  return name.starts_with("WEIR_TEST_") ||
         std::any_of(all.begin(), all.end(), [&](const auto& each) { return name == each.name; });
}

/// Sets a variable if it is one of weir's; returns its name if weir does not know it.
std::string set_variable(const std::string& line) {
  const std::size_t equals = line.find('=');
  const std::string name = line.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : line.substr(equals + 1);
  if (!name.starts_with("WEIR_") || name.size() > 64 || reaches_files(name, value)) return {};
  setenv(name.c_str(), value.c_str(), 1);
  return is_known(name) ? std::string() : name;
}

std::string describe(const weir_runtime* runtime) {
  std::size_t size = 0;
  require(weir_runtime_describe(runtime, nullptr, 0, &size) == WEIR_STATUS_OK, "it is described");
  std::string text(size, '\0');
  require(weir_runtime_describe(runtime, text.data(), size, nullptr) == WEIR_STATUS_OK,
          "it is described again");
  text.pop_back();
  return text;
}

void check_runtime(const std::set<std::string>& unknown) {
  weir_runtime* runtime = nullptr;
  const weir_status status = weir_runtime_create(nullptr, &runtime);
  if (status != WEIR_STATUS_OK) {
    require(status == WEIR_STATUS_INVALID_ARGUMENT || status == WEIR_STATUS_NOT_FOUND ||
                status == WEIR_STATUS_UNAVAILABLE,
            "a bad environment is the caller's mistake");
    weir::fuzz::require_one_line(weir_last_error());
    ++weir::fuzz::refused;
    return;
  }
  const auto description = nlohmann::json::parse(describe(runtime));
  require(description.at("unknown_environment").size() == unknown.size(),
          "every unknown variable is named");
  if (!unknown.empty()) ++weir::fuzz::refused;
  weir_runtime_destroy(runtime);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  clear_environment();
  // The log is opened once in a process: closed.
  weir::rt::log::enabled(weir::rt::log::Level::error);
  std::set<std::string> unknown;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string_view line : weir::rt::split(text, '\n')) {
    std::string name = set_variable(std::string(line).c_str());
    if (!name.empty()) unknown.insert(std::move(name));
  }
  check_runtime(unknown);
  clear_environment();
  return 0;
}
