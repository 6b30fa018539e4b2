#include "pipeline/kernel_stage.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/thread_role.hpp"
#include "pipeline/tunnel.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kSlotLine = 64;
constexpr std::size_t kUsualItems = 4096, kMostItems = std::size_t{1} << 24;
constexpr std::size_t kUsualSlotBytes = std::size_t{4} << 20;
constexpr std::size_t kMostSlotBytes = std::size_t{1} << 32;
constexpr std::size_t kUsualSlots = 4, kMostSlots = 64;

using ItemCount = std::uint32_t;

std::size_t slot_padded(std::size_t bytes) noexcept {
  return (bytes + kSlotLine - 1) / kSlotLine * kSlotLine;
}

}  // namespace

// ---- Making ------------------------------------------------------------------------------------

KernelStage::KernelStage(weir_place& place, const std::string& name,
                         const weir_stage_options& options)
    : registry_(Registry::of(place.domain().context())),
      domain_(*registry_.domain(place.domain().index())),
      name_(name) {
  const weir_stage_kernel& wanted = *options.kernel;
  kernel_ = wanted.kernel != nullptr || wanted.kernel_name == nullptr
                ? &weir_kernel::check(wanted.kernel)
                : &registry_.kernels().find(wanted.kernel_name);
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
  scalars_.push_back(weir_scalar_i64(0));
  scalars_.insert(scalars_.end(), wanted.scalars, wanted.scalars + wanted.scalar_count);
  item_bytes_ = weir_tunnel::check(options.input).item_bytes;
  room_is_given_ = wanted.batch > 0;
  room_ = wanted.batch > 0 ? wanted.batch
                           : std::clamp<std::size_t>(kUsualSlotBytes / item_bytes_, 1, kUsualItems);
  if (room_ > kMostSlotBytes / item_bytes_) {
    fail_argument("batches of {} items of {} bytes are too large for stage '{}': at most {}", room_,
                  item_bytes_, name_, kMostSlotBytes / item_bytes_);
  }
  if (wanted.scratch_bytes > kMostSlotBytes) {
    fail_argument("{} bytes of scratch are too many for stage '{}': at most {}",
                  wanted.scratch_bytes, name_, kMostSlotBytes);
  }
  scratch_bytes_ = wanted.scratch_bytes;
  if (scratch_bytes_ > 0) clear_ = &registry_.kernels().find("mem.set");
  make_outputs(options, wanted);
  header_ = counts_tunnels_ ? slot_padded(outputs_.size() * sizeof(ItemCount)) : 0;
  try {
    weir_stream_options own = WEIR_STREAM_OPTIONS_INIT;
    own.name = name_.c_str();
    stream_ = registry_.create_stream(place, own);
    load_tables(wanted);
    make_slots(wanted.in_flight > 0 ? wanted.in_flight : kUsualSlots,
               header_ + room_ * item_bytes_);
  } catch (...) {
    close();
    throw;
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
    const std::size_t most = std::max<std::size_t>(given.most, 1);
    if (most > kMostSlotBytes / room_ / tunnel.item_bytes) {
      fail_argument(
          "{} items for each of {} are too many for output '{}' of stage '{}': at most {}", most,
          room_, tunnel.name(), name_, kMostSlotBytes / room_ / tunnel.item_bytes);
    }
    outputs_.push_back({tunnel.item_bytes, most, given.counting, tunnel.name()});
    counts_tunnels_ = counts_tunnels_ || given.counting == WEIR_STAGE_COUNTING_PER_TUNNEL;
  }
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

void KernelStage::make_slots(std::size_t count, std::size_t in_bytes) {
  const std::size_t out_bytes = outputs_.empty() ? 0 : part_of(outputs_.size() - 1, room_).end;
  const auto make = [&](std::size_t bytes, const char* what, weir_buffer*& buffer) {
    if (bytes == 0) return static_cast<unsigned char*>(nullptr);
    const std::string name = fmt::format("{} of {}", what, name_);
    weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
    options.name = name.c_str();
    buffer = registry_.buffers().create(bytes, options);
    return reinterpret_cast<unsigned char*>(buffer->host_address());
  };
  for (std::size_t i = 0; i < count; ++i) {
    Slot& slot = *slots_.emplace_back(std::make_unique<Slot>(*this, i));
    slot.in_memory = make(in_bytes, "items", slot.in);
    slot.out_memory = make(out_bytes, "results", slot.out);
    make(scratch_bytes_, "scratch", slot.scratch);
  }
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
  for (const auto& slot : slots_) {
    if (slot->in != nullptr) registry_.destroy_buffer(slot->in);
    if (slot->out != nullptr) registry_.destroy_buffer(slot->out);
    if (slot->scratch != nullptr) registry_.destroy_buffer(slot->scratch);
  }
  slots_.clear();
}

// ---- Batches -----------------------------------------------------------------------------------

unsigned char* KernelStage::items(std::size_t slot) noexcept {
  return slots_[slot]->in_memory + header_;
}

/// Outputs are stored one after another, each with room for the items of the batch.
KernelStage::Part KernelStage::part_of(std::size_t output, std::size_t count) const noexcept {
  Part part{0, 0, 0};
  for (std::size_t i = 0; i <= output; ++i) {
    const Output& each = outputs_[i];
    const bool numbered = each.counting == WEIR_STAGE_COUNTING_PER_ITEM;
    part.numbers = part.end;
    part.items = part.numbers + (numbered ? slot_padded(count * sizeof(ItemCount)) : 0);
    part.end = part.items + slot_padded(count * each.most * each.item_bytes);
  }
  return part;
}

void KernelStage::launch(std::size_t index, std::size_t count) noexcept {
  Slot& slot = *slots_[index];
  slot.count = count;
  slot.counted = false;
  slot.open();
  try {
    enqueue(slot);
  } catch (...) {
    slot.fail(current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  slot.close();
}

/// Prepares the slot. After a failed batch it clears the poison of the slot's buffers.
void KernelStage::enqueue(Slot& slot) {
  if (slot.failed) clear_poison(slot);
  slot.failed = true;  // until the batch succeeds
  std::memset(slot.in_memory, 0, header_);
  copy(slot.in, 0, header_ + slot.count * item_bytes_, true);
  if (slot.scratch != nullptr) clear_scratch(slot);
  if (outputs_.empty()) return slot.add([&] { return enqueue_kernel(slot); });
  enqueue_kernel(slot);
  if (counts_tunnels_) return slot.add([&] { return copy(slot.in, 0, header_, false); });
  slot.counted = true;
  fetch_items(slot);
}

void KernelStage::clear_poison(const Slot& slot) {
  const auto all_of = [](weir_buffer* buffer) {
    return weir_operand{buffer, weir_region_range(0, buffer->bytes()), WEIR_ACCESS_READ_WRITE};
  };
  if (counts_tunnels_) stream_->clear_poison_on_host(all_of(slot.in));
  if (slot.out != nullptr) stream_->clear_poison_after(all_of(slot.out), {});
  if (slot.scratch != nullptr) stream_->clear_poison_after(all_of(slot.scratch), {});
}

weir_event KernelStage::clear_scratch(const Slot& slot) {
  const weir_operand all = {slot.scratch, weir_region_range(0, scratch_bytes_), WEIR_ACCESS_WRITE};
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
  std::vector<weir_operand> operands;
  operands.push_back(
      {slot.in, weir_region_range(header_, slot.count * item_bytes_), WEIR_ACCESS_READ});
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Output& output = outputs_[i];
    const Part part = part_of(i, slot.count);
    const std::size_t bytes = slot.count * output.most * output.item_bytes;
    operands.push_back({slot.out, weir_region_range(part.items, bytes), WEIR_ACCESS_WRITE});
    if (output.counting == WEIR_STAGE_COUNTING_PER_ITEM) {
      operands.push_back({slot.out, weir_region_range(part.numbers, slot.count * sizeof(ItemCount)),
                          WEIR_ACCESS_WRITE});
    } else if (output.counting == WEIR_STAGE_COUNTING_PER_TUNNEL) {
      operands.push_back({slot.in, weir_region_range(i * sizeof(ItemCount), sizeof(ItemCount)),
                          WEIR_ACCESS_READ_WRITE});
    }
  }
  operands.insert(operands.end(), tables_.begin(), tables_.end());
  if (slot.scratch != nullptr) {
    operands.push_back(
        {slot.scratch, weir_region_range(0, scratch_bytes_), WEIR_ACCESS_READ_WRITE});
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

void KernelStage::fetch_items(Slot& slot) {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const Part part = part_of(i, slot.count);
    const std::size_t items = outputs_[i].counting == WEIR_STAGE_COUNTING_PER_TUNNEL
                                  ? items_put(slot, i)
                                  : slot.count * outputs_[i].most;
    const std::size_t end = part.items + items * outputs_[i].item_bytes;
    if (end <= part.numbers) continue;
    slot.add([&] { return copy(slot.out, part.numbers, end - part.numbers, false); });
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
  if (outcome().ok() && !counted && stage.counts_tunnels_) {
    counted = true;
    // The counts of the batch have arrived: the group reopens for the items.
    const NoWaitScope no_wait;
    open();
    try {
      stage.fetch_items(*this);
    } catch (...) {
      fail(current_exception_outcome(WEIR_STATUS_INTERNAL));
    }
    close();
    return;
  }
  failed = !outcome().ok();
  stage.on_batch_complete(index);
}

std::size_t KernelStage::items_put(const Slot& slot, std::size_t i) const {
  ItemCount put = 0;
  std::memcpy(&put, slot.in_memory + i * sizeof put, sizeof put);
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
      outputs.buffers[i]->put(slot.out_memory + part.items + first * output.item_bytes, count);
    };
    if (output.counting == WEIR_STAGE_COUNTING_ALL) {
      put(0, slot.count * output.most);
    } else if (output.counting == WEIR_STAGE_COUNTING_PER_TUNNEL) {
      put(0, items_put(slot, i));
    } else {
      for (std::size_t at = 0; at < slot.count; ++at) {
        ItemCount number = 0;
        std::memcpy(&number, slot.out_memory + part.numbers + at * sizeof number, sizeof number);
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
