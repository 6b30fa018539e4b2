// The settings of a program, before and while it uses the layer.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <hstreams/hStreams_types.h>

#include "hstreams/name_list.hpp"

namespace weir::hs {

/// Names of sink libraries by the kind of domain that they are for.
using SinkLists = std::map<HSTR_ISA_TYPE, std::vector<std::string>>;

/// Options, sink libraries and the BLAS to use. Any thread may read and change them.
class Configuration {
 public:
  Configuration();

  /// Checks and copies. Throws Error.
  void set_options(const HSTR_OPTIONS& options);
  /// The options; their pointers are valid until the next change.
  HSTR_OPTIONS options() const;
  void set_libraries(HSTR_ISA_TYPE isa, std::uint32_t count, char* const* names, const int* flags);
  void set_mkl(HSTR_MKL_INTERFACE mkl) noexcept { mkl_ = mkl; }
  /// Resets everything.
  void reset();

  SinkLists sink_lists() const;
  HSTR_MKL_INTERFACE mkl() const noexcept { return mkl_; }
  HSTR_DEP_POLICY policy() const noexcept { return policy_; }
  /// The timeout of synchronisations, as a weir timeout.
  std::int64_t timeout_ns() const noexcept;

 private:
  mutable std::mutex mutex_;
  HSTR_OPTIONS options_;
  NameList device_names_, host_names_;  // the targets of pointers in the options
  SinkLists sinks_;
  std::atomic<HSTR_DEP_POLICY> policy_;
  std::atomic<int> timeout_ms_;
  std::atomic<HSTR_MKL_INTERFACE> mkl_;
};

}  // namespace weir::hs
