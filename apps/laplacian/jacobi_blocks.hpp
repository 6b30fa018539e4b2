// The blocks of one rank, and their steps in streams.
#pragma once

#include <cstddef>
#include <vector>

#include <weir/grid.hpp>

#include "common/lanes.hpp"
#include "common/past_cache.hpp"
#include "laplacian/jacobi_block.hpp"
#include "laplacian/problem.hpp"

namespace weir::apps {

/// Steps of some blocks. After an odd number of steps the newest field is field 1, otherwise 0.
template <class T>
class JacobiBlocks {
 public:
  /// Takes blocks of a grid; lanes[i] is for the block numbers[i].
  JacobiBlocks(const weir::Runtime& runtime, const JacobiProblem& problem, const weir::Grid& grid,
               const weir::Kernel& kernel, const std::vector<std::size_t>& numbers,
               const std::vector<const Lane*>& lanes, std::size_t parts)
      : kernel_(kernel), rate_(static_cast<T>(problem.rate())), deep_(problem.dimensions == 3) {
    blocks_.reserve(numbers.size());
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      blocks_.emplace_back(runtime, grid, numbers[i], *lanes[i], parts);
      bytes += blocks_.back().bytes();
    }
    past_cache_ = bytes > kCacheBytes;
    find_links();
  }

  std::vector<JacobiBlock<T>>& all() noexcept { return blocks_; }
  const std::vector<JacobiBlock<T>>& all() const noexcept { return blocks_; }

  void upload() const {
    for (const JacobiBlock<T>& block : blocks_) {
      for (const std::size_t field : {0, 1}) block.lane().stream.upload(block.buffer(field).all());
    }
  }
  std::vector<weir::Event> download(std::size_t field) const {
    std::vector<weir::Event> events;
    for (const JacobiBlock<T>& block : blocks_) {
      events.push_back(block.lane().stream.download(block.region(field, block.cells())));
    }
    return events;
  }

  /// Makes the field `next` from the other one: its edges, or the rest.
  std::vector<weir::Event> make_edges(std::size_t next) const {
    std::vector<weir::Event> events;
    for (const JacobiBlock<T>& block : blocks_) make(block, block.edges(), next, "edge", events);
    return events;
  }
  std::vector<weir::Event> make_interior(std::size_t next) const {
    std::vector<weir::Event> events;
    for (const JacobiBlock<T>& block : blocks_) {
      make(block, block.interior(), next, "interior", events);
    }
    return events;
  }

  /// Makes a field whose edges travel between the blocks: while the interior is made, with
  /// `overlap`.
  void step(std::size_t next, bool overlap) const {
    make_edges(next);
    if (!overlap) make_interior(next);
    exchange(next, overlap);
    if (overlap) make_interior(next);
  }

  /// Makes a field that is `count` steps newer than the other one, at once. Of the only block of
  /// the grid.
  void make_steps(const weir::Kernel& kernel, std::size_t next, std::int64_t count) const {
    const JacobiBlock<T>& block = blocks_.front();
    const int slowest = deep_ ? 2 : 1;
    const weir::GridRange all = block.cells().shrink({-1, -1, deep_ ? -1 : 0});
    for (const weir::GridRange& range : block.interior()) {
      weir::GridRange around = all;
      around.begin[slowest] = std::max(all.begin[slowest], range.begin[slowest] - count);
      around.end[slowest] = std::min(all.end[slowest], range.end[slowest] + count);
      const std::int64_t here = range.begin[slowest];
      block.lane().stream.compute(
          kernel,
          {weir::write(block.region(next, range)), weir::read(block.region(1 - next, around))},
          {range.extent(0), block.row(), block.plane(), rate_, past_cache_ ? 1 : 0, count,
           here - around.begin[slowest], block.cells().begin[slowest] - here,
           block.cells().end[slowest] - here},
          "steps");
    }
  }

  /// Where cells are not in the program's memory: brings edges there, or halos from there.
  std::vector<weir::Event> download_edges(std::size_t field) const {
    std::vector<weir::Event> events;
    for (const JacobiBlock<T>& block : blocks_) {
      if (block.lane().memory == nullptr) continue;
      for (const weir::GridRange& edge : block.edges()) {
        events.push_back(block.lane().stream.download(block.region(field, edge)));
      }
    }
    return events;
  }
  void upload_halos(std::size_t field) const {
    for (const JacobiBlock<T>& block : blocks_) {
      if (block.lane().memory == nullptr) continue;
      for (int d = 0; d < (deep_ ? 3 : 2); ++d) {
        for (const int side : {-1, 1}) {
          block.lane().stream.upload(block.region(field, block.cells().halo(d, side, 1)));
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
          const weir::GridRange halo = blocks_[to].cells().halo(d, side, 1);
          for (std::size_t from = 0; from < blocks_.size(); ++from) {
            const weir::GridRange both = halo.intersect(blocks_[from].cells());
            if (!both.empty()) links_.push_back({from, to, both});
          }
        }
      }
    }
  }

  void make(const JacobiBlock<T>& block, const std::vector<weir::GridRange>& ranges,
            std::size_t next, const char* name, std::vector<weir::Event>& events) const {
    for (const weir::GridRange& range : ranges) {
      const weir::GridRange around = range.shrink({-1, -1, deep_ ? -1 : 0});
      events.push_back(block.lane().stream.compute(
          kernel_,
          {weir::write(block.region(next, range)), weir::read(block.region(1 - next, around))},
          {range.extent(0), block.row(), block.plane(), rate_, past_cache_ ? 1 : 0}, name));
    }
  }

  /// Gives neighbours the edges of a field. Whatever reads a halo makes cells of the edge beside
  /// it, which the neighbour needs for the cells that come into that halo next: so a halo is free
  /// when its next contents come, and an edge is not made anew before it has left.
  void exchange(std::size_t field, bool overlap) const {
    for (const Link& link : links_) await_edge(link, field, overlap);
    std::vector<weir::Event> arrived;
    for (const Link& link : links_) {
      const JacobiBlock<T>&from = blocks_[link.from], &to = blocks_[link.to];
      const weir::Region source = from.region(field, link.cells);
      const weir::Region target = to.region(field, link.cells);
      arrived.push_back(carrier(link).transfer({from.lane().memory, source.buffer, source.region},
                                               {to.lane().memory, target.buffer, target.region}));
    }
    for (std::size_t i = 0; i < links_.size(); ++i)
      await_halo(links_[i], field, arrived[i], overlap);
  }

  /// The stream that makes a transfer: one with a memory of its own.
  const weir::Stream& carrier(const Link& link) const {
    const Lane &from = blocks_[link.from].lane(), &to = blocks_[link.to].lane();
    return to.memory != nullptr ? to.stream : from.stream;
  }

  void await_edge(const Link& link, std::size_t field, bool overlap) const {
    const weir::Stream& maker = blocks_[link.from].lane().stream;
    if (!overlap) {
      carrier(link).wait(maker.barrier());
    } else if (&carrier(link) != &maker) {
      const weir::Region source = blocks_[link.from].region(field, link.cells);
      carrier(link).wait(maker.sync({}, {&source, 1}, WEIR_SYNC_SCOPE_OPERANDS),
                         blocks_[link.to].region(field, link.cells));
    }
  }

  void await_halo(const Link& link, std::size_t field, const weir::Event& arrived,
                  bool overlap) const {
    const weir::Stream& reader = blocks_[link.to].lane().stream;
    if (!overlap) {
      reader.wait(arrived);
    } else if (&carrier(link) != &reader) {
      reader.wait(arrived, blocks_[link.to].region(field, link.cells));
    }
  }

  const weir::Kernel& kernel_;
  T rate_;
  bool deep_, past_cache_ = false;
  std::vector<JacobiBlock<T>> blocks_;
  std::vector<Link> links_;
};

}  // namespace weir::apps
