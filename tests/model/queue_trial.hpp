// Runs programs of tasks on weir and compares with the oracle.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <weir/weir.hpp>

#include "queue_oracle.hpp"
#include "queue_plan.hpp"

namespace weir::queue_model {

/// A queue in a runtime of its own.
class Trial {
 public:
  /// inside_kernel() is called in the middle of every kernel, on any thread.
  explicit Trial(
      const Plan& plan, std::function<void()> inside_kernel = [] {});
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// Returns what went wrong and the plan, "" when nothing did.
  std::string run();

 private:
  /// A step that the oracle has not followed yet.
  struct Done {
    const Step* step;
    Event event;  ///< of a task
    weir_status status = WEIR_STATUS_OK;
    Bytes seen{};  ///< by what acquires
  };

  void open_queue();
  std::string run_steps();
  std::string perform(const Step& step);
  void submit(const Step& step);
  void acquire(const Step& step);
  std::string synchronize();
  std::string follow(weir_status& first_failure);
  std::string follow(const Done& done, bool cancellable, weir_status& first_failure);
  std::string ends() const;
  Region region(std::size_t part) const;

  const Plan& plan_;
  Runtime runtime_;
  Kernel mix_{nullptr}, combine_{nullptr};
  std::vector<Bytes> memory_;
  std::vector<Buffer> buffers_;
  std::vector<Place> places_;
  Queue queue_;
  std::vector<Done> done_;
  Oracle oracle_;
};

}  // namespace weir::queue_model
