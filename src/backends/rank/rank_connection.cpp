#include "backends/rank/rank_connection.hpp"

#include <utility>

namespace weir::rt {

RankConnection::RankConnection(std::shared_ptr<RankClient> client, Rank rank,
                               const std::string& specification)
    : client_(std::move(client)), rank_(rank), number_(client_->next_number()) {
  client_->connect(rank);
  client_->ask(
      rank, RankMessageKind::open_device,
      [&](WireWriter& message) { message.put(number_, specification); },
      [&](WireReader& answer) { facts_ = answer.facts(); });
}

RankConnection::~RankConnection() {
  try {
    post(WireWriter(RankMessageKind::close_device, number_));
  } catch (...) {  // a lost rank has no devices
  }
}

void RankConnection::define(const Job& job) {
  const sys::Lock lock(defining_);
  if (job.kernel_number < defined_.size() && defined_[job.kernel_number]) return;
  if (job.kernel_number >= defined_.size()) defined_.resize(job.kernel_number + 1);
  const auto number = static_cast<std::uint32_t>(job.kernel_number);
  post(WireWriter(RankMessageKind::define, number_, number, std::string_view(job.kernel)));
  defined_[job.kernel_number] = true;
}

RankCopyEnd RankConnection::near_end(const CopyEnd& end) const noexcept {
  RankCopyEnd near;
  near.device = number_;
  near.address = rank_address::number(end.base);
  near.region = end.region;
  return near;
}

RankCopyEnd RankConnection::lend(const CopyEnd& end) const {
  const Region& region = end.region;
  RankCopyEnd far;
  far.remote = true;
  far.rank = port().rank();
  far.window = port().expose(end.base + region.offset,
                             static_cast<std::size_t>(region.end() - region.offset));
  far.region = region;
  far.region.offset = 0;
  return far;
}

}  // namespace weir::rt
