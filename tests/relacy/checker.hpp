// Relacy, a model checker of C++ memory orders, and how its searches are run here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

// What relacy/relacy.hpp includes, except the interfaces of Windows and POSIX; that header also
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

/// A check whose type is forgotten. Relacy is templates over the type of a check: with this one in
/// its place they are compiled for a number of threads (searches.cpp), not for each check.
struct Scene {
  std::size_t bytes, alignment;
  void (*construct)(void* place);
  void (*destroy)(void* check);
  void (*before)(void* check);
  void (*thread)(void* check, unsigned index);
  void (*after)(void* check);
  void (*invariant)(void* check);
};

template <class Test>
inline constexpr Scene kSceneOf = {
    sizeof(Test),
    alignof(Test),
    [](void* place) { new (place) Test(); },
    [](void* check) { static_cast<Test*>(check)->~Test(); },
    [](void* check) { static_cast<Test*>(check)->before(); },
    [](void* check, unsigned index) { static_cast<Test*>(check)->thread(index); },
    [](void* check) { static_cast<Test*>(check)->after(); },
    [](void* check) { static_cast<Test*>(check)->invariant(); },
};

/// What relacy is compiled for.
struct Search {
  rl::scheduler_type_e type;
  rl::thread_id_t threads, dynamic_threads;
  bool operator==(const Search&) const = default;
};
inline constexpr std::array kSearches = {
    Search{rl::sched_random, 2, 0}, Search{rl::sched_random, 3, 0}, Search{rl::sched_random, 4, 0},
    Search{rl::sched_random, 1, 2}, Search{rl::sched_random, 1, 3}, Search{rl::sched_bound, 2, 0},
    Search{rl::sched_full, 2, 0}};

/// The index of a search; the number of searches when it is not one of them.
consteval std::size_t index_of(const Search& wanted) {
  std::size_t index = 0;
  while (index < kSearches.size() && kSearches[index] != wanted) ++index;
  return index;
}

/// Runs the searches of one part and counts.
class Run {
 public:
  Run(std::string part, Amount amount) : part_(std::move(part)), amount_(amount) {}

  /// Runs random interleavings: as many as were asked for, divided by `share`.
  template <class Test>
  void random(const char* name, unsigned share = 1) {
    rl::test_params params;
    params.iteration_count = amount_.first + (amount_.iterations + share - 1) / share - 1;
    params.initial_state = std::to_string(amount_.first).c_str();
    search<Test, rl::sched_random>(name, params);
  }

  /// Tries every interleaving.
  template <class Test>
  void full(const char* name) {
    rl::test_params params;
    search<Test, rl::sched_full>(name, params);
  }

  /// Tries every interleaving with at most so many switches that no thread asked for.
  template <class Test>
  void bounded(const char* name, unsigned switches) {
    rl::test_params params;
    params.context_bound = switches;
    search<Test, rl::sched_bound>(name, params);
  }

  const std::string& part() const { return part_; }
  std::uint64_t iterations() const { return iterations_; }
  unsigned findings() const { return findings_; }

 private:
  template <class Test, rl::scheduler_type_e type>
  void search(const char* name, rl::test_params& params) {
    using Threads = typename Test::params;
    constexpr std::size_t index =
        index_of({type, Threads::static_thread_count, Threads::dynamic_thread_count});
    static_assert(index < kSearches.size(), "add it to kSearches");
    search(name, params, index, kSceneOf<Test>);
  }
  /// What rl::simulate() does, for one kind of search.
  void search(const char* name, rl::test_params& params, std::size_t index, const Scene& scene);
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
