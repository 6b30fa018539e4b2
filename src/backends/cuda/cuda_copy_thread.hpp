// Copies that no place orders: evictions, and copies between devices.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/copy_queue.hpp"
#include "backends/cuda/cuda_context.hpp"
#include "backends/cuda/cuda_copies.hpp"
#include "base/threads.hpp"

namespace weir::rt {

/// A thread that executes copies one at a time and waits for the driver.
class CudaCopyThread {
 public:
  /// Throws Error.
  CudaCopyThread(CudaContext& context, const CudaMemory& memory, const std::string& name);
  CudaCopyThread(const CudaCopyThread&) = delete;
  CudaCopyThread& operator=(const CudaCopyThread&) = delete;
  /// Completes the pending copies, then joins the thread.
  ~CudaCopyThread();

  /// `peer` is the memory at the other end, null for host memory. Any thread. The copy thread
  /// notifies the sink; without memory for the request the calling thread does so at once.
  void add(const CopyJob& job, const CudaMemory* peer) noexcept;

 private:
  struct Staging {
    CudaPinned memory = make_cuda_pinned(2 * kCudaChunk);
    CudaStagedPiece pieces[2];
  };

  struct Request {
    CopyJob job;
    const CudaMemory* peer = nullptr;
  };

  void serve() noexcept;
  void run(const Request& request) noexcept;
  Outcome copy(const CudaBlock& block, const CudaMemory* peer) noexcept;
  CUresult await_memory(const CudaMemory* peer) const noexcept;
  CUresult stage(const CudaBlock& block);
  CUresult settle(CudaStagedPiece& piece, CUstream stream) const noexcept;

  CudaContext& context_;
  const CudaMemory& memory_;
  CudaStream streams_[2];
  std::unique_ptr<Staging> staging_;
  CopyQueue<Request> requests_;
  std::optional<sys::Thread> thread_;
};

}  // namespace weir::rt
