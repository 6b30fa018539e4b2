#include "hstreams/configuration.hpp"

#include <algorithm>
#include <cstdlib>

#include <hstreams/hStreams_common.h>
#include <weir/runtime.h>

#include "hstreams/error.hpp"

namespace weir::hs {

namespace {

constexpr std::uint32_t kMostCards = 32;

HSTR_OPTIONS default_options() {
  HSTR_OPTIONS options{};
  options._hStreams_FatalError = std::exit;
  options.kmp_affinity = HSTR_KMP_AFFINITY_BALANCED;
  options.dep_policy = HSTR_DEP_POLICY_BUFFERS;
  options.phys_domains_limit = kMostCards;
  options.openmp_policy = HSTR_OPENMP_PRE_SETUP;
  options.time_out_ms_val = HSTR_TIME_INFINITE;
  return options;
}

void check_choice(const char* option, int value, int choices) {
  if (value >= 0 && value < choices) return;
  fail(HSTR_RESULT_INCONSISTENT_ARGS, "{} is {}: expected 0 to {}", option, value, choices - 1);
}

void check_names(const char* option, std::size_t count, char* const* names) {
  if ((count > 0) != (names != nullptr)) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "{} names of libraries, and {} {}", count, option,
         names ? "given" : "NULL");
  }
  if (std::find(names, names + count, nullptr) != names + count) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "a name in {} is NULL", option);
  }
}

void check_options(const HSTR_OPTIONS& options) {
  if (options._hStreams_FatalError == nullptr) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "_hStreams_FatalError is NULL");
  }
  check_choice("kmp_affinity", options.kmp_affinity, HSTR_KMP_AFFINITY_SIZE);
  check_choice("dep_policy", options.dep_policy, HSTR_DEP_POLICY_SIZE);
  check_choice("openmp_policy", options.openmp_policy, HSTR_OPENMP_POLICY_SIZE);
  if (options.time_out_ms_val <= 0 && options.time_out_ms_val != HSTR_TIME_INFINITE) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "time_out_ms_val is {}: expected -1 or more than 0",
         options.time_out_ms_val);
  }
  check_names("libNames", options.libNameCnt, options.libNames);
  check_names("libNamesHost", options.libNameCntHost, options.libNamesHost);
}

}  // namespace

Configuration::Configuration() { reset(); }

void Configuration::set_options(const HSTR_OPTIONS& options) {
  check_options(options);
  NameList device(options.libNameCnt, options.libNames, options.libFlags);
  NameList host(options.libNameCntHost, options.libNamesHost, nullptr);
  const std::lock_guard lock(mutex_);
  if (options.libNameCnt > 0) sinks_[HSTR_ISA_KNC] = device.names();
  if (options.libNameCntHost > 0) sinks_[HSTR_ISA_x86_64] = host.names();
  device_names_ = std::move(device);
  host_names_ = std::move(host);
  options_ = options;
  options_.libFlags = device_names_.flags();
  options_.libNames = device_names_.pointers();
  options_.libNamesHost = host_names_.pointers();
  policy_ = options.dep_policy;
  timeout_ms_ = options.time_out_ms_val;
}

HSTR_OPTIONS Configuration::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

void Configuration::set_libraries(HSTR_ISA_TYPE isa, std::uint32_t count, char* const* names,
                                  const int* flags) {
  const bool known = isa == HSTR_ISA_x86_64 || (isa >= HSTR_ISA_KNF && isa <= HSTR_ISA_KNL);
  if (!known) fail(HSTR_RESULT_OUT_OF_RANGE, "there are no sink libraries for ISA {}", isa);
  if (count == 0) fail(HSTR_RESULT_OUT_OF_RANGE, "no name of a library is given");
  if (names == nullptr) fail(HSTR_RESULT_NULL_PTR, "the names of libraries are NULL");
  if (std::find(names, names + count, nullptr) != names + count) {
    fail(HSTR_RESULT_INCONSISTENT_ARGS, "a name of a library is NULL");
  }
  if (isa == HSTR_ISA_x86_64 && flags != nullptr) {
    fail(HSTR_RESULT_NOT_IMPLEMENTED, "libraries for the host have no flags");
  }
  const std::lock_guard lock(mutex_);
  sinks_[isa].assign(names, names + count);
}

void Configuration::reset() {
  const std::lock_guard lock(mutex_);
  options_ = default_options();
  policy_ = options_.dep_policy;
  timeout_ms_ = options_.time_out_ms_val;
  mkl_ = HSTR_MKL_LP64;
  device_names_ = {};
  host_names_ = {};
  sinks_.clear();
}

SinkLists Configuration::sink_lists() const {
  const std::lock_guard lock(mutex_);
  return sinks_;
}

std::int64_t Configuration::timeout_ns() const noexcept {
  const int ms = timeout_ms_;
  return ms < 0 ? WEIR_FOREVER : std::int64_t{ms} * 1'000'000;
}

}  // namespace weir::hs
