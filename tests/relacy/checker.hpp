// Relacy, a model checker of C++ memory orders, and how its searches are run here.
#pragma once

#include <cstdint>
#include <string>

// What relacy/relacy.hpp includes, but for the interfaces of Windows and POSIX; that header also
// makes macros of new, delete and the standard memory orders.
#include <relacy/atomic.hpp>
#include <relacy/base.hpp>
#include <relacy/context.hpp>
#include <relacy/context_base_impl.hpp>
#include <relacy/dyn_thread.hpp>
#include <relacy/stdlib/condition_variable.hpp>
#include <relacy/stdlib/event.hpp>
#include <relacy/stdlib/mutex.hpp>
#include <relacy/stdlib/semaphore.hpp>
#include <relacy/test_suite.hpp>
#include <relacy/var.hpp>

namespace weir::rt::checker {

/// The clock: time passes a little with each look at it, and much when a wait times out.
inline std::int64_t clock = 0;
inline std::int64_t now() noexcept { return clock += 400; }
inline void time_passes() noexcept { clock += 1'000'000'000; }

/// What the program was asked to do.
struct Amount {
  std::uint64_t iterations = 50'000;
  std::uint64_t first = 1;  ///< number, and so seed, of the first random iteration
  bool verbose = false;     ///< says what each search did
};

/// Runs the searches of one part and counts.
class Run {
 public:
  Run(std::string part, Amount amount) : part_(std::move(part)), amount_(amount) {}

  /// Runs random interleavings: as many as were asked for, divided by `share`.
  template <class Test>
  void random(const char* name, unsigned share = 1) {
    rl::test_params params;
    params.search_type = rl::sched_random;
    params.iteration_count = amount_.first + (amount_.iterations + share - 1) / share - 1;
    params.initial_state = std::to_string(amount_.first).c_str();
    search<Test, rl::random_scheduler<Test::params::thread_count>>(name, params);
  }

  /// Tries every interleaving.
  template <class Test>
  void full(const char* name) {
    rl::test_params params;
    params.search_type = rl::sched_full;
    search<Test, rl::full_search_scheduler<Test::params::thread_count>>(name, params);
  }

  /// Tries every interleaving with at most so many switches that no thread asked for.
  template <class Test>
  void bounded(const char* name, unsigned switches) {
    rl::test_params params;
    params.search_type = rl::sched_bound;
    params.context_bound = switches;
    search<Test, rl::context_bound_scheduler<Test::params::thread_count>>(name, params);
  }

  const std::string& part() const { return part_; }
  std::uint64_t iterations() const { return iterations_; }
  unsigned findings() const { return findings_; }

 private:
  /// What rl::simulate() does, for one kind of search.
  template <class Test, class Scheduler>
  void search(const char* name, rl::test_params& params) {
    rl::ostringstream log;
    rl::ostringstream state;
    params.output_stream = &log;
    params.progress_stream = &log;
    params.execution_depth_limit = 20'000;
    if (rl::run_test<Test, Scheduler>(params, state, false) != rl::test_result_success) {
      params.initial_state = state.str();
      params.collect_history = true;
      rl::run_test<Test, Scheduler>(params, state, true);
      log << std::endl;
    }
    count(name, params, log.str());
  }
  void count(const char* name, const rl::test_params& params, const rl::string& log);

  const std::string part_;
  const Amount amount_;
  std::uint64_t iterations_ = 0;
  unsigned findings_ = 0;
};

/// A check with so many threads: construct() what they share, thread(index) for each, finish() when
/// all are done. Everything is made anew for each iteration.
template <class Derived, int threads, int dynamic_threads = 0>
struct Check : rl::test_suite<Derived, threads> {
  static constexpr rl::thread_id_t dynamic_thread_count = dynamic_threads;
};

/// Fails the iteration unless the condition holds.
#define CHECK_THAT(condition) RL_ASSERT(condition)

}  // namespace weir::rt::checker
