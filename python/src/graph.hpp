// Graphs: calls of a queue or a stream that are recorded once and launched many times.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "session.hpp"
#include "stream.hpp"

namespace weir::py {

/// A scalar of a recorded call that launches may replace. A value.
struct Parameter {
  unsigned index;
  weir_scalar value;  ///< while the call is recorded
};

Parameter make_parameter(long long index, nb::handle value);

struct GraphOptions {
  const char* name = nullptr;
  bool record_only = false;
};

/// A graph, whose queue or stream it holds. It holds the buffers of its calls, too.
struct Graph {
  /// What is recorded: one of the two.
  struct Target {
    std::shared_ptr<Queue> queue;
    std::shared_ptr<Stream> stream;

    /// Raises when it has been closed.
    const SessionRef& session() const;
    std::weak_ptr<Graph>& recording() const;
    InUse& in_use() const;
  };

  /// Begins to record.
  static std::shared_ptr<Graph> begin(const Target& target, const GraphOptions& options);
  Graph(Target target, weir_graph* handle);
  ~Graph() { close(); }
  /// Ends the recording.
  void end();
  /// Ends the recording, whatever its outcome, and the graph.
  void discard();
  void close();

  Event launch(nb::handle bindings, nb::handle parameters) const;
  weir_graph_info info() const;

  /// Returns the scalar of a call that is being recorded. Raises when an earlier call has this
  /// parameter with another type.
  weir_scalar scalar_of(const Parameter& parameter) const;
  /// Notes a call that was recorded.
  void note(const Action& action);

  Target target;
  SessionRef session;
  weir_graph* handle;

 private:
  void detach();

  /// A buffer of recorded calls. It may have been closed since.
  struct Use {
    std::shared_ptr<Buffer> buffer;
    weir_buffer* handle;
    const Layout* layout;
    bool written;
  };
  const Use& find_use(nb::handle given) const;
  Part find_replacement(const Use& use, nb::handle given) const;
  weir_scalar parameter_of(nb::handle given, unsigned index) const;

  std::vector<Use> uses_;
  std::map<unsigned, weir_scalar_type> types_;  ///< of parameters
  mutable InUse in_use_{"the graph"};
};

/// What a with statement enters to record.
class Recording {
 public:
  Recording(Graph::Target target, std::optional<std::string> name, bool record_only)
      : target_(std::move(target)), name_(std::move(name)), record_only_(record_only) {}

  std::shared_ptr<Graph> enter();
  /// type: of the exception that ends the block, or None.
  void exit(nb::handle type);

 private:
  const Graph::Target target_;
  const std::optional<std::string> name_;
  const bool record_only_;
  std::shared_ptr<Graph> graph_;  ///< within the block
};

}  // namespace weir::py
