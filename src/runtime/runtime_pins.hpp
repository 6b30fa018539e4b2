// Pins all streams or queues while a thread uses them.
#pragma once

#include <vector>

#include "runtime/runtime.hpp"

namespace weir::rt {

/// All streams. None is destroyed while this exists.
class Runtime::PinnedStreams {
 public:
  explicit PinnedStreams(Runtime& runtime) : runtime_(runtime) {
    sys::Lock lock(runtime_.mutex_);
    list_.reserve(runtime_.streams_.size());
    for (const auto& [serial, stream] : runtime_.streams_) {
      if (stream->registration.being_destroyed) continue;
      ++stream->registration.pins;
      list_.push_back(stream.get());
    }
  }
  PinnedStreams(const PinnedStreams&) = delete;
  PinnedStreams& operator=(const PinnedStreams&) = delete;
  ~PinnedStreams() {
    sys::Lock lock(runtime_.mutex_);
    for (weir_stream* stream : list_) --stream->registration.pins;
    lock.unlock();
    runtime_.stream_unpinned_.notify_all();
  }

  const std::vector<weir_stream*>& list() const noexcept { return list_; }

 private:
  Runtime& runtime_;
  std::vector<weir_stream*> list_;
};

/// All queues. None is destroyed while this exists.
class Runtime::PinnedQueues {
 public:
  explicit PinnedQueues(Runtime& runtime) : runtime_(runtime) {
    sys::Lock lock(runtime_.mutex_);
    list_.reserve(runtime_.queues_.size());
    for (const auto& queue : runtime_.queues_) {
      ++queue->pins;
      list_.push_back(queue.get());
    }
  }
  PinnedQueues(const PinnedQueues&) = delete;
  PinnedQueues& operator=(const PinnedQueues&) = delete;
  ~PinnedQueues() {
    sys::Lock lock(runtime_.mutex_);
    for (weir_queue* queue : list_) --queue->pins;
    lock.unlock();
    runtime_.stream_unpinned_.notify_all();
  }

  const std::vector<weir_queue*>& list() const noexcept { return list_; }

 private:
  Runtime& runtime_;
  std::vector<weir_queue*> list_;
};

}  // namespace weir::rt
