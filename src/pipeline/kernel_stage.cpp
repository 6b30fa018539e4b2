#include "pipeline/kernel_stage.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/thread_role.hpp"
#include "pipeline/tunnel.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kSlotLine = 64;
constexpr std::size_t kUsualItems = std::size_t{1} << 14, kMostItems = std::size_t{1} << 24;
constexpr std::size_t kUsualItemBytes = std::size_t{4} << 20, kUsualBytes = std::size_t{32} << 20;
constexpr std::size_t kMostSlotBytes = std::size_t{1} << 32;
constexpr std::size_t kUsualSlots = 8, kMostSlots = 64;
/// About as many bytes as a link moves during its latency: it costs no more to copy them than to
/// begin another copy.
constexpr std::size_t kLatencyBytes = std::size_t{128} << 10;
/// A first batch: more than a launch, and little beside the work that needs a device.
constexpr std::size_t kBytesAtFirst = std::size_t{384} << 10, kItemsAtFirst = 256;
constexpr std::size_t kGrowth = 4;
constexpr std::uint64_t kUnknown = UINT64_MAX, kRatio = 1024;

using ItemCount = std::uint32_t;

}  // namespace

// ---- Making ------------------------------------------------------------------------------------

KernelStage::KernelStage(BatchStore& store, weir_place& place, const std::string& name,
                         const weir_stage_options& options)
    : store_(store),
      registry_(Registry::of(place.domain().context())),
      domain_(*registry_.domain(place.domain().index())),
      name_(name) {
  const weir_stage_kernel& wanted = *options.kernel;
  kernel_ = wanted.kernel != nullptr || wanted.kernel_name == nullptr
                ? &weir_kernel::check(wanted.kernel)
                : &registry_.kernels().find(wanted.kernel_name);
  check_kernel(wanted);
  scalars_.push_back(weir_scalar_i64(0));
  scalars_.insert(scalars_.end(), wanted.scalars, wanted.scalars + wanted.scalar_count);
  item_bytes_ = weir_tunnel::check(options.input).item_bytes;
  key_ = {kernel_, &domain_, place.width(), item_bytes_};
  scratch_bytes_ = wanted.scratch_bytes;
  if (scratch_bytes_ > 0) clear_ = &registry_.kernels().find("mem.set");
  make_outputs(options, wanted);
  choose_room(wanted);
  try {
    weir_stream_options own = WEIR_STREAM_OPTIONS_INIT;
    own.name = name_.c_str();
    stream_ = registry_.create_stream(place, own);
    load_tables(wanted);
    make_slots(wanted.in_flight > 0 ? wanted.in_flight : kUsualSlots);
  } catch (...) {
    close();
    throw;
  }
}

void KernelStage::check_kernel(const weir_stage_kernel& wanted) const {
  if (!registry_.kernels().has(*kernel_)) {
    fail_argument("kernel '{}' of stage '{}' belongs to another runtime", kernel_->name(), name_);
  }
  if (kernel_->code_for(domain_.info()) == nullptr) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "kernel '{}' of stage '{}' has no code for domain '{}'; it has: {}", kernel_->name(),
         name_, domain_.name(), kernel_->backends());
  }
  if (wanted.batch > kMostItems || wanted.in_flight > kMostSlots) {
    fail_argument(
        "batches of {} items, {} in flight, are too many for stage '{}': at most {} and {}",
        wanted.batch, wanted.in_flight, name_, kMostItems, kMostSlots);
  }
  if (wanted.scalars == nullptr && wanted.scalar_count > 0) {
    fail_argument("{} of stage '{}' {} given as NULL", counted(wanted.scalar_count, "scalar"),
                  name_, is_or_are(wanted.scalar_count));
  }
  if (wanted.scratch_bytes > kMostSlotBytes) {
    fail_argument("{} bytes of scratch are too many for stage '{}': at most {}",
                  wanted.scratch_bytes, name_, kMostSlotBytes);
  }
}

void KernelStage::make_outputs(const weir_stage_options& options, const weir_stage_kernel& wanted) {
  if (options.outputs == nullptr && options.output_count > 0) {
    fail_argument("{} of stage '{}' {} given as NULL", counted(options.output_count, "output"),
                  name_, is_or_are(options.output_count));
  }
  for (std::size_t i = 0; i < options.output_count; ++i) {
    const weir_tunnel& tunnel = weir_tunnel::check(options.outputs[i]);
    const weir_stage_output given =
        wanted.outputs != nullptr ? wanted.outputs[i] : weir_stage_output{};
    if (given.counting < WEIR_STAGE_COUNTING_ALL ||
        given.counting > WEIR_STAGE_COUNTING_PER_TUNNEL) {
      fail_argument("counting {} of output '{}' of stage '{}' is none",
                    static_cast<int>(given.counting), tunnel.name(), name_);
    }
    outputs_.push_back({tunnel.item_bytes, std::max<std::size_t>(given.most, 1), given.counting,
                        tunnel.name(), std::make_unique<sys::Atomic<std::uint64_t>>(kUnknown)});
    counts_tunnels_ = counts_tunnels_ || given.counting == WEIR_STAGE_COUNTING_PER_TUNNEL;
  }
}

void KernelStage::choose_room(const weir_stage_kernel& wanted) {
  room_is_given_ = wanted.batch > 0;
  room_ = wanted.batch;
  if (!room_is_given_) {
    std::size_t put_bytes = 1;
    for (const Output& output : outputs_) {
      put_bytes += std::min(output.most, kUsualBytes) * output.item_bytes;
    }
    room_ = std::clamp<std::size_t>(
        std::min(kUsualItemBytes / item_bytes_, kUsualBytes / put_bytes), 1, kUsualItems);
  }
  if (room_ > kMostSlotBytes / item_bytes_) {
    fail_argument("batches of {} items of {} bytes are too large for stage '{}': at most {}", room_,
                  item_bytes_, name_, kMostSlotBytes / item_bytes_);
  }
  for (const Output& output : outputs_) {
    const std::size_t most = kMostSlotBytes / room_ / output.item_bytes;
    if (output.most <= most) continue;
    fail_argument("{} items for each of {} are too many for output '{}' of stage '{}': at most {}",
                  output.most, room_, output.tunnel, name_, most);
  }
}

std::size_t KernelStage::first_batch() const noexcept {
  if (room_is_given_) return room_;
  std::size_t put_bytes = 0;
  for (const Output& output : outputs_) {
    const bool any = output.counting == WEIR_STAGE_COUNTING_PER_TUNNEL;
    put_bytes += (any ? 1 : output.most) * output.item_bytes;
  }
  const std::size_t bytes = std::max(item_bytes_, put_bytes);
  return std::min(std::clamp<std::size_t>(kBytesAtFirst / bytes, 1, kItemsAtFirst), room_);
}

void KernelStage::load_tables(const weir_stage_kernel& wanted) {
  if (wanted.tables == nullptr && wanted.table_count > 0) {
    fail_argument("{} of stage '{}' {} given as NULL", counted(wanted.table_count, "table"), name_,
                  is_or_are(wanted.table_count));
  }
  for (std::size_t i = 0; i < wanted.table_count; ++i) {
    const weir_operand& table = wanted.tables[i];
    if (table.access != WEIR_ACCESS_READ) {
      fail_argument("table {} of stage '{}' has access {}: batches only read tables", i, name_,
                    static_cast<int>(table.access));
    }
    weir_transfer transfer = WEIR_TRANSFER_INIT;
    transfer.source.buffer = transfer.target.buffer = table.buffer;
    transfer.source.region = transfer.target.region = table.region;
    transfer.target.domain = &domain_;
    stream_->transfer(transfer, false);
    tables_.push_back(table);
  }
}

void KernelStage::make_slots(std::size_t count) {
  const sys::Lock lock(free_mutex_);
  free_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    slots_.push_back(std::make_unique<Slot>(*this, i));
    Area& area = *areas_.emplace_back(std::make_unique<Area>());
    make_room(area, first_batch());
    if (scratch_bytes_ > 0) area.scratch = make_buffer(scratch_bytes_, "scratch");
    free_.push_back(&area);
  }
  copies_ = !domain_.info().aliases_host || !areas_.front()->buffer->aliases();
}

weir_buffer* KernelStage::make_buffer(std::size_t bytes, const char* what) {
  const std::string name = fmt::format("{} of {}", what, kernel_->name());
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.name = name.c_str();
  return registry_.buffers().create(bytes, options);
}

void KernelStage::make_room(Area& area, std::size_t count) {
  outgrown_.reserve(outgrown_.size() + 1);
  weir_buffer* buffer = store_.take(key_, bytes_of(count));
  if (buffer == nullptr) buffer = make_buffer(bytes_of(count), "batch");
  if (area.buffer != nullptr) outgrown_.push_back({area.buffer, area.failed});
  area.buffer = buffer;
  area.memory = reinterpret_cast<unsigned char*>(buffer->host_address());
  area.room = count;
}

std::size_t KernelStage::reserve(std::size_t index, std::size_t count) noexcept {
  Area*& area = slots_[index]->area;
  if (area == nullptr) {
    const sys::Lock lock(free_mutex_);
    const auto largest = std::max_element(
        free_.begin(), free_.end(), [](const Area* a, const Area* b) { return a->room < b->room; });
    area = *largest;
    free_.erase(largest);
  }
  if (count <= area->room) return area->room;
  try {
    make_room(*area, std::min(std::max(count, kGrowth * area->room), room_));
  } catch (...) {  // no memory: the batch is smaller
  }
  return area->room;
}

void KernelStage::release(std::size_t index) noexcept {
  const sys::Lock lock(free_mutex_);
  free_.push_back(std::exchange(slots_[index]->area, nullptr));
}

KernelStage::~KernelStage() { close(); }

void KernelStage::close() noexcept {
  if (stream_ != nullptr) {
    try {
      registry_.await_end({stream_}, WEIR_FOREVER);
    } catch (...) {  // the destructor of the stream waits
    }
    stream_->unreported().forget_up_to(UINT64_MAX);  // the batches have reported them
    registry_.destroy_stream(stream_);
  }
  for (const auto& area : areas_) {
    if (area->buffer != nullptr) give_back(area->buffer, area->failed);
    if (area->scratch != nullptr) registry_.destroy_buffer(area->scratch);
  }
  areas_.clear();
  slots_.clear();
  for (const Outgrown& each : outgrown_) give_back(each.buffer, each.failed);
  outgrown_.clear();
}

void KernelStage::give_back(weir_buffer* buffer, bool poisoned) noexcept {
  if (poisoned || !store_.keep(key_, *buffer)) registry_.destroy_buffer(buffer);
}

// ---- Batches -----------------------------------------------------------------------------------

std::size_t KernelStage::padded(std::size_t bytes) noexcept {
  return (bytes + kSlotLine - 1) / kSlotLine * kSlotLine;
}

std::size_t KernelStage::outputs_at(std::size_t count) const noexcept {
  return counts_at(count) + (counts_tunnels_ ? padded(outputs_.size() * sizeof(ItemCount)) : 0);
}

/// Outputs are stored one after another, each with room for the items of the batch.
KernelStage::Part KernelStage::part_of(std::size_t output, std::size_t count) const noexcept {
  Part part{0, 0, outputs_at(count)};
  for (std::size_t i = 0; i <= output; ++i) {
    const Output& each = outputs_[i];
    const bool numbered = each.counting == WEIR_STAGE_COUNTING_PER_ITEM;
    part.numbers = part.end;
    part.items = part.numbers + (numbered ? padded(count * sizeof(ItemCount)) : 0);
    part.end = part.items + padded(count * each.most * each.item_bytes);
  }
  return part;
}

std::size_t KernelStage::bytes_of(std::size_t count) const noexcept {
  return outputs_.empty() ? outputs_at(count) : part_of(outputs_.size() - 1, count).end;
}

void KernelStage::launch(std::size_t index, std::size_t count) noexcept {
  Slot& slot = *slots_[index];
  slot.count = count;
  slot.counted = !counts_tunnels_ || !copies_;
  slot.open();
  try {
    enqueue(slot);
  } catch (...) {
    slot.fail(current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  slot.close();
}

/// After a failed batch it clears the poison of the memory.
void KernelStage::enqueue(Slot& slot) {
  Area& area = *slot.area;
  if (area.failed) clear_poison(area);
  area.failed = true;  // until the batch succeeds
  const std::size_t counts = counts_at(slot.count), end = outputs_at(slot.count);
  std::memset(area.memory + counts, 0, end - counts);
  if (copies_) copy(area.buffer, 0, counts_tunnels_ ? end : slot.count * item_bytes_, true);
  if (area.scratch != nullptr) clear_scratch(area);
  if (outputs_.empty() || !copies_) return slot.add([&] { return enqueue_kernel(slot); });
  enqueue_kernel(slot);
  fetch(slot);
}

void KernelStage::clear_poison(const Area& area) {
  const auto all_of = [](weir_buffer* buffer) {
    return weir_operand{buffer, weir_region_range(0, buffer->bytes()), WEIR_ACCESS_READ_WRITE};
  };
  if (copies_) stream_->clear_poison_on_host(all_of(area.buffer));
  stream_->clear_poison_after(all_of(area.buffer), {});
  if (area.scratch != nullptr) stream_->clear_poison_after(all_of(area.scratch), {});
}

weir_event KernelStage::clear_scratch(const Area& area) {
  const weir_operand all = {area.scratch, weir_region_range(0, scratch_bytes_), WEIR_ACCESS_WRITE};
  const weir_scalar zero = weir_scalar_i64(0);
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = clear_;
  compute.operands = &all;
  compute.operand_count = 1;
  compute.scalars = &zero;
  compute.scalar_count = 1;
  compute.name = name_.c_str();
  return stream_->compute(compute, false);
}

weir_event KernelStage::enqueue_kernel(const Slot& slot) {
  const Area& area = *slot.area;
  std::vector<weir_operand> operands;
  const auto add = [&](std::size_t offset, std::size_t bytes, weir_access access) {
    operands.push_back({area.buffer, weir_region_range(offset, bytes), access});
  };
  add(0, slot.count * item_bytes_, WEIR_ACCESS_READ);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    const Part part = part_of(i, slot.count);
    add(part.items, slot.count * output.most * output.item_bytes, WEIR_ACCESS_WRITE);
    if (output.counting == WEIR_STAGE_COUNTING_PER_ITEM) {
      add(part.numbers, slot.count * sizeof(ItemCount), WEIR_ACCESS_WRITE);
    } else if (output.counting == WEIR_STAGE_COUNTING_PER_TUNNEL) {
      add(counts_at(slot.count) + i * sizeof(ItemCount), sizeof(ItemCount), WEIR_ACCESS_READ_WRITE);
    }
  }
  operands.insert(operands.end(), tables_.begin(), tables_.end());
  if (area.scratch != nullptr) {
    operands.push_back(
        {area.scratch, weir_region_range(0, scratch_bytes_), WEIR_ACCESS_READ_WRITE});
  }
  std::vector<weir_scalar> scalars = scalars_;
  scalars[0] = weir_scalar_i64(static_cast<std::int64_t>(slot.count));
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = kernel_;
  compute.operands = operands.data();
  compute.operand_count = operands.size();
  compute.scalars = scalars.data();
  compute.scalar_count = scalars.size();
  compute.name = name_.c_str();
  return stream_->compute(compute, true);
}

/// Copies the counts and results back, as far as they are known or expected: as few copies as do
/// not move many more bytes.
void KernelStage::fetch(Slot& slot) {
  std::size_t begin = counts_at(slot.count);
  std::size_t end = counts_tunnels_ ? begin + outputs_.size() * sizeof(ItemCount) : begin;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    const Part part = part_of(i, slot.count);
    const std::size_t items = slot.fetched[i] = expected(output, slot.count);
    if (part.numbers == part.items && items == 0) continue;
    if (part.numbers - end > kLatencyBytes) {
      if (end > begin) slot.add([&] { return copy(slot.area->buffer, begin, end - begin, false); });
      begin = part.numbers;
    }
    end = part.items + items * output.item_bytes;
  }
  slot.add([&] { return copy(slot.area->buffer, begin, end - begin, false); });
}

/// Copies the results back that fetch() did not expect.
void KernelStage::fetch_rest(Slot& slot) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    if (output.counting != WEIR_STAGE_COUNTING_PER_TUNNEL) continue;
    const std::size_t put = items_put(slot, i), had = slot.fetched[i];
    if (put <= had) continue;
    const std::size_t begin = part_of(i, slot.count).items + had * output.item_bytes;
    slot.add(
        [&] { return copy(slot.area->buffer, begin, (put - had) * output.item_bytes, false); });
  }
}

/// Returns how many items of an output to copy back before their count is known.
std::size_t KernelStage::expected(const Output& output, std::size_t count) const noexcept {
  const std::size_t most = count * output.most;
  if (output.counting != WEIR_STAGE_COUNTING_PER_TUNNEL) return most;
  const std::uint64_t of_late = output.expected->load(std::memory_order_relaxed);
  if (of_late == kUnknown) return most * output.item_bytes <= kLatencyBytes ? most : 0;
  return std::min<std::size_t>((count * of_late + kRatio - 1) / kRatio, most);
}

/// Notes what a batch has put: at once when it is more than expected, gradually when it is less.
void KernelStage::expect(const Slot& slot) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].counting != WEIR_STAGE_COUNTING_PER_TUNNEL) continue;
    sys::Atomic<std::uint64_t>& expected = *outputs_[i].expected;
    const std::uint64_t put = (items_put(slot, i) * kRatio + slot.count - 1) / slot.count;
    const std::uint64_t before = expected.load(std::memory_order_relaxed);
    const bool less = before != kUnknown && put < before;
    expected.store(less ? before - (before - put + 3) / 4 : put, std::memory_order_relaxed);
  }
}

weir_event KernelStage::copy(weir_buffer* buffer, std::size_t offset, std::size_t bytes, bool in) {
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  transfer.source.buffer = transfer.target.buffer = buffer;
  transfer.source.region = transfer.target.region = weir_region_range(offset, bytes);
  (in ? transfer.target : transfer.source).domain = &domain_;
  return stream_->overwrite_after(transfer, {}, 0);
}

void KernelStage::Slot::on_complete() noexcept {
  if (outcome().ok() && !counted) {
    counted = true;
    // The counts of the batch have arrived: the group reopens for the rest of its items.
    const NoWaitScope no_wait;
    reopen();
    try {
      stage.expect(*this);
      stage.fetch_rest(*this);
    } catch (...) {
      fail(current_exception_outcome(WEIR_STATUS_INTERNAL));
    }
    if (!close_and_check()) return;
  }
  area->failed = !outcome().ok();
  stage.on_batch_complete(index);
}

std::size_t KernelStage::items_put(const Slot& slot, std::size_t i) const {
  ItemCount put = 0;
  std::memcpy(&put, slot.area->memory + counts_at(slot.count) + i * sizeof put, sizeof put);
  const Output& output = outputs_[i];
  if (put > slot.count * output.most) {
    fail(WEIR_STATUS_KERNEL_ERROR, "the kernel put {} into '{}', which has room for {}",
         counted(put, "item"), output.tunnel, slot.count * output.most);
  }
  return put;
}

void KernelStage::collect(std::size_t index, const Outputs& outputs) {
  const Slot& slot = *slots_[index];
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    const Part part = part_of(i, slot.count);
    const auto put = [&](std::size_t first, std::size_t count) {
      outputs.buffers[i]->put(slot.area->memory + part.items + first * output.item_bytes, count);
    };
    if (output.counting == WEIR_STAGE_COUNTING_ALL) {
      put(0, slot.count * output.most);
    } else if (output.counting == WEIR_STAGE_COUNTING_PER_TUNNEL) {
      put(0, items_put(slot, i));
    } else {
      for (std::size_t at = 0; at < slot.count; ++at) {
        ItemCount number = 0;
        std::memcpy(&number, slot.area->memory + part.numbers + at * sizeof number, sizeof number);
        if (number > output.most) {
          fail(WEIR_STATUS_KERNEL_ERROR,
               "the kernel put {} for item {} of the batch into '{}', which has room for {}",
               counted(number, "item"), at, output.tunnel, output.most);
        }
        put(at * output.most, number);
      }
    }
  }
}

}  // namespace weir::rt
