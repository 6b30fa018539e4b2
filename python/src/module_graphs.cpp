// Classes of the module that record work and launch it again.

#include "graph.hpp"
#include "module.hpp"

namespace weir::py {

void define_graphs(nb::module_& m) {
  nb::class_<Parameter>(m, "Parameter", "A scalar that launches of a graph may replace.")
      .def_ro("index", &Parameter::index)
      .def("__repr__", [](const Parameter& parameter) {
        return "<weir.Parameter " + std::to_string(parameter.index) + ">";
      });
  m.def("parameter", &make_parameter, "index"_a, "value"_a,
        "A scalar of a call that is being recorded: it has this value now, and that of parameter "
        "`index`, counted from 0, in launches that give parameters. Elsewhere it raises "
        "ValueError.",
        nb::sig("def parameter(index: int, value: Scalar) -> Parameter"));

  nb::class_<Recording>(m, "Recording",
                        "What Queue.record() and Stream.record() return, for a with statement.")
      .def("__enter__", &Recording::enter, nb::sig("def __enter__(self) -> Graph"))
      .def(
          "__exit__",
          [](Recording& recording, nb::handle type, nb::handle, nb::handle) {
            recording.exit(type);
          },
          "type"_a.none(), "value"_a.none(), "traceback"_a.none());

  nb::class_<Graph>(
      m, "Graph",
      "Calls of kernels that were recorded once, by Queue.record() or Stream.record(), and that "
      "launches run again in one task. It holds its queue or stream, and the buffers of its calls. "
      "Any thread may call it.")
      .def("launch", &Graph::launch, "bindings"_a = nb::tuple(), "parameters"_a = nb::tuple(),
           "Runs the recorded calls once more and returns at once. The launch is ordered with "
           "other work by the buffers that its calls use; inside it, the effect is that of the "
           "calls in program order. When a call fails, those that depend on it do not run, and the "
           "event fails with the message of the first one. bindings: pairs of a recorded buffer "
           "and its replacement, or a mapping; both are whole buffers of one shape, dtype and "
           "order, or the arrays in them, and two recorded buffers may replace each other. "
           "parameters: a number for each weir.parameter(), by its index; none: the recorded "
           "values. Numbers are converted to the recorded type, except a float to an int. What "
           "does not fit raises ValueError or TypeError, and nothing is launched.",
           nb::sig("def launch(self, bindings: collections.abc.Mapping[Buffer, Part] | "
                   "collections.abc.Iterable[tuple[Part, Part]] = (), parameters: "
                   "collections.abc.Iterable[Scalar] = ()) -> Event"))
      .def_prop_ro("name", [](const Graph& graph) { return std::string(graph.info().name); })
      .def_prop_ro(
          "recording", [](const Graph& graph) { return graph.info().recording; },
          "Whether the with statement has not ended yet.")
      .def_prop_ro(
          "calls", [](const Graph& graph) { return graph.info().calls; },
          "Recorded kernel calls; 0 while they are recorded.")
      .def_prop_ro(
          "buffers", [](const Graph& graph) { return graph.info().buffers; },
          "How many buffers they use.")
      .def_prop_ro(
          "parameters", [](const Graph& graph) { return graph.info().parameters; },
          "The highest index of a parameter plus one.")
      .def_prop_ro("launches", [](const Graph& graph) { return graph.info().launches; })
      .def_prop_ro(
          "cores", [](const Graph& graph) { return graph.info().cores; },
          "That a launch runs on; 0 before the first one has begun.")
      .def_prop_ro(
          "dependences", [](const Graph& graph) { return graph.info().dependences; },
          "Of calls on earlier calls.")
      .def_prop_ro(
          "waits", [](const Graph& graph) { return graph.info().waits; },
          "For another core, in a launch.")
      .def("close", &Graph::close, "Waits for the launches, and ends the graph.")
      .def("__enter__", [](std::shared_ptr<Graph> graph) { return graph; })
      .def("__exit__",
           [](Graph& graph, nb::args ended) {
             note_exit(ended[0]);
             graph.close();
           })
      .def("__repr__", [](nb::handle graph) {
        if (nb::cast<const Graph&>(graph).handle == nullptr) return nb::str("<weir.Graph, closed>");
        return text_of(graph, "<weir.Graph '{0.name}': {0.calls} calls, {0.launches} launches>");
      });
}

}  // namespace weir::py
