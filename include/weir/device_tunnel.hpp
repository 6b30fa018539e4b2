// Tunnels inside a device: put and get for CUDA kernels that stay resident while items come and go.
//
//   #include <weir/device_tunnel.hpp>
//
//   using Items = weir::device::Tunnel<Item, weir::device::CudaMemory>;
//
//   __global__ void work(Items items, weir::device::Ends<weir::device::CudaMemory> ends) {
//     const weir::device::Warp warp;
//     Item item;
//     while (warp.gather(!ends.complete()).count > 0) {  // all leave together
//       const bool got = items.get(warp, item, true);
//       ...                                     // put the results, then count the item as complete
//     }
//   }
//
// The threads of a group put and get together: one thread claims cells for all, so that the shared
// counters change once per warp or once per block (paper 002, section 3.4). The call chooses the
// group: Thread, Warp or Block.
//
// A tunnel is bounded. put() never waits for room: it returns false to a thread without room, which
// keeps its item and works on it. The memory must be zero initially. No claim survives a call:
// between claim and publication no code of the program runs. A group that has claimed cells waits
// for the groups that claimed the same cells one round earlier, so all blocks that share a tunnel
// must be resident on the device at the same time, as those of a resident portable kernel are:
// launch no more blocks than fit, or launch cooperatively.
//
// The same code runs and is tested on threads of the host, with HostMemory. It compiles for CUDA
// devices; it has not been run or measured on one.
#pragma once

#if !defined(__CUDACC_RTC__)
#include <atomic>
#include <thread>
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define WEIR_DEVICE_CODE __device__ inline
#define WEIR_DEVICE_OR_HOST_CODE __host__ __device__ inline
#else
#define WEIR_DEVICE_CODE inline
#define WEIR_DEVICE_OR_HOST_CODE inline
#endif

namespace weir::device {

using Count = unsigned long long;

// ---- Memory ------------------------------------------------------------------------------------

#if !defined(__CUDACC_RTC__)
/// Words that threads of the host share.
struct HostMemory {
  using Word = Count;
  static Count load(const Word& word) noexcept {
    return std::atomic_ref<Word>(const_cast<Word&>(word)).load(std::memory_order_acquire);
  }
  static void store(Word& word, Count value) noexcept {
    std::atomic_ref<Word>(word).store(value, std::memory_order_release);
  }
  /// Replaces `expected` by `desired`. Returns whether the word was `expected`.
  static bool exchange(Word& word, Count expected, Count desired) noexcept {
    return std::atomic_ref<Word>(word).compare_exchange_strong(
        expected, desired, std::memory_order_acq_rel, std::memory_order_acquire);
  }
  static Count add(Word& word, Count value) noexcept {
    return std::atomic_ref<Word>(word).fetch_add(value, std::memory_order_acq_rel);
  }
  static void pause() noexcept { std::this_thread::yield(); }
};
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
/// Words in the memory of a device, for all of its threads.
struct CudaMemory {
  using Word = Count;
  static __device__ Count load(const Word& word) {
    Count value;
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(&word) : "memory");
    return value;
  }
  static __device__ void store(Word& word, Count value) {
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(&word), "l"(value) : "memory");
  }
  static __device__ bool exchange(Word& word, Count expected, Count desired) {
    Count found;
    asm volatile("atom.acq_rel.gpu.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(found)
                 : "l"(&word), "l"(expected), "l"(desired)
                 : "memory");
    return found == expected;
  }
  static __device__ Count add(Word& word, Count value) {
    Count found;
    asm volatile("atom.acq_rel.gpu.add.u64 %0, [%1], %2;"
                 : "=l"(found)
                 : "l"(&word), "l"(value)
                 : "memory");
    return found;
  }
  static __device__ void pause() { __nanosleep(40); }
};
#endif

// ---- Groups ------------------------------------------------------------------------------------

/// The position of a thread among those of its group that take part in a call.
struct Standing {
  unsigned rank;   ///< of this thread, if it takes part
  unsigned count;  ///< of all that do
  bool leads;      ///< claims for the others; one thread of the group
};
/// Cells from `first` on.
struct Claim {
  Count first;
  unsigned count;
};

/// A thread by itself.
struct Thread {
  WEIR_DEVICE_CODE Standing gather(bool takes_part) const {
    return {0, takes_part ? 1U : 0U, true};
  }
  WEIR_DEVICE_CODE Claim share(const Claim& claim) const { return claim; }
};

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
/// The 32 threads of a warp, all of which make the call.
struct Warp {
  static constexpr unsigned kAll = 0xFFFFFFFFU;
  static __device__ unsigned lane() { return threadIdx.x % 32; }

  __device__ Standing gather(bool takes_part) const {
    const unsigned takers = __ballot_sync(kAll, takes_part);
    return {static_cast<unsigned>(__popc(takers & ((1U << lane()) - 1))),
            static_cast<unsigned>(__popc(takers)), lane() == 0};
  }
  __device__ Claim share(const Claim& claim) const {
    const Claim shared = {__shfl_sync(kAll, claim.first, 0), __shfl_sync(kAll, claim.count, 0)};
    __syncwarp();
    return shared;
  }
};

/// What the threads of a block share when they are a group: in its shared memory.
struct BlockNotes {
  unsigned takers[32];  ///< of each warp
  Claim claim;
};

/// The threads of a block of one dimension and whole warps, all of which make the call: one claims
/// for all.
struct Block {
  BlockNotes& notes;

  __device__ Standing gather(bool takes_part) const {
    const Standing inside = Warp().gather(takes_part);
    if (Warp::lane() == 0) notes.takers[threadIdx.x / 32] = inside.count;
    __syncthreads();
    Standing standing = {inside.rank, 0, threadIdx.x == 0};
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) {
      if (warp < threadIdx.x / 32) standing.rank += notes.takers[warp];
      standing.count += notes.takers[warp];
    }
    __syncthreads();  // before the notes are written again
    return standing;
  }
  __device__ Claim share(const Claim& claim) const {
    if (threadIdx.x == 0) notes.claim = claim;
    __syncthreads();
    const Claim shared = notes.claim;
    __syncthreads();  // before the notes are written again
    return shared;
  }
};
#endif

// ---- Tunnels -----------------------------------------------------------------------------------

/// A queue of at most `capacity` items. Two counters that only grow claim cells; each cell has a
/// ticket, its sequence number: twice its round, plus 1 if it has an item. A value that kernels
/// take as an argument; its memory belongs to the program.
template <class T, class Memory>
class Tunnel {
 public:
  using Word = typename Memory::Word;

  /// Distance of the shared counters in words, against false sharing.
  static constexpr Count kCounterStride = 16;
  /// Number of words that a tunnel needs besides its items, all of them 0.
  static WEIR_DEVICE_OR_HOST_CODE constexpr Count words(Count capacity) {
    return 2 * kCounterStride + capacity;
  }

  WEIR_DEVICE_OR_HOST_CODE Tunnel(Word* words, T* items, Count capacity) noexcept
      : head_(words),
        tail_(words + kCounterStride),
        tickets_(words + 2 * kCounterStride),
        items_(items),
        capacity_(capacity) {}

  /// Puts the items of those threads of a group that have one. Returns whether there was room for
  /// this thread's item. All threads of the group call it.
  template <class Group>
  WEIR_DEVICE_CODE bool put(const Group& group, const T& item, bool has) const {
    const Standing standing = group.gather(has);
    Claim claim = {0, 0};
    if (standing.leads && standing.count > 0) claim = claim_room(standing.count);
    claim = group.share(claim);
    if (!has || standing.rank >= claim.count) return false;
    const Count at = claim.first + standing.rank;
    Word& ticket = tickets_[at % capacity_];
    await(ticket, 2 * (at / capacity_));
    items_[at % capacity_] = item;
    Memory::store(ticket, 2 * (at / capacity_) + 1);
    return true;
  }

  /// Gets an item for each thread of a group that wants one, as long as there are items. Returns
  /// whether this thread got one. All threads of the group call it.
  template <class Group>
  WEIR_DEVICE_CODE bool get(const Group& group, T& item, bool wants) const {
    const Standing standing = group.gather(wants);
    Claim claim = {0, 0};
    if (standing.leads && standing.count > 0) claim = claim_items(standing.count);
    claim = group.share(claim);
    if (!wants || standing.rank >= claim.count) return false;
    const Count at = claim.first + standing.rank;
    Word& ticket = tickets_[at % capacity_];
    await(ticket, 2 * (at / capacity_) + 1);
    item = items_[at % capacity_];
    Memory::store(ticket, 2 * (at / capacity_) + 2);
    return true;
  }

 private:
  WEIR_DEVICE_CODE Claim claim_room(unsigned wanted) const {
    for (;;) {
      const Count tail = Memory::load(*tail_), used = tail - Memory::load(*head_);
      if (used > capacity_) continue;  // both advanced between the two loads
      const Count room = capacity_ - used;
      const unsigned count = room < wanted ? static_cast<unsigned>(room) : wanted;
      if (count == 0 || Memory::exchange(*tail_, tail, tail + count)) return {tail, count};
    }
  }
  WEIR_DEVICE_CODE Claim claim_items(unsigned wanted) const {
    for (;;) {
      const Count head = Memory::load(*head_), there = Memory::load(*tail_) - head;
      const unsigned count = there < wanted ? static_cast<unsigned>(there) : wanted;
      if (count == 0 || Memory::exchange(*head_, head, head + count)) return {head, count};
    }
  }
  static WEIR_DEVICE_CODE void await(const Word& ticket, Count sequence) {
    while (Memory::load(ticket) != sequence) Memory::pause();
  }

  Word* const head_;     ///< the next item to get
  Word* const tail_;     ///< the next cell to fill
  Word* const tickets_;  ///< one for each cell
  T* const items_;
  const Count capacity_;
};

// ---- Ends --------------------------------------------------------------------------------------

/// The items that a site has created and completed: a site is a thread, or a group whose leader
/// counts for all. Written by one thread. An item counts as created before it is put, and as
/// complete when the items that it led to are counted; moving an item counts nothing.
template <class Memory>
struct Tally {
  typename Memory::Word created, complete;
  unsigned char padding[112];

  WEIR_DEVICE_CODE void create(Count items) {
    Memory::store(created, Memory::load(created) + items);
  }
  WEIR_DEVICE_CODE void finish(Count items) {
    Memory::store(complete, Memory::load(complete) + items);
  }
};

/// Termination detection: no source is open, and all items that all sites created are complete.
/// Reading `complete` before `created` never reports the end too early. Threads may see the end at
/// different times: those of a group ask group.gather(!ends.complete()).count, and leave at 0
/// together.
template <class Memory>
class Ends {
 public:
  using Word = typename Memory::Word;

  /// `open` counts sources. All other memory is 0 initially.
  WEIR_DEVICE_OR_HOST_CODE Ends(Word* open, Tally<Memory>* tallies, unsigned sites) noexcept
      : open_(open), tallies_(tallies), sites_(sites) {}

  WEIR_DEVICE_CODE Tally<Memory>& tally(unsigned site) const { return tallies_[site]; }
  /// Closes a source, which has counted all items that it will ever put.
  WEIR_DEVICE_CODE void close() const { Memory::add(*open_, ~Count{0}); }
  WEIR_DEVICE_CODE bool complete() const {
    if (Memory::load(*open_) != 0) return false;
    Count completed = 0, created = 0;
    for (unsigned i = 0; i < sites_; ++i) completed += Memory::load(tallies_[i].complete);
    for (unsigned i = 0; i < sites_; ++i) created += Memory::load(tallies_[i].created);
    return completed == created;
  }

 private:
  Word* const open_;
  Tally<Memory>* const tallies_;
  const unsigned sites_;
};

}  // namespace weir::device
