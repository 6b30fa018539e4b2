#include "backends/cuda/cuda_flights.hpp"

#include <utility>

namespace weir::rt {

CudaFlights::CudaFlights(std::size_t room) {
  for (std::size_t i = 0; i < room; ++i) {
    all_.push_back(std::make_unique<CudaFlight>());
    all_.back()->next = std::exchange(free_, all_.back().get());
  }
}

CudaFlight* CudaFlights::take() noexcept {
  CudaFlight* const flight = std::exchange(free_, free_->next);
  flight->next = nullptr;
  ++in_use_;
  return flight;
}

void CudaFlights::enter(CudaFlight& flight) noexcept {
  flight.next_of_number = std::exchange(bucket(flight.job.number), &flight);
}

CudaFlight* CudaFlights::find(std::uint64_t number) const noexcept {
  CudaFlight* flight = buckets_[number % kBuckets];
  while (flight != nullptr && flight->job.number != number) flight = flight->next_of_number;
  return flight;
}

void CudaFlights::give(CudaFlight& flight) noexcept {
  CudaFlight** link = &bucket(flight.job.number);
  while (*link != &flight) link = &(*link)->next_of_number;
  *link = flight.next_of_number;
  give_unused(flight);
}

void CudaFlights::give_unused(CudaFlight& flight) noexcept {
  flight.next = std::exchange(free_, &flight);
  --in_use_;
}

}  // namespace weir::rt
