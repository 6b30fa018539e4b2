// Runs programs of tasks on weir and compares with the oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <weir/weir.hpp>

#include "queue_oracle.hpp"
#include "queue_plan.hpp"

namespace weir::queue_model {

/// What a trial needs from where it runs.
struct Surroundings {
  using Work = std::function<void()>;

  /// Is called in the middle of every kernel, on any thread.
  Work inside_kernel = [] {};
  /// Does both at the same time, on two threads.
  std::function<void(const Work&, const Work&)> both = [](const Work& one, const Work& other) {
    std::thread thread(other);
    one();
    thread.join();
  };
};

/// A queue in a runtime of its own.
class Trial {
 public:
  explicit Trial(const Plan& plan, Surroundings surroundings = {});
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// Returns what went wrong and the plan, "" when nothing did.
  std::string run();

 private:
  /// A step that the oracle has not followed yet.
  struct Done {
    const Step* step;
    Event event{};                        ///< of a task or a flush
    weir_status status = WEIR_STATUS_OK;  ///< of the call
    Bytes seen{};                         ///< of the part, or the buffer that was released
    std::string wrong{};
  };
  /// Of the policy "later".
  struct Whims {
    std::uint64_t seed, calls = 0;
  };

  static std::size_t choose_later(const char* task, const weir_candidate* candidates,
                                  std::size_t count, void* payload);
  void register_policy();

  void open_queue();
  std::string run_steps();
  std::string perform(const Step& step);
  void perform_all(std::size_t first, std::size_t last);
  void perform(Done& done);
  void submit(Done& done);
  void acquire(Done& done);
  void flush(Done& done);
  void release(Done& done);
  Bytes read_part(std::size_t part) const;
  std::string synchronize(const Step& step);
  std::string reopen();
  static bool has_failed(const Done& done);
  std::string follow(weir_status& first_failure);
  std::string follow(const Done& done, bool cancellable, weir_status& first_failure);
  std::string ends() const;
  Region region(std::size_t part) const;

  const Plan& plan_;
  const Surroundings surroundings_;
  Whims whims_;
  Runtime runtime_;
  Kernel mix_{nullptr}, mix_on_all_cores_{nullptr}, init_{nullptr};
  Kernel combine_{nullptr}, combine_from_identity_{nullptr};
  std::vector<Bytes> memory_;
  std::vector<Buffer> buffers_;
  std::vector<Place> places_;
  Queue queue_;
  std::vector<Done> done_;
  Oracle oracle_;
};

}  // namespace weir::queue_model
