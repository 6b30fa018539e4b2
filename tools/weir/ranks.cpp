#include "ranks.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <sstream>
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

/// Whether one of the domains is of another rank.
bool names_ranks(const std::string& domains) {
  const char* const usual = std::getenv("WEIR_DOMAINS");
  std::istringstream parts(domains.empty() && usual != nullptr ? usual : domains);
  for (std::string part; std::getline(parts, part, ',');) {
    if (part == "rank" || part.rfind("rank:", 0) == 0) return true;
  }
  return false;
}

/// What the first of these variables says that there is and is a number, else `otherwise`.
unsigned number_in(std::initializer_list<const char*> variables, unsigned otherwise) {
  for (const char* const variable : variables) {
    const char* const text = std::getenv(variable);
    char* end = nullptr;
    const unsigned long number = text != nullptr ? std::strtoul(text, &end, 10) : 0;
    if (text != nullptr && end != text && *end == '\0') return static_cast<unsigned>(number);
  }
  return otherwise;
}

struct Leave {
  void operator()(weir_fabric* fabric) const noexcept { weir_fabric_close(fabric); }
};
std::unique_ptr<weir_fabric, Leave> joined;

}  // namespace

weir_fabric* fabric_for(const std::string& domains) {
  if (!names_ranks(domains)) return nullptr;
  if (joined == nullptr) {
    weir_fabric* made = nullptr;
    weir::check(weir_fabric_open(nullptr, &made));
    joined.reset(made);
  }
  return joined.get();
}

void leave_fabric() noexcept { joined.reset(); }

bool serve_ranks(const std::string& domains, const std::function<void(const Runtime&)>& prepare) {
  weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
  options.domains = "null";
  options.fabric = fabric_for(domains);
  if (options.fabric == nullptr || weir_fabric_rank(options.fabric) == 0) return false;
  const Runtime runtime(options);
  if (prepare) prepare(runtime);
  return runtime.serve();
}

bool is_rank() { return std::getenv("WEIR_RANK") != nullptr; }

unsigned started_ranks() {
  return number_in({"WEIR_RANKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, 1);
}

bool speaks_for_machine() {
  return number_in({"WEIR_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"}, 0) == 0;
}

std::string file_of_rank(const std::string& path) {
  const unsigned rank = number_in({"WEIR_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"}, 0);
  if (path.empty() || rank == 0) return path;
  const std::filesystem::path whole(path);
  const std::string name = whole.stem().string() + ".rank" + std::to_string(rank);
  return (whole.parent_path() / (name + whole.extension().string())).string();
}

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
