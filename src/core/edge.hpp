// Edges of the dependence graph.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace weir::rt {

struct Action;

/// One edge of the dependence graph. The predecessor lists it and, with device ordering, the
/// successor too.
struct Edge {
  Action* successor;
  Edge* next;              ///< next edge of the same predecessor, see Successors
  Action* predecessor;     ///< null: complete
  Edge* next_predecessor;  ///< next edge of the same successor
  bool ignores_failure;    ///< does not propagate the predecessor's failure
};

/// The edges from an action to its successors, in the order of admission.
class Successors {
 public:
  bool empty() const noexcept { return last_ == nullptr; }
  void add(Edge& edge) noexcept {
    edge.next = last_ != nullptr ? std::exchange(last_->next, &edge) : &edge;
    last_ = &edge;
  }
  /// Removes and returns the first edge, nullptr if there is none.
  Edge* take_first() noexcept {
    if (empty()) return nullptr;
    Edge* const first = last_->next;
    if (first == last_) {
      last_ = nullptr;
    } else {
      last_->next = first->next;
    }
    return first;
  }
  /// Calls visit(edge) for each edge. visit() must not remove any.
  template <class Visit>
  void for_each(Visit&& visit) const {
    if (empty()) return;
    Edge* edge = last_;
    do {
      edge = edge->next;
      visit(*edge);
    } while (edge != last_);
  }

 private:
  Edge* last_ = nullptr;  ///< its `next` is the first edge
};

/// A pool of reusable edges, allocated in chunks.
class EdgePool {
 public:
  /// Makes sure that take() can be called `count` times. Throws std::bad_alloc.
  void reserve(std::size_t count) {
    constexpr std::size_t kChunk = 256;
    while (free_count_ < count) {
      chunks_.reserve(chunks_.size() + 1);
      auto& chunk = chunks_.emplace_back(std::make_unique<Edge[]>(kChunk));
      for (std::size_t i = 0; i < kChunk; ++i) give(chunk[i]);
    }
  }
  Edge& take() noexcept {
    assert(free_count_ > 0);
    --free_count_;
    return *std::exchange(free_, free_->next);
  }
  void give(Edge& edge) noexcept {
    ++free_count_;
    edge.next = std::exchange(free_, &edge);
  }

 private:
  std::vector<std::unique_ptr<Edge[]>> chunks_;
  Edge* free_ = nullptr;
  std::size_t free_count_ = 0;
};

}  // namespace weir::rt
