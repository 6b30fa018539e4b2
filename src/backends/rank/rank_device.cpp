#include "backends/rank/rank_device.hpp"

#include <utility>

#include "backends/rank/rank_place.hpp"
#include "base/text.hpp"

namespace weir::rt {

RankDevice::RankDevice(std::string name, std::shared_ptr<RankClient> client, Rank rank,
                       const std::string& specification)
    : client_(std::move(client)), rank_(rank), number_(client_->next_number()) {
  client_->connect(rank);
  client_->ask(
      rank, RankMessageKind::open_device,
      [&](WireWriter& message) { message.put(number_, specification); },
      [&](WireReader& answer) { facts_ = answer.facts(); });
  DeviceInfo& info = facts_.info;
  info.name = std::move(name);
  info.code = std::exchange(info.backend, "rank");
  info.description = fmt::format("rank {}: {} ({})", rank, info.description, info.code);
  info.resolves_dependences = true;
  info.needs_polling = true;
}

RankDevice::~RankDevice() {
  try {
    client_->post(rank_, WireWriter(RankMessageKind::close_device, number_));
  } catch (...) {  // a lost rank has no devices
  }
}

// ---- Memory ------------------------------------------------------------------------------------

Memory RankDevice::allocate(std::size_t bytes) {
  if (bytes >= rank_address::kMostBytes) {
    fail(WEIR_STATUS_OUT_OF_MEMORY, "domain '{}' was asked for {} at once; it gives at most {}",
         info().name, format_size(bytes), format_size(rank_address::kMostBytes));
  }
  const std::uint32_t instance = take_instance();
  try {
    client_->post(rank_,
                  WireWriter(RankMessageKind::allocate, number_, instance, std::uint64_t{bytes}));
  } catch (...) {
    give_instance(instance);
    throw;
  }
  return {rank_address::of(instance), bytes};
}

std::uint32_t RankDevice::take_instance() {
  const sys::Lock lock(mutex_);
  if (!free_.empty()) {
    const std::uint32_t instance = free_.back();
    free_.pop_back();
    return instance;
  }
  if (instances_ == rank_address::kMostInstances) {
    fail(WEIR_STATUS_OUT_OF_MEMORY, "domain '{}' has {} instances, and no room for more",
         info().name, instances_);
  }
  if (free_.capacity() <= instances_) free_.reserve(2 * std::size_t{instances_} + 1);
  return instances_++;
}

void RankDevice::give_instance(std::uint32_t instance) noexcept {
  const sys::Lock lock(mutex_);
  free_.push_back(instance);
}

void RankDevice::release(Memory& memory) noexcept {
  if (memory.address == nullptr) return;
  const std::uint32_t instance = rank_address::instance(rank_address::number(memory.address));
  memory = {};
  try {
    client_->post(rank_, WireWriter(RankMessageKind::release, number_, instance));
    give_instance(instance);
  } catch (...) {  // a lost rank has no memory; the instance number is not reused
  }
}

// ---- Copies ------------------------------------------------------------------------------------

bool RankDevice::reaches(const Device* peer) const noexcept {
  if (peer == nullptr || peer == this) return true;
  const auto* const other = dynamic_cast<const RankDevice*>(peer);
  return other != nullptr && other->client_ == client_ && (facts_.direct || other->facts_.direct);
}

RankCopyEnd RankDevice::near_end(const CopyEnd& end) const noexcept {
  RankCopyEnd near;
  near.device = number_;
  near.address = rank_address::number(end.base);
  near.region = end.region;
  return near;
}

RankCopyEnd RankDevice::lend(const CopyEnd& end) const {
  const Region& region = end.region;
  RankCopyEnd far;
  far.remote = true;
  far.rank = client_->port().rank();
  far.window = client_->port().expose(end.base + region.offset,
                                      static_cast<std::size_t>(region.end() - region.offset));
  far.region = region;
  far.region.offset = 0;
  return far;
}

RankCopyEnd RankDevice::end_of(const CopyEnd& end) const {
  if (end.device == nullptr) return lend(end);
  return static_cast<const RankDevice*>(end.device)->near_end(end);
}

void RankDevice::copy(const CopyJob& job) noexcept {
  try {
    start_copy(job);
  } catch (...) {
    job.fail(current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
}

/// Chooses the rank that makes a copy: the one of an end that only its own rank reaches, otherwise
/// the target's. The other end is near that rank too, or is lent to it.
void RankDevice::start_copy(const CopyJob& job) {
  const auto rank_of = [](const CopyEnd& end) { return static_cast<RankDevice*>(end.device); };
  const RankDevice* maker = rank_of(job.target) != nullptr ? rank_of(job.target) : this;
  const RankDevice* other =
      rank_of(job.source) == maker ? rank_of(job.target) : rank_of(job.source);
  if (other != nullptr && !other->facts_.direct && maker->facts_.direct) std::swap(maker, other);
  auto copy = std::make_unique<RankClient::Copy>();
  copy->rank = maker->rank_;
  copy->device = maker->number_;
  copy->sink = job.sink;
  copy->token = job.token;
  copy->source = end_of(job.source);
  copy->target = end_of(job.target);
  if (other != nullptr && other->rank_ != maker->rank_) {
    copy->owner = other->rank_;
    copy->lent = rank_of(job.source) == other ? &copy->source : &copy->target;
  }
  client_->copy(std::move(copy));
}

// ---- Jobs --------------------------------------------------------------------------------------

void RankDevice::define(const Job& job) {
  const sys::Lock lock(defining_);
  if (job.kernel_number < defined_.size() && defined_[job.kernel_number]) return;
  if (job.kernel_number >= defined_.size()) defined_.resize(job.kernel_number + 1);
  const auto number = static_cast<std::uint32_t>(job.kernel_number);
  client_->post(rank_,
                WireWriter(RankMessageKind::define, number_, number, std::string_view(job.kernel)));
  defined_[job.kernel_number] = true;
}

std::unique_ptr<PlaceDriver> RankDevice::open_place(const PlaceRequest& request, PlaceFeed& feed) {
  return std::make_unique<RankPlace>(*this, request, feed);
}

void RankDevice::add_place(RankPlace& place) {
  const sys::Lock lock(listing_);
  places_.push_back(&place);
}

void RankDevice::remove_place(RankPlace& place) noexcept {
  {
    const sys::Lock lock(listing_);
    std::erase(places_, &place);
  }
  place.wait_for_pins();
}

void RankDevice::end_polling() noexcept {
  for (std::size_t index = 0; RankPlace* const place = pin(index); ++index) {
    place->end_polling();
    place->unpin();
  }
  client_->port().about_to_block();
}

/// Returns the place with that index and keeps it from being destroyed; null if there is none.
RankPlace* RankDevice::pin(std::size_t index) noexcept {
  const sys::Lock lock(listing_);
  if (index >= places_.size()) return nullptr;
  places_[index]->pin();
  return places_[index];
}

bool RankDevice::poll() noexcept {
  bool moved = client_->port().progress();
  for (std::size_t index = 0; RankPlace* const place = pin(index); ++index) {
    moved |= place->poll();
    place->unpin();
  }
  return moved;
}

}  // namespace weir::rt
