// `weir launch`: starts a program on several ranks of this machine.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <weir/fabric.h>
#include <CLI/CLI.hpp>
#include <weir/weir.hpp>

#include "command.hpp"
#include "interruption.hpp"
#include "terminal.hpp"

namespace weir::cli {

namespace {

/// Writes what ranks have written, line by line, each line after the number of its rank.
class RankLines {
 public:
  void add(unsigned rank, int stream, std::string_view text) {
    std::string& pending = pending_[{rank, stream}];
    pending += text;
    const std::size_t end = pending.rfind('\n');
    if (end != std::string::npos) {
      write(rank, stream, std::string_view(pending).substr(0, end + 1));
      pending.erase(0, end + 1);
    }
    if (pending.size() > kLongestLine) finish(rank, stream);
  }
  /// Ends the last line of a rank.
  void finish(unsigned rank) {
    for (const int stream : {1, 2}) finish(rank, stream);
  }

 private:
  static constexpr std::size_t kLongestLine = 64u << 10;  ///< a longer one is divided

  void finish(unsigned rank, int stream) {
    std::string& pending = pending_[{rank, stream}];
    if (!pending.empty()) write(rank, stream, pending + "\n");
    pending.clear();
  }

  static void write(unsigned rank, int stream, std::string_view lines) {
    std::string text;
    for (std::size_t begin = 0; begin < lines.size();) {
      const std::size_t end = lines.find('\n', begin) + 1;
      text += fmt::format("[{}] {}", rank, lines.substr(begin, end - begin));
      begin = end;
    }
    std::FILE* const file = stream == 1 ? stdout : stderr;
    std::fwrite(text.data(), 1, text.size(), file);
    std::fflush(file);
  }

  std::map<std::pair<unsigned, int>, std::string> pending_;  ///< begins of lines
};

/// The ranks of one launch: passes signals on, and ends all when one fails.
class Launch final : public Stoppable {
 public:
  Launch(unsigned ranks, bool keep_going, std::chrono::milliseconds grace)
      : running_(ranks), keep_going_(keep_going), grace_(grace) {}

  /// Starts the ranks and waits for all. Throws weir::Error.
  ExitCode run(const std::vector<std::string>& program, bool prefix) {
    std::vector<const char*> arguments;
    for (const std::string& each : program) arguments.push_back(each.c_str());
    arguments.push_back(nullptr);
    weir_launch_options options = WEIR_LAUNCH_OPTIONS_INIT;
    options.payload = this;
    if (prefix)
      options.on_output = [](unsigned rank, int stream, const char* text, std::size_t bytes,
                             void* launch) {
        static_cast<Launch*>(launch)->add({text, bytes}, rank, stream);
      };
    options.on_end = [](unsigned rank, int status, void* launch) {
      static_cast<Launch*>(launch)->note_end(rank, status);
    };
    options.next_signal = [](void* launch) { return static_cast<Launch*>(launch)->next_signal(); };
    int lowest = 0;  // of the lowest rank that failed
    {
      const Interruption::Scope scope(*this);
      weir::check(weir_fabric_launch_with(&options, running_, arguments.data(), &lowest));
    }
    if (!first_) return ExitCode::ok;
    report();
    return static_cast<ExitCode>(first_->status);
  }

  void stop() noexcept override {}  // it passes on all signals
  std::string save() noexcept override { return {}; }

  /// A signal of a terminal is for the ranks as well. The second signal kills them.
  bool take_signal(int signal, bool from_terminal) noexcept override {
    const bool again = passed_on_.exchange(signal) != 0;
    if (again || !from_terminal) to_send_ = again ? SIGKILL : signal;
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Failure {
    unsigned rank;
    int status;
  };

  void add(std::string_view text, unsigned rank, int stream) noexcept {
    try {
      lines_.add(rank, stream, text);
    } catch (...) {  // no memory: the text is lost
    }
  }

  void note_end(unsigned rank, int status) noexcept {
    try {
      lines_.finish(rank);
    } catch (...) {  // no memory: the text is lost
    }
    --running_;
    if (status != 0 && !first_) first_ = Failure{rank, status};
  }

  int next_signal() noexcept {
    if (const int signal = to_send_.exchange(0); signal != 0) return signal;
    if (!first_ || keep_going_ || running_ == 0 || killed_) return 0;
    if (!told_at_) {
      told_at_ = Clock::now();
      return SIGTERM;
    }
    killed_ = Clock::now() - *told_at_ >= grace_;
    return killed_ ? SIGKILL : 0;
  }

  void report() const {
    if (const int signal = passed_on_; signal != 0) {
      print_message(Tone::bad, fmt::format("stopped by signal {} ({})", signal, strsignal(signal)));
      return;
    }
    constexpr int kSignalStatus = 128;
    const int signal = first_->status - kSignalStatus;
    std::string text = fmt::format("rank {} failed first: ", first_->rank);
    text += signal > 0 ? fmt::format("signal {} ({})", signal, strsignal(signal))
                       : fmt::format("exit status {}", first_->status);
    if (told_at_) text += "; the other ranks were ended";
    if (killed_) text += fmt::format(", by SIGKILL after {} ms", grace_.count());
    print_message(Tone::bad, text);
  }

  unsigned running_;
  const bool keep_going_;
  const std::chrono::milliseconds grace_;
  RankLines lines_;
  std::optional<Failure> first_;
  std::optional<Clock::time_point> told_at_;  ///< when the other ranks got SIGTERM
  bool killed_ = false;
  std::atomic<int> passed_on_{0}, to_send_{0};  ///< signals
};

class LaunchCommand final : public Command {
 public:
  const char* name() const override { return "launch"; }
  const char* summary() const override {
    return "Start a program as several ranks on this machine, without MPI";
  }

  void add_options(CLI::App& app) override {
    app_ = &app;
    app.prefix_command();  // what follows the program is for the program
    app.add_option("-n,--ranks", ranks_, "Number of processes, which divide the cores")
        ->required()
        ->check(CLI::Range{1, 1024});
    app.add_flag("--no-prefix", no_prefix_,
                 "Leave lines of output as they are, instead of adding the rank: [1] ...");
    app.add_flag("--keep-going", keep_going_,
                 "Keep the other ranks when one fails, for programs that survive it");
    app.add_option("--grace", grace_,
                   "Seconds from SIGTERM to SIGKILL for the other ranks when one fails [5]")
        ->check(CLI::Range{0.0, 1e6});
    app.footer(
        "\nExamples:\n"
        "  weir launch -n 4 ./program input.dat\n"
        "  weir launch -n 2 --no-prefix python3 program.py\n"
        "  weir launch -n 3 weir run laplacian --n 64 --verify\n"
        "Exit status: that of the rank that failed first, 128 + its number after a signal.");
  }

  ExitCode run() override {
    const std::vector<std::string> program = app_->remaining();
    if (program.empty()) throw CLI::RequiredError("PROGRAM");
    if (program.front().starts_with("-")) throw CLI::ExtrasError(program);
    const auto grace = std::chrono::milliseconds(static_cast<std::int64_t>(grace_ * 1000));
    return Launch(ranks_, keep_going_, grace).run(program, !no_prefix_);
  }

 private:
  CLI::App* app_ = nullptr;
  unsigned ranks_ = 1;
  bool no_prefix_ = false;
  bool keep_going_ = false;
  double grace_ = 5;
};

}  // namespace

std::unique_ptr<Command> make_launch() { return std::make_unique<LaunchCommand>(); }

}  // namespace weir::cli
