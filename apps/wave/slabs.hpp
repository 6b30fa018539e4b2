// A wave field cut into slabs, one for each place, and their steps in streams bound by hand.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/app_streams.hpp"
#include "common/dense.hpp"
#include "wave/acoustics.hpp"
#include "wave/grid_shape.hpp"
#include "wave/wave_kernels.hpp"

namespace weir::apps {

/// Copies the cells of `count` stored planes, from plane `from` on, to a matrix with a column for
/// each line of cells, from plane `to` on.
template <class T>
void copy_cells(const GridShape& shape, const Matrix<T>& stored, std::size_t from,
                std::size_t count, Matrix<T>& cells, std::size_t to) {
  for (std::size_t z = 0; z < count; ++z) {
    for (std::size_t y = 0; y < shape.n; ++y) {
      std::copy_n(&stored(shape.cell(0, y), from + z), shape.n, &cells(0, y + shape.n * (to + z)));
    }
  }
}

/// Planes [begin, end) of a slab, counted from its first.
struct PlaneRange {
  std::size_t begin, end;
};

/// The planes of one place. Two fields hold the newest step alternately; each has halos, the
/// nearest planes of the neighbours.
template <class T>
struct Slab {
  Slab(const GridShape& shape, const AppStream& bound, std::size_t first_plane, std::size_t count,
       std::size_t block)
      : stream(&bound), first(first_plane), planes(count) {
    for (Matrix<T>& field : memory) field = Matrix<T>(shape.plane(), planes + 2 * kReach);
    if (planes == shape.n) {  // no neighbour needs its edges
      divide({0, planes}, block);
    } else if (planes < 2 * kReach) {
      edges = {{0, planes}};
    } else {
      edges = {{0, kReach}, {planes - kReach, planes}};
      divide({kReach, planes - kReach}, block);
    }
  }

  /// Calls visit(range) for the planes of each action.
  template <class Visit>
  void for_ranges(const Visit& visit) const {
    for (const auto* ranges : {&edges, &interior}) {
      for (const PlaneRange& range : *ranges) visit(range);
    }
  }

  bool has(std::size_t z) const noexcept { return z >= first && z < first + planes; }

  /// Cuts planes into blocks, of which the last may be smaller.
  void divide(PlaneRange inside, std::size_t block) {
    for (std::size_t begin = inside.begin; begin < inside.end; begin += block) {
      interior.push_back({begin, std::min(begin + block, inside.end)});
    }
  }

  const AppStream* stream;
  std::size_t first, planes;
  std::array<Matrix<T>, 2> memory;
  std::vector<PlaneRange> edges, interior;  ///< the edges that neighbours need, and the rest
};

/// Steps of all slabs. A field with an odd number of steps is field 1, the others are field 0.
template <class T>
class Slabs {
 public:
  /// Prepares for some media. An action makes `block` planes, 0: two actions for each core. With
  /// `overlap` the edges of slabs are made first and travel while the interior is made; without it
  /// all is made before anything travels, and all has arrived before the next step.
  Slabs(const weir::Runtime& runtime, const AppStreams& app_streams, std::size_t n,
        const std::vector<Layers>& media, std::size_t block, bool overlap)
      : shape_{n}, overlap_(overlap), kernels_(runtime), kept_(n) {
    const std::vector<double> profile = sponge(n);
    std::transform(profile.begin(), profile.end(), kept_.begin(),
                   [](double value) { return static_cast<T>(value); });
    kept_buffer_ = runtime.wrap(kept_, "sponge");
    cut(app_streams, block);
    for (Slab<T>& slab : slabs_) wrap(runtime, slab, media);
  }

  const GridShape& shape() const noexcept { return shape_; }
  const WaveKernels<T>& kernels() const noexcept { return kernels_; }
  const std::vector<Slab<T>>& all() const noexcept { return slabs_; }
  /// Actions of a step.
  std::size_t actions() const noexcept {
    std::size_t count = 0;
    for (const Slab<T>& slab : slabs_) count += slab.edges.size() + slab.interior.size();
    return count;
  }
  /// Planes of the largest action.
  std::size_t block() const noexcept {
    std::size_t most = 0;
    for (const Slab<T>& slab : slabs_) {
      slab.for_ranges(
          [&](const PlaneRange& range) { most = std::max(most, range.end - range.begin); });
    }
    return most;
  }

  /// Planes of a slab's field.
  weir::Region planes(const Slab<T>& slab, std::size_t field, PlaneRange range) const {
    return stored(slab, field, range.begin + kReach, range.end - range.begin);
  }
  /// One cell; z counts from the top of the grid.
  weir::Region cell(const Slab<T>& slab, std::size_t field, std::size_t x, std::size_t y,
                    std::size_t z) const {
    const std::size_t plane = z - slab.first + kReach;
    return field_of(slab, field)
        .template elements<T>(plane * shape_.plane() + shape_.cell(x, y), 1);
  }

  /// Brings the media to the memories of the slabs.
  void upload() const {
    for (std::size_t i = 0; i < slabs_.size(); ++i) {
      const weir::Stream& stream = slabs_[i].stream->stream;
      stream.upload(kept_buffer_.all());
      for (const Medium& medium : buffers_[i].media) stream.upload(medium.buffer.all());
    }
  }

  /// Sets all fields to zero, ordered after earlier and before later actions of the slabs.
  void clear() const {
    meet();
    for (const Slab<T>& slab : slabs_) {
      for (const weir::Buffer& field : buffers_of(slab).fields) {
        slab.stream->stream.compute(kernels_.set, {weir::write(field.all())}, {0}, "clear");
      }
    }
    meet();
  }

  /// Makes step number `step`, counted from 0, in a medium. Calls made(slab, range, field) after
  /// each action, to enqueue further actions on these planes.
  template <class Made>
  void step(std::size_t step, std::size_t medium, const Made& made) const {
    const std::size_t next = (step + 1) % 2;
    const auto make = [&](const Slab<T>& slab, const std::vector<PlaneRange>& ranges) {
      for (const PlaneRange& range : ranges) {
        compute(slab, range, next, medium, &ranges == &slab.edges ? "edge" : "interior");
        made(slab, range, next);
      }
    };
    for (const Slab<T>& slab : slabs_) {
      make(slab, slab.edges);
      if (!overlap_) make(slab, slab.interior);
    }
    exchange(next);
    for (const Slab<T>& slab : slabs_) {
      if (overlap_) make(slab, slab.interior);
    }
  }

  /// Brings a field to the program's memory.
  void download(std::size_t field) const {
    for (const Slab<T>& slab : slabs_) {
      slab.stream->stream.download(planes(slab, field, {0, slab.planes}));
    }
  }

 private:
  struct Medium {
    Matrix<T> memory;
    weir::Buffer buffer;
  };
  struct Buffers {
    std::array<weir::Buffer, 2> fields;
    std::vector<Medium> media;
  };
  /// Planes that one slab needs of its neighbour.
  struct Halo {
    const Slab<T>* from;
    const Slab<T>* to;
    weir::Region source, target;

    /// The slab whose stream makes the transfer: one with a memory of its own.
    const Slab<T>& transfer_slab() const { return to->stream->memory != nullptr ? *to : *from; }
  };

  void cut(const AppStreams& app_streams, std::size_t block) {
    std::vector<std::size_t> counts(app_streams.places(), 0);
    for (const std::size_t place : app_streams.deal(shape_.n)) ++counts[place];
    std::size_t first = 0;
    for (std::size_t place = 0; place < counts.size(); ++place) {
      const std::size_t planes = counts[place];
      if (planes < kReach && counts.size() > 1) {
        fail_input(
            "place {} of {} gets {} of {} planes: it needs {}: choose a larger --n or fewer "
            "places",
            place + 1, counts.size(), planes, shape_.n, kReach);
      }
      slabs_.emplace_back(shape_, app_streams.urgent(place), first, planes,
                          block > 0 ? block : usual_block(planes, app_streams.cores(place)));
      first += planes;
    }
  }

  /// Two actions for each core, with as many planes in one as in the other.
  std::size_t usual_block(std::size_t planes, std::size_t cores) const noexcept {
    const auto divide = [](std::size_t a, std::size_t b) { return (a + b - 1) / b; };
    const std::size_t most = std::max(divide(planes, 2 * cores), kReach);
    const std::size_t edges = planes == shape_.n ? 0 : std::min(planes, 2 * kReach);
    const std::size_t inside = std::max<std::size_t>(1, planes - edges);
    return divide(inside, divide(inside, most));
  }

  void wrap(const weir::Runtime& runtime, Slab<T>& slab, const std::vector<Layers>& media) {
    Buffers buffers;
    for (std::size_t field = 0; field < buffers.fields.size(); ++field) {
      Matrix<T>& memory = slab.memory[field];
      buffers.fields[field] = runtime.wrap(memory.data(), memory.size() * sizeof(T), "field");
    }
    for (const Layers& layers : media) {
      Medium medium{Matrix<T>(shape_.plane(), slab.planes), {}};
      for (std::size_t z = 0; z < slab.planes; ++z) {
        const double speed = layers.speed(slab.first + z);
        std::fill_n(&medium.memory(0, z), shape_.plane(), static_cast<T>(speed * speed));
      }
      medium.buffer =
          runtime.wrap(medium.memory.data(), medium.memory.size() * sizeof(T), "medium");
      buffers.media.push_back(std::move(medium));
    }
    buffers_.push_back(std::move(buffers));
  }

  const Buffers& buffers_of(const Slab<T>& slab) const {
    return buffers_[static_cast<std::size_t>(&slab - slabs_.data())];
  }
  const weir::Buffer& field_of(const Slab<T>& slab, std::size_t field) const {
    return buffers_of(slab).fields[field];
  }
  /// Planes as they are stored, behind the lower halo.
  weir::Region stored(const Slab<T>& slab, std::size_t field, std::size_t first,
                      std::size_t count) const {
    return field_of(slab, field)
        .template elements<T>(first * shape_.plane(), count * shape_.plane());
  }

  /// Makes all slabs wait for each other.
  void meet() const {
    std::vector<weir::Event> events;
    for (const Slab<T>& slab : slabs_) events.push_back(slab.stream->stream.mark());
    for (const Slab<T>& slab : slabs_) {
      slab.stream->stream.sync(events, {}, WEIR_SYNC_SCOPE_STREAM);
    }
  }

  void compute(const Slab<T>& slab, PlaneRange range, std::size_t next, std::size_t medium,
               const char* name) const {
    const std::size_t count = range.end - range.begin, plane = shape_.plane();
    const weir::Region speed = buffers_of(slab).media[medium].buffer.template elements<T>(
        range.begin * plane, count * plane);
    slab.stream->stream.compute(
        kernels_.step,
        {weir::readwrite(planes(slab, next, range)),
         weir::read(stored(slab, 1 - next, range.begin, count + 2 * kReach)), weir::read(speed),
         weir::read(kept_buffer_.all())},
        {shape_.n, shape_.row(), plane, slab.first + range.begin}, name);
  }

  std::vector<Halo> halos(std::size_t field) const {
    std::vector<Halo> all;
    for (std::size_t i = 0; i + 1 < slabs_.size(); ++i) {
      const Slab<T>&upper = slabs_[i], &lower = slabs_[i + 1];
      all.push_back({&upper, &lower, stored(upper, field, upper.planes, kReach),
                     stored(lower, field, 0, kReach)});
      all.push_back({&lower, &upper, stored(lower, field, kReach, kReach),
                     stored(upper, field, upper.planes + kReach, kReach)});
    }
    return all;
  }

  /// Copies the edges of a field to the halos of the neighbours. No slab can be a step ahead of its
  /// neighbour: it computes its edge from the halo that the neighbour's last step filled. So a halo
  /// is free when its next contents arrive, and an edge is not overwritten before it has been
  /// copied.
  void exchange(std::size_t field) const {
    const std::vector<Halo> all = halos(field);
    for (const Halo& halo : all) await_edge(halo);
    std::vector<weir::Event> arrived;
    for (const Halo& halo : all) {
      arrived.push_back(halo.transfer_slab().stream->stream.transfer(
          {halo.from->stream->memory, halo.source.buffer, halo.source.region},
          {halo.to->stream->memory, halo.target.buffer, halo.target.region}));
    }
    for (std::size_t i = 0; i < all.size(); ++i) await_halo(all[i], arrived[i]);
  }

  void await_edge(const Halo& halo) const {
    const weir::Stream &transfer_stream = halo.transfer_slab().stream->stream,
                       &maker = halo.from->stream->stream;
    if (!overlap_) {
      transfer_stream.wait(maker.barrier());
    } else if (&transfer_stream != &maker) {
      transfer_stream.wait(maker.sync({}, {&halo.source, 1}, WEIR_SYNC_SCOPE_OPERANDS),
                           halo.target);
    }
  }

  void await_halo(const Halo& halo, const weir::Event& arrived) const {
    const weir::Stream& reader = halo.to->stream->stream;
    if (!overlap_) {
      reader.wait(arrived);
    } else if (&halo.transfer_slab().stream->stream != &reader) {
      reader.wait(arrived, halo.target);
    }
  }

  GridShape shape_;
  bool overlap_;
  WaveKernels<T> kernels_;
  std::vector<T> kept_;
  weir::Buffer kept_buffer_;
  std::vector<Slab<T>> slabs_;
  std::vector<Buffers> buffers_;  ///< of each slab; they go before the memory that they wrap
};

}  // namespace weir::apps
