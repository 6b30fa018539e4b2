// Pipelines: stages that are functions of Python, and the tunnels between them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "session.hpp"
#include "stream.hpp"

namespace weir::py {

/// Options and callbacks of a pipeline.
struct PipelineOptions {
  const char* name = nullptr;
  PlaceRef place;
  bool keep_going = false;
  std::size_t batch = 0;
  std::size_t epochs = 0;
  std::size_t keep_bytes = 0;
  nb::object on_failure;  ///< on_failure(stage, exception), or None
  nb::object on_epoch;    ///< on_epoch(epoch), or None
};

/// Owns a pipeline. The pipeline of weir owns the Python functions that it calls, and destroys them
/// at its end.
struct Pipeline {
  static std::shared_ptr<Pipeline> make(const SessionRef& session, const PipelineOptions& options);
  ~Pipeline() { close(); }
  void close();

  void start();
  /// Waits for the end of a pipeline that has started; raises its first failure, or that it was
  /// cancelled because another thread has closed it.
  void wait(const Timeout& timeout);
  void cancel() const;
  weir_pipeline_info info() const;
  /// Returns the figures of each stage with an input.
  nb::list stages() const;
  /// Returns the state of all stages and tunnels, and the given percentiles of the ages of items.
  nb::dict state(const std::vector<double>& percentiles) const;

  SessionRef session;
  std::vector<PlaceRef> places;
  std::vector<std::shared_ptr<Buffer>> buffers;  ///< results of stencils, and tables
  /// The callbacks of the options; outlives the pipeline of weir.
  std::unique_ptr<PipelineOptions> options;
  weir_pipeline* handle = nullptr;
  bool running = false;  ///< has started, and no thread has waited for its end
  mutable InUse in_use{"the pipeline"};

 private:
  InUse ending_{"the pipeline"};
};
using PipelineRef = std::shared_ptr<Pipeline>;

/// An item that a stage keeps beyond its call. The destructor completes it at the latest.
struct Item {
  /// The number of the batch whose stage runs on this thread. No two have the same.
  static std::uint64_t this_batch();
  /// Keeps an item of that batch. Raises when it is another than `batch`.
  static std::shared_ptr<Item> keep(std::uint64_t batch, std::size_t index);
  ~Item();
  /// Completes the item. Raises on the second call.
  void complete();
  /// Whether the pipeline of the item exists: weir may reuse the handles of items of an ended
  /// pipeline.
  bool has_pipeline() const;

  weir_item* handle = nullptr;  ///< null: complete, or not kept after all
  std::weak_ptr<Pipeline> pipeline;
};

/// The queue of a stage, for items of one dtype.
struct Tunnel {
  PipelineRef pipeline;
  weir_tunnel* handle;
  nb::object dtype;
  std::size_t item_bytes;
  std::string name;
};

Tunnel add_tunnel(const PipelineRef& pipeline, nb::handle dtype, std::size_t capacity,
                  const std::string& overflow, const char* name);

/// A stencil, and the tunnel of its regions.
struct Stencil {
  Tunnel input;
  weir_stencil* handle;
  nb::object dtype;  ///< of its values
  std::string name;

  weir_stencil_info info() const;
};

/// What a stage puts into: a tunnel, or the values of a stencil.
struct Output {
  weir_tunnel* tunnel;
  weir_stencil* stencil = nullptr;
};

/// A stage as weir._pipelines describes it.
///
/// work(items, epoch) gets the bytes of a batch and returns (failed, exception, mark, *puts): the
/// index of the item that failed, -1: none; its exception; for a source 0, 1: there is no more, 2:
/// the epoch is over; and for each output None, an object with the buffer protocol over whole
/// items, or for a stencil a list of (row, column, rows, columns, bytes). at_end is the same,
/// called once with no items, or None.
struct StageOptions {
  const char* name = nullptr;
  const Tunnel* input = nullptr;
  std::vector<Output> outputs;
  nb::object work;
  nb::object at_end;
  PlaceRef place;
  std::size_t workers = 0;
  bool ordered = false;
  double item_seconds = 0;
};

void add_stage(const PipelineRef& pipeline, const StageOptions& options);

/// A stage that is a kernel: see weir_stage_kernel.
struct KernelStageOptions {
  const char* name = nullptr;
  const Tunnel* input = nullptr;
  std::vector<const Tunnel*> outputs;
  nb::handle kernel, scalars;
  std::vector<weir_stage_output> counts;  ///< of what goes into the outputs
  PlaceRef place;
  std::size_t batch = 0, in_flight = 0;
  bool ordered = false;
  nb::handle tables;  ///< parts of buffers
  std::size_t scratch_bytes = 0;
};

void add_kernel_stage(const PipelineRef& pipeline, const KernelStageOptions& options);

weir_stage_counting counting_of(const std::string& name);

/// A stencil: see weir_stencil_options.
struct StencilOptions {
  const char* name = nullptr;
  const Tunnel* input = nullptr;
  const Tunnel* output = nullptr;
  nb::handle kernel, scalars;
  nb::handle result;  ///< a Buffer of a matrix
  PlaceRef place;
  std::size_t region_rows = 0, region_columns = 0;
  std::size_t halo = 0;
  bool corners = true;
  std::size_t sweeps = 0, batch = 0, in_flight = 0;
};

Stencil add_stencil(const PipelineRef& pipeline, const StencilOptions& options);

/// A thread of the program, seen as a source.
struct Feed {
  Feed(PipelineRef pipeline, weir_feed* handle, nb::object dtype, std::size_t item_bytes)
      : pipeline(std::move(pipeline)),
        handle(handle),
        dtype(std::move(dtype)),
        item_bytes(item_bytes) {}
  ~Feed() { close(); }
  /// Closes the feed. Ends a put that waits on another thread.
  void close();

  /// Puts whole items out of an object with the buffer protocol. Raises when another thread is
  /// putting.
  void put(nb::handle items, const Timeout& timeout);
  void next_epoch() const;

  PipelineRef pipeline;
  weir_feed* handle;
  nb::object dtype;
  std::size_t item_bytes;

 private:
  void require_alone() const;

  InUse in_use_{"the feed"};
  bool putting_ = false;
  std::atomic<bool> closing_{false};
};

std::shared_ptr<Feed> open_feed(const Tunnel& tunnel);

}  // namespace weir::py
