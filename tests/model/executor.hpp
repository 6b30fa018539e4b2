// Runs programs on weir and compares with the oracle.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <weir/weir.h>

#include "oracle.hpp"
#include "program.hpp"

namespace weir::model {

/// Where the program's own threads come from, and what they do while they wait for each other.
class Host {
 public:
  virtual ~Host() = default;
  /// Runs all bodies at the same time and waits for them.
  virtual void run_all(const std::vector<std::function<void()>>& bodies);
  virtual void relax() noexcept;
  /// Called in the middle of every kernel.
  virtual void inside_kernel() noexcept {}
};

/// The platform with the aliases that the devices of this machine have, where it names none: where
/// the order of the loader decides which device a domain is.
Platform as_found(Platform platform);

/// The kernels of programs in a runtime.
struct Kernels {
  explicit Kernels(weir_runtime* runtime);
  weir_kernel *mix, *mix_team, *mark;
};

/// A runtime with the places of a platform.
class Executor {
 public:
  /// The fabric is that of platforms with other ranks. Throws where a domain shares the host's
  /// memory, or not, against what the platform says: the oracle would be wrong.
  Executor(const Platform& platform, Host& host, weir_fabric* fabric = nullptr);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;
  ~Executor();

  /// Runs an ordered program. Returns "" when everything is as the oracle says, else what is not.
  std::string run(const Program& program);

 private:
  struct Run;

  const Platform& platform_;
  Host& host_;
  weir_runtime* runtime_ = nullptr;
  std::optional<Kernels> kernels_;
  std::vector<weir_place*> places_;
};

}  // namespace weir::model
