// C++ interface of graphs: kernel calls that are recorded once and launched many times.
#pragma once

#include <initializer_list>
#include <span>
#include <utility>

#include <weir/graph.h>
#include <weir/weir.hpp>

namespace weir {

/// A scalar of a call that is being recorded: it has this value now, and that of parameter `index`
/// in launches that give parameters.
inline Scalar parameter(unsigned index, Scalar now) {
  static_cast<weir_scalar&>(now) = weir_scalar_parameter(now, index);
  return now;
}

/// The fields of weir_graph_options.
struct GraphOptions {
  const char* name = nullptr;  ///< nullptr: "graph N"
  bool record_only = false;    ///< does not run the calls while it records them
};

/// A buffer that takes the place of a recorded one in a launch.
struct Binding : weir_binding {
  Binding(const Buffer& recorded, const Buffer& replacement)
      : weir_binding{recorded.handle(), replacement.handle()} {}
};

class Graph;
template <class Code>
Graph record(const Queue& queue, Code&& code, const GraphOptions& wanted = {});
template <class Code>
Graph record(StreamRef stream, Code&& code, const GraphOptions& wanted = {});

/// Owns a graph. Destroying it waits for its launches.
class Graph {
 public:
  Graph() = default;

  weir_graph* handle() const noexcept { return graph_.get(); }

  /// Runs the recorded calls once more, with other buffers or other values of the parameters.
  Event launch(std::initializer_list<Binding> bindings = {},
               std::initializer_list<Scalar> parameters = {}) const {
    return launch(std::span(bindings.begin(), bindings.size()),
                  std::span(parameters.begin(), parameters.size()));
  }
  Event launch(std::span<const Binding> bindings, std::span<const Scalar> parameters) const {
    static_assert(sizeof(Binding) == sizeof(weir_binding));
    weir_graph_launch_options options = WEIR_GRAPH_LAUNCH_OPTIONS_INIT;
    options.bindings = bindings.data();
    options.binding_count = bindings.size();
    options.parameters = parameters.data();
    options.parameter_count = parameters.size();
    weir_event event = WEIR_EVENT_INIT;
    check(weir_graph_launch(handle(), &options, &event));
    return {runtime_, event};
  }

  weir_graph_info info() const {
    weir_graph_info found = WEIR_GRAPH_INFO_INIT;
    check(weir_graph_get_info(handle(), &found));
    return found;
  }

 private:
  template <class Code>
  friend Graph record(const Queue& queue, Code&& code, const GraphOptions& wanted);
  template <class Code>
  friend Graph record(StreamRef stream, Code&& code, const GraphOptions& wanted);

  Graph(weir_runtime* runtime, const weir_graph_options& options) : runtime_(runtime) {
    weir_graph* owned = nullptr;
    check(weir_graph_begin(&options, &owned));
    graph_.reset(owned);
  }
  static weir_graph_options options_of(const GraphOptions& wanted) {
    weir_graph_options options = WEIR_GRAPH_OPTIONS_INIT;
    options.name = wanted.name;
    options.record_only = wanted.record_only;
    return options;
  }

  weir_runtime* runtime_ = nullptr;
  detail::Owner<weir_graph, weir_graph_destroy> graph_;
};

/// Calls code(), and returns a graph of the tasks that it submits to the queue. If it throws, so
/// does this, and nothing is recorded.
template <class Code>
Graph record(const Queue& queue, Code&& code, const GraphOptions& wanted) {
  weir_graph_options options = Graph::options_of(wanted);
  options.queue = queue.handle();
  Graph graph(queue.runtime(), options);
  std::forward<Code>(code)();
  check(weir_graph_end(graph.handle()));
  return graph;
}

/// The same for the compute actions that code() enqueues in a stream.
template <class Code>
Graph record(StreamRef stream, Code&& code, const GraphOptions& wanted) {
  weir_graph_options options = Graph::options_of(wanted);
  options.stream = stream.handle();
  Graph graph(stream.runtime(), options);
  std::forward<Code>(code)();
  check(weir_graph_end(graph.handle()));
  return graph;
}

}  // namespace weir
