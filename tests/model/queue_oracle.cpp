#include "queue_oracle.hpp"

#include <algorithm>

namespace weir::queue_model {

Oracle::Oracle(const Plan& plan) : plan_(plan) {
  for (const std::size_t bytes : plan.buffers) {
    memory_.emplace_back(bytes, 0);
    unknown_.emplace_back(bytes, false);
    bad_.emplace_back(bytes, Missing::none);
    missing_.emplace_back(bytes, Missing::none);
  }
}

template <class Use>
void Oracle::each_byte(std::size_t part, Use&& use) const {
  const Part& bytes = plan_.parts[part];
  for (std::size_t i = 0; i < bytes.size(); ++i) use(bytes.buffer, bytes.at(i));
}

void Oracle::will_fail(const PlannedTask& task) {
  for (const Access& access : task.accesses) {
    if (only_adds(access.kind)) failed_sums_.push_back(access);
  }
}

std::string Oracle::follow(const PlannedTask& task, weir_status status, bool cancellable) {
  const bool ok = status == WEIR_STATUS_OK, reduces = task.accesses[0].kind == WEIR_ACCESS_REDUCE;
  const bool reachable =
      task.throws ||
      std::any_of(task.accesses.begin(), task.accesses.end(), [&](const Access& access) {
        return meets(access, reached_) || (only_adds(access.kind) && meets(access, failed_sums_));
      });
  // The task that combines partial results is not cancelled with the task that made them. It can be
  // poisoned, and then the bytes of the region are unspecified.
  if (status == WEIR_STATUS_CANCELLED) {
    if (!cancellable) return "no call cancelled it";
    call_off(task);
    if (reachable && reduces) {
      reached_.push_back(task.accesses[0]);
      each_byte(task.accesses[0].part,
                [&](std::size_t buffer, std::size_t at) { unknown_[buffer][at] = true; });
    }
    return "";
  }
  if (reachable) reached_.insert(reached_.end(), task.accesses.begin(), task.accesses.end());
  if (ok && task.throws) return "it threw and is OK";
  if (ok && reads_any(task, bad_)) return "it read what a failed task was to write, and is OK";
  if (ok && reads_any(task, missing_)) return "a cancelled task was to write what it read";
  if (!ok && !reachable) return "it is poisoned and depends on no failed task";
  if (ok) apply(task);
  // What brings results together may be dropped, or poisoned by what it meets.
  const bool lost = !ok || (reduces && (cancellable || reachable));
  note_writes(task, lost, !ok && !(reduces && cancellable));
  return "";
}

std::string Oracle::acquired(std::size_t part, weir_status status, const Bytes& seen) {
  if (status != WEIR_STATUS_OK) return flushed(part, status);
  std::string wrong = given(part);
  std::size_t i = 0;
  each_byte(part, [&](std::size_t buffer, std::size_t at) {
    std::uint8_t& byte = memory_[buffer][at];
    if (!unknown_[buffer][at] && seen[i] != byte && wrong.empty()) {
      wrong = "byte " + std::to_string(i) + " is wrong";
    }
    byte = seen[i++];
    unknown_[buffer][at] = false;
  });
  return wrong;
}

std::string Oracle::flushed(std::size_t part, weir_status status) const {
  if (status == WEIR_STATUS_OK) return "";
  const bool reachable = std::any_of(reached_.begin(), reached_.end(), [&](const Access& other) {
    return (other.kind & WEIR_ACCESS_WRITE) != 0 &&
           overlap(plan_.parts[other.part], plan_.parts[part]);
  });
  return reachable ? "" : std::string("it is ") + weir_status_name(status) + " without a reason";
}

std::string Oracle::released(std::size_t buffer, const Bytes& memory) {
  std::erase_if(reached_,
                [&](const Access& access) { return plan_.parts[access.part].buffer == buffer; });
  for (const Missing missing : missing_[buffer]) {
    if (missing != Missing::none) return "it has not waited for a task";
  }
  return settle(buffer, memory);
}

/// The program may use it: what was to be written is.
std::string Oracle::given(std::size_t part) const {
  std::string wrong;
  each_byte(part, [&](std::size_t buffer, std::size_t at) {
    if (bad_[buffer][at] != Missing::none)
      wrong = "it is OK though a failed task was to write there";
    if (missing_[buffer][at] != Missing::none) wrong = "it has not waited for a task";
  });
  return wrong;
}

void Oracle::change(std::size_t part) {
  each_byte(part, [&](std::size_t buffer, std::size_t at) {
    memory_[buffer][at] = changed(memory_[buffer][at]);
  });
}

void Oracle::cancelled() {
  for (auto& bytes : missing_) bytes.assign(bytes.size(), Missing::none);
}

std::string Oracle::synchronized(const std::vector<Bytes>& memory) {
  reached_.clear();
  failed_sums_.clear();
  cancelled();
  for (std::size_t b = 0; b < memory.size(); ++b) {
    const std::string wrong = settle(b, memory[b]);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

/// Host memory has what the tasks so far have left.
std::string Oracle::settle(std::size_t buffer, const Bytes& memory) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (unknown_[buffer][i] || memory[i] == memory_[buffer][i]) continue;
    return "byte " + std::to_string(i) + " of buffer " + std::to_string(buffer) + " is wrong";
  }
  memory_[buffer] = memory;
  bad_[buffer].assign(memory.size(), Missing::none);
  unknown_[buffer].assign(memory.size(), false);
  return "";
}

bool Oracle::meets(const Access& access, const std::vector<Access>& others) const {
  return std::any_of(others.begin(), others.end(), [&](const Access& other) {
    const bool writes = ((other.kind | access.kind) & WEIR_ACCESS_WRITE) != 0;
    return writes && overlap(plan_.parts[other.part], plan_.parts[access.part]);
  });
}

/// Whether the task reads what others were to write. Those that only add come in any order, and
/// what reduces waits for none.
bool Oracle::reads_any(const PlannedTask& task,
                       const std::vector<std::vector<Missing>>& missing) const {
  bool found = false;
  for (const Access& access : task.accesses) {
    if ((access.kind & WEIR_ACCESS_READ) == 0 || access.kind == WEIR_ACCESS_REDUCE) continue;
    const Missing allowed = only_adds(access.kind) ? Missing::sum : Missing::none;
    each_byte(access.part, [&](std::size_t buffer, std::size_t at) {
      found = found || missing[buffer][at] > allowed;
    });
  }
  return found;
}

void Oracle::apply(const PlannedTask& task) {
  std::vector<std::uint64_t> kinds;
  std::vector<std::size_t> sizes;
  for (const Access& access : task.accesses) {
    kinds.push_back(access.kind);
    sizes.push_back(plan_.parts[access.part].size());
  }
  const auto get = [&](std::size_t k, std::size_t i) -> std::uint8_t& {
    const Part& part = plan_.parts[task.accesses[k].part];
    return memory_[part.buffer][part.at(i)];
  };
  mix(task.seed, task.bytewise, kinds, sizes, get, [] {});
  const auto unknown = [&](std::size_t k, std::size_t i) {
    const Part& part = plan_.parts[task.accesses[k].part];
    return unknown_[part.buffer][part.at(i)];
  };
  std::vector<bool> from_unknown(*std::max_element(sizes.begin(), sizes.end()), false);
  const auto read = [&](std::size_t column, std::size_t k, std::size_t i) {
    if (unknown(k, i)) from_unknown[column] = true;
  };
  const auto write = [&](std::size_t column, std::size_t k, std::size_t i) {
    unknown(k, i) = from_unknown[column] || (only_adds(kinds[k]) && unknown(k, i));
  };
  each_dependence(
      task.bytewise, kinds, sizes, read, [] {}, write);
}

/// What it was to read and write is as it was.
void Oracle::call_off(const PlannedTask& task) {
  for (const Access& access : task.accesses) {
    if ((access.kind & WEIR_ACCESS_WRITE) == 0) continue;
    each_byte(access.part, [&](std::size_t buffer, std::size_t at) {
      Missing& missing = missing_[buffer][at];
      missing = std::max(missing, only_adds(access.kind) ? Missing::sum : Missing::value);
      if (access.kind != WEIR_ACCESS_WRITE) return;
      unknown_[buffer][at] = true;
      bad_[buffer][at] = Missing::none;
    });
  }
}

void Oracle::note_writes(const PlannedTask& task, bool lost, bool failed) {
  for (const Access& access : task.accesses) {
    if ((access.kind & WEIR_ACCESS_WRITE) == 0) continue;
    each_byte(access.part, [&](std::size_t buffer, std::size_t at) {
      if (lost) unknown_[buffer][at] = true;
      if (only_adds(access.kind)) {
        if (failed) bad_[buffer][at] = std::max(bad_[buffer][at], Missing::sum);
        return;
      }
      bad_[buffer][at] = failed ? Missing::value : Missing::none;
      missing_[buffer][at] = Missing::none;
    });
  }
}

}  // namespace weir::queue_model
