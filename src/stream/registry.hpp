// The places, streams and buffers of a runtime.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <utility>
#include <vector>

#include <weir/place.h>
#include <weir/stream.h>

#include "base/handle.hpp"
#include "base/log.hpp"
#include "base/thread_role.hpp"
#include "base/threads.hpp"
#include "stream/buffer_table.hpp"
#include "stream/context.hpp"
#include "stream/pinned.hpp"
#include "stream/place.hpp"
#include "stream/reaper.hpp"
#include "stream/stream.hpp"
#include "stream/waiting.hpp"

namespace weir::rt {

/// Owns the places, streams and buffers of a runtime: creates, pins, synchronises and destroys
/// them. Task queues, shares and pipelines create theirs here. Any thread.
///
/// A thread that uses a stream without owning its handle pins it; a destruction waits until the
/// stream has no pins. Kernels and callbacks may destroy objects: the reaper's thread then waits
/// for the end in their place.
class Registry : public Context {
 public:
  /// Returns the registry of a context; each context is the base of one.
  static Registry& of(Context& context) noexcept { return static_cast<Registry&>(context); }

  // Places and streams. They throw Error.
  weir_place* create_place(Domain& domain, const weir_place_options& options);
  void partition(Domain& domain, std::size_t count, bool oversubscribe, weir_place** out_places);
  /// Returns the number of cores without a place. Includes cores of places in destruction if the
  /// caller may wait.
  std::size_t free_cores(const Domain& domain) noexcept;
  void destroy_place(weir_place* place) noexcept;
  weir_stream* create_stream(Place& place, const weir_stream_options& options);
  void destroy_stream(weir_stream* stream) noexcept;

  BufferTable& buffers() noexcept { return buffers_; }
  const BufferTable& buffers() const noexcept { return buffers_; }
  /// Waits until no action uses the buffer and destroys it.
  void destroy_buffer(weir_buffer* buffer) noexcept;

  WaitResult synchronize(Stream& stream, std::int64_t timeout_ns);
  /// Waits until everything in the streams is complete. They keep their failures. Returns false at
  /// the time-out.
  bool await_end(const std::vector<weir_stream*>& streams, std::int64_t timeout_ns);

  /// Calls use(streams). The streams are not destroyed meanwhile.
  void with_streams(const std::function<void(const std::vector<weir_stream*>&)>& use);
  /// Calls use(place) for all places. It must not create or destroy places.
  void each_place(const std::function<void(const Place&)>& use) const;
  void get_stats(weir_stats& stats) const;

 protected:
  Registry() : buffers_(*this) {}
  ~Registry() = default;

  /// Whether another thread destroys the object, or has done so. A kernel or callback must not wait
  /// for that: the reaper then calls destroy(object).
  template <class Object, class Destroy>
  bool destroyed_elsewhere(Object* object, Destroy destroy) noexcept;
  /// Synchronises all streams.
  WaitResult drain_all(std::int64_t timeout_ns);
  /// Waits for the end of all streams, and cancels them at the deadline.
  void shut_down(std::int64_t deadline_ns) noexcept;
  /// Waits until everything is complete and no thread owns a stream. Returns false at once if that
  /// will not happen because a callback has enqueued more work.
  bool wait_until_no_owners() noexcept WEIR_NOT_ANALYSED;
  /// Logs the unreported failures of streams.
  void report_unreported_streams() noexcept;
  /// Destroys everything, after shut_down().
  void clear() noexcept WEIR_NOT_ANALYSED;

  Reaper& reaper() noexcept { return reaper_; }
  /// Called before a buffer is destroyed, for objects that use buffers without a stream. Set once.
  std::function<void(weir_buffer&)> before_destruction_;

 private:
  using Drains = std::list<Stream::Drain>;

  Pinned<weir_stream> pin_streams();
  std::vector<unsigned> take_cores(Domain& domain, const weir_place_options& options);
  weir_stream* any_stream_of(const Place& place);
  WaitResult drain(const std::vector<weir_stream*>& streams, std::int64_t timeout_ns);
  void add_drains_of(weir_stream& stream, Drains& drains);
  bool abandon(Drains& drains) noexcept;
  void return_abandoned(Drains& drains) noexcept;
  bool forget_abandoned(Drains& drains);
  void wait_until_complete(const Stream& stream) noexcept;
  void wait_until_no_owner(const Stream& stream) noexcept;
  void wait_for_users(const Buffer& buffer) noexcept;
  void shut_down_without_memory(std::int64_t deadline_ns) noexcept WEIR_NOT_ANALYSED;

  mutable sys::Mutex mutex_;
  sys::Condition stream_unpinned_, stream_removed_;
  std::vector<Owned<weir_place>> places_ WEIR_GUARDED_BY(mutex_);
  std::map<std::uint64_t, Owned<weir_stream>> streams_ WEIR_GUARDED_BY(mutex_);
  weir_stats finished_stats_ WEIR_GUARDED_BY(mutex_){};  ///< of destroyed streams
  BufferTable buffers_;
  Reaper reaper_;
};

template <class Object, class Destroy>
bool Registry::destroyed_elsewhere(Object* object, Destroy destroy) noexcept {
  if (!NoWaitScope::active()) return !reaper_.take_back(object);
  try {
    reaper_.add(object, [object, destroy] { destroy(object); });
  } catch (const std::exception& error) {
    log::warning("{} '{}' stays until the runtime ends: a kernel or callback destroys it, and {}",
                 Object::kNoun, object->name(), error.what());
  }
  return true;
}

}  // namespace weir::rt
