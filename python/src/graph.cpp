#include "graph.hpp"

#include <algorithm>
#include <utility>

#include "array.hpp"
#include "kernel.hpp"

namespace weir::py {

namespace {

constexpr long long kMostIndex = 1 << 16;  // more than weir has

/// Whether elements lie alike in two buffers.
bool is_alike(const Layout& a, const Layout& b) {
  return a.axes == b.axes && nb::handle(a.dtype).equal(nb::handle(b.dtype));
}

const Layout* layout_of(const std::shared_ptr<Buffer>& buffer) {
  return part_of(buffer, buffer->array).layout;
}

/// Returns the part, which is all of its buffer. Raises when it is less.
Part find_whole(Session& session, nb::handle given) {
  Part part = find_part(session, given);
  std::size_t bytes = part.layout->item_bytes;
  for (const Layout::Axis& axis : part.layout->axes) bytes *= axis.length;
  if (bytes != static_cast<std::size_t>(part.buffer->memory.len)) {
    raise_value("a part of buffer '" + part.buffer->name() +
                "' is in a binding: a launch replaces whole buffers");
  }
  return part;
}

const char* name_of(weir_scalar_type type) {
  switch (type) {
    case WEIR_SCALAR_TYPE_I64:
    case WEIR_SCALAR_TYPE_U64: return "int";
    case WEIR_SCALAR_TYPE_F32: return "numpy.float32";
    case WEIR_SCALAR_TYPE_F64: break;
  }
  return "float";
}

}  // namespace

Parameter make_parameter(long long index, nb::handle value) {
  if (index < 0 || index > kMostIndex) {
    raise_value("there is no parameter " + std::to_string(index) +
                ": parameters count from 0, without large gaps");
  }
  return {static_cast<unsigned>(index), scalar_of(value, 0)};
}

// ---- Targets -----------------------------------------------------------------------------------

const SessionRef& Graph::Target::session() const {
  if (queue) {
    open(*queue->session, queue->handle, "queue");
    return queue->session;
  }
  open(stream->session(), stream->handle, "stream");
  return stream->place->session;
}

std::weak_ptr<Graph>& Graph::Target::recording() const {
  return queue ? queue->recording : stream->recording;
}

InUse& Graph::Target::in_use() const { return queue ? queue->in_use : stream->in_use; }

// ---- Recording ---------------------------------------------------------------------------------

std::shared_ptr<Graph> Graph::begin(const Target& target, const GraphOptions& wanted) {
  const SessionRef& session = target.session();
  weir_graph_options options = WEIR_GRAPH_OPTIONS_INIT;
  options.name = wanted.name;
  options.record_only = wanted.record_only;
  if (target.queue) options.queue = target.queue->handle;
  if (target.stream) options.stream = target.stream->handle;
  weir_graph* made = nullptr;
  call_released({&session->in_use, &target.in_use()},
                [&] { return weir_graph_begin(&options, &made); });
  auto graph = make_waiting<Graph>(target, made);
  target.recording() = graph;
  return graph;
}

Graph::Graph(Target of, weir_graph* handle)
    : target(std::move(of)),
      session(target.queue ? target.queue->session : target.stream->place->session),
      handle(handle) {}

void Graph::detach() {
  if (target.recording().lock().get() == this) target.recording().reset();
}

void Graph::end() {
  detach();
  weir_graph* const graph = open(*session, handle, "graph");
  call_released({&session->in_use, &in_use_}, [&] { return weir_graph_end(graph); });
}

void Graph::discard() {
  detach();
  if (handle != nullptr && !session->closed()) {
    const Using inside({&session->in_use, &in_use_});
    const Released released;
    static_cast<void>(weir_graph_end(handle));  // it may have recorded nothing
  }
  close();
}

void Graph::close() {
  detach();
  py::end(*session, handle, weir_graph_destroy, {&in_use_});
  uses_.clear();
}

weir_scalar Graph::scalar_of(const Parameter& parameter) const {
  const auto known = types_.find(parameter.index);
  if (known != types_.end() && known->second != parameter.value.type) {
    raise_type("parameter " + std::to_string(parameter.index) + " is of type " +
               name_of(parameter.value.type) + " here and " + name_of(known->second) +
               " in an earlier call of the graph: give them indices of their own");
  }
  return weir_scalar_parameter(parameter.value, parameter.index);
}

void Graph::note(const Action& action) {
  for (const Parameter& parameter : action.parameters) {
    types_.emplace(parameter.index, parameter.value.type);
  }
  for (std::size_t i = 0; i < action.buffers.size(); ++i) {
    const std::shared_ptr<Buffer>& buffer = action.buffers[i];
    const bool written = (action.operands[i].access & WEIR_ACCESS_WRITE) != 0;
    const auto known = std::find_if(uses_.begin(), uses_.end(),
                                    [&](const Use& use) { return use.buffer == buffer; });
    if (known != uses_.end()) {
      known->written = known->written || written;
    } else {
      uses_.push_back({buffer, action.operands[i].buffer, layout_of(buffer), written});
    }
  }
}

// ---- Launches ----------------------------------------------------------------------------------

const Graph::Use& Graph::find_use(nb::handle given) const {
  std::shared_ptr<Buffer> buffer;
  if (!nb::try_cast(given, buffer)) buffer = find_whole(*session, given).buffer;
  const auto known = std::find_if(uses_.begin(), uses_.end(),
                                  [&](const Use& use) { return use.buffer == buffer; });
  if (known != uses_.end()) return *known;
  std::string name;
  if (buffer->handle != nullptr) name.append("'").append(buffer->name()).append("' ");
  raise_value("a binding replaces buffer " + name + "in graph '" + info().name +
              "', which does not use it");
}

Part Graph::find_replacement(const Use& use, nb::handle given) const {
  Part part = find_whole(*session, given);
  if (part.buffer->session != session) raise_value("a binding has a buffer of another runtime");
  const std::string name = "buffer '" + part.buffer->name() + "'";
  if (use.written && part.readonly) {
    raise_value("the array of " + name + " is read-only: graph '" + info().name +
                "' writes the buffer that it replaces");
  }
  if (!is_alike(*use.layout, *layout_of(part.buffer))) {
    raise_value(name +
                " differs in shape, dtype or order from the buffer that it replaces in "
                "graph '" +
                info().name + "'");
  }
  return part;
}

/// Converts a number to the type that the parameter has in the calls.
weir_scalar Graph::parameter_of(nb::handle given, unsigned index) const {
  const weir_scalar scalar = py::scalar_of(given, index);
  const auto known = types_.find(index);
  if (known == types_.end() || known->second == scalar.type) return scalar;
  const bool whole = scalar.type == WEIR_SCALAR_TYPE_I64 || scalar.type == WEIR_SCALAR_TYPE_U64;
  switch (known->second) {
    case WEIR_SCALAR_TYPE_F64: return weir_scalar_f64(number_of(scalar));
    case WEIR_SCALAR_TYPE_F32: return weir_scalar_f32(static_cast<float>(number_of(scalar)));
    case WEIR_SCALAR_TYPE_I64:
    case WEIR_SCALAR_TYPE_U64: break;
  }
  if (!whole) {
    raise_type("parameter " + std::to_string(index) + " of graph '" + info().name +
               "' is of type int, not " + name_of(scalar.type));
  }
  if (scalar.value.i64 < 0) {  // one of them is above the largest int64, or negative
    raise_value("parameter " + std::to_string(index) + " of graph '" + info().name +
                "' does not fit into the 64 bits, signed or not, that it was recorded with");
  }
  return known->second == WEIR_SCALAR_TYPE_I64 ? weir_scalar_i64(scalar.value.i64)
                                               : weir_scalar_u64(scalar.value.u64);
}

Event Graph::launch(nb::handle given, nb::handle values) const {
  weir_graph* const graph = open(*session, handle, "graph");
  target.session();
  std::vector<weir_binding> bindings;
  std::vector<Part> kept;  // until it is enqueued
  const nb::object items =
      nb::hasattr(given, "items") ? nb::object(given.attr("items")()) : nb::borrow(given);
  const Sequence pairs(items, "bindings are a mapping or pairs of arrays or buffers");
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Sequence pair(pairs[i], "a binding is a pair: the recorded buffer, and its replacement");
    if (pair.size() != 2) {
      raise_value("a binding is a pair: the recorded buffer, and its replacement");
    }
    const Use& use = find_use(pair[0]);
    kept.push_back(find_replacement(use, pair[1]));
    bindings.push_back({use.handle, kept.back().buffer->handle});
  }
  const Sequence numbers(values, "parameters are a sequence of numbers");
  std::vector<weir_scalar> parameters;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    parameters.push_back(parameter_of(numbers[i], static_cast<unsigned>(i)));
  }
  weir_graph_launch_options options = WEIR_GRAPH_LAUNCH_OPTIONS_INIT;
  options.bindings = bindings.data();
  options.binding_count = bindings.size();
  options.parameters = parameters.data();
  options.parameter_count = parameters.size();
  weir_event event = WEIR_EVENT_INIT;
  call_released({&session->in_use, &target.in_use(), &in_use_},
                [&] { return weir_graph_launch(graph, &options, &event); });
  set_interrupted(false);
  return {session, event};
}

weir_graph_info Graph::info() const {
  weir_graph* const graph = open(*session, handle, "graph");
  weir_graph_info found = WEIR_GRAPH_INFO_INIT;
  call_released({&session->in_use, &in_use_}, [&] { return weir_graph_get_info(graph, &found); });
  return found;
}

// ---- Blocks that are recorded ------------------------------------------------------------------

std::shared_ptr<Graph> Recording::enter() {
  if (graph_) {
    raise_status(WEIR_STATUS_BUSY,
                 "this recording has begun already: call record() for another graph");
  }
  graph_ = Graph::begin(target_, {name_ ? name_->c_str() : nullptr, record_only_});
  return graph_;
}

void Recording::exit(nb::handle type) {
  const std::shared_ptr<Graph> graph = std::exchange(graph_, nullptr);
  if (!graph) return;
  note_exit(type);
  if (!type.is_none()) return graph->discard();
  try {
    graph->end();
  } catch (nb::python_error&) {
    graph->discard();
    throw;
  }
}

}  // namespace weir::py
