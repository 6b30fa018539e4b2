// Gives a fuzz target fixed inputs, without libFuzzer.
//
//   fuzz_NAME --seeds FOLDER [--count N] [--seed S] [--first I] [--all] [--seconds T] [--save
//   FOLDER] fuzz_NAME FILE...
//
// The first form runs all files of the folder, and then mutants of them until N inputs were refused
// (with --all: N inputs). The same seed gives the same mutants. They run in a child with limits: T
// (1) s of processor time and 512 MB of memory for an input. One that ends the child, or needs
// more, is saved, and the line that runs it again is printed; then another child goes on behind it.
// So is a file "refused_..." that is not refused and, in a folder with such files, another one that
// is.
// The second form runs files in this process, for a debugger. The dictionary is FOLDER.dict.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.hpp"
#include "mutator.hpp"
#include "sanitizers.h"
#include "target.hpp"

// The address space of a sanitized program does not measure its memory.
#if defined(WEIR_ADDRESS_SANITIZER)
#include <sanitizer/lsan_interface.h>
extern "C" const char* __asan_default_options() {
  return "hard_rss_limit_mb=1024:allocator_may_return_null=1:max_allocation_size_mb=512";
}
#elif defined(WEIR_THREAD_SANITIZER)
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1:max_allocation_size_mb=512";
}
#endif

namespace {

using weir::fuzz::Mutator;

#if defined(WEIR_ADDRESS_SANITIZER) || defined(WEIR_THREAD_SANITIZER)
constexpr bool kSanitized = true;
constexpr int kSecondsOfProcessor = 20;
#else
constexpr bool kSanitized = false;
constexpr int kSecondsOfProcessor = 1;
#endif
constexpr auto kPatience = std::chrono::seconds(60);  // for an input that waits
constexpr rlim_t kMemory = rlim_t{512} << 20;
constexpr std::uint64_t kInputsBetweenLeakChecks = 256;
constexpr int kMostFailures = 10;

struct Options {
  std::string seeds, save = ".";
  std::uint64_t count = 1000, seed = 1, first = 0;
  bool all = false;
  int seconds = kSecondsOfProcessor;
  std::vector<std::string> files;
};

/// What the child tells its parent.
struct Progress {
  std::uint64_t next = 0;     ///< the input that runs now, or is next to run
  std::uint64_t refused = 0;  ///< of the mutants
  std::uint64_t checked = 0;  ///< inputs below had been run at the last check for leaks
  bool done = false;
};

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The files of a folder, in an order that does not depend on the file system.
std::vector<std::filesystem::path> files_of(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) throw std::runtime_error("no seeds in " + folder);
  return files;
}

/// Runs one input in memory of just its size, so that the sanitizer sees the byte behind it.
void run(const std::string& input) {
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

class Campaign {
 public:
  explicit Campaign(const Options& options)
      : options_(options),
        files_(files_of(options.seeds)),
        mutator_(contents(files_), weir::fuzz::read_dictionary(options.seeds + ".dict"),
                 options.seed) {
    void* const shared =
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw std::runtime_error("no memory to share");
    progress_ = new (shared) Progress;
    progress_->next = progress_->checked = options.first;
  }

  int run() {
    while (!finished() && failures_ < kMostFailures) run_child();
    const std::uint64_t inputs = progress_->next - options_.first;
    std::cout << (failures_ == 0 ? "proof: " : "failed: ") << target() << ": " << files_.size()
              << " files and " << inputs - std::min<std::uint64_t>(inputs, files_.size())
              << " mutants (seed " << options_.seed << "): " << progress_->refused << " refused, "
              << failures_ << " failures\n";
    return failures_ == 0 ? 0 : 1;
  }

 private:
  static std::vector<std::string> contents(const std::vector<std::filesystem::path>& files) {
    std::vector<std::string> all;
    for (const auto& file : files) all.push_back(read_file(file));
    return all;
  }

  std::string target() const { return std::filesystem::path(options_.seeds).filename(); }

  bool finished() const {
    if (progress_->done) return true;
    const std::uint64_t begin = std::max<std::uint64_t>(options_.first, files_.size());
    const std::uint64_t mutants = progress_->next - std::min(progress_->next, begin);
    // Readers that take nearly everything have no N inputs to refuse.
    return options_.all ? mutants >= options_.count
                        : progress_->refused >= options_.count || mutants >= 8 * options_.count;
  }

  std::string input(std::uint64_t index) const {
    return index < files_.size() ? read_file(files_[index]) : mutator_.input(index - files_.size());
  }

  void run_child() {
    std::cout.flush();
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("cannot fork");
    if (child == 0) run_inputs();
    const std::string end = watch(child);
    if (!end.empty()) report(end);
  }

  [[noreturn]] void run_inputs() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit_memory();
    while (!finished()) {
      const std::string text = input(progress_->next);
      const std::uint64_t before = weir::fuzz::refused;
      limit_time(options_.seconds);
      ::run(text);
      limit_time(0);
      check_file(progress_->next, weir::fuzz::refused > before);
      if (progress_->next >= files_.size()) progress_->refused += weir::fuzz::refused - before;
      ++progress_->next;
      if (progress_->next - progress_->checked >= leak_interval_) check_leaks();
    }
    check_leaks();
    progress_->done = true;
    std::exit(0);
  }

  static bool must_be_refused(const std::filesystem::path& file) {
    return file.filename().string().starts_with("refused_");
  }

  void check_file(std::uint64_t index, bool is_refused) const {
    if (index >= files_.size()) return;
    if (std::none_of(files_.begin(), files_.end(), must_be_refused)) return;
    weir::fuzz::require(is_refused == must_be_refused(files_[index]),
                        is_refused ? "a file of this name is accepted" : "it is refused");
  }

  static void limit_memory() {
    mallopt(M_ARENA_MAX, 2);
    if (kSanitized) return;
    const rlimit limit{kMemory, kMemory};
    setrlimit(RLIMIT_DATA, &limit);
  }

  static void limit_time(int seconds) {
    const itimerval timer{.it_interval = {}, .it_value = {seconds, 0}};
    setitimer(ITIMER_PROF, &timer, nullptr);
  }

  void check_leaks() {
#if defined(WEIR_ADDRESS_SANITIZER)
    if (__lsan_do_recoverable_leak_check() != 0) std::_Exit(kLeak);
#endif
    progress_->checked = progress_->next;
  }

  /// Waits for the child and says what was wrong with its end, "" if nothing.
  std::string watch(pid_t child) const {
    std::uint64_t seen = progress_->next;
    auto since = std::chrono::steady_clock::now();
    for (int status = 0;;) {
      const pid_t ended = waitpid(child, &status, WNOHANG);
      if (ended < 0 && errno != EINTR) throw std::runtime_error("the child is lost");
      if (ended == child) return describe_end(status);
      const auto now = std::chrono::steady_clock::now();
      const std::uint64_t next = volatile_next();
      if (next != seen) since = now;
      seen = next;
      if (now - since > kPatience) {
        kill(child, SIGABRT);
        waitpid(child, &status, 0);
        return "still waiting after 60 s";
      }
      weir::await_end_of_any({&child, 1}, std::chrono::seconds(1));
    }
  }

  std::uint64_t volatile_next() const {
    return *const_cast<const volatile std::uint64_t*>(&progress_->next);
  }

  static std::string describe_end(int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    if (WIFEXITED(status) && WEXITSTATUS(status) == kLeak) return "leaks memory";
    if (WIFEXITED(status)) return "exit code " + std::to_string(WEXITSTATUS(status));
    const int signal = WTERMSIG(status);
    if (signal == SIGPROF) return "too much processor time";
    return std::string("signal ") + strsignal(signal);
  }

  void report(const std::string& what) {
    if (what == "leaks memory" && leak_interval_ > 1) {
      leak_interval_ = 1;  // once more, to see which of them it was
      progress_->next = progress_->checked;
      return;
    }
    ++failures_;
    // A leak is seen after its input.
    const std::uint64_t index = progress_->next - (what == "leaks memory" ? 1 : 0);
    std::filesystem::create_directories(options_.save);
    const std::string file = options_.save + "/" + target() + "-" + std::to_string(options_.seed) +
                             "-" + std::to_string(index);
    std::ofstream(file, std::ios::binary) << input(index);
    std::cout << "failed: " << target() << " input " << index << " of seed " << options_.seed
              << ": " << what << "; again: fuzz_" << target() << " " << file << "\n"
              << "  or from its beginning: fuzz_" << target() << " --seeds " << options_.seeds
              << " --seed " << options_.seed << " --first " << index << " --count 1 --all\n";
    progress_->next = progress_->checked = index + 1;
  }

  static constexpr int kLeak = 77;

  const Options options_;
  const std::vector<std::filesystem::path> files_;
  const Mutator mutator_;
  Progress* progress_ = nullptr;
  std::uint64_t leak_interval_ = kInputsBetweenLeakChecks;
  int failures_ = 0;
};

Options read_options(int argc, char** argv) {
  Options options;
  const auto value = [&](int& i) -> std::string {
    if (++i == argc) throw std::runtime_error(std::string("no value for ") + argv[i - 1]);
    return argv[i];
  };
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--seeds") {
      options.seeds = value(i);
    } else if (name == "--save") {
      options.save = value(i);
    } else if (name == "--count") {
      options.count = std::stoull(value(i));
    } else if (name == "--seed") {
      options.seed = std::stoull(value(i));
    } else if (name == "--first") {
      options.first = std::stoull(value(i));
    } else if (name == "--seconds") {
      options.seconds = std::stoi(value(i));
    } else if (name == "--all") {
      options.all = true;
    } else {
      options.files.push_back(name);
    }
  }
  if (options.seeds.empty() == options.files.empty()) {
    throw std::runtime_error("give --seeds FOLDER, or files to run");
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = read_options(argc, argv);
    for (const std::string& file : options.files) run(read_file(file));
    return options.files.empty() ? Campaign(options).run() : 0;
  } catch (const std::runtime_error& error) {
    std::cerr << "fuzz: " << error.what() << "\n";
    return 2;
  }
}
