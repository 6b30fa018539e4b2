#include "ranks.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <weir/weir.hpp>

#include "interruption.hpp"

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

/// The processes that the first thread of this one has started and that have not ended.
std::vector<pid_t> children() {
  std::ifstream file(fmt::format("/proc/self/task/{}/children", getpid()));
  std::vector<pid_t> found;
  for (pid_t child = 0; file >> child;) found.push_back(child);
  return found;
}

/// Ranks that this process has started: what ends it is to end them first.
class StartedRanks final : public Stoppable {
 public:
  void stop() noexcept override {
    if (++calls_ != kTellAt) return;
    try {
      for (const pid_t child : children()) kill(child, SIGTERM);
    } catch (...) {  // no memory: they end with this process
    }
  }
  /// Gives those that do not unwind the time that they take to notice.
  std::string save() noexcept override {
    const auto limit = std::chrono::steady_clock::now() + kToLeave;
    try {
      while (!children().empty() && std::chrono::steady_clock::now() < limit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    } catch (...) {  // no memory
    }
    return {};
  }

 private:
  static constexpr int kTellAt = 2;  ///< not at once: a signal to the whole group comes first
  static constexpr std::chrono::milliseconds kToLeave{400};

  int calls_ = 0;  ///< of stop(), which one thread calls
};

struct Leave {
  void operator()(weir_fabric* fabric) const noexcept { weir_fabric_close(fabric); }
};
std::unique_ptr<weir_fabric, Leave> joined;

}  // namespace

bool names_ranks(const std::string& domains) {
  const char* const usual = std::getenv("WEIR_DOMAINS");
  std::istringstream parts(domains.empty() && usual != nullptr ? usual : domains);
  for (std::string part; std::getline(parts, part, ',');) {
    if (part == "rank" || part.rfind("rank:", 0) == 0) return true;
  }
  return false;
}

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

/// SLURM_NTASKS is there in a batch script, too, which is one process.
unsigned started_ranks() {
  return number_in({"WEIR_RANKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
}

bool speaks_for_machine() {
  return number_in({"WEIR_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"},
                   0) == 0;
}

std::string file_of_rank(const std::string& path) {
  const unsigned rank =
      number_in({"WEIR_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
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
  StartedRanks started;
  const Interruption::Scope scope(started);
  int status = 0;
  weir::check(weir_fabric_launch(nullptr, ranks, pointers.data(), &status));
  return static_cast<ExitCode>(status);
}

}  // namespace weir::cli
