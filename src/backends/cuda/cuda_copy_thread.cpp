#include "backends/cuda/cuda_copy_thread.hpp"

#include <utility>

#include "base/thread_role.hpp"

namespace weir::rt {

CudaCopyThread::CudaCopyThread(CudaContext& context, const CudaMemory& memory,
                               const std::string& name)
    : context_(context), memory_(memory) {
  const CudaScope scope(context.get());
  for (CudaStream& stream : streams_) stream = make_cuda_stream();
  thread_.emplace(name, [this] { serve(); });
}

CudaCopyThread::~CudaCopyThread() {
  requests_.close();
  thread_.reset();
}

void CudaCopyThread::add(const CopyJob& job, const CudaMemory* peer) noexcept {
  try {
    requests_.add({job, peer});
  } catch (...) {
    job.fail(failed_outcome(WEIR_STATUS_OUT_OF_MEMORY, "no memory for a copy"));
  }
}

void CudaCopyThread::serve() noexcept {
  const NoWaitScope no_wait;
  CudaLibrary::get().cuCtxSetCurrent(context_.get());
  while (const std::optional<Request> request = requests_.next()) run(*request);
  staging_.reset();  // while the context is current
}

void CudaCopyThread::run(const Request& request) noexcept {
  const CopyJob& job = request.job;
  const std::int64_t started = sys::now_ns();
  Outcome outcome = copy(make_cuda_block(job.source, job.target), request.peer);
  job.sink->copied(job.token, std::move(outcome), started, sys::now_ns());
}

Outcome CudaCopyThread::copy(const CudaBlock& block, const CudaMemory* peer) noexcept {
  if (context_.lost()) return context_.lost_outcome();
  CUresult code = await_memory(peer);
  try {
    if (code != CUDA_SUCCESS) {
      // said below
    } else if (is_cuda_pinned(block)) {
      code = enqueue_cuda_block(block, streams_[0].get());
      const CUresult end = CudaLibrary::get().cuStreamSynchronize(streams_[0].get());
      if (code == CUDA_SUCCESS) code = end;
    } else {
      code = stage(block);
    }
  } catch (...) {
    return current_exception_outcome(WEIR_STATUS_DEVICE_ERROR);
  }
  if (code == CUDA_SUCCESS) return {};
  return context_.note_result(code, "a copy") ? context_.lost_outcome()
                                              : context_.failed_call("a copy", code);
}

CUresult CudaCopyThread::await_memory(const CudaMemory* peer) const noexcept {
  for (const CudaStream& stream : streams_) {
    for (const CudaMemory* memory : {&memory_, peer}) {
      const CUresult code =
          memory == nullptr ? CUDA_SUCCESS : memory->order_after_clear(stream.get());
      if (code != CUDA_SUCCESS) return code;
    }
  }
  return CUDA_SUCCESS;
}

/// Two chunks are in flight at a time, each in its own stream.
CUresult CudaCopyThread::stage(const CudaBlock& block) {
  if (staging_ == nullptr) {
    staging_ = std::make_unique<Staging>();
    for (std::size_t i = 0; i < 2; ++i) {
      staging_->pieces[i].staging =
          static_cast<std::byte*>(staging_->memory.get()) + i * kCudaChunk;
    }
  }
  CUresult code = CUDA_SUCCESS;
  bool busy[2] = {false, false};
  std::size_t half = 0;
  CudaPieces pieces(block);
  for (CudaBlock next; code == CUDA_SUCCESS && pieces.next(next); half ^= 1) {
    CudaStagedPiece& piece = staging_->pieces[half];
    CUstream stream = streams_[half].get();
    if (std::exchange(busy[half], false)) code = settle(piece, stream);
    if (code != CUDA_SUCCESS) break;
    piece.block = next;
    if (piece.to_device()) context_.packers().pack(piece);
    code = piece.enqueue(stream);
    busy[half] = code == CUDA_SUCCESS;
  }
  for (const std::size_t i : {half, half ^ 1}) {
    if (!busy[i]) continue;
    const CUresult end = settle(staging_->pieces[i], streams_[i].get());
    if (code == CUDA_SUCCESS) code = end;
  }
  return code;
}

CUresult CudaCopyThread::settle(CudaStagedPiece& piece, CUstream stream) const noexcept {
  const CUresult code = CudaLibrary::get().cuStreamSynchronize(stream);
  if (code == CUDA_SUCCESS && !piece.to_device()) context_.packers().pack(piece);
  return code;
}

}  // namespace weir::rt
