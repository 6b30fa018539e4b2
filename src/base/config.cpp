#include "base/config.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
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

bool is_one_of(std::string_view value, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), value) != words.end();
}

bool is_number(std::string_view value, std::uint64_t least, std::uint64_t most) {
  const std::optional<std::uint64_t> number = parse_unsigned(value);
  return number && *number >= least && *number <= most;
}

// ---- What a value has to be: nullptr if it is, and otherwise the end of the message ------------

const char* expect_checks(std::string_view value) {
  const std::vector<std::string_view> words = split(value, ',');
  const bool known = std::all_of(words.begin(), words.end(), [](std::string_view word) {
    return is_one_of(word, {"halo", "frames"});
  });
  return known ? nullptr : "choose from halo, frames, or halo,frames";
}

const char* expect_level(std::string_view value) {
  return is_one_of(value, {"debug", "info", "warning", "error"})
             ? nullptr
             : "choose from debug, info, warning, error";
}

const char* expect_progress(std::string_view value) {
  return is_one_of(value, {"hybrid", "thread", "caller"}) ? nullptr
                                                          : "choose from thread, caller, hybrid";
}

const char* expect_transport(std::string_view value) {
  return is_one_of(value, {"auto", "self", "shm", "mpi", "ucx"})
             ? nullptr
             : "choose from auto, self, shm, mpi, ucx";
}

const char* expect_division(std::string_view value) {
  return is_one_of(value, {"divided", "all"}) ? nullptr : "choose divided or all";
}

const char* expect_switch(std::string_view value) {
  return is_one_of(value, {"0", "1"}) ? nullptr : "expected 0 or 1";
}

const char* expect_actions(std::string_view value) {
  return is_number(value, 1, UINT64_MAX) ? nullptr : "expected a number of actions, at least 1";
}

const char* expect_microseconds(std::string_view value) {
  return is_number(value, 0, UINT64_MAX) ? nullptr : "expected a number of microseconds";
}

const char* expect_milliseconds(std::string_view value) {
  return is_number(value, 1, INT32_MAX) ? nullptr
                                        : "expected a number of milliseconds, from 1 to 2147483647";
}

const char* expect_seconds(std::string_view value) {
  const std::optional<double> number = parse_real(value);
  return number && *number >= 0 ? nullptr : "expected a number of seconds";
}

const char* expect_ranks(std::string_view value) {
  return is_number(value, 1, UINT32_MAX) ? nullptr : "expected a number of ranks, at least 1";
}

const char* expect_rank(std::string_view value) {
  return is_number(value, 0, INT32_MAX) ? nullptr : "start ranks with weir run --ranks";
}

}  // namespace

const std::vector<Variable>& variables() {
  static const std::vector<Variable> table = {
      {"WEIR_BLAS",
       "BLAS for the tile kernels: openblas, blis, mkl, reference or the path of a library"},
      {"WEIR_CHECK",
       "halo: tag each cell of an exchange; frames: checksums between ranks; or halo,frames",
       expect_checks},
      {"WEIR_CUBLAS", "path of cuBLAS for the tile kernels (default: libcublas.so.13 or .12)"},
      {"WEIR_CUDA_DRIVER", "path of the CUDA driver's library (default: libcuda.so.1)"},
      {"WEIR_CUSOLVER",
       "path of cuSOLVER for the tile kernels (default: libcusolver.so.12 or .11)"},
      {"WEIR_DOMAINS", "domains to open when the program does not say, as weir run --domains"},
      {"WEIR_HSTREAMS_CHECKSUMS", "hStreams: file for checksums of what streams bring back"},
      {"WEIR_HSTREAMS_HOST_CPUS", "hStreams: processors that the host says it has, at least 8"},
      {"WEIR_HSTREAMS_MEMORY", "hStreams: memory of each simulated device (default: up to 8G)"},
      {"WEIR_HSTREAMS_THREADS", "hStreams: threads that a device says it has (default 244)"},
      {"WEIR_LOG", "what to print on stderr: debug, info, warning (default) or error",
       expect_level},
      {"WEIR_LOST_AFTER_MS", "milliseconds of silence after which a rank is lost (default 10000)",
       expect_milliseconds},
      {"WEIR_MAX_IN_FLIGHT",
       "actions of a stream or tasks of a queue in flight before a submission waits (65536)",
       expect_actions},
      {"WEIR_NODE_SIZE", "most ranks of a machine that share memory under mpirun (default: all)",
       expect_ranks},
      {"WEIR_NVRTC", "path of the CUDA compiler's library (default: libnvrtc.so.13 or .12)"},
      {"WEIR_PORTABLE_BACKWARDS",
       "1: portable kernels run the items of a phase backwards on the host, to find races",
       expect_switch},
      {"WEIR_PROGRESS", "what makes progress in the fabric: hybrid (default), thread or caller",
       expect_progress},
      {"WEIR_RANK", "which rank this process is, set by weir run --ranks", expect_rank},
      {"WEIR_RANK_CORES",
       "cores of a rank that nothing binds: divided (default) among those of a machine, or all",
       expect_division},
      {"WEIR_RANKS", "how many ranks there are, set by weir run --ranks", expect_rank},
      {"WEIR_SEGMENT", "descriptor of what ranks share, set by weir run --ranks", expect_rank},
      {"WEIR_SIM_CARDS", "hStreams: simulated devices beside the host, instead of WEIR_DOMAINS"},
      {"WEIR_SPIN_US", "microseconds that an idle worker polls before it sleeps (default 50)",
       expect_microseconds},
      {"WEIR_TRACE", "file to write a trace of the program to (.json or .pftrace)"},
      {"WEIR_TRANSPORT",
       "what connects ranks: auto (default: what started them), self, shm, mpi or ucx",
       expect_transport},
      {"WEIR_UCX", "0: MPI carries packets between nodes, also where all ranks have UCX",
       expect_switch},
      {"WEIR_WATCHDOG_S",
       "seconds without an end of an action before a report of what waits (0: none)",
       expect_seconds},
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
  for (const Variable& variable : variables()) {
    const std::string_view value = text_of(variable.name);
    if (variable.expected == nullptr || value.empty()) continue;
    if (const char* const expected = variable.expected(value)) {
      fail_argument("{} is '{}': {}", variable.name, value, expected);
    }
  }
}

bool checks_halos() { return has_word("WEIR_CHECK", "halo"); }

bool divides_cores() { return text_of("WEIR_RANK_CORES") != "all"; }

bool uses_ucx() { return text_of("WEIR_UCX") != "0"; }

std::int64_t lost_after_ns() {
  constexpr std::uint64_t kUsual = 10'000;
  constexpr std::int64_t kNsInMillisecond = 1'000'000;
  const std::uint64_t value = parse_unsigned(text_of("WEIR_LOST_AFTER_MS")).value_or(kUsual);
  return static_cast<std::int64_t>(value) * kNsInMillisecond;
}

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
