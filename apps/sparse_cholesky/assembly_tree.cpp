#include "sparse_cholesky/assembly_tree.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace weir::apps {

namespace {

/// The cells with begin <= coordinate < end in all three directions.
struct Box {
  std::array<std::size_t, 3> begin, end;

  std::size_t length(std::size_t axis) const { return end[axis] - begin[axis]; }
  std::size_t size() const { return length(0) * length(1) * length(2); }
  std::size_t longest_axis() const {
    std::size_t longest = 0;
    for (std::size_t axis = 1; axis < 3; ++axis) {
      if (length(axis) > length(longest)) longest = axis;
    }
    return longest;
  }
  /// The planes [first, last) of the box along an axis.
  Box part(std::size_t axis, std::size_t first, std::size_t last) const {
    Box cut = *this;
    cut.begin[axis] = first;
    cut.end[axis] = last;
    return cut;
  }
};

class Dissection {
 public:
  Dissection(std::size_t n, std::size_t leaf) : leaf_(leaf) {
    tree_.edge = n;
    tree_.row_of.resize(n * n * n);
  }

  AssemblyTree build() {
    const std::size_t n = tree_.edge;
    eliminate({{0, 0, 0}, {n, n, n}});
    for (Front& front : tree_.fronts) number_border(front);
    return std::move(tree_);
  }

 private:
  /// Makes the fronts of a box, of which the last is returned.
  std::size_t eliminate(const Box& box) {
    Front front;
    Box pivots = box;
    if (box.size() > leaf_) {
      const std::size_t axis = box.longest_axis();
      const std::size_t middle = box.begin[axis] + box.length(axis) / 2;
      for (const Box& half :
           {box.part(axis, box.begin[axis], middle), box.part(axis, middle + 1, box.end[axis])}) {
        if (half.size() > 0) front.children.push_back(eliminate(half));
      }
      pivots = box.part(axis, middle, middle + 1);
    }
    front.pivots = pivots.size();
    for_cells(pivots, [&](std::size_t cell) { front.rows.push_back(number(cell)); });
    for_border(box,
               [&](std::size_t cell) { front.rows.push_back(static_cast<std::int32_t>(cell)); });
    tree_.fronts.push_back(std::move(front));
    return tree_.fronts.size() - 1;
  }

  std::int32_t number(std::size_t cell) {
    const auto row = static_cast<std::int32_t>(tree_.cells.size());
    tree_.cells.push_back(static_cast<std::int32_t>(cell));
    tree_.row_of[cell] = row;
    return row;
  }

  /// Replaces the cells of a border, all eliminated later, by their rows.
  void number_border(Front& front) const {
    const auto border = front.rows.begin() + static_cast<std::ptrdiff_t>(front.pivots);
    std::transform(border, front.rows.end(), border,
                   [&](std::int32_t cell) { return tree_.row_of[static_cast<std::size_t>(cell)]; });
    std::sort(border, front.rows.end());
  }

  template <class Visit>
  void for_cells(const Box& box, const Visit& visit) const {
    const std::size_t n = tree_.edge;
    for (std::size_t z = box.begin[2]; z < box.end[2]; ++z) {
      for (std::size_t y = box.begin[1]; y < box.end[1]; ++y) {
        for (std::size_t x = box.begin[0]; x < box.end[0]; ++x) visit(x + n * (y + n * z));
      }
    }
  }

  /// The cells outside of a box that share a face with it.
  template <class Visit>
  void for_border(const Box& box, const Visit& visit) const {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (box.begin[axis] > 0) {
        for_cells(box.part(axis, box.begin[axis] - 1, box.begin[axis]), visit);
      }
      if (box.end[axis] < tree_.edge) {
        for_cells(box.part(axis, box.end[axis], box.end[axis] + 1), visit);
      }
    }
  }

  std::size_t leaf_;
  AssemblyTree tree_;
};

}  // namespace

double Front::operations() const noexcept {
  const double p = static_cast<double>(pivots), b = static_cast<double>(border());
  return p * p * p / 3 + p * p / 2 + p / 6 + p * p * b + p * b * (b + 1);
}

std::size_t AssemblyTree::largest_front() const noexcept {
  std::size_t most = 0;
  for (const Front& front : fronts) most = std::max(most, front.order());
  return most;
}

std::size_t AssemblyTree::elements() const noexcept {
  return std::accumulate(
      fronts.begin(), fronts.end(), std::size_t{0},
      [](std::size_t sum, const Front& front) { return sum + front.order() * front.order(); });
}

double AssemblyTree::operations() const noexcept {
  return std::accumulate(fronts.begin(), fronts.end(), 0.0,
                         [](double sum, const Front& front) { return sum + front.operations(); });
}

AssemblyTree dissect_grid(std::size_t n, std::size_t leaf) { return Dissection(n, leaf).build(); }

}  // namespace weir::apps
