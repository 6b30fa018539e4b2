// A graph of tasks in memory, made before the clock starts: programs look up what a task reads.
#pragma once

#include <span>

#include "metg/patterns.hpp"

namespace weir_bench::metg {

/// A task of one of the graphs that run at once.
struct TaskId {
  std::uint32_t graph = 0, step = 0, point = 0;

  bool operator==(const TaskId&) const = default;
};

/// A task in one word, as a scalar argument: 8 bits of graph, 32 of step, 24 of point.
inline std::uint64_t pack(const TaskId& id) {
  return std::uint64_t{id.graph} << 56 | std::uint64_t{id.step} << 24 | id.point;
}
inline TaskId unpack(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word >> 56), static_cast<std::uint32_t>(word >> 24),
          static_cast<std::uint32_t>(word & 0xffffffU)};
}

class Graph {
 public:
  /// Throws std::invalid_argument for a shape that no task belongs to, or that is too large.
  explicit Graph(const Shape& shape) : shape_(checked(shape)) {
    fill(reads_, [&](std::uint32_t step, std::uint32_t point) {
      return predecessors_of(shape_, step, point);
    });
    std::vector<std::vector<std::uint32_t>> readers(std::size_t{shape.steps} * shape.width);
    for_each_task([&](std::uint32_t step, std::uint32_t point) {
      for (std::uint32_t read : predecessors(step, point)) {
        readers[index(step - 1, read)].push_back(point);
      }
      ++tasks_;
    });
    fill(readers_, [&](std::uint32_t step, std::uint32_t point) {
      return std::move(readers[index(step, point)]);
    });
  }

  const Shape& shape() const { return shape_; }
  std::uint64_t tasks() const { return tasks_; }
  Points points(std::uint32_t step) const { return points_of(shape_, step); }

  /// Points of step - 1 that the task reads.
  std::span<const std::uint32_t> predecessors(std::uint32_t step, std::uint32_t point) const {
    return reads_.row(index(step, point));
  }
  /// Points of step + 1 that read the task.
  std::span<const std::uint32_t> successors(std::uint32_t step, std::uint32_t point) const {
    return readers_.row(index(step, point));
  }

  /// Tasks that have to be complete before a task starts, with `fields` outputs for each point:
  /// those it reads, and the readers of the output that it overwrites, or its writer if no task
  /// reads it.
  std::vector<TaskId> must_precede(std::uint32_t step, std::uint32_t point,
                                   std::uint32_t fields) const {
    std::vector<TaskId> before;
    for (std::uint32_t read : predecessors(step, point)) before.push_back({0, step - 1, read});
    if (step < fields || !points(step - fields).contains(point)) return before;
    const auto overwritten = successors(step - fields, point);
    if (overwritten.empty()) before.push_back({0, step - fields, point});
    for (std::uint32_t reader : overwritten) {
      const TaskId task = {0, step - fields + 1, reader};
      if (std::find(before.begin(), before.end(), task) == before.end()) before.push_back(task);
    }
    return before;
  }

  /// Calls visit(step, point) for all tasks, step by step.
  template <class Visit>
  void for_each_task(Visit&& visit) const {
    for (std::uint32_t step = 0; step < shape_.steps; ++step) {
      const Points here = points(step);
      for (std::uint32_t point = here.first; point < here.first + here.count; ++point) {
        visit(step, point);
      }
    }
  }

 private:
  /// Lists of points, one behind the other.
  struct Rows {
    std::vector<std::uint32_t> points;
    std::vector<std::size_t> first;

    std::span<const std::uint32_t> row(std::size_t number) const {
      return {points.data() + first[number], points.data() + first[number + 1]};
    }
  };

  static const Shape& checked(const Shape& shape) {
    const bool in_range = shape.width > 0 && shape.width < 1U << 24 && shape.steps > 0;
    if (!in_range || (shape.radix == 0 && shape.pattern >= Pattern::nearest)) {
      throw std::invalid_argument("a graph needs steps, a radix, and a width of 1 to 2^24 - 1");
    }
    if (shape.pattern == Pattern::dom && shape.steps < shape.width) {
      throw std::invalid_argument("the pattern dom needs at least as many steps as points");
    }
    return shape;
  }

  std::size_t index(std::uint32_t step, std::uint32_t point) const {
    return std::size_t{step} * shape_.width + point;
  }

  template <class List>
  void fill(Rows& rows, List&& list) {
    rows.first.assign(1, 0);
    for (std::uint32_t step = 0; step < shape_.steps; ++step) {
      const Points here = points(step);
      for (std::uint32_t point = 0; point < shape_.width; ++point) {
        if (here.contains(point)) {
          for (std::uint32_t other : list(step, point)) rows.points.push_back(other);
        }
        rows.first.push_back(rows.points.size());
      }
    }
  }

  Shape shape_;
  std::uint64_t tasks_ = 0;
  Rows reads_, readers_;
};

}  // namespace weir_bench::metg
