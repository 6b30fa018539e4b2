// The arguments of the command line tool: each line of an input is one. Commands are not performed.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "target.hpp"
#include "tool.hpp"

namespace {

using weir::cli::Command;
using weir::cli::ExitCode;
using weir::fuzz::require;

/// A command that is complete when its options are read.
class Unperformed final : public Command {
 public:
  explicit Unperformed(std::unique_ptr<Command> command) : command_(std::move(command)) {}
  const char* name() const override { return command_->name(); }
  const char* summary() const override { return command_->summary(); }
  void add_options(CLI::App& app) override { command_->add_options(app); }
  ExitCode run() override { return ExitCode::ok; }

 private:
  std::unique_ptr<Command> command_;
};

weir::cli::Commands commands() {
  weir::cli::Commands all;
  for (const auto make : {weir::cli::make_info, weir::cli::make_run, weir::cli::make_bench,
                          weir::cli::make_tune, weir::cli::make_report, weir::cli::make_doctor}) {
    all.push_back(std::make_unique<Unperformed>(make()));
  }
  return all;
}

/// Keeps in memory what goes to a standard stream.
class Capture {
 public:
  Capture(std::FILE* stream, int number) : stream_(stream), number_(number) {
    std::fflush(stream_);
    original_ = dup(number_);
    dup2(file(), number_);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    std::fflush(stream_);
    dup2(original_, number_);
    close(original_);
    require(ftruncate(file(), 0) == 0, "the memory of a stream is emptied");
    lseek(file(), 0, SEEK_SET);
  }

  std::string text() const {
    std::fflush(stream_);
    std::string text(static_cast<std::size_t>(lseek(file(), 0, SEEK_CUR)), '\0');
    require(pread(file(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()),
            "the memory of a stream is read");
    return text;
  }

 private:
  int file() const {
    static const int files[3] = {-1, memfd_create("out", MFD_CLOEXEC),
                                 memfd_create("err", MFD_CLOEXEC)};
    return files[number_];
  }

  std::FILE* const stream_;
  const int number_;
  int original_ = -1;
};

std::vector<std::string> arguments(std::string text) {
  constexpr std::size_t most = 64;
  std::vector<std::string> list = {"weir"};
  std::replace(text.begin(), text.end(), '\0', '\n');
  for (std::size_t begin = 0; begin < text.size() && list.size() < most;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    list.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return list;
}

struct Answer {
  ExitCode code;
  std::string out, err;
};

Answer ask(std::vector<std::string>& list) {
  std::vector<char*> pointers;
  for (std::string& argument : list) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const Capture out(stdout, STDOUT_FILENO), err(stderr, STDERR_FILENO);
  const ExitCode code =
      weir::cli::run_tool(static_cast<int>(list.size()), pointers.data(), commands());
  return {code, out.text(), err.text()};
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto list = arguments({reinterpret_cast<const char*>(data), size});
  const Answer answer = ask(list);
  if (answer.code == ExitCode::ok) {
    require(answer.err.empty(), "what is accepted is not complained about");
    return 0;
  }
  ++weir::fuzz::refused;
  require(answer.code == ExitCode::usage, "bad arguments end with exit code 2");
  require(answer.out.empty(), "a complaint does not go to standard output");
  if (answer.err.find("\nUsage: weir ") != std::string::npos) return 0;  // no command: the help
  require(answer.err.starts_with("weir: ") && answer.err.ends_with('\n'), "a complaint is a line");
  weir::fuzz::require_one_line(std::string_view(answer.err).substr(0, answer.err.size() - 1));
  return 0;
}
