#include "backends/rank/rank_device.hpp"

#include <utility>

#include "base/text.hpp"

namespace weir::rt {

RankDevice::RankDevice(std::string name, std::shared_ptr<RankClient> client, Rank rank,
                       const std::string& specification)
    : connection_(std::move(client), rank, specification), info_(connection_.facts().info) {
  info_.name = std::move(name);
  info_.code = std::exchange(info_.backend, "rank");
  info_.description = fmt::format("rank {}: {} ({})", rank, info_.description, info_.code);
  info_.resolves_dependences = true;
  info_.needs_polling = true;
}

// ---- Memory ------------------------------------------------------------------------------------

Memory RankDevice::allocate(std::size_t bytes) {
  if (bytes >= rank_address::kMostBytes) {
    fail(WEIR_STATUS_OUT_OF_MEMORY, "domain '{}' was asked for {} at once; it gives at most {}",
         info_.name, format_size(bytes), format_size(rank_address::kMostBytes));
  }
  const std::uint32_t instance = take_instance();
  try {
    connection_.post(WireWriter(RankMessageKind::allocate, connection_.number(), instance,
                                std::uint64_t{bytes}));
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
         info_.name, instances_);
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
    connection_.post(WireWriter(RankMessageKind::release, connection_.number(), instance));
    give_instance(instance);
  } catch (...) {  // a lost rank has no memory; the instance number is not reused
  }
}

// ---- Copies ------------------------------------------------------------------------------------

bool RankDevice::reaches(const Device* peer) const noexcept {
  if (peer == nullptr || peer == this) return true;
  const auto* const other = dynamic_cast<const RankDevice*>(peer);
  return other != nullptr && &other->connection_.client() == &connection_.client() &&
         (is_direct() || other->is_direct());
}

RankCopyEnd RankDevice::end_of(const CopyEnd& end) const {
  if (end.device == nullptr) return connection_.lend(end);
  return static_cast<const RankDevice*>(end.device)->connection_.near_end(end);
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
  if (other != nullptr && !other->is_direct() && maker->is_direct()) std::swap(maker, other);
  auto copy = std::make_unique<RankClient::Copy>();
  copy->rank = maker->connection_.rank();
  copy->device = maker->connection_.number();
  copy->sink = job.sink;
  copy->token = job.token;
  copy->source = end_of(job.source);
  copy->target = end_of(job.target);
  if (other != nullptr && other->connection_.rank() != copy->rank) {
    copy->owner = other->connection_.rank();
    copy->lent = rank_of(job.source) == other ? &copy->source : &copy->target;
  }
  connection_.client().copy(std::move(copy));
}

// ---- Places ------------------------------------------------------------------------------------

std::unique_ptr<PlaceDriver> RankDevice::open_place(const PlaceRequest& request, PlaceFeed& feed) {
  return std::make_unique<RankPlace>(connection_, places_, request, feed);
}

bool RankDevice::poll() noexcept {
  bool moved = connection_.port().progress();
  places_.each([&](RankPlace& place) { moved |= place.poll(); });
  return moved;
}

void RankDevice::end_polling() noexcept {
  places_.each([](RankPlace& place) { place.end_polling(); });
  connection_.port().about_to_block();
}

}  // namespace weir::rt
