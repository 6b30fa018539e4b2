#include "ranks.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <weir/weir.hpp>

#include "command_line.hpp"
#include "interruption.hpp"

namespace weir::cli {

namespace {

/// Ranks that this process has started; a signal that ends this process ends them first.
class StartedRanks final : public Stoppable {
 public:
  void stop() noexcept override { ++stops_; }
  /// Waits for ranks that do not unwind until they have handled the signal.
  std::string save() noexcept override {
    const auto limit = std::chrono::steady_clock::now() + kToLeave;
    while (!ended_ && std::chrono::steady_clock::now() < limit) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return {};
  }

  /// Returns the status of the lowest rank that failed. Throws weir::Error.
  int run(unsigned ranks, const char* const* arguments) {
    weir_launch_options options = WEIR_LAUNCH_OPTIONS_INIT;
    options.payload = this;
    options.next_signal = [](void* started) {
      return static_cast<StartedRanks*>(started)->next_signal();
    };
    const Interruption::Scope scope(*this);
    int status = 0;
    const weir_status launched = weir_fabric_launch_with(&options, ranks, arguments, &status);
    ended_ = true;
    weir::check(launched);
    return status;
  }

 private:
  static constexpr int kSignalAt = 2;  ///< not at once: a signal to the whole group comes first
  static constexpr std::chrono::milliseconds kToLeave{400};

  int next_signal() noexcept {
    return stops_ >= kSignalAt && !std::exchange(signalled_, true) ? SIGTERM : 0;
  }

  std::atomic<int> stops_{0};
  std::atomic<bool> ended_{false};
  bool signalled_ = false;
};

struct Leave {
  void operator()(weir_fabric* fabric) const noexcept { weir_fabric_close(fabric); }
};
std::unique_ptr<weir_fabric, Leave> joined;

}  // namespace

std::string own_program() {
  constexpr const char* kSelf = "/proc/self/exe";
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink(kSelf, error);
  const auto* const started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (error && started != nullptr) {  // there is no /proc
    return std::filesystem::absolute(started, error).string();
  }
  const bool same = !error && std::filesystem::equivalent(program, kSelf, error) && !error;
  return same ? program.string() : kSelf;
}

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

std::string file_of_rank(const std::string& path) {
  const unsigned rank = started_rank();
  if (path.empty() || rank == 0) return path;
  const std::filesystem::path whole(path);
  const std::string name = whole.stem().string() + ".rank" + std::to_string(rank);
  return (whole.parent_path() / (name + whole.extension().string())).string();
}

ExitCode run_on_ranks(unsigned ranks) {
  std::vector<std::string> arguments = own_arguments();
  if (arguments.empty()) arguments.emplace_back();
  arguments.front() = own_program();
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  pointers.push_back(nullptr);
  return static_cast<ExitCode>(StartedRanks().run(ranks, pointers.data()));
}

}  // namespace weir::cli
