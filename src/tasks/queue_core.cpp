#include "tasks/queue_core.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/text.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kMostArguments = 255;

/// What keeps a task from a place whose domain has code for its kernel.
enum class Obstacle : std::uint8_t { none, overlap, memory };

/// Returns the bytes of device memory that the operands need on a place, and what is in the way.
std::pair<std::uint64_t, Obstacle> demand_of(const QueuePlace& queue_place,
                                             const Task& task) noexcept {
  std::uint64_t distinct_bytes = 0;
  for (const PieceUse& own : task.uses()) {
    if (queue_place.memory_of(own.buffer()) == kHostMemory) continue;
    const Region region = own.region();
    bool repeated = false;
    for (const PieceUse* other = task.uses().data(); other != &own; ++other) {
      if (&other->buffer() != &own.buffer()) continue;
      const Region earlier = other->region();
      if (earlier == region) {
        repeated = true;
      } else if ((own.writes() || other->writes()) && overlap(earlier, region)) {
        return {distinct_bytes, Obstacle::overlap};
      }
    }
    if (!repeated) distinct_bytes += region.bytes();
  }
  const bool fits = distinct_bytes <= queue_place.domain().residency().capacity();
  return {distinct_bytes, fits ? Obstacle::none : Obstacle::memory};
}

/// Says why none of the places that a task may use can run it. `nearest` has code for its kernel;
/// null: no place has.
[[noreturn]] void fail_for_all(const Task& task, const QueuePlace* nearest) {
  std::string why = fmt::format("kernel '{}' has code for {}: allow such a domain",
                                task.kernel->name(), task.kernel->backends());
  if (nearest != nullptr) {
    const std::string& domain = nearest->domain().name();
    const auto [bytes, obstacle] = demand_of(*nearest, task);
    why =
        obstacle == Obstacle::memory
            ? fmt::format(
                  "its operands need {} of domain '{}', which has {}; use smaller "
                  "operands or raise memory=",
                  format_size(bytes), domain, format_size(nearest->domain().residency().capacity()))
            : fmt::format(
                  "its operands overlap and are written, which domain '{}' with memory of "
                  "its own does not take; name disjoint regions or allow the host",
                  domain);
  }
  fail(WEIR_STATUS_UNSUPPORTED, "task '{}' can run on none of the places it may run on: {}",
       task.label(), why);
}

weir_compute as_compute(const weir_task& task) noexcept {
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = task.kernel;
  compute.kernel_name = task.kernel_name;
  compute.operands = task.operands;
  compute.operand_count = task.operand_count;
  compute.scalars = task.scalars;
  compute.scalar_count = task.scalar_count;
  compute.name = task.name;
  return compute;
}

}  // namespace

// ---- Checks -------------------------------------------------------------------------------------

NamedUse QueueCore::check_operand(const weir_operand& operand) const {
  weir_buffer& buffer = weir_buffer::check(operand.buffer);
  if (buffer.owner() != &properties_.registry) {
    fail_argument("buffer '{}' belongs to another runtime than queue '{}'", buffer.name(),
                  properties_.name);
  }
  const weir_access access = operand.access;
  if ((access < WEIR_ACCESS_READ || access > WEIR_ACCESS_READ_WRITE) &&
      access != WEIR_ACCESS_COMMUTE && access != WEIR_ACCESS_REDUCE) {
    fail_argument(
        "access {} of an operand in buffer '{}' is not read, write, read-write, commute or reduce",
        static_cast<int>(access), buffer.name());
  }
  return {.buffer = &buffer,
          .region = make_region(operand.region, buffer.bytes(), buffer.name().c_str()),
          .access = static_cast<weir_access>(access & WEIR_ACCESS_READ_WRITE),
          .commutes = access == WEIR_ACCESS_COMMUTE};
}

void QueueCore::fill_call(Task& task, const weir_task& given) const {
  if (given.operand_count > kMostArguments || given.scalar_count > kMostArguments) {
    fail_argument("{} operands and {} scalars are too many: at most {} each", given.operand_count,
                  given.scalar_count, kMostArguments);
  }
  if ((given.operands == nullptr && given.operand_count > 0) ||
      (given.scalars == nullptr && given.scalar_count > 0)) {
    fail_argument("{} or {} are given as NULL", counted(given.operand_count, "operand"),
                  counted(given.scalar_count, "scalar"));
  }
  if (given.priority < -1 || given.priority > 1) {
    fail_argument("priority {} of a task is not -1, 0 or 1", given.priority);
  }
  const KernelTable& kernels = properties_.registry.kernels();
  const weir_kernel& kernel = given.kernel != nullptr || given.kernel_name == nullptr
                                  ? weir_kernel::check(given.kernel)
                                  : kernels.find(given.kernel_name);
  if (!kernels.has(kernel)) {
    fail_argument("kernel '{}' belongs to another runtime than queue '{}'", kernel.name(),
                  properties_.name);
  }
  task.kind = Task::Kind::call;
  task.kernel = &kernel;
  task.level = static_cast<unsigned>(given.priority + 1) & 3u;
  task.set_name(given.name);
  task.reserve(given.operand_count, given.scalar_count);
  for (std::size_t i = 0; i < given.operand_count; ++i)
    task.set_use(i, check_operand(given.operands[i]));
  std::copy_n(given.scalars, given.scalar_count, task.scalars().data());
  task.allowed_places = places_for(task, given);
}

std::uint64_t QueueCore::places_for(const Task& task, const weir_task& given) const {
  std::uint64_t able = 0, allowed = 0;
  const QueuePlace* nearest = nullptr;  // has code, and the most memory
  for (const QueuePlace& queue_place : places_.all()) {
    const std::uint64_t bit = std::uint64_t{1} << queue_place.index;
    const std::size_t domain = queue_place.domain().index();
    const bool named = given.domains == 0 || (domain < 64 && (given.domains >> domain & 1) != 0);
    if (!named || (given.place != nullptr && given.place != queue_place.place)) continue;
    allowed |= bit;
    const KernelCode* const code = task.kernel->code_for(queue_place.domain().info());
    if (code == nullptr) continue;
    if (demand_of(queue_place, task).second != Obstacle::none) {
      const auto memory = [](const QueuePlace& place) {
        return place.domain().residency().capacity();
      };
      if (nearest == nullptr || memory(queue_place) > memory(*nearest)) nearest = &queue_place;
      continue;
    }
    if (code->portable != nullptr) {
      code->portable->check(task.kernel->name(), task.uses().size(), task.scalars());
    }
    able |= bit;
  }
  if (able != 0) return able;
  if (allowed == 0) {
    fail_argument(
        "task '{}' may run on no place of queue '{}': its domains and its place leave none",
        task.label(), properties_.name);
  }
  fail_for_all(task, nearest);
}

// ---- Accesses by the program --------------------------------------------------------------------

weir_event QueueCore::request_access(const weir_operand& operand) {
  NamedUse asked;
  if (operand.buffer != nullptr) asked = check_operand(operand);
  {
    const SpinGuard guard(last_lock_);
    const std::uint64_t id = last_.event.opaque[1];
    if (id != 0 && last_.use == asked && (id & Task::kMostSequence) == newest()) return last_.event;
  }
  const weir_event event = enqueue_access(operand);
  const SpinGuard guard(last_lock_);
  last_ = {asked, event};
  return event;
}

WaitResult QueueCore::await_access(const weir_event& event, std::int64_t timeout_ns) {
  WaitResult result =
      wait_for_events(properties_.registry, {&event, 1}, WEIR_WAIT_MODE_ALL, timeout_ns);
  if (result.status == WEIR_STATUS_OK || result.status == WEIR_STATUS_TIMEOUT) return result;
  const SpinGuard guard(last_lock_);
  last_ = {};
  return result;
}

// ---- A queue with one place ---------------------------------------------------------------------

DirectQueue::DirectQueue(const QueueProperties& properties, QueuePlaces& places) noexcept
    : QueueCore(properties, places), stream_(*places.direct_stream()) {
  stream_.set_cancellation_watermark({&cancelled_until_, false});
}

bool DirectQueue::is_plain(const weir_task& task) noexcept {
  if (task.domains != 0 || task.place != nullptr) return false;
  if (task.priority < -1 || task.priority > 1) return false;
  return task.operands == nullptr ||
         std::none_of(task.operands, task.operands + task.operand_count, [](const auto& operand) {
           return operand.access == WEIR_ACCESS_COMMUTE || operand.access == WEIR_ACCESS_REDUCE;
         });
}

weir_event DirectQueue::submit_plain(const weir_task& task, bool with_event) {
  return stream_.compute(as_compute(task), with_event, task.priority);
}

weir_event DirectQueue::submit(const weir_task& given, bool with_event) {
  if (is_plain(given)) return submit_plain(given, with_event);
  Task task;
  fill_call(task, given);
  std::vector<weir_operand> operands(given.operands, given.operands + given.operand_count);
  for (std::size_t i = 0; i < operands.size(); ++i) operands[i].access = task.uses()[i].access();
  weir_compute compute = as_compute(given);
  compute.operands = operands.data();
  return stream_.compute(compute, with_event, given.priority);
}

weir_event DirectQueue::enqueue_access(const weir_operand& operand) {
  return stream_.fence(operand);
}

WaitResult DirectQueue::synchronize(std::int64_t timeout_ns) {
  return properties_.registry.synchronize(stream_, timeout_ns);
}

bool DirectQueue::await_end(std::int64_t deadline_ns) {
  return properties_.registry.await_end({&stream_}, time_until(deadline_ns));
}

void DirectQueue::get_info(weir_queue_info& info, std::span<weir_queue_share> shares) {
  weir_stats stats = WEIR_STATS_INIT;
  stream_.add_to(stats);
  const auto without = [](std::uint64_t all, std::uint64_t some) {
    return all - std::min(all, some);
  };
  const std::uint64_t in_flight = without(stats.actions_enqueued, stats.actions_completed);
  info.submitted = without(stats.actions_enqueued, stream_.non_ordering_count());
  info.completed = without(info.submitted, in_flight);
  if (shares.empty()) return;
  shares[0] = places_.all().front().share;
  shares[0].tasks = info.completed;
}

}  // namespace weir::rt
