#include "kernels/memory_kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/memory_calls.hpp"

namespace weir::kernels {

namespace {

constexpr std::size_t kPiece = 256 << 10;  ///< bytes that one thread handles at once
constexpr std::size_t kGrain = 64 << 10;   ///< less is not worth another thread

double bytes_of(const weir_view& view) {
  return static_cast<double>(view.extent[0]) * static_cast<double>(view.extent[1]) *
         static_cast<double>(view.extent[2]);
}

/// The contiguous pieces of a shape, numbered.
class Pieces {
 public:
  explicit Pieces(const weir_view& shape)
      : row_(shape.extent[0]),
        rows_(shape.extent[1]),
        in_row_((row_ + kPiece - 1) / kPiece),
        count_(in_row_ * rows_ * shape.extent[2]) {}

  std::size_t count() const noexcept { return count_; }
  std::size_t grain() const noexcept { return std::max<std::size_t>(1, kGrain / row_); }
  std::size_t size(std::size_t index) const noexcept {
    return std::min(kPiece, row_ - index % in_row_ * kPiece);
  }
  /// Where the piece of a view of this shape starts.
  std::byte* at(const weir_view& view, std::size_t index) const noexcept {
    const std::size_t row = index / in_row_ % rows_, plane = index / in_row_ / rows_;
    return static_cast<std::byte*>(view.address) + plane * view.stride[1] + row * view.stride[0] +
           index % in_row_ * kPiece;
  }

 private:
  std::size_t row_, rows_, in_row_, count_;
};

/// Runs body(index) for all pieces on the team of the call.
template <class Body>
void for_each(const weir_call& call, const Pieces& pieces, const Body& body) {
  const auto run = [](std::size_t begin, std::size_t end, std::size_t, void* payload) {
    const Body& shared = *static_cast<const Body*>(payload);
    for (std::size_t index = begin; index < end; ++index) shared(index);
  };
  weir_team_for(call.team, pieces.count(), pieces.grain(), run, const_cast<Body*>(&body));
}

void set(const weir_call& call) {
  const SetCall arguments(call);
  const Pieces pieces(arguments.x);
  for_each(call, pieces, [&](std::size_t index) {
    std::memset(pieces.at(arguments.x, index), arguments.byte, pieces.size(index));
  });
}

void copy(const weir_call& call) {
  const CopyCall arguments(call);
  const Pieces pieces(arguments.x);
  for_each(call, pieces, [&](std::size_t index) {
    std::memcpy(pieces.at(arguments.y, index), pieces.at(arguments.x, index), pieces.size(index));
  });
}

weir_cost cost_of_set(const weir_call& call) {
  return {0, bytes_of(CallArguments(call, "byte", "X").view(0, WEIR_ACCESS_WRITE))};
}
weir_cost cost_of_copy(const weir_call& call) {
  return {0, 2 * bytes_of(CallArguments(call, "", "X, Y").view(0, WEIR_ACCESS_READ))};
}

constexpr BuiltinKernel kKernels[] = {
    {"mem.set", run_kernel<set>, cost_of<cost_of_set>},
    {"mem.copy", run_kernel<copy>, cost_of<cost_of_copy>},
};

}  // namespace

std::span<const BuiltinKernel> memory_kernels() { return kKernels; }

}  // namespace weir::kernels
