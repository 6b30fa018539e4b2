// The recorded calls of a graph.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <weir/kernel.h>

#include "core/action.hpp"

namespace weir::rt {

/// The kernel calls of a graph in program order. Throws std::bad_alloc, and then keeps the calls
/// that it had.
///
/// A *piece* is a region of a buffer that calls name. Calls refer to pieces, and pieces to buffers,
/// by index, so that a launch may use other buffers.
class CallList {
 public:
  struct Use {
    std::uint32_t piece;
    weir_access access;

    bool writes() const noexcept { return (access & WEIR_ACCESS_WRITE) != 0; }
  };
  struct Call {
    const KernelCode* code;
    const char* name;
    std::uint32_t first_use, first_scalar;
    std::uint16_t use_count;
    std::uint8_t scalar_count;
    bool parallel;  ///< the kernel uses the whole place
  };
  struct Piece {
    std::uint32_t buffer;
    Region region;
  };
  struct UsedBuffer {
    Buffer* buffer;
    std::uint64_t id, bytes;
    std::uint64_t begin, end;  ///< offsets of the first byte that calls use, and after the last
    bool written;
  };
  /// A scalar whose value a launch may give.
  struct Parameter {
    std::uint32_t scalar;
    std::uint32_t index;
  };

  /// Adds a compute action. Its scalars have plain types; `parameters` has for each of them the
  /// index of its parameter plus one, or 0.
  void add(const Action& action, std::span<const std::uint32_t> parameters);

  const std::vector<Call>& calls() const noexcept { return calls_; }
  const std::vector<Piece>& pieces() const noexcept { return pieces_; }
  const std::vector<UsedBuffer>& buffers() const noexcept { return buffers_; }
  const std::vector<weir_scalar>& scalars() const noexcept { return scalars_; }
  const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
  std::span<const Use> uses_of(const Call& call) const noexcept {
    return {uses_.data() + call.first_use, call.use_count};
  }
  /// Returns the view of a use, without an address.
  weir_view view_of(const Use& use) const noexcept;
  std::size_t most_uses() const noexcept { return most_uses_; }

 private:
  struct PieceHash {
    std::size_t operator()(const Piece& piece) const noexcept {
      std::uint64_t hash = piece.region.offset * 0x9E3779B97F4A7C15u;
      hash ^= (piece.region.row + (std::uint64_t{piece.region.rows} << 32)) * 0xC2B2AE3D27D4EB4Fu;
      return (hash ^ hash >> 29) + piece.buffer;
    }
  };
  struct SamePiece {
    bool operator()(const Piece& a, const Piece& b) const noexcept {
      return a.buffer == b.buffer && a.region == b.region;
    }
  };

  std::uint32_t buffer_of(const Operand& operand);
  std::uint32_t piece_of(const Operand& operand);

  std::vector<Call> calls_;
  std::vector<Use> uses_;
  std::vector<weir_scalar> scalars_;
  std::vector<Parameter> parameters_;
  std::vector<Piece> pieces_;
  std::vector<UsedBuffer> buffers_;
  std::unordered_map<Piece, std::uint32_t, PieceHash, SamePiece> piece_index_;
  std::unordered_map<std::uint64_t, std::uint32_t> buffer_index_;
  std::set<std::string> names_;  ///< nodes do not move
  std::size_t most_uses_ = 0;
};

}  // namespace weir::rt
