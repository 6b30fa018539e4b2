// The tree on a device, with each group that there is.
#include "tunnel_tree.hpp"

using weir::device::CudaMemory;
using Walk = tree::Walk<CudaMemory>;

static __device__ unsigned site() { return blockIdx.x * blockDim.x + threadIdx.x; }

extern "C" __global__ void climb_alone(Walk walk) {
  const weir::device::Thread thread;
  tree::plant(walk, thread, site(), site() == 0);
  tree::climb(walk, thread, site());
}

extern "C" __global__ void climb_by_warps(Walk walk) {
  const weir::device::Warp warp;
  tree::plant(walk, warp, site(), site() == 0);
  tree::climb(walk, warp, site());
}

extern "C" __global__ void climb_by_blocks(Walk walk) {
  __shared__ weir::device::BlockNotes notes;
  const weir::device::Block block{notes};
  tree::plant(walk, block, site(), site() == 0);
  tree::climb(walk, block, site());
}
