#include "backends/cuda/cuda_jobs.hpp"

#include <utility>

namespace weir::rt {

CudaJobs::CudaJobs(std::size_t room) {
  for (std::size_t i = 0; i < room; ++i) {
    all_.push_back(std::make_unique<CudaJob>());
    all_.back()->next = std::exchange(free_, all_.back().get());
  }
}

CudaJob* CudaJobs::take() noexcept {
  CudaJob* const entry = std::exchange(free_, free_->next);
  entry->next = nullptr;
  ++in_use_;
  return entry;
}

void CudaJobs::insert(CudaJob& entry) noexcept {
  entry.next_in_bucket = std::exchange(bucket(entry.job.id), &entry);
}

CudaJob* CudaJobs::find(std::uint64_t number) const noexcept {
  CudaJob* entry = buckets_[number % kBuckets];
  while (entry != nullptr && entry->job.id != number) entry = entry->next_in_bucket;
  return entry;
}

void CudaJobs::release(CudaJob& entry) noexcept {
  CudaJob** link = &bucket(entry.job.id);
  while (*link != &entry) link = &(*link)->next_in_bucket;
  *link = entry.next_in_bucket;
  release_unused(entry);
}

void CudaJobs::release_unused(CudaJob& entry) noexcept {
  entry.next = std::exchange(free_, &entry);
  --in_use_;
}

}  // namespace weir::rt
