#include "runtime/queue_task.hpp"

namespace weir::rt {

TaskExtras& Task::reserve_extras() {
  if (!extras) extras = std::make_unique<TaskExtras>();
  return *extras;
}

void Task::reserve(std::size_t uses, std::size_t scalars) {
  const std::size_t bytes = bytes_of(uses, scalars);
  if (bytes > kInlineBytes) {
    TaskExtras& own = reserve_extras();
    if (own.spill_bytes < bytes) {
      own.spill = std::make_unique_for_overwrite<std::byte[]>(bytes);
      own.spill_bytes = bytes;
    }
  }
  use_count = static_cast<std::uint8_t>(uses);
  scalar_count = static_cast<std::uint8_t>(scalars);
  found = false;
}

void Task::set_use(std::size_t index, const NamedUse& named) {
  Region* kept = nullptr;
  if (!PieceUse::fits(named.region)) [[unlikely]] {
    std::vector<Region>& regions = reserve_extras().regions;
    if (regions.size() < use_count) regions.resize(use_count);
    kept = &regions[index];
  }
  new (arguments() + index * sizeof(PieceUse)) PieceUse(named, kept);
}

void Task::set_name(const char* name) {
  if (name != nullptr && *name != '\0') {
    reserve_extras().name = name;
  } else if (extras) {
    extras->name.clear();
  }
}

std::uint64_t Task::bytes() const noexcept {
  std::uint64_t total = 0;
  for (const PieceUse& use : uses()) {
    total += found ? use.piece()->bytes() : use.region().bytes();
  }
  return total;
}

}  // namespace weir::rt
