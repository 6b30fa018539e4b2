// The baseline of pipelines: stages one after the other, in chunks, with a barrier after each.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weir/pipeline.hpp>
#include <weir/weir.hpp>

#include "common/app_streams.hpp"
#include "common/deadline.hpp"

namespace weir::apps {

/// A part of the items of a chunk, and the number of the core that works on it.
struct ChunkPart {
  std::size_t index, first, end;
};

/// Puts items into memory of its own, as an outlet of a pipeline does into a tunnel.
template <class T>
class ChunkOutlet {
 public:
  explicit ChunkOutlet(std::vector<T>& items) noexcept : items_(items) {}
  void put(const T& item) const { items_.push_back(item); }

 private:
  std::vector<T>& items_;
};

/// The items that the parts of a chunk put, in the order of its items.
template <class T>
class Collected {
 public:
  explicit Collected(std::size_t parts) : parts_(parts) {}

  ChunkOutlet<T> outlet(const ChunkPart& part) { return ChunkOutlet<T>(parts_[part.index]); }
  /// Returns all items, and forgets them.
  std::vector<T> take() {
    std::vector<T> all;
    for (std::vector<T>& part : parts_) {
      all.insert(all.end(), part.begin(), part.end());
      part.clear();
    }
    return all;
  }

 private:
  std::vector<std::vector<T>> parts_;
};

/// A stage that is a kernel on a device, with one output; the contracts are at weir_stage_kernel.
struct DeviceStage {
  weir::Kernel kernel;
  std::size_t item_bytes, made_bytes;  ///< bytes of an input item, and of an output item
  weir::KernelStageOptions options;    ///< a chunk is a batch: `batch` and `in_flight` are unused

  /// Returns the most output items for an input item.
  std::size_t most() const noexcept {
    return options.outputs.empty() ? 1 : options.outputs[0].most;
  }
  /// Whether the kernel counts what it puts for all items together.
  bool counts() const noexcept {
    return !options.outputs.empty() &&
           options.outputs[0].counting == WEIR_STAGE_COUNTING_PER_TUNNEL;
  }
};

/// The loop of Hetero-Mark's programs (paper 002, section 4): all cores, or a device, process a
/// chunk of items; the loop waits until the chunk is complete, then starts the next stage. One
/// thread calls it.
class ChunkLoop {
 public:
  /// How many items a stage had in total, and at most at a time.
  struct Stage {
    std::string name;
    std::uint64_t items = 0, most = 0;
  };

  /// `places` run functions; the calling thread does if there are none, and in virtual time, where
  /// those are places of a simulated host. The last argument, which may be null, runs kernels.
  ChunkLoop(const weir::Runtime& runtime, const AppStreams& app_streams,
            const std::vector<std::size_t>& places, const AppStream* device);

  /// Resets the counts. A run that takes longer than the timeout throws weir::Error{timeout}.
  void begin(std::chrono::nanoseconds timeout);
  /// Calls code for parts of [0, count) on all cores, and waits for all. In virtual time
  /// the cores of the simulated host share count * item_ns, as they do in a pipeline.
  void run(const char* stage, std::size_t count, double item_ns,
           const std::function<void(const ChunkPart&)>& code);
  /// Lets the calling thread work on items alone.
  void work(std::size_t count, double item_ns);
  /// Copies a chunk to the device, runs the kernel, waits, and copies the items that it put back.
  template <class Made, class Item>
  std::vector<Made> offload(const char* stage, const DeviceStage& code,
                            const std::vector<Item>& items) {
    const std::span<const std::byte> made = offload(stage, code, std::as_bytes(std::span(items)));
    std::vector<Made> found(made.size() / sizeof(Made));
    if (!made.empty()) std::memcpy(found.data(), made.data(), made.size());
    return found;
  }

  /// Parts of a chunk.
  std::size_t parts() const noexcept { return std::max<std::size_t>(hosts_.size(), 1); }
  std::size_t synchronizations() const noexcept { return synchronizations_; }
  const std::vector<Stage>& stages() const noexcept { return stages_; }

 private:
  /// Memory of a stage on the device; one chunk uses it at a time.
  struct Freight {
    weir::Buffer items, made, number;
    bool tables = false;  ///< tables are on the device
  };

  void count(const char* stage, std::size_t items);
  void begin_chunk(const char* stage, std::size_t items);
  void enqueue(std::size_t count);
  void synchronize();
  void abandon() noexcept;
  std::span<const std::byte> offload(const char* stage, const DeviceStage& code,
                                     std::span<const std::byte> items);
  std::size_t run_kernel(const char* stage, const DeviceStage& code, Freight& freight,
                         std::span<const std::byte> items);

  const weir::Runtime& runtime_;
  const AppStreams& streams_;
  std::vector<const AppStream*> hosts_;  ///< one for each core
  std::size_t virtual_cores_ = 1;
  double left_ns_ = 0;  ///< of virtual time, less than one nanosecond
  const AppStream* const device_;
  std::map<std::string, Freight> freights_;
  const std::function<void(const ChunkPart&)>* code_ = nullptr;
  weir::Kernel kernel_;
  Deadline deadline_{weir::forever};
  std::size_t synchronizations_ = 0;
  std::vector<Stage> stages_;
};

}  // namespace weir::apps
