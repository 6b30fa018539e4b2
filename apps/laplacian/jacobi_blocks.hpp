// The blocks of one rank, and their steps in streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include <weir/grid.hpp>

#include "common/app_streams.hpp"
#include "common/past_cache.hpp"
#include "laplacian/jacobi_block.hpp"
#include "laplacian/problem.hpp"

namespace weir::apps {

/// Sweeps over some blocks, each of `fuse` steps or less. After an odd number of sweeps the newest
/// field is field 1, otherwise 0.
template <class T>
class JacobiBlocks {
 public:
  /// Takes blocks of a grid; streams[i] is for the block numbers[i]. The kernel is that of several
  /// steps when `fuse` is more than 1: then blocks are cut in the slowest dimension alone, where
  /// they have so many cells.
  JacobiBlocks(const weir::Runtime& runtime, const JacobiProblem& problem, const weir::Grid& grid,
               const weir::Kernel& kernel, std::int64_t fuse,
               const std::vector<std::size_t>& numbers,
               const std::vector<const AppStream*>& app_streams, std::size_t parts)
      : kernel_(kernel),
        fuse_(fuse),
        rate_(static_cast<T>(problem.rate())),
        deep_(problem.dimensions == 3),
        around_(grid.all().shrink(around(1))),
        halo_{1, 1, deep_ ? 1 : 0} {
    if (grid.blocks().size() > 1) halo_[slowest()] = fuse;
    blocks_.reserve(numbers.size());
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      blocks_.emplace_back(runtime, grid, numbers[i], halo_, *app_streams[i], parts);
      bytes += blocks_.back().bytes();
    }
    past_cache_ = bytes > kCacheBytes;
    find_links();
  }

  std::vector<JacobiBlock<T>>& all() noexcept { return blocks_; }
  const std::vector<JacobiBlock<T>>& all() const noexcept { return blocks_; }
  /// How many cells of its neighbours a block has in each dimension.
  const weir::GridRange::Cell& halo() const noexcept { return halo_; }

  void upload() const {
    for (const JacobiBlock<T>& block : blocks_) {
      for (const std::size_t field : {0u, 1u})
        block.stream().stream.upload(block.buffer(field).all());
    }
  }
  std::vector<weir::Event> download(std::size_t field) const {
    std::vector<weir::Event> events;
    for (const JacobiBlock<T>& block : blocks_) {
      events.push_back(block.stream().stream.download(block.region(field, block.cells())));
    }
    return events;
  }

  /// Makes the field `next`, `count` steps newer than the other one: its edges, or the rest.
  std::vector<weir::Event> make_edges(std::size_t next, std::int64_t count) const {
    std::vector<weir::Event> events;
    for (const JacobiBlock<T>& block : blocks_) {
      for (const weir::GridRange& range : block.edges()) {
        events.push_back(make(block, range, next, count, "edge"));
      }
    }
    return events;
  }
  std::vector<weir::Event> make_interior(std::size_t next, std::int64_t count) const {
    std::vector<weir::Event> events;
    for (const JacobiBlock<T>& block : blocks_) {
      for (const weir::GridRange& range : block.interior()) {
        events.push_back(make(block, range, next, count, "interior"));
      }
    }
    return events;
  }

  /// Makes a field whose edges travel between the blocks when there are `more` sweeps, which need
  /// them: while the interior is made, with `overlap`.
  void sweep(std::size_t next, std::int64_t count, bool overlap, bool more) const {
    make_edges(next, count);
    if (!overlap) make_interior(next, count);
    if (more) exchange(next, overlap);
    if (overlap) make_interior(next, count);
  }

  /// For blocks outside of the program's memory: copies edges to it, or halos from it.
  std::vector<weir::Event> download_edges(std::size_t field) const {
    std::vector<weir::Event> events;
    for (const JacobiBlock<T>& block : blocks_) {
      if (block.stream().memory == nullptr) continue;
      for (const weir::GridRange& edge : block.edges()) {
        events.push_back(block.stream().stream.download(block.region(field, edge)));
      }
    }
    return events;
  }
  void upload_halos(std::size_t field) const {
    for (const JacobiBlock<T>& block : blocks_) {
      if (block.stream().memory == nullptr) continue;
      for (int d = 0; d < (deep_ ? 3 : 2); ++d) {
        for (const int side : {-1, 1}) {
          block.stream().stream.upload(block.region(field, block.halo(d, side)));
        }
      }
    }
  }

 private:
  /// Cells of one block that are in the halo of another.
  struct Link {
    std::size_t from, to;
    weir::GridRange cells;
  };

  void find_links() {
    for (std::size_t to = 0; to < blocks_.size(); ++to) {
      for (int d = 0; d < (deep_ ? 3 : 2); ++d) {
        for (const int side : {-1, 1}) {
          const weir::GridRange halo = blocks_[to].halo(d, side);
          for (std::size_t from = 0; from < blocks_.size(); ++from) {
            const weir::GridRange both = halo.intersect(blocks_[from].cells());
            if (!both.empty()) links_.push_back({from, to, both});
          }
        }
      }
    }
  }

  std::size_t slowest() const noexcept { return deep_ ? 2 : 1; }
  /// Cells around those that are made which so many steps read, as GridRange::shrink() takes them.
  weir::GridRange::Cell around(std::int64_t count) const {
    return deep_ ? weir::GridRange::Cell{-1, -1, -count} : weir::GridRange::Cell{-1, -count, 0};
  }

  weir::Event make(const JacobiBlock<T>& block, const weir::GridRange& range, std::size_t next,
                   std::int64_t count, const char* name) const {
    constexpr std::size_t kOfOneStep = 5;
    const weir::GridRange from = range.shrink(around(count)).intersect(around_);
    const std::size_t d = slowest();
    const std::int64_t here = range.begin[d];
    const weir::Operand operands[] = {weir::write(block.region(next, range)),
                                      weir::read(block.region(1 - next, from))};
    const weir::Scalar scalars[] = {
        range.extent(0),          block.row(), block.plane(),        rate_,
        past_cache_ ? 1 : 0,      count,       here - from.begin[d], around_.begin[d] + 1 - here,
        around_.end[d] - 1 - here};
    return block.stream().stream.compute(
        kernel_, operands, std::span(scalars).first(fuse_ == 1 ? kOfOneStep : std::size(scalars)),
        name);
  }

  /// Copies the edges of a field to the halos of the neighbours. An action that reads a halo makes
  /// the edge cells beside it, and the neighbour needs these for the next contents of that halo: so
  /// a halo is free when its next contents arrive, and an edge is not overwritten before it has
  /// been copied. A sweep of fewer steps than `fuse` reads less of a halo, so only the first sweep
  /// may be shorter.
  void exchange(std::size_t field, bool overlap) const {
    for (const Link& link : links_) await_edge(link, field, overlap);
    std::vector<weir::Event> arrived;
    for (const Link& link : links_) {
      const JacobiBlock<T>&from = blocks_[link.from], &to = blocks_[link.to];
      const weir::Region source = from.region(field, link.cells);
      const weir::Region target = to.region(field, link.cells);
      arrived.push_back(
          transfer_stream(link).transfer({from.stream().memory, source.buffer, source.region},
                                         {to.stream().memory, target.buffer, target.region}));
    }
    for (std::size_t i = 0; i < links_.size(); ++i)
      await_halo(links_[i], field, arrived[i], overlap);
  }

  /// The stream that makes a transfer: one with a memory of its own.
  const weir::Stream& transfer_stream(const Link& link) const {
    const AppStream &from = blocks_[link.from].stream(), &to = blocks_[link.to].stream();
    return to.memory != nullptr ? to.stream : from.stream;
  }

  void await_edge(const Link& link, std::size_t field, bool overlap) const {
    const weir::Stream& maker = blocks_[link.from].stream().stream;
    if (!overlap) {
      transfer_stream(link).wait(maker.barrier());
    } else if (&transfer_stream(link) != &maker) {
      const weir::Region source = blocks_[link.from].region(field, link.cells);
      transfer_stream(link).wait(maker.sync({}, {&source, 1}, WEIR_SYNC_SCOPE_OPERANDS),
                                 blocks_[link.to].region(field, link.cells));
    }
  }

  void await_halo(const Link& link, std::size_t field, const weir::Event& arrived,
                  bool overlap) const {
    const weir::Stream& reader = blocks_[link.to].stream().stream;
    if (!overlap) {
      reader.wait(arrived);
    } else if (&transfer_stream(link) != &reader) {
      reader.wait(arrived, blocks_[link.to].region(field, link.cells));
    }
  }

  const weir::Kernel& kernel_;
  const std::int64_t fuse_;  ///< most steps of a sweep
  T rate_;
  bool deep_, past_cache_ = false;
  weir::GridRange around_;  ///< all cells and the border
  weir::GridRange::Cell halo_;
  std::vector<JacobiBlock<T>> blocks_;
  std::vector<Link> links_;
};

}  // namespace weir::apps
