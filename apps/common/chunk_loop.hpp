// The baseline of pipelines: stages one after the other, in chunks, with a barrier after each.
#pragma once

#include <algorithm>
#include <array>
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

/// What of a chunk on a device may happen at the same time as what of another.
enum class ChunkOverlap {
  none,    ///< nothing: the cores wait for the device
  stages,  ///< the cores and the device work on different chunks, as in Hetero-Mark
  copies,  ///< the link as well, with memory for two chunks on the device (double buffering)
};

/// The loop of Hetero-Mark's programs (paper 002, section 4): all cores process a chunk of items;
/// the loop waits until the chunk is complete, then starts the next stage. A device may compute one
/// chunk while the cores work on another. One thread calls it.
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
            const std::vector<std::size_t>& places, const AppStream* device, ChunkOverlap overlap);

  /// Resets the counts. A run that takes longer than the timeout throws weir::Error{timeout}.
  void begin(std::chrono::nanoseconds timeout);
  /// Calls code for parts of [0, count) on all cores, and waits for all. In virtual time
  /// the cores of the simulated host share count * item_ns, as they do in a pipeline.
  void run(const char* stage, std::size_t count, double item_ns,
           const std::function<void(const ChunkPart&)>& code);
  /// Calls begin(i) and then end(i) for each chunk i < count. When a device computes in between,
  /// begin(i + 1) comes before end(i), as far as chunks overlap.
  template <class Begin, class End>
  void each_chunk(std::size_t count, bool device_computes, const Begin& begin, const End& end) {
    const std::size_t lag = device_computes && overlap_ != ChunkOverlap::none ? 1 : 0;
    for (std::size_t i = 0; i < count + lag; ++i) {
      if (i < count) begin(i);
      if (i >= lag) end(i - lag);
    }
  }
  /// Lets the calling thread work on items alone.
  void work(std::size_t count, double item_ns);
  /// Copies a chunk to the device and starts the kernel of a stage. A stage has memory for two
  /// chunks: the results of the first are taken before the third is launched.
  template <class Item>
  void launch(const char* stage, const DeviceStage& code, const std::vector<Item>& items) {
    launch(stage, code, std::as_bytes(std::span(items)));
  }
  /// Waits for the oldest chunk of a stage whose results have not been taken; returns the items
  /// that its kernel put.
  template <class Made>
  std::vector<Made> results(const char* stage, const DeviceStage& code) {
    const std::span<const std::byte> made = results(stage, code);
    std::vector<Made> found(made.size() / sizeof(Made));
    if (!made.empty()) std::memcpy(found.data(), made.data(), made.size());
    return found;
  }

  bool overlaps() const noexcept { return overlap_ != ChunkOverlap::none; }
  /// Parts of a chunk.
  std::size_t parts() const noexcept { return std::max<std::size_t>(hosts_.size(), 1); }
  std::size_t synchronizations() const noexcept { return synchronizations_; }
  const std::vector<Stage>& stages() const noexcept { return stages_; }

 private:
  /// A chunk on the device, and its memory.
  struct Freight {
    weir::Buffer items, made, number;
    std::size_t count = 0, made_bytes = 0;  ///< of its items; what its kernel put
    weir::Event ready;                      ///< all that was launched for it is complete
    bool fetched = false;                   ///< what its kernel put is in memory of the host
  };
  /// The chunks of a stage on the device.
  struct Offload {
    std::array<Freight, 2> freights;  ///< chunk i uses i % 2
    std::size_t launched = 0, taken = 0;
    bool tables = false;  ///< tables are on the device
  };

  void count(const char* stage, std::size_t items);
  void begin_chunk(const char* stage, std::size_t items);
  std::vector<weir::Event> enqueue(std::size_t count);
  void abandon() noexcept;
  void launch(const char* stage, const DeviceStage& code, std::span<const std::byte> items);
  void start(const char* stage, const DeviceStage& code, Offload& offload, Freight& freight,
             std::span<const std::byte> items);
  std::span<const std::byte> results(const char* stage, const DeviceStage& code);
  void fetch(const DeviceStage& code, Freight& freight);
  void reserve(const char* stage, Freight& freight, std::size_t items, std::size_t made) const;

  const weir::Runtime& runtime_;
  const AppStreams& streams_;
  std::vector<const AppStream*> hosts_;  ///< one for each core
  std::size_t virtual_cores_ = 1;
  double left_ns_ = 0;  ///< of virtual time, less than one nanosecond
  const AppStream* const device_;
  const ChunkOverlap overlap_;
  std::map<std::string, Offload> offloads_;  ///< by stage
  const std::function<void(const ChunkPart&)>* code_ = nullptr;
  weir::Kernel kernel_;
  Deadline deadline_{weir::forever};
  std::size_t synchronizations_ = 0;
  std::vector<Stage> stages_;
};

}  // namespace weir::apps
