// Blocks of small items: how a conveyor writes them, what they are on the wire, and how they are
// read.
//
// A block is a sequence of segments, in the order in which the items were put; all items of a
// segment are of one kind and size. Addresses and data are apart from each other. A segment has an
// address for each item, or one for each run of adjacent items, whichever is shorter, and in four
// bytes where they fit.
//
//   head:     BlockHead | Segment... | addresses of all segments, each on 8 bytes
//   data:     of all segments, each on 16 bytes
//   block:    head | data, or data | head, which begins on 16 bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "net/line_index.hpp"

namespace weir::rt {

enum class ItemKind : std::uint8_t {
  put,   ///< bytes for an address
  add,   ///< an int64 that is added to the one at an address
  send,  ///< bytes for a handler
};

/// What all items of a segment have in common.
struct ItemType {
  ItemKind kind = ItemKind::put;
  std::uint16_t handler = 0;
  std::uint32_t bytes = 0;

  bool operator==(const ItemType&) const = default;
};

/// Sizes that items may have.
inline constexpr std::size_t kItemStep = 8, kLargestItem = 256;

/// What happened to the items of a block.
struct BlockCount {
  std::uint64_t items = 0;     ///< that were put
  std::uint64_t bytes = 0;     ///< of their data
  std::uint64_t combined = 0;  ///< of the items, those that another of the block took in
  std::uint64_t joined = 0;    ///< of the items, those that were adjacent to the one before
};

/// What decides how addresses are written.
struct AddressFacts {
  std::uint64_t first = 0;
  std::uint64_t next = 0;       ///< what is adjacent to the last
  std::uint64_t differing = 0;  ///< bits that are not the same in all
  std::size_t runs = 0;

  /// Of items of so many bytes that come behind the others.
  void add(const std::uint64_t* addresses, std::size_t count, std::size_t bytes) noexcept;
  /// All addresses are base(), or beyond it by at most reach() and by multiples of the lowest bit
  /// that differs.
  std::uint64_t reach() const noexcept;
  std::uint64_t base() const noexcept;
};

/// Collects items for one destination. One thread.
class BlockWriter {
 public:
  /// `bytes` in all at most, when addresses are narrow, and `items`; 0: as many as there is room
  /// for. Room for one item of any size and what belongs to it is the least.
  BlockWriter(std::size_t bytes, std::size_t items) noexcept : bytes_(bytes), items_(items) {}

  bool empty() const noexcept { return count_.items == 0; }
  const BlockCount& count() const noexcept { return count_; }

  /// Bytes that a block that does not combine takes, with all that belongs to it.
  std::size_t memory_bytes() const noexcept;

  /// Begins an empty block. One that combines keeps a single item of those with the same address,
  /// as far as it finds them, and is four times as large. Throws std::bad_alloc, but not when a
  /// block of the kind was open before.
  void open(bool combining);
  /// Begins an empty block that does not combine in memory of memory_bytes(), on 64 bytes. Throws
  /// std::bad_alloc, but not when another block was open before.
  void open_in(std::byte* memory);

  /// Begins an empty block that does not combine in memory of packet_bytes(), on 64 bytes, where
  /// its head comes behind its data: both are sent from there. Takes `bytes` in all. Throws
  /// std::bad_alloc.
  void open_packet(std::byte* memory, std::size_t bytes);
  std::size_t packet_bytes(std::size_t bytes) const noexcept;

  /// Takes items of one type in turn, as many as there is room for, and returns how many. Addresses
  /// are ignored for ItemKind::send.
  std::size_t take(const ItemType& type, const std::uint64_t* addresses, const std::byte* data,
                   std::size_t count);

  /// The block as it is sent, in two parts.
  struct Parts {
    std::span<std::byte> head;
    std::span<const std::byte> data;
  };
  /// Ends the block. What is sent begins with the envelope, of up to kLargestEnvelope bytes in
  /// steps of 16, but that of a packet. Valid until the next block is begun, or as long as the
  /// memory it was given.
  Parts close(std::span<const std::byte> envelope) noexcept;
  static constexpr std::size_t kLargestEnvelope = 64;
  /// Bytes of the block that close() has ended, without the envelope.
  std::size_t closed_bytes() const noexcept { return closed_bytes_; }

 private:
  struct Segment {
    ItemType type;
    std::uint32_t first = 0;   ///< of its addresses
    std::uint32_t stored = 0;  ///< items that are in the block
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
  std::size_t used_ = 0;  ///< of the limit
  std::vector<Segment> segments_;
  std::vector<std::uint64_t> head_;  ///< room for what comes before them, then the addresses
  std::vector<std::byte> own_;       ///< room for the data of blocks that no memory is given for
  std::byte* given_ = nullptr;       ///< memory of this block
  bool packet_ = false;              ///< that is a packet's
  std::byte* data_ = nullptr;        ///< there, or the own room
  std::size_t address_count_ = 0, stored_ = 0, data_used_ = 0, segment_data_ = 0;
  LineIndex index_;
  BlockCount count_;
  std::size_t closed_bytes_ = 0;
};

/// Takes the items of a block for a handler: `items` are aligned on 16 bytes.
class ItemHandler {
 public:
  virtual void handle(std::uint16_t handler, const std::byte* items, std::size_t count) = 0;

 protected:
  ~ItemHandler() = default;
};

/// What the items of blocks go to.
struct BlockTarget {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::span<const std::uint32_t> handlers;  ///< the size of the items of each
  ItemHandler* handler = nullptr;
};

/// Applies all items of a block, or none of one that is not valid, and says why: "" when all is
/// well. What handlers throw gets out.
std::string apply_block(std::span<const std::byte> block, const BlockTarget& target,
                        std::vector<std::byte>& scratch);
/// The same for one in two parts, as close() gives them.
std::string apply_block(std::span<const std::byte> head, std::span<const std::byte> data,
                        const BlockTarget& target, std::vector<std::byte>& scratch);

}  // namespace weir::rt
