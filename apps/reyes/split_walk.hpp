// The resident kernel that splits a whole batch of patches: its groups stay on the device and share
// the patches through a tunnel in its memory until all are small. The program hands this text to
// CUDA's compiler; tests compile it for threads of the host.
#pragma once

#include <weir/device_tunnel.hpp>

namespace reyes {

using weir::device::Claim;
using weir::device::Count;
using weir::device::Standing;

/// A patch, and one that is small with the pieces it is diced into: as the host has them.
struct Bezier {
  float points[16][3];
  unsigned splits;
};
struct SmallBezier {
  float points[16][3];
  unsigned along_u, along_v;
  unsigned part;  ///< 0: all of them
};

/// The camera: places points on the screen.
struct View {
  float width, height, scale_x, scale_y;
};

constexpr unsigned kGroup = 64;       ///< threads
constexpr unsigned kMostGroups = 64;  ///< that a launch asks for

/// The memory that all threads share.
template <class Memory>
struct Splitting {
  using Word = typename Memory::Word;

  View view;
  Count patches;  ///< input patches
  Count room;     ///< for patches at a time: also that of each output
  const Bezier* given;
  SmallBezier* small;
  Bezier* again;  ///< patches without room to be split
  Bezier* nodes;
  weir::device::Tunnel<unsigned, Memory> waiting;  ///< numbers of nodes
  weir::device::Ends<Memory> ends;
  Word *planted, *used, *put_small, *put_again;
};

/// Bytes of scratch for so many patches at a time: words, each of the first on a line of its own,
/// then nodes.
constexpr Count kLine = 16, kTallies = Count(kGroup) * kMostGroups;
WEIR_DEVICE_OR_HOST_CODE constexpr Count words_of(Count room) {
  return 5 * kLine + kTallies * kLine + 2 * kLine + room + (room + 1) / 2;
}
WEIR_DEVICE_OR_HOST_CODE constexpr Count scratch_bytes(Count room) {
  return words_of(room) * sizeof(Count) + room * sizeof(Bezier);
}

template <class Memory>
WEIR_DEVICE_OR_HOST_CODE Splitting<Memory> splitting(Count* scratch, const View& view,
                                                     Count patches, Count room, const Bezier* given,
                                                     SmallBezier* small, Bezier* again,
                                                     unsigned sites) {
  using weir::device::Tally;
  using weir::device::Tunnel;
  Count* const tallies = scratch + 5 * kLine;
  Count* const tunnel = tallies + kTallies * kLine;
  auto* const numbers = reinterpret_cast<unsigned*>(tunnel + Tunnel<unsigned, Memory>::words(room));
  auto* const nodes = reinterpret_cast<Bezier*>(scratch + words_of(room));
  return {view,
          patches,
          room,
          given,
          small,
          again,
          nodes,
          Tunnel<unsigned, Memory>(tunnel, numbers, room),
          {scratch, reinterpret_cast<Tally<Memory>*>(tallies), sites},
          scratch + kLine,
          scratch + 2 * kLine,
          scratch + 3 * kLine,
          scratch + 4 * kLine};
}

// ---- Operations on a patch: the same bits as on the host, without fused products
// -----------------

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
WEIR_DEVICE_CODE float times(float a, float b) { return __fmul_rn(a, b); }
WEIR_DEVICE_CODE float plus(float a, float b) { return __fadd_rn(a, b); }
WEIR_DEVICE_CODE float over(float a, float b) { return __fdiv_rn(a, b); }
WEIR_DEVICE_CODE float root(float a) { return __fsqrt_rn(a); }
#else
inline float times(float a, float b) { return a * b; }
inline float plus(float a, float b) { return a + b; }
inline float over(float a, float b) { return a / b; }
inline float root(float a) { return __builtin_sqrtf(a); }
#endif

constexpr float kEye = 3, kLongest = 4;
constexpr unsigned kMostSplits = 20, kMostPieces = 32;

struct Size {
  float u, v;
};

WEIR_DEVICE_CODE void project(const View& view, const float* point, float* on_screen) {
  const float distance = plus(kEye, -point[2]), w = distance == 0 ? 1 : distance;
  const float x = plus(over(times(view.scale_x, point[0]), w), 1);
  const float y = plus(over(times(view.scale_y, point[1]), w), 1);
  on_screen[0] = times(times(x, 0.5F), view.width);
  on_screen[1] = times(times(y, 0.5F), view.height);
}

WEIR_DEVICE_CODE float distance(const float* a, const float* b) {
  const float x = plus(a[0], -b[0]), y = plus(a[1], -b[1]);
  return root(plus(times(x, x), times(y, y)));
}

/// The longest control polygon either way, in pixels.
WEIR_DEVICE_CODE Size size_of(const View& view, const Bezier& patch) {
  float at[16][2];
  for (int i = 0; i < 16; ++i) project(view, patch.points[i], at[i]);
  Size size = {0, 0};
  for (int i = 0; i < 4; ++i) {
    const float(*const row)[2] = at + 4 * i;
    const float u =
        plus(plus(distance(row[0], row[1]), distance(row[1], row[2])), distance(row[2], row[3]));
    const float v = plus(plus(distance(at[i], at[i + 4]), distance(at[i + 4], at[i + 8])),
                         distance(at[i + 8], at[i + 12]));
    size = {u > size.u ? u : size.u, v > size.v ? v : size.v};
  }
  return size;
}

WEIR_DEVICE_CODE bool is_small(const Bezier& patch, const Size& size) {
  return (size.u < kLongest && size.v < kLongest) || patch.splits >= kMostSplits;
}

/// The least power of two that is no less than the pieces wanted, from 2 to kMostPieces.
WEIR_DEVICE_CODE unsigned pieces(float length) {
  unsigned found = 2;
  while (found < kMostPieces && static_cast<float>(found - 1) < over(length, kLongest)) found *= 2;
  return found;
}

WEIR_DEVICE_CODE float middle(float a, float b) { return times(plus(a, b), 0.5F); }

/// Leaves one half where the patch was, and makes the other one.
WEIR_DEVICE_CODE void halve(Bezier& patch, Bezier& other, const Size& size) {
  const bool along_rows = size.u >= kLongest;
  const int step = along_rows ? 1 : 4, across = along_rows ? 4 : 1;
  other.splits = ++patch.splits;
  for (int line = 0; line < 4; ++line) {
    for (int axis = 0; axis < 3; ++axis) {
      float p[4];
      for (int i = 0; i < 4; ++i) p[i] = patch.points[line * across + i * step][axis];
      const float centre = middle(p[1], p[2]);
      const float low = middle(p[0], p[1]), high = middle(p[2], p[3]);
      const float lower = middle(low, centre), higher = middle(centre, high);
      const float between = middle(lower, higher);
      const float lows[4] = {p[0], low, lower, between}, highs[4] = {between, higher, high, p[3]};
      for (int i = 0; i < 4; ++i) {
        patch.points[line * across + i * step][axis] = lows[i];
        other.points[line * across + i * step][axis] = highs[i];
      }
    }
  }
}

WEIR_DEVICE_CODE void make_small(const Bezier& patch, const Size& size, SmallBezier& made) {
  for (int i = 0; i < 16; ++i) {
    for (int axis = 0; axis < 3; ++axis) made.points[i][axis] = patch.points[i][axis];
  }
  made.along_u = pieces(size.u);
  made.along_v = pieces(size.v);
  made.part = 0;
}

// ---- Threads
// -------------------------------------------------------------------------------------

/// A place for each thread of a group that takes one, by one addition for all.
template <class Memory, class Group>
WEIR_DEVICE_CODE Count claim_place(const Group& group, typename Memory::Word& next, bool takes) {
  const Standing standing = group.gather(takes);
  Claim claim = {0, standing.count};
  if (standing.leads && standing.count > 0) claim.first = Memory::add(next, standing.count);
  return group.share(claim).first + standing.rank;
}

/// The group whose number is `site` plants its part of what came.
template <class Memory, class Group>
WEIR_DEVICE_CODE void plant(const Splitting<Memory>& work, const Group& group, unsigned site,
                            unsigned thread, unsigned threads) {
  for (Count first = 0; first < work.patches; first += threads) {
    const Count at = first + thread;
    const bool has = at < work.patches;
    if (has) work.nodes[at] = work.given[at];
    const Standing standing = group.gather(has);
    if (standing.leads) work.ends.tally(site).create(standing.count);
    work.waiting.put(group, static_cast<unsigned>(at), has);
  }
  if (group.gather(false).leads) Memory::add(*work.planted, 1);
}

/// Works until all patches are small or have no room. There are never more nodes than the tunnel
/// has places, so what is put there finds one.
template <class Memory, class Group>
WEIR_DEVICE_CODE void split_all(const Splitting<Memory>& work, const Group& group, unsigned site,
                                unsigned sites) {
  for (;;) {
    unsigned at = 0;
    const bool has = work.waiting.get(group, at, true);
    const Standing busy = group.gather(has);
    if (busy.count == 0) {
      const bool goes_on =
          busy.leads && (Memory::load(*work.planted) != sites || !work.ends.complete());
      if (group.gather(goes_on).count == 0) return;
      Memory::pause();
      continue;
    }
    Bezier& patch = work.nodes[at];
    const Size size = has ? size_of(work.view, patch) : Size{0, 0};
    const bool small = has && is_small(patch, size);
    const Count other = work.patches + claim_place<Memory>(group, *work.used, has && !small);
    const bool splits = has && !small && other < work.room;
    const bool late = has && !small && !splits;
    if (splits) halve(patch, work.nodes[other], size);
    const Standing parents = group.gather(splits);
    if (parents.leads) work.ends.tally(site).create(2 * Count(parents.count));
    work.waiting.put(group, at, splits);
    work.waiting.put(group, static_cast<unsigned>(other), splits);
    const Count out = claim_place<Memory>(group, *work.put_small, small);
    if (small) make_small(patch, size, work.small[out]);
    const Count back = claim_place<Memory>(group, *work.put_again, late);
    if (late) work.again[back] = patch;
    if (busy.leads) work.ends.tally(site).finish(busy.count);
  }
}

/// Reports to the host, at the end of thread 0: how many patches there are, and how many the host
/// need not submit again.
template <class Memory>
WEIR_DEVICE_CODE void report_counts(const Splitting<Memory>& work, unsigned sites, unsigned* smalls,
                                    unsigned* agains, Count* tasks, unsigned* reported) {
  Count complete = 0;
  for (unsigned site = 0; site < sites; ++site) {
    complete += Memory::load(work.ends.tally(site).complete);
  }
  const Count late = Memory::load(*work.put_again);
  *smalls = static_cast<unsigned>(Memory::load(*work.put_small));
  *agains = static_cast<unsigned>(late);
  *tasks = complete - late;
  *reported = 1;
}

template <class Memory, class Group>
WEIR_DEVICE_CODE void run_group(const Splitting<Memory>& work, const Group& group, unsigned site,
                                unsigned sites, unsigned thread, unsigned threads) {
  plant(work, group, site, thread, threads);
  split_all(work, group, site, sites);
}

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
/// `relief`: a thread claims nodes for its block (0), its warp (1) or itself (2).
extern "C" __global__ void reyes_split(const Bezier* given, Bezier* again, unsigned* agains,
                                       SmallBezier* small, unsigned* smalls, Count* tasks,
                                       unsigned* reported, Count* scratch, long long count,
                                       long long most, float width, float height, float scale_x,
                                       float scale_y, int relief) {
  using weir::device::CudaMemory;
  __shared__ weir::device::BlockNotes notes;
  const unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned threads = gridDim.x * blockDim.x;
  const unsigned each = relief == 0 ? blockDim.x : relief == 1 ? 32 : 1;
  const unsigned site = thread / each, sites = threads / each;
  const auto work = splitting<CudaMemory>(scratch, {width, height, scale_x, scale_y}, count,
                                          count * most, given, small, again, sites);
  if (relief == 0) {
    run_group(work, weir::device::Block{notes}, site, sites, thread, threads);
  } else if (relief == 1) {
    run_group(work, weir::device::Warp(), site, sites, thread, threads);
  } else {
    run_group(work, weir::device::Thread(), site, sites, thread, threads);
  }
  if (thread == 0) report_counts(work, sites, smalls, agains, tasks, reported);
}
#endif

}  // namespace reyes
