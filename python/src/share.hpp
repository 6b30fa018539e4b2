// Shares: an index space that places fetch chunks of.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric.hpp"
#include "session.hpp"
#include "stream.hpp"

namespace weir::py {

/// Items for one place.
struct Chunk {
  std::uint64_t first, count;
  std::shared_ptr<Stream> stream;  ///< closed when the call that got the chunk returns
  std::size_t place, way;
};

struct ShareOptions {
  const char* name = nullptr;
  const char* chunks = nullptr;
  std::vector<PlaceRef> places;
  std::vector<double> work;
  std::size_t ways = 1;
  FabricRef fabric;  ///< or null
  const char* scheduler = nullptr;
  nb::object results;  ///< memory without gaps, as many bytes for each item, or None
};

/// Owns a share, and the function that enqueues its chunks.
struct Share {
  static std::shared_ptr<Share> start(const SessionRef& session, std::uint64_t items,
                                      nb::object enqueue, const ShareOptions& options);
  ~Share() { close(); }
  void close();

  /// Waits until all items are done. Raises what the function raised, or the failure of a chunk.
  void wait(const Timeout& timeout) const;
  void cancel() const;
  weir_share_info info() const;
  /// Returns the figures of each place.
  nb::list parts() const;

  SessionRef session;
  FabricRef fabric;
  std::unique_ptr<Bytes> results;
  std::vector<PlaceRef> places;
  nb::object enqueue;
  nb::object raised;  ///< by the function first
  weir_share* handle = nullptr;

 private:
  /// Runs a function of weir with all objects that it uses held open.
  template <class Call>
  void call(Call&& call) const {
    call_released({&session->in_use, in_use_of(fabric), &in_use_}, call);
  }

  mutable InUse in_use_{"the share"};
};

}  // namespace weir::py
