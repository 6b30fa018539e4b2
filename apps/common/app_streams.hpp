// The streams of a run, with the places and domains they belong to.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <weir/weir.hpp>

namespace weir::apps {

/// A stream and where it runs.
struct AppStream {
  weir::Stream stream;
  std::size_t index;    ///< among all streams
  std::size_t domain;   ///< index in the runtime
  weir_domain* memory;  ///< whose instances its actions use; null: the program's memory

  weir::Event run(const weir::Kernel& kernel, std::initializer_list<weir::Operand> operands,
                  std::initializer_list<weir::Scalar> scalars, const char* name = nullptr) const {
    return stream.compute(kernel, operands, scalars, name);
  }
};

/// A task queue, for tasks of one priority.
struct Tasks {
  const weir::Queue& queue;
  int priority = 0;

  weir::Event run(const weir::Kernel& kernel, std::initializer_list<weir::Operand> operands,
                  std::initializer_list<weir::Scalar> scalars, const char* name = nullptr) const {
    return queue.submit(kernel, operands, scalars, {.name = name, .priority = priority});
  }
};

/// How many places and streams to make.
struct Sharing {
  std::size_t places = 1;   ///< of each domain ("spatial sharing")
  std::size_t streams = 2;  ///< of each place ("temporal sharing")
  bool teams =
      false;  ///< divide domains of many cores further, for kernels of all cores of a place
};

/// Divides each domain into places and each place into streams. The first stream of a place has
/// priority: it is for the critical path.
class AppStreams {
 public:
  /// Throws weir::Error, as when there are more places than cores.
  AppStreams(const weir::Runtime& runtime, const Sharing& sharing);

  std::size_t size() const noexcept { return app_streams_.size(); }
  const AppStream& operator[](std::size_t index) const noexcept { return app_streams_[index]; }

  /// The places, which must not be destroyed.
  std::vector<weir_place*> place_handles() const;
  /// Of all places together.
  std::size_t cores() const noexcept;
  /// Of one place.
  std::size_t cores(std::size_t place) const noexcept { return cores_[place]; }
  /// Whether a domain was divided for kernels that run on all cores of a place.
  bool teams() const noexcept { return teams_; }
  /// Whether the program's memory serves all places.
  bool share_memory() const noexcept;
  /// Returns how many memories the places use, the program's included.
  std::size_t memories() const;

  std::size_t places() const noexcept { return places_.size(); }
  const weir::Place& place(std::size_t index) const noexcept { return places_[index]; }
  std::size_t streams() const noexcept { return streams_; }
  const AppStream& urgent(std::size_t place) const noexcept {
    return app_streams_[place * streams_];
  }
  /// Returns a normal-priority stream of a place for one of many equal parts; the priority stream
  /// if there is no other.
  const AppStream& any(std::size_t place, std::size_t part) const noexcept;

  /// Distributes equal parts over the places in proportion to their cores. Returns the place of
  /// each part.
  std::vector<std::size_t> deal(std::size_t parts) const;
  /// The same for parts of unequal work: the heaviest first, each to the place that ends first.
  /// `copying`, unless it is empty: the additional work of each part at a place that does not use
  /// the program's memory.
  std::vector<std::size_t> deal(const std::vector<double>& work,
                                const std::vector<double>& copying = {}) const;
  /// Distributes parts, equal or not, over all streams, round robin over those of a place; returns
  /// the stream of each part.
  std::vector<const AppStream*> spread(std::size_t parts) const;
  std::vector<const AppStream*> spread(const std::vector<double>& work) const;
  /// The same, but each place gets parts that follow one another.
  std::vector<const AppStream*> spread_in_order(std::size_t parts) const;
  /// Returns how many consecutive parts of `bytes` bytes one copy transfers: 4 MiB together, so
  /// that the latency of a copy is small in comparison, but at most an eighth of the parts of a
  /// place, so that copies hide behind kernels.
  std::size_t batch_of(std::size_t parts, std::size_t bytes) const noexcept;
  /// How kernels use a place: several at once when it has parts for all of its cores, else all of
  /// it for one.
  weir_kernel_shape shape_for(std::size_t parts) const noexcept;
  /// Makes all streams wait for each other.
  void synchronize() const;

 private:
  std::vector<const AppStream*> streams_of(const std::vector<std::size_t>& places) const;

  std::vector<weir::Place> places_;
  std::vector<AppStream> app_streams_;
  std::vector<std::size_t> cores_;
  std::size_t streams_;
  bool teams_ = false;
};

}  // namespace weir::apps
