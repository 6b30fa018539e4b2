// Relacy's templates, for checks of any type.
#include <cstdlib>
#include <utility>

#include "checker.hpp"

namespace weir::rt::checker {

namespace {

const Scene* scene = nullptr;  ///< that is searched
void* place = nullptr;         ///< of its check

template <rl::thread_id_t threads, rl::thread_id_t dynamic_threads>
struct AnyCheck : rl::test_suite<AnyCheck<threads, dynamic_threads>, threads> {
  static constexpr rl::thread_id_t dynamic_thread_count = dynamic_threads;

  AnyCheck() { scene->construct(place); }
  ~AnyCheck() { scene->destroy(place); }
  void before() { scene->before(place); }
  void thread(unsigned index) { scene->thread(place, index); }
  void after() { scene->after(place); }
  void invariant() { scene->invariant(place); }
};

using Runner = rl::test_result_e(rl::test_params&, std::ostream& state, bool again);

template <std::size_t index>
rl::test_result_e run(rl::test_params& params, std::ostream& state, bool again) {
  constexpr Search search = kSearches[index];
  constexpr rl::thread_id_t count = search.threads + search.dynamic_threads;
  using Test = AnyCheck<search.threads, search.dynamic_threads>;
  if constexpr (search.type == rl::sched_random) {
    return rl::run_test<Test, rl::random_scheduler<count>>(params, state, again);
  } else if constexpr (search.type == rl::sched_bound) {
    return rl::run_test<Test, rl::context_bound_scheduler<count>>(params, state, again);
  } else {
    return rl::run_test<Test, rl::full_search_scheduler<count>>(params, state, again);
  }
}

template <std::size_t... indices>
constexpr std::array<Runner*, sizeof...(indices)> runners(std::index_sequence<indices...>) {
  return {run<indices>...};
}
constexpr auto kRunners = runners(std::make_index_sequence<kSearches.size()>());

}  // namespace

void Run::search(const char* name, rl::test_params& params, std::size_t index,
                 const Scene& wanted) {
  scene = &wanted;
  place = std::aligned_alloc(wanted.alignment, wanted.bytes);
  rl::ostringstream log;
  rl::ostringstream state;
  params.search_type = kSearches[index].type;
  params.output_stream = &log;
  params.progress_stream = &log;
  params.execution_depth_limit = 20'000;
  if (kRunners[index](params, state, false) != rl::test_result_success) {
    params.initial_state = state.str();
    params.collect_history = true;
    kRunners[index](params, state, true);
    log << std::endl;
  }
  std::free(place);
  count(name, params, log.str());
}

}  // namespace weir::rt::checker
