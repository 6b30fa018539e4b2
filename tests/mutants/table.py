"""Defects that the tests must find: each is one change of the sources.

`find` occurs once in the file. `by` names the tests that are tried, in this order; a mutant is killed
by the first that fails.
"""

from dataclasses import dataclass

PROGRAMS = ("scheduled_programs", "random_programs")


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    find: str
    put: str
    by: tuple = PROGRAMS


MUTANTS = [
    # Dependences.
    Mutant("no read after write", "src/core/dependence.hpp",
           "if (entry.writer > since) found(entry.writer);",
           "if (writes && entry.writer > since) found(entry.writer);"),
    Mutant("no write after read", "src/core/dependence.hpp",
           "if (reader > since) found(reader);",
           "if (reader > since && !writes) found(reader);"),
    Mutant("no write after write", "src/core/dependence.hpp",
           "if (entry.writer > since) found(entry.writer);",
           "if (!writes && entry.writer > since) found(entry.writer);"),
    Mutant("other regions forgotten", "src/core/dependence.hpp",
           "for (const Entry* peer : own.peers) meet(*peer, writes, own.writer, found, poison);",
           ""),
    Mutant("peer not told of a new region", "src/core/dependence.cpp",
           "for (Entry* peer : entry.peers) peer->peers.push_back(&entry);",
           ""),
    Mutant("memories mixed up", "src/core/dependence.cpp",
           "const Key key{operand.buffer->id(), operand.memory};",
           "const Key key{operand.buffer->id() * 4 + operand.memory, 0};",
           ("unit_core",) + PROGRAMS),
    Mutant("a new writer keeps no readers of others", "src/core/dependence.cpp",
           "entry.readers.push_back(sequence);",
           "entry.readers.assign(1, sequence);"),
    Mutant("contiguous regions overlap only when equal", "src/base/region.cpp",
           "if (a.contiguous() && b.contiguous()) return true;",
           "if (a.contiguous() && b.contiguous()) return a.offset == b.offset;"),
    Mutant("overlap forgets the last row", "src/base/region.cpp",
           "for (std::uint64_t row = 0; row < few.rows; ++row) {",
           "for (std::uint64_t row = 0; row < few.rows && (row == 0 || row + 1 < few.rows); ++row) {"),
    Mutant("equal strides never overlap in the next row", "src/base/region.cpp",
           "return meets || meets_next;",
           "return meets;"),
    Mutant("off by one at the end of a region", "src/base/region.cpp",
           "if (a.end() <= b.offset || b.end() <= a.offset) return false;",
           "if (a.end() <= b.offset + 8 || b.end() <= a.offset + 8) return false;"),
    # The engine.
    Mutant("a barrier blocks nothing", "src/core/engine.cpp",
           "blocked_ = action.kind != ActionKind::marker;",
           "blocked_ = false;"),
    Mutant("a marker is over at once", "src/core/engine.cpp",
           "front != nullptr && orders_stream(front->kind) && front->pending == 0;",
           "front != nullptr && front->kind != ActionKind::marker && orders_stream(front->kind) && "
           "front->pending == 0;"),
    Mutant("an edge is dropped", "src/core/engine.cpp",
           "action.pending += static_cast<std::uint32_t>(predecessors_.size());",
           "action.pending += static_cast<std::uint32_t>(predecessors_.size() > 2 ? "
           "predecessors_.size() - 1 : predecessors_.size());"),
    Mutant("successors are released one too early", "src/core/engine.cpp",
           "if (--successor.pending == 0) {",
           "if (successor.pending-- == 2 || (successor.pending == 0 && !successor.started)) {"),
    Mutant("failure stops at the first successor", "src/core/engine.cpp",
           "if (poisons && successor.status == WEIR_STATUS_OK) successor.failure.merge("
           "action.failure);",
           ""),
    Mutant("late actions are not poisoned", "src/core/engine.cpp",
           "table_.poison(action, action.failure);",
           ""),
    Mutant("readers of a failed reader are poisoned", "src/core/dependence.cpp",
           "if (writes) poison.merge(entry.poisoned_read);",
           "poison.merge(entry.poisoned_read);"),
    Mutant("a failed barrier poisons nothing", "src/core/engine.cpp",
           "if (action.kind == ActionKind::barrier || policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {",
           "if (policy_ == WEIR_DEPENDENCE_POLICY_FIFO) {"),
    Mutant("poison outlives a synchronise", "src/core/engine.cpp",
           "table_.clear_poison();",
           ""),
    Mutant("the last failure is reported, not the first", "src/core/engine.cpp",
           "if (!first_failure_ || action.sequence() < first_sequence_) {",
           "if (!first_failure_ || action.sequence() > first_sequence_) {"),
    Mutant("cancelled actions poison", "src/core/engine.cpp",
           "if (action.status == WEIR_STATUS_CANCELLED) return;\n  if (!first_failure_",
           "if (!first_failure_"),
    Mutant("cancelled actions stay in the list", "src/core/engine.cpp",
           "complete_cancelled(ready_computes_);",
           ""),
    Mutant("fifo admits the next too early", "src/core/engine.hpp",
           "(policy_ != WEIR_DEPENDENCE_POLICY_FIFO || window_.empty());",
           "true;"),
    Mutant("an action runs alone beside others", "src/core/engine.cpp",
           "if (alone && window_.empty() && clean() && action.status == WEIR_STATUS_OK) [[likely]] {",
           "if (alone && clean() && action.status == WEIR_STATUS_OK) [[likely]] {"),
    # Memory.
    Mutant("a dirty instance is dropped", "src/core/residency.cpp",
           "if (!instance.dirty) {",
           "if (instance.users == 0) {"),
    Mutant("an instance in use is evicted", "src/core/residency.cpp",
           "instance.state == Instance::State::resident && instance.users == 0;",
           "instance.state == Instance::State::resident;"),
    Mutant("memory is not given back to those who wait", "src/core/residency.cpp",
           "if (operand.memory == memory_) --instance_of(*operand.buffer).users;\n    }\n"
           "    next = front_to_tell();",
           "if (operand.memory == memory_) --instance_of(*operand.buffer).users;\n    }"),
    Mutant("what comes back is not waited for", "src/core/residency.cpp",
           "instance.state = Instance::State::returning;",
           ""),
    # Transfers.
    Mutant("a download is skipped", "src/runtime/stream_enqueue.cpp",
           "action.elided = same_memory && source.region() == target.region();",
           "action.elided = source.buffer == target.buffer && source.region() == target.region();"),
    Mutant("a copy forgets its last row", "src/backend/copy_bytes.cpp",
           "for (std::uint64_t left = source_region.bytes(); left > 0;) {",
           "for (std::uint64_t left = source_region.bytes() - (source_region.rows > 1 ? "
           "source_region.row : 0); left > 0;) {"),
    Mutant("an event comes before the copy", "src/backends/sim/sim_link.cpp",
           "  copy_bytes(job.target.base, job.target.region, job.source.base, job.source.region);\n",
           "  if (job.source.region.rows > 1) copy_bytes(job.target.base, job.target.region, "
           "job.source.base, job.source.region);\n"),
    # Syncs and events.
    Mutant("a sync orders readers only", "src/runtime/stream_enqueue.cpp",
           "*operand++ = make_operand(given.buffer, given.region, WEIR_ACCESS_READ_WRITE, &here);",
           "*operand++ = make_operand(given.buffer, given.region, WEIR_ACCESS_READ, &here);"),
    Mutant("events are not waited for", "src/runtime/stream.cpp",
           "      ++action.pending;\n    } else {",
           "      if (&wait == action.events().data()) ++action.pending;\n    } else {"),
    Mutant("a failed event counts as good", "src/runtime/stream.cpp",
           "action.failure.merge(runtime_.failures().find(id).failure);",
           ""),
    Mutant("only the first waiter is told", "src/core/event.hpp",
           "Waiter* const list = std::exchange(waiters, nullptr);",
           "Waiter* const list = std::exchange(waiters, nullptr);\n    if (list != nullptr) "
           "list->next = nullptr;"),
    Mutant("a waiter is told twice", "src/core/event.hpp",
           "Waiter* const list = std::exchange(waiters, nullptr);",
           "Waiter* const list = waiters;"),
    Mutant("slots come back before the event is closed", "src/runtime/stream.cpp",
           "  action.recycle();\n  actions_.give(action);\n",
           "  action.recycle();\n  actions_.give(action);\n  if (action.sequence() % 64 == 0) "
           "actions_.give(action);\n",
           ("random_programs", "scheduled_programs", "unit_runtime")),
    # Lost wake-ups.
    Mutant("a host waiter is not woken", "src/runtime/waiting.cpp",
           "if (word_.fetch_add(1, std::memory_order_acq_rel) & kSleeper) sys::wake_all(word_);",
           "if ((word_.fetch_add(1, std::memory_order_acq_rel) & ~kSleeper) > 0) "
           "sys::wake_all(word_);"),
    Mutant("a worker sleeps without a last look", "src/backend/worker_team.cpp",
           "  parking_.prepare();\n  if (stirring()) {\n    parking_.cancel();\n  } else {\n"
           "    parking_.park();\n  }",
           "  parking_.prepare();\n  parking_.park();"),
    Mutant("the place's queue loses its last stream", "src/runtime/place.cpp",
           "if (queue.head == nullptr) queue.tail = nullptr;",
           ""),
    Mutant("a gang starts without its last member", "src/backend/worker_team.cpp",
           "wait_until(gang_present_, static_cast<std::uint32_t>(size() - 1));",
           ""),
    Mutant("off by one core in a place", "src/runtime/domain.cpp",
           "cores.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));",
           "cores.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count + 1));",
           ("unit_runtime", "capi_places")),
]
