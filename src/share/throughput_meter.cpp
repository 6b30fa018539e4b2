#include "share/throughput_meter.hpp"

#include <algorithm>

namespace weir::rt {

namespace {

constexpr std::size_t kRecent = 2;  // chunks that a place has at once

}  // namespace

void ThroughputMeter::begin(std::int64_t now_ns) noexcept { since_ns_ = now_ns; }

void ThroughputMeter::end(std::int64_t now_ns, std::uint64_t items, double work) noexcept {
  const std::int64_t taken = std::max<std::int64_t>(1, now_ns - since_ns_);
  const Mark before = marks_[newest_];
  newest_ = (newest_ + 1) % kMarks;
  marks_[newest_] = {before.busy_ns + taken, before.work + work, before.items + items};
  ends_ = std::min(ends_ + 1, kMarks - 1);
  since_ns_ = now_ns;
  detect_drift();
  speed_ = speed_over(ends_);
  try_larger(items, work / static_cast<double>(taken));
}

double ThroughputMeter::speed_over(std::size_t ends) const noexcept {
  const Mark& to = marks_[newest_];
  const Mark& from = marks_[(newest_ + kMarks - ends) % kMarks];
  return (to.work - from.work) / static_cast<double>(to.busy_ns - from.busy_ns);
}

double ThroughputMeter::items_over(std::size_t ends) const noexcept {
  const Mark& from = marks_[(newest_ + kMarks - ends) % kMarks];
  return static_cast<double>(marks_[newest_].items - from.items) / static_cast<double>(ends);
}

void ThroughputMeter::detect_drift() noexcept {
  if (ends_ <= kRecent) return;
  const double ratio = speed_over(kRecent) / speed_over(ends_);
  if (ratio < kDrift && ratio > 1 / kDrift) return;
  const bool explained = ratio >= items_over(kRecent) / items_over(ends_);
  ends_ = kRecent;
  if (ratio < 1 && !explained) {
    grain_ = 1;
    growing_ = false;
  } else if (!growing_) {
    tried_speed_ = 0;
    growing_ = true;
  }
}

void ThroughputMeter::try_larger(std::uint64_t items, double speed) noexcept {
  if (!growing_ || items < grain_) return;
  if (speed > kGain * tried_speed_) {
    tried_speed_ = speed;
    grain_ *= 2;
  } else {
    growing_ = false;
    grain_ = std::max<std::uint64_t>(1, grain_ / 2);
  }
}

}  // namespace weir::rt
