#include "base/config.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"

namespace weir::rt::config {

namespace {

/// The items of a comma-separated variable.
std::vector<std::string_view> words_of(const char* variable) {
  const char* const value = sys::environment(variable);
  return value != nullptr && *value != '\0' ? split(value, ',') : std::vector<std::string_view>();
}

/// The value of a variable, "" if it is not set.
std::string_view text_of(const char* variable) {
  const char* const value = sys::environment(variable);
  return value != nullptr ? value : "";
}

bool has_word(const char* variable, std::string_view word) {
  const std::vector<std::string_view> words = words_of(variable);
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

const std::vector<Variable>& variables() {
  static const std::vector<Variable> table = {
      {"WEIR_BLAS",
       "BLAS for the tile kernels: openblas, blis, mkl, reference or the path of a library"},
      {"WEIR_CHECK",
       "halo: tag each cell of an exchange; frames: checksums between ranks; or halo,frames"},
      {"WEIR_CUBLAS", "path of cuBLAS for the tile kernels (default: libcublas.so.13 or .12)"},
      {"WEIR_CUDA_DRIVER", "path of the CUDA driver's library (default: libcuda.so.1)"},
      {"WEIR_CUSOLVER",
       "path of cuSOLVER for the tile kernels (default: libcusolver.so.12 or .11)"},
      {"WEIR_DOMAINS", "domains to open when the program does not say, as weir run --domains"},
      {"WEIR_HSTREAMS_CHECKSUMS", "hStreams: file for checksums of what streams bring back"},
      {"WEIR_HSTREAMS_HOST_CPUS", "hStreams: processors that the host says it has, at least 8"},
      {"WEIR_HSTREAMS_MEMORY", "hStreams: memory of each simulated card (default: up to 8G)"},
      {"WEIR_HSTREAMS_THREADS", "hStreams: threads that a device says it has (default 244)"},
      {"WEIR_LOG", "what to print on stderr: debug, info, warning (default) or error"},
      {"WEIR_LOST_AFTER_MS", "milliseconds of silence after which a rank is lost (default 10000)"},
      {"WEIR_MAX_IN_FLIGHT",
       "actions of a stream or tasks of a queue in flight before a submission waits (65536)"},
      {"WEIR_NODE_SIZE", "most ranks of a machine that share memory under mpirun (default: all)"},
      {"WEIR_NVRTC", "path of the CUDA compiler's library (default: libnvrtc.so.13 or .12)"},
      {"WEIR_PORTABLE_BACKWARDS",
       "1: portable kernels run the items of a phase backwards on the host, to find races"},
      {"WEIR_PROGRESS", "what makes progress in the fabric: hybrid (default), thread or caller"},
      {"WEIR_RANK", "which rank this process is, set by weir run --ranks"},
      {"WEIR_RANK_CORES",
       "cores of a rank that nothing binds: divided (default) among those of a machine, or all"},
      {"WEIR_RANKS", "how many ranks there are, set by weir run --ranks"},
      {"WEIR_SEGMENT", "descriptor of what ranks share, set by weir run --ranks"},
      {"WEIR_SIM_CARDS", "hStreams: simulated cards beside the host, instead of WEIR_DOMAINS"},
      {"WEIR_SPIN_US", "microseconds that an idle worker polls before it sleeps (default 50)"},
      {"WEIR_TRACE", "file to write a trace of the program to (.json or .pftrace)"},
      {"WEIR_TRANSPORT",
       "what connects ranks: auto (default: what started them), self, shm or mpi"},
      {"WEIR_WATCHDOG_S",
       "seconds without an end of an action before a report of what waits (0: none)"},
  };
  return table;
}

std::vector<std::string> unknown_variables() {
  std::vector<std::string> known;
  for (const Variable& variable : variables()) known.emplace_back(variable.name);
  std::vector<std::string> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (!name.starts_with("WEIR_") || name.starts_with("WEIR_TEST_")) continue;
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      unknown.push_back(name + did_you_mean(name, known));
    }
  }
  return unknown;
}

void check_values() {
  const char* const log = sys::environment("WEIR_LOG");
  const auto is = [log](std::string_view level) { return level == log; };
  constexpr std::string_view kLevels[] = {"", "debug", "info", "warning", "error"};
  if (log != nullptr && std::none_of(std::begin(kLevels), std::end(kLevels), is)) {
    fail_argument("WEIR_LOG is '{}': choose from debug, info, warning, error", log);
  }
  for (const std::string_view check : words_of("WEIR_CHECK")) {
    if (check == "halo" || check == "frames") continue;
    fail_argument("WEIR_CHECK has '{}': choose from halo, frames, or halo,frames", check);
  }
  const std::string_view cores = text_of("WEIR_RANK_CORES");
  if (!cores.empty() && cores != "divided" && cores != "all") {
    fail_argument("WEIR_RANK_CORES is '{}': choose divided or all", cores);
  }
  const char* const backwards = sys::environment("WEIR_PORTABLE_BACKWARDS");
  if (backwards != nullptr && backwards != std::string_view("0") &&
      backwards != std::string_view("1")) {
    fail_argument("WEIR_PORTABLE_BACKWARDS is '{}': expected 0 or 1", backwards);
  }
  const char* const spin = sys::environment("WEIR_SPIN_US");
  if (spin != nullptr && !parse_unsigned(spin)) {
    fail_argument("WEIR_SPIN_US is '{}': expected a number of microseconds", spin);
  }
  const char* const in_flight = sys::environment("WEIR_MAX_IN_FLIGHT");
  if (in_flight != nullptr && parse_unsigned(in_flight).value_or(0) == 0) {
    fail_argument("WEIR_MAX_IN_FLIGHT is '{}': expected a number of actions, at least 1",
                  in_flight);
  }
  const char* const watchdog = sys::environment("WEIR_WATCHDOG_S");
  const std::optional<double> limit = watchdog ? parse_real(watchdog) : 0;
  if (!limit || !(*limit >= 0)) {
    fail_argument("WEIR_WATCHDOG_S is '{}': expected a number of seconds", watchdog);
  }
}

bool checks_halos() { return has_word("WEIR_CHECK", "halo"); }

bool divides_cores() { return text_of("WEIR_RANK_CORES") != "all"; }

bool checks_frames() { return has_word("WEIR_CHECK", "frames"); }

const char* cuda_driver() {
  const char* const path = sys::environment("WEIR_CUDA_DRIVER");
  return path != nullptr && *path != '\0' ? path : "libcuda.so.1";
}

long long spin_ns() {
  const char* text = sys::environment("WEIR_SPIN_US");
  const auto value = text ? parse_unsigned(text) : std::nullopt;
  return static_cast<long long>(std::min<std::uint64_t>(value.value_or(50), 1'000'000)) * 1000;
}

std::size_t max_in_flight() {
  constexpr std::uint64_t kUsual = std::uint64_t{1} << 16;
  const char* const text = sys::environment("WEIR_MAX_IN_FLIGHT");
  const std::uint64_t value = text != nullptr ? parse_unsigned(text).value_or(kUsual) : kUsual;
  return std::max<std::uint64_t>(value, 1);
}

bool portable_backwards() {
  const char* const text = sys::environment("WEIR_PORTABLE_BACKWARDS");
  return text != nullptr && text == std::string_view("1");
}

std::int64_t watchdog_ns() {
  constexpr double kMost = 1e9, kNsInSecond = 1e9;
  const char* const text = sys::environment("WEIR_WATCHDOG_S");
  const double wanted = text ? parse_real(text).value_or(0) : 0;
  return wanted > 0 ? static_cast<std::int64_t>(std::min(wanted, kMost) * kNsInSecond) : 0;
}

}  // namespace weir::rt::config
