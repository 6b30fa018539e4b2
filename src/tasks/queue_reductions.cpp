#include "tasks/queue_reductions.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "stream/registry.hpp"

namespace weir::rt {

namespace {

std::span<const weir_operand> operands_of(const weir_task& task) noexcept {
  return {task.operands, task.operands != nullptr ? task.operand_count : 0};
}

bool reduces(const weir_operand& operand) noexcept { return operand.access == WEIR_ACCESS_REDUCE; }

/// Returns an operand that is all of a partial result, in the shape of its region.
weir_operand whole(const weir_buffer* partial, const Region& region, weir_access access) {
  return {const_cast<weir_buffer*>(partial), packed(region), access};
}

}  // namespace

Reductions::~Reductions() {
  for (const auto& open : open_) {
    for (const Partial& partial : open->partials)
      properties_.registry.destroy_buffer(partial.buffer);
  }
  for (const Partial& partial : spare_) properties_.registry.destroy_buffer(partial.buffer);
}

bool Reductions::applies_to(const weir_task& task) const noexcept {
  return any_.load() || std::ranges::any_of(operands_of(task), reduces);
}

weir_event Reductions::submit(const weir_task& task, bool with_event) {
  const sys::Lock lock(mutex_);
  check(task);
  for (const weir_operand& operand : operands_of(task)) {
    if (reduces(operand)) continue;
    const NamedUse other = core_.check_operand(operand);
    combine_overlapping(*other.buffer, other.region);
  }
  operands_.clear();
  for (const weir_operand& operand : operands_of(task)) {
    operands_.push_back(reduces(operand) ? partial_for(task, operand) : operand);
  }
  weir_task rewritten = task;
  rewritten.operands = operands_.data();
  return core_.submit(rewritten, with_event);
}

void Reductions::combine(const Buffer& buffer, const Region& region) {
  if (!any_.load()) return;
  const sys::Lock lock(mutex_);
  combine_overlapping(buffer, region);
}

void Reductions::combine_everything() {
  if (!any_.load()) return;
  const sys::Lock lock(mutex_);
  while (!open_.empty()) {
    combine_all(*open_.back());
    open_.pop_back();
  }
  note_open();
}

void Reductions::discard(const Buffer& buffer) noexcept {
  const sys::Lock lock(mutex_);
  drop(&buffer);
}

void Reductions::clear_poison() noexcept {
  const sys::Lock lock(mutex_);
  for (Partial& partial : spare_) {
    partial.read = WEIR_EVENT_INIT;
    partial.dropped = false;
  }
}

/// The task that combines a partial result into a target.
struct Reductions::Combination {
  Combination(const OpenRegion& open, const weir_operand& target, const Partial& partial)
      : operands{target, whole(partial.buffer, open.region, WEIR_ACCESS_READ)} {
    task.kernel = open.combine;
    task.operands = operands;
    task.operand_count = 2;
  }

  const weir_operand operands[2];
  weir_task task = WEIR_TASK_INIT;
};

// ---- Under the lock ----------------------------------------------------------------------------

/// Removes the partial results of a buffer; null: of all buffers.
void Reductions::drop(const Buffer* buffer) noexcept {
  std::erase_if(open_, [&](const std::unique_ptr<OpenRegion>& open) WEIR_REQUIRES(mutex_) {
    if (buffer != nullptr && open->buffer != buffer) return false;
    for (Partial& partial : open->partials) {
      partial.dropped = true;
      spare_.push_back(partial);
    }
    return true;
  });
  note_open();
}

/// Validates the task before anything is changed. Throws what submitting it would throw.
void Reductions::check(const weir_task& task) {
  core_.fill_call(probe_, task);
  const std::span<const PieceUse> uses = probe_.uses();
  const auto operands = operands_of(task);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!reduces(operands[i])) continue;
    if (task.combine == nullptr) {
      fail_argument("task '{}' of queue '{}' reduces into buffer '{}' without a kernel `combine`",
                    probe_.label(), properties_.name, uses[i].buffer().name());
    }
    for (std::size_t j = 0; j < operands.size(); ++j) {
      if (i == j || &uses[i].buffer() != &uses[j].buffer()) continue;
      if (!overlap(uses[i].region(), uses[j].region())) continue;
      fail_argument(
          "operands {} and {} of task '{}' overlap in buffer '{}': what a task reduces into it "
          "must not use otherwise",
          std::min(i, j), std::max(i, j), probe_.label(), uses[i].buffer().name());
    }
  }
}

/// Returns the next partial result, round-robin, for an operand.
weir_operand Reductions::partial_for(const weir_task& task, const weir_operand& operand) {
  const NamedUse part = core_.check_operand(operand);
  OpenRegion& reduction = open(task, operand, part.region);
  std::vector<Partial>& partials = reduction.partials;
  std::size_t next = partials.size();
  if (next < width_) {
    add_partial(reduction);
  } else {
    next = reduction.round_robin = (reduction.round_robin + 1) % partials.size();
  }
  return whole(partials[next].buffer, part.region, WEIR_ACCESS_READ_WRITE);
}

/// Returns the open reduction of the operand's region with the same kernels, or begins one.
Reductions::OpenRegion& Reductions::open(const weir_task& task, const weir_operand& operand,
                                         const Region& region) {
  const auto found = std::ranges::find_if(open_, [&](const std::unique_ptr<OpenRegion>& open) {
    return open->buffer == operand.buffer && open->region == region &&
           open->combine == task.combine && open->init == task.init;
  });
  if (found != open_.end()) return **found;
  combine_overlapping(*operand.buffer, region);
  auto made = std::make_unique<OpenRegion>(
      OpenRegion{operand.buffer, operand.region, region, task.combine, task.init, {}, 0});
  made->partials.reserve(width_);
  open_.push_back(std::move(made));
  note_open();
  return *open_.back();
}

/// Adds a partial result and submits the task that initialises it.
void Reductions::add_partial(OpenRegion& open) {
  Partial partial = take_spare(open.region.bytes());
  const weir_operand target = whole(partial.buffer, open.region, WEIR_ACCESS_WRITE);
  const weir_scalar zero = weir_scalar_i64(0);
  weir_task task = WEIR_TASK_INIT;
  task.kernel = open.init;
  task.kernel_name = "mem.set";
  task.operands = &target;
  task.operand_count = 1;
  task.scalars = &zero;
  task.scalar_count = open.init == nullptr ? 1 : 0;
  try {
    const Combination last(open, {open.buffer, open.given, WEIR_ACCESS_READ_WRITE}, partial);
    core_.fill_call(probe_, last.task);
    core_.submit(task, false);
  } catch (...) {
    spare_.push_back(partial);
    throw;
  }
  open.partials.push_back(partial);
}

/// Returns unused memory that no failed task was to use.
Reductions::Partial Reductions::take_spare(std::uint64_t bytes) {
  const auto found =
      std::ranges::find_if(spare_, [&](const Partial& spare) { return fit(spare, bytes); });
  if (found != spare_.end()) {
    const Partial partial = *found;
    spare_.erase(found);
    return partial;
  }
  const std::string name = "partial result of " + properties_.name;
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.name = name.c_str();
  spare_.reserve(made_ + 1);
  const Partial made{properties_.registry.buffers().create(bytes, options), bytes};
  ++made_;
  return made;
}

bool Reductions::fit(const Partial& spare, std::uint64_t bytes) const {
  const std::uint64_t id = spare.read.opaque[1];
  if (spare.bytes != bytes || spare.dropped) return false;
  if (id == 0) return true;
  Registry& registry = properties_.registry;
  return registry.slot_of(spare.read).event.is_complete(id) &&
         registry.failures().find(id).status == WEIR_STATUS_OK;
}

void Reductions::combine_overlapping(const Buffer& buffer, const Region& region) {
  for (std::size_t i = 0; i < open_.size();) {
    if (open_[i]->buffer != &buffer || !overlap(open_[i]->region, region)) {
      ++i;
      continue;
    }
    combine_all(*open_[i]);
    std::swap(open_[i], open_.back());
    open_.pop_back();
    note_open();
  }
}

/// Combines in rounds that halve the number of partial results. The last goes into the region.
void Reductions::combine_all(OpenRegion& open) {
  std::vector<Partial>& partials = open.partials;
  while (partials.size() > 1) {
    for (std::size_t half = (partials.size() + 1) / 2; partials.size() > half;) {
      const weir_buffer* const target = partials[partials.size() - 1 - half].buffer;
      enqueue_combine(open, whole(target, open.region, WEIR_ACCESS_READ_WRITE));
    }
  }
  if (!partials.empty()) enqueue_combine(open, {open.buffer, open.given, WEIR_ACCESS_READ_WRITE});
}

/// Submits the task that combines the last partial result into a target.
void Reductions::enqueue_combine(OpenRegion& open, const weir_operand& target) {
  Partial& last = open.partials.back();
  last.read = core_.submit(Combination(open, target, last).task, true);
  spare_.push_back(last);
  open.partials.pop_back();
}

}  // namespace weir::rt
