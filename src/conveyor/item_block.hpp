// Blocks of small items: how a conveyor writes and reads them, and their wire format.
//
// A block is a sequence of segments in the order in which the items were put. All items of a
// segment have one kind and size. Addresses and data are stored separately. A segment has one
// address per item or one per run of adjacent items, whichever is shorter, in four bytes each if
// they fit.
//
//   head:     BlockHead | Segment... | addresses of each segment, aligned to 8 bytes
//   data:     of each segment, aligned to 16 bytes
//   block:    head | data, or data | head; the second part is aligned to 16 bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "conveyor/line_index.hpp"

namespace weir::rt {

enum class ItemKind : std::uint8_t {
  put,   ///< bytes for an address
  add,   ///< an int64 to add to the one at an address
  send,  ///< bytes for a handler
};

/// The common properties of the items of a segment.
struct ItemType {
  ItemKind kind = ItemKind::put;
  std::uint16_t handler = 0;
  std::uint32_t bytes = 0;

  bool operator==(const ItemType&) const = default;
};

/// Item sizes are multiples of kItemStep, up to kLargestItem.
inline constexpr std::size_t kItemStep = 8, kLargestItem = 256;

/// Statistics of one block.
struct BlockCount {
  std::uint64_t items = 0;     ///< items that were put
  std::uint64_t bytes = 0;     ///< bytes of their data
  std::uint64_t combined = 0;  ///< items that were merged into another item of the block
  std::uint64_t joined = 0;    ///< items that were adjacent to the previous one
};

/// Statistics from which the address format is chosen.
struct AddressFacts {
  std::uint64_t first = 0;
  std::uint64_t next = 0;       ///< the address adjacent to the last item
  std::uint64_t differing = 0;  ///< bits that differ between addresses
  std::size_t runs = 0;

  /// Adds items of `bytes` bytes each after the earlier ones.
  void add(const std::uint64_t* addresses, std::size_t count, std::size_t bytes) noexcept;
  /// Each address is base() plus at most reach(), in multiples of the lowest differing bit.
  std::uint64_t reach() const noexcept;
  std::uint64_t base() const noexcept;
};

/// Collects items for one destination. One thread.
class BlockWriter {
 public:
  /// The block takes at most `bytes` bytes, with four-byte addresses, and at most `items` items; 0:
  /// as many as fit. `bytes` must hold at least one item of any size with its headers.
  BlockWriter(std::size_t bytes, std::size_t items) noexcept : bytes_(bytes), items_(items) {}

  bool empty() const noexcept { return count_.items == 0; }
  const BlockCount& count() const noexcept { return count_; }

  /// Returns the size of a block that does not combine, with all headers.
  std::size_t memory_bytes() const noexcept;

  /// Begins an empty block. A combining block keeps one item per address, as far as it finds
  /// repeats, and is four times as large. Throws std::bad_alloc, but not if a block of that kind
  /// was open before.
  void open(bool combining);
  /// Begins an empty block that does not combine in `memory` of memory_bytes(), aligned to 64
  /// bytes. Throws std::bad_alloc, but not if another block was open before.
  void open_in(std::byte* memory);

  /// Begins an empty block that does not combine in `memory` of packet_bytes(bytes), aligned to 64
  /// bytes. Its head follows its data, so that both are sent in place. The block holds `bytes`
  /// bytes. Throws std::bad_alloc.
  void open_packet(std::byte* memory, std::size_t bytes);
  std::size_t packet_bytes(std::size_t bytes) const noexcept;

  /// Appends items of one type, as many as fit, and returns how many. Addresses are ignored for
  /// ItemKind::send.
  std::size_t take(const ItemType& type, const std::uint64_t* addresses, const std::byte* data,
                   std::size_t count);

  /// The block as it is sent, in two parts.
  struct Parts {
    std::span<std::byte> head;
    std::span<const std::byte> data;
  };
  /// Ends the block. The head begins with the envelope: at most kLargestEnvelope bytes, a multiple
  /// of 16, none for a packet. The result is valid until the next block begins, or as long as the
  /// memory that was passed to open_in() or open_packet().
  Parts close(std::span<const std::byte> envelope) noexcept;
  static constexpr std::size_t kLargestEnvelope = 64;
  /// Returns the size of the closed block without the envelope.
  std::size_t closed_bytes() const noexcept { return closed_bytes_; }

 private:
  struct Segment {
    ItemType type;
    std::uint32_t first = 0;   ///< index of the first address
    std::uint32_t stored = 0;  ///< number of stored items
    AddressFacts facts;
  };

  std::size_t addresses_of(std::size_t limit) const noexcept;
  void begin(std::size_t limit);
  std::byte* place_of_head(std::size_t before) noexcept;
  std::uint64_t* addresses() noexcept;
  std::size_t room_for(const ItemType& type);
  [[gnu::noinline]] void append(const std::uint64_t* addresses, const std::byte* data,
                                std::size_t count) noexcept;
  std::size_t combine(const std::uint64_t* addresses, const std::byte* data,
                      std::size_t count) noexcept;
  template <ItemKind kind, std::size_t known>
  std::size_t combine_items(const std::uint64_t* addresses, const std::byte* data,
                            std::size_t count) noexcept;

  const std::size_t bytes_, items_;
  bool combining_ = false;
  std::size_t limit_ = 0, item_limit_ = 0;
  std::size_t used_ = 0;  ///< bytes used of limit_
  std::vector<Segment> segments_;
  std::vector<std::uint64_t> head_;  ///< room for the headers, then the addresses
  std::vector<std::byte> own_;       ///< data of blocks that have no memory from outside
  std::byte* given_ = nullptr;       ///< memory from outside; null: own_
  bool packet_ = false;              ///< open_packet() began the block
  std::byte* data_ = nullptr;        ///< in given_ or own_
  std::size_t address_count_ = 0, stored_ = 0, data_used_ = 0, segment_data_ = 0;
  LineIndex index_;
  BlockCount count_;
  std::size_t closed_bytes_ = 0;
};

/// Receives the items of a block for a handler. `items` is aligned to 16 bytes.
class ItemHandler {
 public:
  virtual void handle(std::uint16_t handler, const std::byte* items, std::size_t count) = 0;

 protected:
  ~ItemHandler() = default;
};

/// Where apply_block() writes items.
struct BlockTarget {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::span<const std::uint32_t> handlers;  ///< item size of each handler
  ItemHandler* handler = nullptr;
};

/// Applies all items of a block, or none if the block is not valid. Returns a description of the
/// error; "" on success. Exceptions of handlers propagate.
std::string apply_block(std::span<const std::byte> block, const BlockTarget& target,
                        std::vector<std::byte>& scratch);
/// The same for a block in two parts, as close() returns it.
std::string apply_block(std::span<const std::byte> head, std::span<const std::byte> data,
                        const BlockTarget& target, std::vector<std::byte>& scratch);

}  // namespace weir::rt
