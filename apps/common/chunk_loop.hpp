// What pipelines are compared with: stages one after the other, in chunks, with a meeting after
// each.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <weir/weir.hpp>

#include "common/lanes.hpp"

namespace weir::apps {

/// A part of the items of a chunk, and the number of the core that works on it.
struct ChunkPart {
  std::size_t index, first, end;
};

/// Puts items into memory of its own, as an outlet of a pipeline does into a tunnel.
template <class T>
class ChunkOutlet {
 public:
  explicit ChunkOutlet(std::vector<T>& items) noexcept : items_(items) {}
  void put(const T& item) const { items_.push_back(item); }

 private:
  std::vector<T>& items_;
};

/// What the parts of a chunk put, in the order of its items.
template <class T>
class Collected {
 public:
  explicit Collected(std::size_t parts) : parts_(parts) {}

  ChunkOutlet<T> outlet(const ChunkPart& part) { return ChunkOutlet<T>(parts_[part.index]); }
  /// Returns all items, and forgets them.
  std::vector<T> take() {
    std::vector<T> all;
    for (std::vector<T>& part : parts_) {
      all.insert(all.end(), part.begin(), part.end());
      part.clear();
    }
    return all;
  }

 private:
  std::vector<std::vector<T>> parts_;
};

/// The loop of Hetero-Mark's programs (paper 002, section 4): a chunk of items goes to all cores,
/// everybody waits until it is through, then the next stage has its turn. From one thread.
class ChunkLoop {
 public:
  /// How many items a stage had in all, and at once.
  struct Stage {
    std::string name;
    std::uint64_t items = 0, most = 0;
  };

  ChunkLoop(const weir::Runtime& runtime, const Lanes& lanes);

  /// Forgets what was counted. What runs longer than the timeout ends in weir::Error{timeout}.
  void begin(std::chrono::nanoseconds timeout);
  /// Calls code for parts of [0, count) on all cores, and waits for all.
  void run(const char* stage, std::size_t count, const std::function<void(const ChunkPart&)>& code);

  /// Parts of a chunk.
  std::size_t parts() const noexcept { return lanes_.cores(); }
  std::size_t meetings() const noexcept { return meetings_; }
  const std::vector<Stage>& stages() const noexcept { return stages_; }

 private:
  std::chrono::nanoseconds remaining() const;
  void count(const char* stage, std::size_t items);
  void enqueue(std::size_t count);
  void abandon() noexcept;

  const weir::Runtime& runtime_;
  const Lanes& lanes_;
  const std::function<void(const ChunkPart&)>* code_ = nullptr;
  weir::Kernel kernel_;
  std::chrono::steady_clock::time_point deadline_;
  std::size_t meetings_ = 0;
  std::vector<Stage> stages_;
};

}  // namespace weir::apps
