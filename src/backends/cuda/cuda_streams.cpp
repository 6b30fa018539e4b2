#include "backends/cuda/cuda_streams.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::rt {

namespace {

constexpr std::size_t kLine = 64;

/// The counter that only the device writes for a stream.
const std::uint64_t* counter(const CudaPinned& counters, unsigned stream_index) noexcept {
  return reinterpret_cast<const std::uint64_t*>(static_cast<const std::byte*>(counters.get()) +
                                                stream_index * kLine);
}

unsigned processors_of(const std::vector<CUdevResource>& part, CUdevice whole) {
  unsigned sum = 0;
  for (const CUdevResource& each : part) sum += each.sm.smCount;
  if (!part.empty()) return sum;
  int all = 0;
  check_cuda(CudaLibrary::get().cuDeviceGetAttribute(&all, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                                     whole),
             "asking for the multiprocessors of a device");
  return static_cast<unsigned>(all);
}

}  // namespace

CudaPartition::CudaPartition(const std::string& place, const CudaContext& whole,
                             std::vector<CUdevResource> part)
    : context_(whole.get()), processors_(processors_of(part, whole.device())) {
  if (part.empty()) return;
  const CudaLibrary& cu = CudaLibrary::get();
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUresult code =
      cu.cuDevResourceGenerateDesc(&description, part.data(), static_cast<unsigned>(part.size()));
  if (code == CUDA_SUCCESS) {
    code = cu.cuGreenCtxCreate(&green, description, whole.device(), CU_GREEN_CTX_DEFAULT_STREAM);
  }
  if (code == CUDA_SUCCESS) {
    green_ = CudaGreenContext(green);
    code = cu.cuCtxFromGreenCtx(&context_, green);
  }
  if (code != CUDA_SUCCESS) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "place '{}' cannot be a part of domain '{}', whose driver makes no green context of {} "
         "groups of multiprocessors: {}; use all cores",
         place, whole.domain(), part.size(), cuda_error(code));
  }
}

CudaStream CudaPartition::make_stream() const {
  if (green_.get() == nullptr) return make_cuda_stream();
  CUstream stream = nullptr;
  check_cuda(
      CudaLibrary::get().cuGreenCtxStreamCreate(&stream, green_.get(), CU_STREAM_NON_BLOCKING, 0),
      "making a stream of a green context");
  return CudaStream(stream);
}

CudaStreams::CudaStreams(CudaContext& context, const CudaMemory& memory,
                         const CudaPartition& partition, unsigned compute_streams, CudaBell& bell)
    : context_(context),
      memory_(memory),
      compute_count_(compute_streams),
      order_(compute_streams + 2 * kCopyStreams),
      chunks_(make_cuda_pinned(2 * kCopyStreams * kCudaChunk)),
      counters_(make_cuda_pinned(order_.count() * kLine)),
      streams_(order_.count()),
      bell_(bell) {
  std::memset(counters_.get(), 0, order_.count() * kLine);
  check_cuda(CudaLibrary::get().cuMemHostGetDevicePointer(&counters_there_, counters_.get(), 0),
             "showing memory of the host to the device");
  const std::uint64_t allocations = memory.wait_until_cleared();
  for (unsigned stream_index = 0; stream_index < order_.count(); ++stream_index) {
    StreamState& stream_state = streams_[stream_index];
    stream_state.stream = partition.make_stream();
    stream_state.allocations = allocations;
    for (CudaEvent& event : stream_state.records) event = make_cuda_event(false);
    if (!copies(stream_index)) continue;
    stream_state.begun = make_cuda_event(false);
    stream_state.ended = make_cuda_event(false);
    stream_state.chunk =
        static_cast<std::byte*>(chunks_.get()) + (stream_index - compute_count_) * kCudaChunk;
  }
}

unsigned CudaStreams::choose(const Job& job,
                             std::span<const CudaPoint> predecessors) const noexcept {
  if (!job.is_copy) return order_.choose(0, compute_count_, predecessors);
  const unsigned first = compute_count_ + (job.from.device == nullptr ? 0 : kCopyStreams);
  return order_.choose(first, kCopyStreams, predecessors);
}

CUresult CudaStreams::order(unsigned stream_index, std::span<const CudaPoint> points) noexcept {
  CUresult code = await_memory(stream_index);
  for (std::size_t i = points.size(); i-- > 0 && code == CUDA_SUCCESS;) {
    if (!order_.implied(stream_index, points[i])) code = wait(stream_index, points[i]);
  }
  return code;
}

CUresult CudaStreams::await_memory(unsigned stream_index) noexcept {
  const std::uint64_t allocations = memory_.allocations();
  if (streams_[stream_index].allocations == allocations) return CUDA_SUCCESS;
  const CUresult code = memory_.order_after_clear(stream(stream_index));
  if (code == CUDA_SUCCESS) streams_[stream_index].allocations = allocations;
  return code;
}

CUresult CudaStreams::wait(unsigned stream_index, CudaPoint point) noexcept {
  const CudaLibrary& cu = CudaLibrary::get();
  auto record = order_.recorded(point);
  if (!record) {
    record = order_.record(point.stream);
    const CUresult code =
        cu.cuEventRecord(streams_[point.stream].records[*record].get(), stream(point.stream));
    if (code != CUDA_SUCCESS) {
      order_.forget(point.stream, *record);
      return code;
    }
  }
  const CUresult code =
      cu.cuStreamWaitEvent(stream(stream_index), streams_[point.stream].records[*record].get(), 0);
  if (code == CUDA_SUCCESS) order_.wait(stream_index, point.stream, *record);
  return code;
}

void CudaStreams::keep_tail(unsigned stream_index) noexcept {
  if (order_.recorded({stream_index, order_.tail(stream_index)})) return;
  const unsigned record = order_.record(stream_index);
  const CUresult code = CudaLibrary::get().cuEventRecord(
      streams_[stream_index].records[record].get(), stream(stream_index));
  if (code != CUDA_SUCCESS)
    order_.forget(stream_index, record);  // later jobs wait for more than necessary
}

CUresult CudaStreams::enqueue_copy(CudaJob& entry, unsigned stream_index) {
  const CudaLibrary& cu = CudaLibrary::get();
  entry.block = make_cuda_block(entry.job.from, entry.job.to);
  if (is_cuda_pinned(entry.block)) return enqueue_cuda_block(entry.block, stream(stream_index));
  CudaBlock first;
  CudaPieces(entry.block).next(first);
  const bool whole = first.bytes() == entry.block.bytes();
  entry.pieces.resize(whole ? 1 : 2 * kStagingGroup);
  if (whole) {
    entry.pieces[0] = {{first, streams_[stream_index].chunk}, &context_};
    if (entry.job.timed || first.bytes() > kSmallCopy) {
      return stage(entry.pieces[0], stream(stream_index));
    }
    gather(entry, stream_index);
    return CUDA_SUCCESS;
  }
  CUevent const begun = streams_[stream_index].begun.get();
  CUresult code = cu.cuEventRecord(begun, stream(stream_index));
  if (code == CUDA_SUCCESS) code = cu.cuStreamWaitEvent(stream(partner(stream_index)), begun, 0);
  if (code != CUDA_SUCCESS) return code;
  entry.remaining.emplace(entry.block);
  entry.next_piece = 0;
  entry.older = entry.newer = {};
  entry.staging = true;
  return continue_copy(entry, stream_index);
}

/// At the end, the stream of the job waits for its partner stream.
CUresult CudaStreams::continue_copy(CudaJob& entry, unsigned stream_index) noexcept {
  const CudaLibrary& cu = CudaLibrary::get();
  const auto complete = [this](const CudaPoint& point) { return order_.is_complete(point); };
  CUresult code = CUDA_SUCCESS;
  while (entry.staging && std::all_of(entry.older.begin(), entry.older.end(), complete)) {
    code = stage_more(entry, stream_index);
    if (code != CUDA_SUCCESS) entry.staging = false;
  }
  if (entry.staging) return CUDA_SUCCESS;
  CUstream const other = stream(partner(stream_index));
  CUevent const ended = streams_[stream_index].ended.get();
  CUresult end = cu.cuEventRecord(ended, other);
  if (end == CUDA_SUCCESS) end = cu.cuStreamWaitEvent(stream(stream_index), ended, 0);
  if (end != CUDA_SUCCESS) cu.cuStreamSynchronize(other);  // its chunks belong to the job
  return code == CUDA_SUCCESS ? end : code;
}

/// Alternates chunks between two streams, so that one is packed while the other is copied.
CUresult CudaStreams::stage_more(CudaJob& entry, unsigned stream_index) noexcept {
  const std::array<unsigned, 2> two{stream_index, partner(stream_index)};
  for (std::size_t i = 0; i < kStagingGroup; ++i) {
    CudaHostPiece& piece = entry.pieces[entry.next_piece];
    const unsigned stream_state = two[entry.next_piece % 2];
    entry.staging = entry.remaining->next(piece.piece.block);
    if (!entry.staging) return CUDA_SUCCESS;
    piece.piece.staging = streams_[stream_state].chunk;
    piece.context = &context_;
    entry.next_piece = (entry.next_piece + 1) % entry.pieces.size();
    const CUresult code = stage(piece, stream(stream_state));
    if (code != CUDA_SUCCESS) return code;
  }
  entry.older = entry.newer;
  for (std::size_t i = 0; i < two.size(); ++i) {
    entry.newer[i] = order_.append(two[i]);
    mark(two[i]);
    notify_after(two[i]);
  }
  return CUDA_SUCCESS;
}

void CudaStreams::gather(CudaJob& entry, unsigned stream_index) noexcept {
  StreamState& stream_state = streams_[stream_index];
  entry.pieces[0].piece.staging = stream_state.chunk + stream_state.gathered * kSmallCopy;
  entry.gathered = true;
  stream_state.small[stream_state.gathered++] = &entry;
}

std::span<CudaJob* const> CudaStreams::send(unsigned stream_index) noexcept {
  const CudaLibrary& cu = CudaLibrary::get();
  StreamState& stream_state = streams_[stream_index];
  const std::span<CudaJob* const> all(stream_state.small.data(),
                                      std::exchange(stream_state.gathered, 0));
  if (all.empty()) return all;
  const bool to_device = all[0]->pieces[0].piece.to_device();
  const auto enqueue = [&](CudaJob& entry) {
    entry.packed = entry.pieces[0].piece.enqueue(stream(stream_index));
  };
  CudaJob* first = nullptr;  // of the packed copies
  for (CudaJob* entry : all) entry->gathered = false;
  for (std::size_t i = 0; i < all.size() && !to_device; ++i) enqueue(*all[i]);
  for (std::size_t i = all.size(); i-- > 0;) {
    if (!to_device && all[i]->packed != CUDA_SUCCESS) continue;
    all[i]->next_packed = std::exchange(first, all[i]);
  }
  if (first == nullptr) return all;
  const CUresult code = cu.cuLaunchHostFunc(stream(stream_index), pack_all, first);
  for (CudaJob* entry : all) {
    if (code != CUDA_SUCCESS) {
      entry->packed = code;
    } else if (to_device) {
      enqueue(*entry);
    }
  }
  return all;
}

void CudaStreams::forget_gathered() noexcept {
  for (StreamState& stream_state : streams_) stream_state.gathered = 0;
}

CUresult CudaStreams::stage(CudaHostPiece& piece, CUstream stream) noexcept {
  const CudaLibrary& cu = CudaLibrary::get();
  CUresult code = CUDA_SUCCESS;
  if (piece.piece.to_device()) code = cu.cuLaunchHostFunc(stream, pack, &piece);
  if (code == CUDA_SUCCESS) code = piece.piece.enqueue(stream);
  if (code == CUDA_SUCCESS && !piece.piece.to_device()) {
    code = cu.cuLaunchHostFunc(stream, pack, &piece);
  }
  return code;
}

void CUDA_CB CudaStreams::pack(void* piece) {
  const auto& mine = *static_cast<CudaHostPiece*>(piece);
  if (!mine.context->enter()) return;
  mine.context->packers().pack(mine.piece);
  mine.context->leave();
}

/// Later copies of the list complete after this function returns, so their jobs stay valid.
void CUDA_CB CudaStreams::pack_all(void* entry) {
  const auto* mine = static_cast<const CudaJob*>(entry);
  CudaContext& context = *mine->pieces[0].context;
  if (!context.enter()) return;
  for (; mine != nullptr; mine = mine->next_packed) mine->pieces[0].piece.pack(0, 1);
  context.leave();
}

CUresult CudaStreams::mark(unsigned stream_index) noexcept {
  if (unmarked(stream_index) == 0) return CUDA_SUCCESS;
  const CUresult code = CudaLibrary::get().cuStreamWriteValue64(
      stream(stream_index), counters_there_ + stream_index * kLine, order_.tail(stream_index),
      CU_STREAM_WRITE_VALUE_DEFAULT);
  if (code == CUDA_SUCCESS) streams_[stream_index].marked = order_.tail(stream_index);
  return code;
}

std::uint64_t CudaStreams::seen(unsigned stream_index) const noexcept {
  return __atomic_load_n(counter(counters_, stream_index), __ATOMIC_ACQUIRE);
}

void CudaStreams::notify_after(unsigned stream_index) noexcept {
  StreamState& stream_state = streams_[stream_index];
  if (stream_state.notify_point == order_.tail(stream_index)) return;
  if (CudaLibrary::get().cuLaunchHostFunc(stream_state.stream.get(), ring, this) == CUDA_SUCCESS) {
    stream_state.notify_point = order_.tail(stream_index);
  }
}

void CUDA_CB CudaStreams::ring(void* queues) {
  const auto& mine = *static_cast<CudaStreams*>(queues);
  if (!mine.context_.enter()) return;
  mine.bell_.notify();
  mine.context_.leave();
}

CUresult CudaStreams::query(unsigned stream_index) const noexcept {
  const CUresult code = CudaLibrary::get().cuStreamQuery(stream(stream_index));
  return code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code;
}

void CudaStreams::drain() noexcept {
  for (const StreamState& stream_state : streams_) {
    if (!context_.lost()) {
      context_.note_result(CudaLibrary::get().cuStreamSynchronize(stream_state.stream.get()),
                           "the end of a place");
    }
  }
  if (context_.lost()) context_.wait_for_callbacks();
}

}  // namespace weir::rt
