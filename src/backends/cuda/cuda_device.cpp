#include "backends/cuda/cuda_device.hpp"

#include <algorithm>
#include <utility>

#include "backends/cuda/cuda_place.hpp"

namespace weir::rt {

namespace {

/// The free memory minus a reserve for code, stacks, green contexts, and the workspaces of
/// libraries. cuBLAS and cuSOLVER allocate 32 MiB each per stream on a large GPU, in up to 8
/// streams of each place.
std::uint64_t usable_memory(const CudaContext& context) {
  constexpr std::uint64_t kLeast = std::uint64_t{512} << 20, kMost = std::uint64_t{4} << 30;
  const std::uint64_t free = free_cuda_memory(context);
  return free - std::min(std::clamp(free / 32, kLeast, kMost), free / 8);
}

}  // namespace

CudaDevice::CudaDevice(CudaOptions options, const CudaDeviceInfo& facts)
    : options_(std::move(options)),
      facts_(facts),
      context_(options_.name, facts.id),
      groups_(divide_cuda_device(facts.id)),
      memory_(context_),
      kernels_(context_, facts.architecture),
      inward_(context_, memory_, options_.name + "-in"),
      outward_(context_, memory_, options_.name + "-out") {
  info_.name = options_.name;
  info_.backend = "cuda";
  info_.description = facts.description;
  info_.cores = std::max(1u, static_cast<unsigned>(groups_.size()));
  info_.memory_bytes = options_.memory > 0 ? options_.memory : usable_memory(context_);
  info_.resolves_dependences = true;
  info_.compiles_source = true;
  context_.start_packers(options_.packers);
}

bool CudaDevice::reaches(const Device* peer) const noexcept {
  if (peer == nullptr) return true;
  if (peer->info().backend != info_.backend) return false;
  const CUdevice other = static_cast<const CudaDevice*>(peer)->facts_.id;
  int can = 0;
  CudaLibrary::get().cuDeviceCanAccessPeer(&can, facts_.id, other);
  return can != 0 || other == facts_.id;
}

void CudaDevice::copy(const CopyJob& job) noexcept {
  const bool comes = job.target.device == this;
  Device* const peer = comes ? job.source.device : job.target.device;
  CudaMemory* const there = peer == nullptr ? nullptr : &static_cast<CudaDevice*>(peer)->memory_;
  if (there != nullptr && there != &memory_) there->enable_peer_access(facts_.id);
  (comes ? inward_ : outward_).add(job, there);
}

std::unique_ptr<PlaceDriver> CudaDevice::open_place(const PlaceRequest& request, PlaceFeed& feed) {
  const bool whole = request.cores.size() == info_.cores;
  std::vector<CUdevResource> part;
  for (const unsigned core : request.cores) {
    if (!whole) part.push_back(groups_[core]);
  }
  return std::make_unique<CudaPlace>(request.name, context_, memory_, kernels_, std::move(part),
                                     options_.compute_streams, feed);
}

}  // namespace weir::rt
