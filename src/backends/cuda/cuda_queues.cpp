#include "backends/cuda/cuda_queues.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace weir::rt {

namespace {

constexpr std::size_t kLine = 64;

/// The number that the device writes for a lane: no thread of the host does.
const std::uint64_t* counter(const CudaPinned& counters, unsigned lane) noexcept {
  return reinterpret_cast<const std::uint64_t*>(static_cast<const std::byte*>(counters.get()) +
                                                lane * kLine);
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

CudaQueues::CudaQueues(CudaContext& context, const CudaMemory& memory,
                       const CudaPartition& partition, unsigned compute_lanes, CudaBell& bell)
    : context_(context),
      memory_(memory),
      compute_(compute_lanes),
      lanes_(compute_lanes + 2 * kCopyLanes),
      chunks_(make_cuda_pinned(2 * kCopyLanes * kCudaChunk)),
      counters_(make_cuda_pinned(lanes_.count() * kLine)),
      rails_(lanes_.count()),
      bell_(bell) {
  std::memset(counters_.get(), 0, lanes_.count() * kLine);
  check_cuda(CudaLibrary::get().cuMemHostGetDevicePointer(&counters_there_, counters_.get(), 0),
             "showing memory of the host to the device");
  const std::uint64_t allocations = memory.settle();
  for (unsigned lane = 0; lane < lanes_.count(); ++lane) {
    Rail& rail = rails_[lane];
    rail.stream = partition.make_stream();
    rail.allocations = allocations;
    for (CudaEvent& event : rail.records) event = make_cuda_event(false);
    if (!copies(lane)) continue;
    rail.begun = make_cuda_event(false);
    rail.ended = make_cuda_event(false);
    rail.chunk = static_cast<std::byte*>(chunks_.get()) + (lane - compute_) * kCudaChunk;
  }
}

unsigned CudaQueues::choose(const Job& job,
                            std::span<const CudaPoint> predecessors) const noexcept {
  if (!job.copies) return lanes_.choose(0, compute_, predecessors);
  const unsigned first = compute_ + (job.from.device == nullptr ? 0 : kCopyLanes);
  return lanes_.choose(first, kCopyLanes, predecessors);
}

CUresult CudaQueues::order(unsigned lane, std::span<const CudaPoint> points) noexcept {
  CUresult code = await_memory(lane);
  for (std::size_t i = points.size(); i-- > 0 && code == CUDA_SUCCESS;) {
    if (!lanes_.implied(lane, points[i])) code = wait(lane, points[i]);
  }
  return code;
}

CUresult CudaQueues::await_memory(unsigned lane) noexcept {
  const std::uint64_t allocations = memory_.allocations();
  if (rails_[lane].allocations == allocations) return CUDA_SUCCESS;
  const CUresult code = memory_.order(stream(lane));
  if (code == CUDA_SUCCESS) rails_[lane].allocations = allocations;
  return code;
}

CUresult CudaQueues::wait(unsigned lane, CudaPoint point) noexcept {
  const CudaLibrary& cu = CudaLibrary::get();
  auto record = lanes_.recorded(point);
  if (!record) {
    record = lanes_.record(point.lane);
    const CUresult code =
        cu.cuEventRecord(rails_[point.lane].records[*record].get(), stream(point.lane));
    if (code != CUDA_SUCCESS) {
      lanes_.forget(point.lane, *record);
      return code;
    }
  }
  const CUresult code =
      cu.cuStreamWaitEvent(stream(lane), rails_[point.lane].records[*record].get(), 0);
  if (code == CUDA_SUCCESS) lanes_.wait(lane, point.lane, *record);
  return code;
}

void CudaQueues::keep_tail(unsigned lane) noexcept {
  if (lanes_.recorded({lane, lanes_.tail(lane)})) return;
  const unsigned record = lanes_.record(lane);
  const CUresult code =
      CudaLibrary::get().cuEventRecord(rails_[lane].records[record].get(), stream(lane));
  if (code != CUDA_SUCCESS) lanes_.forget(lane, record);  // later jobs wait for more than they must
}

CUresult CudaQueues::enqueue_copy(CudaFlight& flight, unsigned lane) {
  const CudaLibrary& cu = CudaLibrary::get();
  flight.block = make_cuda_block(flight.job.from, flight.job.to);
  if (is_cuda_pinned(flight.block)) return enqueue_cuda_block(flight.block, stream(lane));
  CudaBlock first;
  CudaPieces(flight.block).next(first);
  const bool whole = first.bytes() == flight.block.bytes();
  flight.pieces.resize(whole ? 1 : 2 * kHauled);
  if (whole) {
    flight.pieces[0] = {{first, rails_[lane].chunk}, &context_};
    if (flight.job.timed || first.bytes() > kSmallCopy) {
      return stage(flight.pieces[0], stream(lane));
    }
    gather(flight, lane);
    return CUDA_SUCCESS;
  }
  CUevent const begun = rails_[lane].begun.get();
  CUresult code = cu.cuEventRecord(begun, stream(lane));
  if (code == CUDA_SUCCESS) code = cu.cuStreamWaitEvent(stream(partner(lane)), begun, 0);
  if (code != CUDA_SUCCESS) return code;
  flight.left.emplace(flight.block);
  flight.turn = 0;
  flight.older = flight.newer = {};
  flight.hauling = true;
  return go_on(flight, lane);
}

/// The lane of the job ends after both.
CUresult CudaQueues::go_on(CudaFlight& flight, unsigned lane) noexcept {
  const CudaLibrary& cu = CudaLibrary::get();
  const auto over = [this](const CudaPoint& point) { return lanes_.over(point); };
  CUresult code = CUDA_SUCCESS;
  while (flight.hauling && std::all_of(flight.older.begin(), flight.older.end(), over)) {
    code = haul(flight, lane);
    if (code != CUDA_SUCCESS) flight.hauling = false;
  }
  if (flight.hauling) return CUDA_SUCCESS;
  CUstream const other = stream(partner(lane));
  CUevent const ended = rails_[lane].ended.get();
  CUresult end = cu.cuEventRecord(ended, other);
  if (end == CUDA_SUCCESS) end = cu.cuStreamWaitEvent(stream(lane), ended, 0);
  if (end != CUDA_SUCCESS) cu.cuStreamSynchronize(other);  // its pieces are the flight's
  return code == CUDA_SUCCESS ? end : code;
}

/// Pieces take turns in two lanes, so that one is packed while the other is on its way.
CUresult CudaQueues::haul(CudaFlight& flight, unsigned lane) noexcept {
  const std::array<unsigned, 2> two{lane, partner(lane)};
  for (std::size_t i = 0; i < kHauled; ++i) {
    CudaHostPiece& piece = flight.pieces[flight.turn];
    const unsigned rail = two[flight.turn % 2];
    flight.hauling = flight.left->next(piece.piece.block);
    if (!flight.hauling) return CUDA_SUCCESS;
    piece.piece.chunk = rails_[rail].chunk;
    piece.context = &context_;
    flight.turn = (flight.turn + 1) % flight.pieces.size();
    const CUresult code = stage(piece, stream(rail));
    if (code != CUDA_SUCCESS) return code;
  }
  flight.older = flight.newer;
  for (std::size_t i = 0; i < two.size(); ++i) {
    flight.newer[i] = lanes_.append(two[i]);
    mark(two[i]);
    ring_after(two[i]);
  }
  return CUDA_SUCCESS;
}

void CudaQueues::gather(CudaFlight& flight, unsigned lane) noexcept {
  Rail& rail = rails_[lane];
  flight.pieces[0].piece.chunk = rail.chunk + rail.gathered * kSmallCopy;
  flight.gathered = true;
  rail.small[rail.gathered++] = &flight;
}

std::span<CudaFlight* const> CudaQueues::send(unsigned lane) noexcept {
  const CudaLibrary& cu = CudaLibrary::get();
  Rail& rail = rails_[lane];
  const std::span<CudaFlight* const> all(rail.small.data(), std::exchange(rail.gathered, 0));
  if (all.empty()) return all;
  const bool to_device = all[0]->pieces[0].piece.to_device();
  const auto enqueue = [&](CudaFlight& flight) {
    flight.packed = flight.pieces[0].piece.enqueue(stream(lane));
  };
  CudaFlight* first = nullptr;  // of those that are packed
  for (CudaFlight* flight : all) flight->gathered = false;
  for (std::size_t i = 0; i < all.size() && !to_device; ++i) enqueue(*all[i]);
  for (std::size_t i = all.size(); i-- > 0;) {
    if (!to_device && all[i]->packed != CUDA_SUCCESS) continue;
    all[i]->next_packed = std::exchange(first, all[i]);
  }
  if (first == nullptr) return all;
  const CUresult code = cu.cuLaunchHostFunc(stream(lane), pack_all, first);
  for (CudaFlight* flight : all) {
    if (code != CUDA_SUCCESS) {
      flight->packed = code;
    } else if (to_device) {
      enqueue(*flight);
    }
  }
  return all;
}

void CudaQueues::forget_gathered() noexcept {
  for (Rail& rail : rails_) rail.gathered = 0;
}

CUresult CudaQueues::stage(CudaHostPiece& piece, CUstream stream) noexcept {
  const CudaLibrary& cu = CudaLibrary::get();
  CUresult code = CUDA_SUCCESS;
  if (piece.piece.to_device()) code = cu.cuLaunchHostFunc(stream, pack, &piece);
  if (code == CUDA_SUCCESS) code = piece.piece.enqueue(stream);
  if (code == CUDA_SUCCESS && !piece.piece.to_device()) {
    code = cu.cuLaunchHostFunc(stream, pack, &piece);
  }
  return code;
}

void CUDA_CB CudaQueues::pack(void* piece) {
  const auto& mine = *static_cast<CudaHostPiece*>(piece);
  if (!mine.context->enter()) return;
  mine.context->packers().pack(mine.piece);
  mine.context->leave();
}

/// Those that follow are not over before the last of them is, so none goes meanwhile.
void CUDA_CB CudaQueues::pack_all(void* flight) {
  const auto* mine = static_cast<const CudaFlight*>(flight);
  CudaContext& context = *mine->pieces[0].context;
  if (!context.enter()) return;
  for (; mine != nullptr; mine = mine->next_packed) mine->pieces[0].piece.pack(0, 1);
  context.leave();
}

CUresult CudaQueues::mark(unsigned lane) noexcept {
  if (unmarked(lane) == 0) return CUDA_SUCCESS;
  const CUresult code =
      CudaLibrary::get().cuStreamWriteValue64(stream(lane), counters_there_ + lane * kLine,
                                              lanes_.tail(lane), CU_STREAM_WRITE_VALUE_DEFAULT);
  if (code == CUDA_SUCCESS) rails_[lane].marked = lanes_.tail(lane);
  return code;
}

std::uint64_t CudaQueues::seen(unsigned lane) const noexcept {
  return __atomic_load_n(counter(counters_, lane), __ATOMIC_ACQUIRE);
}

void CudaQueues::ring_after(unsigned lane) noexcept {
  Rail& rail = rails_[lane];
  if (rail.belled == lanes_.tail(lane)) return;
  if (CudaLibrary::get().cuLaunchHostFunc(rail.stream.get(), ring, this) == CUDA_SUCCESS) {
    rail.belled = lanes_.tail(lane);
  }
}

void CUDA_CB CudaQueues::ring(void* queues) {
  const auto& mine = *static_cast<CudaQueues*>(queues);
  if (!mine.context_.enter()) return;
  mine.bell_.ring();
  mine.context_.leave();
}

CUresult CudaQueues::query(unsigned lane) const noexcept {
  const CUresult code = CudaLibrary::get().cuStreamQuery(stream(lane));
  return code == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : code;
}

void CudaQueues::drain() noexcept {
  for (const Rail& rail : rails_) {
    if (!context_.lost()) {
      context_.note(CudaLibrary::get().cuStreamSynchronize(rail.stream.get()),
                    "the end of a place");
    }
  }
  if (context_.lost()) context_.await_leavers();
}

}  // namespace weir::rt
