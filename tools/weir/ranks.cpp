#include "ranks.hpp"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <weir/weir.hpp>

namespace weir::cli {

namespace {

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  if (arguments.empty()) {
    throw weir::Error(WEIR_STATUS_UNAVAILABLE, "/proc/self/cmdline is needed to start ranks");
  }
  arguments.front() = "/proc/self/exe";
  return arguments;
}

}  // namespace

bool is_rank() { return std::getenv("WEIR_RANK") != nullptr; }

ExitCode run_on_ranks(unsigned ranks) {
  const std::vector<std::string> arguments = own_arguments();
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  pointers.push_back(nullptr);
  int status = 0;
  weir::check(weir_fabric_launch(nullptr, ranks, pointers.data(), &status));
  return static_cast<ExitCode>(status);
}

}  // namespace weir::cli
