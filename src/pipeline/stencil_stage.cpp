#include "pipeline/stencil_stage.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/thread_role.hpp"
#include "pipeline/tunnel.hpp"
#include "stream/registry.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kUsualRegionEdge = 64;
constexpr std::size_t kUsualRegions = 16, kMostRegions = 4096;
constexpr std::size_t kUsualBatches = 4, kMostBatches = 64;
constexpr std::size_t kMostValueBytes = 1024;
constexpr std::size_t kTilesAtOnce = 4096;

StencilShape shape_of(const weir_stencil_options& options) {
  const auto or_usual = [](std::size_t given, std::size_t usual) {
    return given > 0 ? given : usual;
  };
  return {options.rows,
          options.columns,
          or_usual(options.region_rows, kUsualRegionEdge),
          or_usual(options.region_columns, kUsualRegionEdge),
          options.halo,
          options.corners,
          or_usual(options.sweeps, 1)};
}

weir_stencil_region item_of(const StencilPart& part) noexcept {
  return {static_cast<std::uint32_t>(part.row), static_cast<std::uint32_t>(part.column),
          static_cast<std::uint32_t>(part.rows), static_cast<std::uint32_t>(part.columns)};
}

}  // namespace

// ---- Making ------------------------------------------------------------------------------------

StencilStage::StencilStage(weir_place& place, const std::string& name,
                           const weir_stencil_options& options)
    : registry_(Registry::of(place.domain().context())),
      domain_(*registry_.domain(place.domain().index())),
      name_(name),
      value_bytes_(options.value_bytes),
      grid_(shape_of(options), name),
      kernel_(options.kernel != nullptr || options.kernel_name == nullptr
                  ? &weir_kernel::check(options.kernel)
                  : &registry_.kernels().find(options.kernel_name)),
      room_(options.batch > 0 ? options.batch : kUsualRegions),
      room_is_given_(options.batch > 0),
      staged_(std::make_unique<sys::Atomic<weir_buffer*>[]>(grid_.regions())) {
  if (!registry_.kernels().has(*kernel_)) {
    fail_argument("kernel '{}' of stencil '{}' belongs to another runtime", kernel_->name(), name_);
  }
  if (kernel_->code_for(domain_.info()) == nullptr) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "kernel '{}' of stencil '{}' has no code for domain '{}'; it has: {}", kernel_->name(),
         name_, domain_.name(), kernel_->backends());
  }
  if (options.scalars == nullptr && options.scalar_count > 0) {
    fail_argument("{} of stencil '{}' {} given as NULL", counted(options.scalar_count, "scalar"),
                  name_, is_or_are(options.scalar_count));
  }
  if (room_ > kMostRegions || options.in_flight > kMostBatches) {
    fail_argument(
        "batches of {} regions, {} in flight, are too many for stencil '{}': at most {} "
        "and {}",
        room_, options.in_flight, name_, kMostRegions, kMostBatches);
  }
  check_result(options);
  scalars_.assign(options.scalars, options.scalars + options.scalar_count);
  result_ = options.result;
  const std::size_t slots = options.in_flight > 0 ? options.in_flight : kUsualBatches;
  for (std::size_t i = 0; i < slots; ++i) {
    slots_.push_back(std::make_unique<Slot>(*this, i, room_));
  }
  try {
    weir_stream_options own = WEIR_STREAM_OPTIONS_INIT;
    own.name = name_.c_str();
    stream_ = registry_.create_stream(place, own);
    for (weir_buffer*& matrix : matrices_) matrix = make_buffer(result_->bytes(), "matrix");
  } catch (...) {
    close();
    throw;
  }
}

void StencilStage::check_result(const weir_stencil_options& options) const {
  if (value_bytes_ == 0 || value_bytes_ > kMostValueBytes) {
    fail_argument("values of {} bytes do not fit stencil '{}': 1 to {}", value_bytes_, name_,
                  kMostValueBytes);
  }
  const weir_buffer& result = weir_buffer::check(options.result);
  const std::size_t bytes = options.rows * options.columns * value_bytes_;
  if (result.owner() != &registry_) {
    fail_argument("buffer '{}' belongs to another runtime than stencil '{}'", result.name(), name_);
  }
  if (result.bytes() != bytes) {
    fail_argument(
        "buffer '{}' of {} bytes cannot be the result of stencil '{}', {} x {} values of "
        "{} bytes: {}",
        result.name(), result.bytes(), name_, options.rows, options.columns, value_bytes_, bytes);
  }
}

weir_buffer* StencilStage::make_buffer(std::size_t bytes, const char* what) {
  const std::string name = fmt::format("{} of {}", what, name_);
  weir_buffer_options options = WEIR_BUFFER_OPTIONS_INIT;
  options.name = name.c_str();
  return registry_.buffers().create(bytes, options);
}

StencilStage::~StencilStage() { close(); }

void StencilStage::close() noexcept {
  {
    const sys::Lock lock(ready_mutex_);
    closing_ = true;
  }
  if (stream_ != nullptr) {
    try {
      registry_.await_end({stream_}, WEIR_FOREVER);
    } catch (...) {  // the destructor of the stream waits
    }
    stream_->unreported().forget_up_to(UINT64_MAX);  // the batches have reported them
    registry_.destroy_stream(stream_);
  }
  stream_ = nullptr;  // all batches in flight have completed
  for (weir_buffer*& matrix : matrices_) {
    if (matrix != nullptr) registry_.destroy_buffer(matrix);
    matrix = nullptr;
  }
  const sys::Lock lock(staging_mutex_);
  for (weir_buffer* staging : staging_) registry_.destroy_buffer(staging);
  staging_.clear();
}

// ---- Values ------------------------------------------------------------------------------------

void StencilStage::set(weir_outlet& outlet, const StencilPart& values, const void* from,
                       std::size_t stride) {
  const StencilShape& shape = grid_.shape();
  if (outlet.item_bytes != sizeof(weir_stencil_region)) {
    fail_argument("an outlet for items of {} bytes is not that of stencil '{}': {}",
                  outlet.item_bytes, name_, sizeof(weir_stencil_region));
  }
  if (values.rows > shape.rows || values.row > shape.rows - values.rows ||
      values.columns > shape.columns || values.column > shape.columns - values.columns) {
    fail_argument("{} x {} values at ({}, {}) are not all in stencil '{}' of {} x {}", values.rows,
                  values.columns, values.row, values.column, name_, shape.rows, shape.columns);
  }
  if (values.rows == 0 || values.columns == 0) return;
  if (from == nullptr) fail_argument("values for stencil '{}' are given as NULL", name_);
  if (values.rows > 1 && stride < values.columns) {
    fail_argument("rows of {} values for stencil '{}' overlap with a stride of {}", values.columns,
                  name_, stride);
  }
  const auto each_region = [&](auto&& visit) {
    for (std::size_t r = values.row; r < values.row + values.rows;) {
      const std::size_t below = (r / shape.region_rows + 1) * shape.region_rows;
      const std::size_t rows = std::min(below, values.row + values.rows) - r;
      for (std::size_t c = values.column; c < values.column + values.columns;) {
        const std::size_t right = (c / shape.region_columns + 1) * shape.region_columns;
        const std::size_t columns = std::min(right, values.column + values.columns) - c;
        visit(grid_.region_at(r, c), StencilPart{r, c, rows, columns});
        c += columns;
      }
      r += rows;
    }
  };
  const auto refuse = [&](const StencilPart& part) {
    fail_argument("of the {} x {} values at ({}, {}) of stencil '{}' some are set twice", part.rows,
                  part.columns, part.row, part.column, name_);
  };
  each_region([&](std::size_t region, const StencilPart& part) {
    if (grid_.any_set(region, part)) refuse(part);
  });
  each_region([&](std::size_t region, const StencilPart& part) {
    write(region, part, values, static_cast<const unsigned char*>(from), stride);
    bool complete = false;
    const std::size_t again = grid_.set(region, part, complete);
    if (complete) {
      const weir_stencil_region item = item_of(grid_.part_of(region));
      static_cast<WorkerBuffer&>(outlet).put(reinterpret_cast<const unsigned char*>(&item), 1);
    }
    if (again > 0) refuse(part);
  });
}

void StencilStage::write(std::size_t region, const StencilPart& values, const StencilPart& all,
                         const unsigned char* from, std::size_t stride) {
  const StencilPart part = grid_.part_of(region);
  auto* const memory = reinterpret_cast<unsigned char*>(staging_of(region).host_address());
  for (std::size_t r = 0; r < values.rows; ++r) {
    const std::size_t to = (values.row - part.row + r) * part.columns + values.column - part.column;
    const std::size_t at = (values.row - all.row + r) * stride + values.column - all.column;
    std::memcpy(memory + to * value_bytes_, from + at * value_bytes_,
                values.columns * value_bytes_);
  }
}

/// Returns the staging memory of a region: allocated with its first value, freed after its copy.
weir_buffer& StencilStage::staging_of(std::size_t region) {
  sys::Atomic<weir_buffer*>& staged = staged_[region];
  if (weir_buffer* const found = staged.load(std::memory_order_acquire)) return *found;
  const sys::Lock lock(staging_mutex_);
  if (weir_buffer* const found = staged.load(std::memory_order_acquire)) return *found;
  if (free_staging_.empty()) {
    staging_.reserve(staging_.size() + 1);
    free_staging_.reserve(staging_.size() + 1);
    const StencilShape& shape = grid_.shape();
    staging_.push_back(
        make_buffer(shape.region_rows * shape.region_columns * value_bytes_, "region"));
    free_staging_.push_back(staging_.back());
  }
  weir_buffer* const taken = free_staging_.back();
  free_staging_.pop_back();
  staged.store(taken, std::memory_order_release);
  return *taken;
}

// ---- Regions and tiles -------------------------------------------------------------------------

void StencilStage::launch(std::size_t index, std::size_t count) noexcept {
  Slot& slot = *slots_[index];
  slot.count = count;
  slot.tiles.clear();
  slot.open();
  try {
    for (std::size_t i = 0; i < count; ++i) enqueue_region(slot, index_of(slot.items[i]));
    enqueue_tiles(slot);
  } catch (...) {
    slot.fail(current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  slot.close();
}

std::size_t StencilStage::index_of(const weir_stencil_region& item) const {
  const StencilShape& shape = grid_.shape();
  if (item.row < shape.rows && item.column < shape.columns) {
    const std::size_t region = grid_.region_at(item.row, item.column);
    const StencilPart part = grid_.part_of(region);
    if (part.row == item.row && part.column == item.column && grid_.missing(region) == 0) {
      return region;
    }
  }
  fail_argument(
      "({}, {}) is not a complete region of stencil '{}': only weir_stencil_set() puts them",
      item.row, item.column, name_);
}

void StencilStage::enqueue_region(Slot& slot, std::size_t region) {
  weir_buffer* const staging = staged_[region].exchange(nullptr, std::memory_order_acq_rel);
  if (staging == nullptr) {
    fail_argument("region ({}, {}) of stencil '{}' comes twice: only weir_stencil_set() puts them",
                  grid_.part_of(region).row, grid_.part_of(region).column, name_);
  }
  slot.used_staging.push_back(staging);
  const StencilPart part = grid_.part_of(region);
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  transfer.source.buffer = staging;
  transfer.source.region =
      weir_region_tile(0, 0, part.columns, part.rows, part.columns, value_bytes_);
  transfer.target = {&domain_, matrices_[0], in_matrix(part)};
  slot.add([&] { return stream_->transfer(transfer, true); });
  regions_copied_.fetch_add(1, std::memory_order_relaxed);
  grid_.arrived(region, 0, [&](std::size_t tile) { note_ready(tile, 1); });
}

void StencilStage::note_ready(std::size_t tile, std::size_t sweep) {
  const sys::Lock lock(ready_mutex_);
  ready_.push_back({tile, sweep});
}

bool StencilStage::next_tile(Tile& tile) {
  const sys::Lock lock(ready_mutex_);
  if (ready_.empty() || closing_) return false;
  tile = ready_.back();
  ready_.pop_back();
  return true;
}

/// Enqueues some of the ready tiles, and those that become ready through them.
void StencilStage::enqueue_tiles(Slot& slot) {
  Tile tile{};
  std::size_t made = 0;
  while (made < kTilesAtOnce && next_tile(tile)) {
    enqueue_tile(slot, tile);
    grid_.arrived(tile.index, tile.sweep,
                  [&](std::size_t next) { note_ready(next, tile.sweep + 1); });
    ++made;
  }
  if (made == kTilesAtOnce) slot.add([&] { return stream_->mark(); });
}

void StencilStage::enqueue_tile(Slot& slot, const Tile& tile) {
  const StencilPart part = grid_.part_of(tile.index), around = grid_.with_halo(tile.index);
  weir_buffer* const from = matrices_[(tile.sweep - 1) % 2];
  weir_buffer* const to = matrices_[tile.sweep % 2];
  const weir_operand operands[] = {{to, in_matrix(part), WEIR_ACCESS_WRITE},
                                   {from, in_matrix(around), WEIR_ACCESS_READ}};
  const StencilShape& shape = grid_.shape();
  std::vector<weir_scalar> scalars;
  for (const std::size_t each :
       {part.rows, part.columns, shape.columns, part.row - around.row, part.column - around.column,
        part.row, part.column, shape.rows, shape.columns}) {
    scalars.push_back(weir_scalar_i64(static_cast<std::int64_t>(each)));
  }
  scalars.insert(scalars.end(), scalars_.begin(), scalars_.end());
  weir_compute compute = WEIR_COMPUTE_INIT;
  compute.kernel = kernel_;
  compute.operands = operands;
  compute.operand_count = std::size(operands);
  compute.scalars = scalars.data();
  compute.scalar_count = scalars.size();
  compute.name = name_.c_str();
  stream_->compute(compute, false);
  tiles_made_.fetch_add(1, std::memory_order_relaxed);
  if (tile.sweep < shape.sweeps) return;
  weir_transfer transfer = WEIR_TRANSFER_INIT;
  transfer.source = {&domain_, to, in_matrix(part)};
  transfer.target.buffer = result_;
  transfer.target.region = in_matrix(part);
  slot.tiles.push_back(tile.index);
  slot.add([&] { return stream_->transfer(transfer, true); });
}

weir_region StencilStage::in_matrix(const StencilPart& part) const noexcept {
  return weir_region_tile(part.column, part.row, part.columns, part.rows, grid_.shape().columns,
                          value_bytes_);
}

/// Continues with ready tiles of later sweeps, which exceeded the limit before.
void StencilStage::finish(Slot& slot) noexcept {
  {
    const sys::Lock lock(staging_mutex_);
    free_staging_.insert(free_staging_.end(), slot.used_staging.begin(), slot.used_staging.end());
    slot.used_staging.clear();
  }
  const auto any_ready = [this] {
    const sys::Lock lock(ready_mutex_);
    return !ready_.empty() && !closing_;
  };
  while (any_ready()) {
    const NoWaitScope no_wait;
    slot.reopen();
    try {
      enqueue_tiles(slot);
    } catch (...) {
      slot.fail(current_exception_outcome(WEIR_STATUS_INTERNAL));
    }
    if (!slot.close_and_check()) return;
  }
  on_batch_complete(slot.index);
}

void StencilStage::collect(std::size_t index, const Outputs& outputs) {
  if (outputs.buffers.empty()) return;
  for (const std::size_t tile : slots_[index]->tiles) {
    const weir_stencil_region item = item_of(grid_.part_of(tile));
    outputs.buffers[0]->put(reinterpret_cast<const unsigned char*>(&item), 1);
  }
}

void StencilStage::end() {
  std::size_t incomplete = 0, first = 0;
  for (std::size_t region = grid_.regions(); region-- > 0;) {
    if (grid_.missing(region) == 0) continue;
    ++incomplete;
    first = region;
  }
  if (incomplete > 0) {
    const StencilPart part = grid_.part_of(first);
    fail_argument(
        "{} of {} regions are incomplete at the end: that at ({}, {}) misses {} of {} values",
        incomplete, grid_.regions(), part.row, part.column, grid_.missing(first),
        part.rows * part.columns);
  }
  const std::uint64_t copied = regions_copied_.load(std::memory_order_relaxed);
  if (copied < grid_.regions()) {
    fail_argument("{} of {} regions were set, but did not come to the input: leave none out",
                  grid_.regions() - copied, grid_.regions());
  }
}

void StencilStage::get_info(weir_stencil_info& info) const noexcept {
  info.name = name_.c_str();
  info.regions = grid_.regions();
  info.regions_copied = regions_copied_.load(std::memory_order_relaxed);
  info.tiles_made = tiles_made_.load(std::memory_order_relaxed);
  const sys::Lock lock(staging_mutex_);
  info.regions_at_once = staging_.size();
}

}  // namespace weir::rt
