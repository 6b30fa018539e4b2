#include "pipeline/flow_graph.hpp"

#include <algorithm>
#include <numeric>

namespace weir::rt {

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Tarjan's search. It finds components downstream first. The depth is the number of stages.
struct Search {
  explicit Search(const std::vector<std::vector<std::size_t>>& all)
      : edges(all), number(all.size(), kNone), low(all.size()), component(all.size(), kNone) {
    for (std::size_t i = 0; i < edges.size(); ++i) {
      if (number[i] == kNone) visit(i);
    }
  }

  void visit(std::size_t stage) {
    number[stage] = low[stage] = visited++;
    open.push_back(stage);
    for (const std::size_t next : edges[stage]) {
      if (number[next] == kNone) {
        visit(next);
        low[stage] = std::min(low[stage], low[next]);
      } else if (component[next] == kNone) {
        low[stage] = std::min(low[stage], number[next]);
      }
    }
    if (low[stage] == number[stage]) close(stage);
  }
  void close(std::size_t root) {
    std::size_t stage = kNone;
    do {
      stage = open.back();
      open.pop_back();
      component[stage] = components;
    } while (stage != root);
    ++components;
  }

  const std::vector<std::vector<std::size_t>>& edges;
  std::vector<std::size_t> number, low, component, open;
  std::size_t visited = 0, components = 0;
};

}  // namespace

FlowShape shape_of(const std::vector<std::vector<std::size_t>>& edges) {
  Search search(edges);
  FlowShape shape;
  shape.component.resize(edges.size());
  shape.cyclic.assign(search.components, false);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    shape.component[i] = search.components - 1 - search.component[i];
  }
  for (std::size_t i = 0; i < edges.size(); ++i) {
    for (const std::size_t next : edges[i]) {
      if (shape.component[next] == shape.component[i]) shape.cyclic[shape.component[i]] = true;
    }
  }
  shape.downstream_first.resize(edges.size());
  std::iota(shape.downstream_first.rbegin(), shape.downstream_first.rend(), 0);
  std::stable_sort(
      shape.downstream_first.begin(), shape.downstream_first.end(),
      [&](std::size_t a, std::size_t b) { return shape.component[a] > shape.component[b]; });
  return shape;
}

}  // namespace weir::rt
