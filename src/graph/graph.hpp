// Graphs: recorded calls that are launched again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <weir/graph.h>

#include "base/handle.hpp"
#include "base/threads.hpp"
#include "graph/launch_run.hpp"
#include "stream/action_recorder.hpp"
#include "stream/stream.hpp"

namespace weir::rt {

/// Records the actions of a stream, and launches them as one action. Any thread.
class Graph : private ActionRecorder {
 public:
  /// What is recorded. The functions throw Error if it is destroyed.
  struct Target {
    std::function<Stream&()> stream;
    std::function<weir_event(const weir_compute&)> enqueue;  ///< with an event
  };

  /// The name of the kernel that runs launches, and its options.
  static constexpr const char* kKernel = "weir.graph";
  static weir_kernel& add_kernel(Context& context);

  /// Begins to record. `kernel` is kKernel.
  Graph(std::string name, Target target, const weir_kernel& kernel, bool record_only);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  /// Waits for all launches.
  ~Graph() override;

  const std::string& name() const noexcept { return name_; }
  Context& context() const noexcept { return context_; }

  // Called by the program. They throw Error.
  void end();
  weir_event launch(const weir_graph_launch_options& options);
  weir_graph_info info() const;

 private:
  void take_parameters(std::span<weir_scalar> scalars) override;
  bool record(const Action& action) override;
  std::vector<weir_buffer*> bind(std::span<const weir_binding> bindings) const;
  void check_parameters(std::span<const weir_scalar> given) const;
  void detach() noexcept;
  Outcome run(const weir_call& launch);
  weir_cost cost(const weir_call& launch) const;

  const std::string name_;
  const Target target_;
  Context& context_;
  const weir_kernel& kernel_;
  const bool runs_;

  CallList list_;                               ///< constant after the recording
  std::vector<std::uint32_t> next_parameters_;  ///< of the call that is being recorded
  std::unique_ptr<const Dependences> dependences_;

  mutable sys::Mutex mutex_;
  bool recording_ WEIR_GUARDED_BY(mutex_) = true;
  /// Of launches that may be incomplete.
  std::vector<weir_event> launches_ WEIR_GUARDED_BY(mutex_);
  std::size_t enqueuing_ WEIR_GUARDED_BY(mutex_) = 0;  ///< threads that will add an event
  std::uint64_t launched_ WEIR_GUARDED_BY(mutex_) = 0;

  /// Free whenever a launch begins: a place runs one parallel call at a time.
  sys::Mutex run_mutex_;
  std::unique_ptr<LaunchRun> run_ WEIR_GUARDED_BY(run_mutex_);
  sys::Atomic<std::size_t> seats_{0}, waits_{0};  ///< of the schedule, for info()
};

}  // namespace weir::rt

/// The public handle.
struct weir_graph final : weir::rt::Handle<weir_graph>, weir::rt::Graph {
  static constexpr const char* kNoun = "graph";
  using Graph::Graph;
};
