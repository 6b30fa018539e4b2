// Runs programs on weir and compares with the oracle.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <weir/weir.h>

#include "oracle.hpp"
#include "program.hpp"

namespace weir::model {

/// A runtime with the places of a platform.
class Executor {
 public:
  explicit Executor(const Platform& platform);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor();

  /// Runs the program. Returns "" when everything is as the oracle says, else what is not.
  std::string run(const Program& program, const Outcome& expected);

 private:
  struct Run;

  const Platform& platform_;
  weir_runtime* runtime_ = nullptr;
  weir_kernel* mix_ = nullptr;
  weir_kernel* mix_team_ = nullptr;
  std::vector<weir_place*> places_;
};

}  // namespace weir::model
