#include "conveyor/item_block.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "base/past_cache.hpp"
#include "base/prefetch.hpp"

namespace weir::rt {

namespace {

constexpr std::uint32_t kBlockMagic = 0x6b6c6257;
constexpr std::size_t kMostSegments = 256;
constexpr std::size_t kCombiningTimes = 4;
constexpr std::size_t kFetched = 32;         ///< items that are prefetched before they are combined
constexpr std::size_t kFetchedBytes = 1024;  ///< prefetched after a bulk append

struct BlockHead {
  std::uint32_t magic, segments;
  std::uint64_t data_bytes;
};

/// Address formats: four bytes, eight bytes, or four bytes with the length of a run.
enum Form : std::uint8_t { kNarrow, kWide, kRuns };

struct SegmentHead {
  ItemKind kind;
  std::uint8_t form;
  std::uint16_t handler, bytes;
  std::uint16_t shift;
  std::uint32_t items, entries;
  std::uint64_t base;  ///< an address is base + (word << shift)
};
static_assert(sizeof(BlockHead) == 16 && sizeof(SegmentHead) == 24);

constexpr std::size_t kHeadRoom =
    BlockWriter::kLargestEnvelope + sizeof(BlockHead) + kMostSegments * sizeof(SegmentHead);

template <std::size_t step>
std::size_t round_up(std::size_t bytes) noexcept {
  return (bytes + step - 1) / step * step;
}

template <class T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Returns the size of the memory before the data: headers, addresses and padding.
std::size_t head_bytes(std::size_t addresses) noexcept {
  return round_up<64>(kHeadRoom + 8 * (addresses + 2));
}

std::size_t entry_bytes(std::uint8_t form) noexcept { return form == 0 ? 4 : 8; }

/// Writes zeros up to the next multiple of `step` bytes from `start`. Returns the end.
template <std::size_t step>
std::byte* pad(const std::byte* start, std::byte* at) noexcept {
  const std::size_t padding =
      round_up<step>(static_cast<std::size_t>(at - start)) - static_cast<std::size_t>(at - start);
  std::memset(at, 0, padding);
  return at + padding;
}

/// Copies an item; a few instructions for the usual sizes.
void copy_item(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  switch (bytes) {
    case 8: std::memcpy(to, from, 8); return;
    case 16: std::memcpy(to, from, 16); return;
    case 32: std::memcpy(to, from, 32); return;
    case 64: std::memcpy(to, from, 64); return;
    default: std::memcpy(to, from, bytes);
  }
}

/// Prefetches the following items: a producer that puts items one by one usually has them
/// contiguous in memory.
void fetch_next(const std::byte* items) noexcept {
  for (std::size_t at = 0; at < kFetchedBytes; at += 64) __builtin_prefetch(items + at);
}

void add_word(std::byte* to, const std::byte* from) noexcept {
  const std::uint64_t sum = load<std::uint64_t>(to) + load<std::uint64_t>(from);
  std::memcpy(to, &sum, sizeof sum);
}

// ---- Writing ------------------------------------------------------------------------------------

/// Writes one address per item; `to` may overlap `from`, but not lie after it. Returns the end.
template <class Word>
std::byte* write_each(const SegmentHead& head, const std::uint64_t* from, std::byte* to) noexcept {
  constexpr std::size_t kAtOnce = 64;
  Word words[kAtOnce];
  for (std::size_t at = 0; at < head.items; at += kAtOnce) {
    const std::size_t part = std::min<std::size_t>(kAtOnce, head.items - at);
    for (std::size_t index = 0; index < part; ++index) {
      words[index] = static_cast<Word>((from[at + index] - head.base) >> head.shift);
    }
    std::memcpy(to, words, part * sizeof(Word));
    to += part * sizeof(Word);
  }
  return to;
}

/// The same with one entry per run.
std::byte* write_runs(const SegmentHead& head, const std::uint64_t* from, std::byte* to) noexcept {
  for (std::size_t at = 0; at < head.items;) {
    const std::uint64_t first = from[at];
    std::uint32_t length = head.entries == 1 ? head.items : 1;
    while (at + length < head.items && from[at + length] == first + length * head.bytes) ++length;
    const std::uint32_t run[2] = {static_cast<std::uint32_t>((first - head.base) >> head.shift),
                                  length};
    std::memcpy(to, run, sizeof run);
    to += sizeof run;
    at += length;
  }
  return to;
}

std::byte* write_addresses(const SegmentHead& head, const std::uint64_t* from,
                           std::byte* to) noexcept {
  if (head.kind == ItemKind::send) return to;
  if (head.form == kRuns) return write_runs(head, from, to);
  return head.form == kWide ? write_each<std::uint64_t>(head, from, to)
                            : write_each<std::uint32_t>(head, from, to);
}

/// Chooses the shortest format.
SegmentHead head_of(const ItemType& type, std::uint32_t items, const AddressFacts& facts) noexcept {
  SegmentHead head{type.kind, kNarrow, type.handler, static_cast<std::uint16_t>(type.bytes),
                   0,         items,   items,        facts.base()};
  if (type.kind == ItemKind::send) {
    head.entries = 0;
    return head;
  }
  const int shift = facts.differing == 0 ? 0 : std::min(std::countr_zero(facts.differing), 31);
  head.shift = static_cast<std::uint16_t>(shift);
  if (facts.reach() >> shift > UINT32_MAX) {
    head.form = kWide;
    head.shift = 0;
    head.base = 0;
  } else if (2 * facts.runs <= items) {
    head.form = kRuns;
    head.entries = static_cast<std::uint32_t>(facts.runs);
  }
  return head;
}

}  // namespace

/// The loops have one simple operation each, so that the compiler vectorises them. Addresses are
/// analysed when they arrive, while they are in the first-level cache.
void AddressFacts::add(const std::uint64_t* addresses, std::size_t count,
                       std::size_t bytes) noexcept {
  if (count == 0) return;
  if (runs == 0) first = addresses[0];
  if (runs == 0 || addresses[0] != next) ++runs;
  const std::uint64_t base = addresses[0];
  std::uint64_t bits = 0, gaps = 0;
  for (std::size_t at = 1; at < count; ++at) {
    bits |= addresses[at] ^ base;
    gaps |= addresses[at] ^ (addresses[at - 1] + bytes);
  }
  std::size_t breaks = 0;
  for (std::size_t at = 1; gaps != 0 && at < count; ++at) {
    breaks += addresses[at] != addresses[at - 1] + bytes ? 1 : 0;
  }
  differing |= bits | (base ^ first);
  runs += breaks;
  next = addresses[count - 1] + bytes;
}

std::uint64_t AddressFacts::reach() const noexcept {
  return differing == 0 ? 0 : UINT64_MAX >> std::countl_zero(differing);
}

std::uint64_t AddressFacts::base() const noexcept {
  const std::uint64_t lowest = differing & (0 - differing);
  return first & ~(reach() & (0 - lowest));
}

std::uint64_t* BlockWriter::addresses() noexcept { return head_.data() + kHeadRoom / 8; }

/// Returns the maximum number of addresses in a block.
std::size_t BlockWriter::addresses_of(std::size_t limit) const noexcept {
  const std::size_t room = limit / (kItemStep + 4);
  return items_ > 0 ? std::min(items_, room) : room;
}

std::size_t BlockWriter::memory_bytes() const noexcept {
  return head_bytes(addresses_of(bytes_)) + bytes_;
}

void BlockWriter::open(bool combining) {
  const std::size_t limit = combining ? kCombiningTimes * bytes_ : bytes_;
  if (own_.size() < limit) own_.resize(limit);
  if (combining) index_.reserve(addresses_of(limit));
  begin(limit);
  combining_ = combining;
  given_ = nullptr;
  data_ = own_.data();
}

void BlockWriter::open_in(std::byte* memory) {
  begin(bytes_);
  given_ = memory;
  data_ = memory + head_bytes(addresses_of(bytes_));
}

/// Wide addresses take four bytes more than room_for() counts.
std::size_t BlockWriter::packet_bytes(std::size_t bytes) const noexcept {
  return round_up<64>(bytes + 4 * addresses_of(bytes) + 8 * kMostSegments + 32);
}

void BlockWriter::open_packet(std::byte* memory, std::size_t bytes) {
  begin(bytes);
  given_ = data_ = memory;
  packet_ = true;
}

void BlockWriter::begin(std::size_t limit) {
  const std::size_t words = kHeadRoom / 8 + addresses_of(limit) + 1;  // 1 for the padding
  if (head_.size() < words) head_.resize(words);
  segments_.reserve(kMostSegments);
  combining_ = packet_ = false;
  limit_ = limit;
  item_limit_ = items_ > 0 ? items_ : limit_ / kItemStep;
  segments_.clear();
  address_count_ = stored_ = data_used_ = segment_data_ = 0;
  used_ = sizeof(BlockHead);
  count_ = {};
}

/// Counts four bytes for an address, the usual size.
std::size_t BlockWriter::room_for(const ItemType& type) {
  const std::size_t each = type.bytes + (type.kind == ItemKind::send ? 0 : 4);
  if (segments_.empty() || segments_.back().type != type) {
    const std::size_t begin = round_up<16>(data_used_);
    const std::size_t used = used_ + sizeof(SegmentHead) + begin - data_used_;
    if (segments_.size() == kMostSegments || stored_ == item_limit_ || used + each > limit_) {
      return 0;
    }
    pad<16>(data_, data_ + data_used_);
    data_used_ = segment_data_ = begin;
    used_ = used;
    segments_.push_back({type, static_cast<std::uint32_t>(address_count_), 0, {}});
  }
  return std::min((limit_ - used_) / each, item_limit_ - stored_);
}

std::size_t BlockWriter::take(const ItemType& type, const std::uint64_t* addresses,
                              const std::byte* data, std::size_t count) {
  const std::size_t room = room_for(type);
  if (segments_.empty() || segments_.back().type != type) return 0;
  std::size_t taken = 0;
  if (combining_ && type.kind != ItemKind::send) taken = combine(addresses, data, count);
  if (!combining_ || type.kind == ItemKind::send) {
    const std::size_t more = std::min(count - taken, taken == 0 ? room : room_for(type));
    append(addresses + taken, data + taken * type.bytes, more);
    taken += more;
  }
  count_.items += taken;
  count_.bytes += taken * type.bytes;
  return taken;
}

void BlockWriter::append(const std::uint64_t* addresses, const std::byte* data,
                         std::size_t count) noexcept {
  if (count == 0) return;
  Segment& segment = segments_.back();
  if (segment.type.kind != ItemKind::send) {
    std::copy_n(addresses, count, this->addresses() + address_count_);
    segment.facts.add(addresses, count, segment.type.bytes);
    address_count_ += count;
    used_ += 4 * count;
  }
  const std::size_t bytes = count * segment.type.bytes;
  copy_item(data_ + data_used_, data, bytes);
  if (count > 1) fetch_next(data + bytes);
  data_used_ += bytes;
  used_ += bytes;
  segment.stored += static_cast<std::uint32_t>(count);
  stored_ += count;
}

/// While all addresses are multiples of the size, two items of a segment overlap only if they have
/// the same address. After an address that is not a multiple, the block stops combining.
template <ItemKind kind, std::size_t known>
std::size_t BlockWriter::combine_items(const std::uint64_t* addresses, const std::byte* data,
                                       std::size_t count) noexcept {
  const Segment& segment = segments_.back();
  const ItemType type = segment.type;
  const std::size_t bytes = known > 0 ? known : type.bytes;
  const std::uint64_t* const stored = this->addresses();
  std::byte* const segment_data = data_ + segment_data_;
  std::size_t room = room_for(type), at = 0, combined = 0;
  for (; at < count; ++at) {
    const std::uint64_t address = addresses[at];
    __builtin_prefetch(data + (at + kFetched) * bytes, 0, 2);  // of the next call too
    if (address % bytes != 0) [[unlikely]] {
      combining_ = false;
      break;
    }
    const std::uint32_t next =
        room > 0 ? static_cast<std::uint32_t>(address_count_) : LineIndex::kNone;
    const std::uint32_t position = index_.find_or_note(stored, address, segment.first, next);
    if (position != LineIndex::kNone) [[likely]] {
      std::byte* const kept = segment_data + (position - segment.first) * bytes;
      if constexpr (kind == ItemKind::add) {
        add_word(kept, data + at * bytes);
      } else {
        std::memcpy(kept, data + at * bytes, bytes);
      }
      ++combined;
    } else {
      if (room == 0) break;
      append(addresses + at, data + at * bytes, 1);
      --room;
    }
  }
  count_.combined += combined;
  return at;
}

std::size_t BlockWriter::combine(const std::uint64_t* addresses, const std::byte* data,
                                 std::size_t count) noexcept {
  const ItemType type = segments_.back().type;
  if (address_count_ == 0) {
    index_.reset(std::min({item_limit_, limit_ / (type.bytes + 4), addresses_of(limit_)}));
  }
  if (type.kind == ItemKind::add) return combine_items<ItemKind::add, 8>(addresses, data, count);
  switch (type.bytes) {
    case 8: return combine_items<ItemKind::put, 8>(addresses, data, count);
    case 16: return combine_items<ItemKind::put, 16>(addresses, data, count);
    case 32: return combine_items<ItemKind::put, 32>(addresses, data, count);
    case 64: return combine_items<ItemKind::put, 64>(addresses, data, count);
    case 128: return combine_items<ItemKind::put, 128>(addresses, data, count);
    case 256: return combine_items<ItemKind::put, 256>(addresses, data, count);
    default: return combine_items<ItemKind::put, 0>(addresses, data, count);
  }
}

/// Returns the begin of the head, of which `before` bytes precede the addresses.
std::byte* BlockWriter::place_of_head(std::size_t before) noexcept {
  if (packet_) return pad<16>(data_, data_ + data_used_);
  std::byte* const room = given_ != nullptr ? given_ : reinterpret_cast<std::byte*>(head_.data());
  return room + kHeadRoom - before;
}

BlockWriter::Parts BlockWriter::close(std::span<const std::byte> envelope) noexcept {
  const std::size_t before =
      envelope.size() + sizeof(BlockHead) + segments_.size() * sizeof(SegmentHead);
  std::byte* const begin = place_of_head(before);
  std::byte* const addresses_begin = begin + before;
  std::copy(envelope.begin(), envelope.end(), begin);
  const BlockHead block{kBlockMagic, static_cast<std::uint32_t>(segments_.size()), data_used_};
  std::memcpy(begin + envelope.size(), &block, sizeof block);

  std::byte* head_at = begin + envelope.size() + sizeof block;
  std::byte* address_at = addresses_begin;
  for (const Segment& segment : segments_) {
    const std::uint64_t* const from = addresses() + segment.first;
    if (segment.type.kind != ItemKind::send) count_.joined += segment.stored - segment.facts.runs;
    const SegmentHead head = head_of(segment.type, segment.stored, segment.facts);
    std::memcpy(head_at, &head, sizeof head);
    head_at += sizeof head;
    address_at = pad<8>(addresses_begin, write_addresses(head, from, address_at));
  }
  address_at = pad<16>(begin + envelope.size(), address_at);
  closed_bytes_ = static_cast<std::size_t>(address_at - begin) - envelope.size() + data_used_;
  return {{begin, address_at}, {data_, data_used_}};
}

// ---- Reading ------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kAhead = 16;  ///< items that are prefetched before they are written

/// A segment in a received block.
struct SegmentView {
  SegmentHead head;
  const std::byte* entries = nullptr;
  const std::byte* data = nullptr;

  std::uint64_t address_of(std::uint64_t word) const noexcept {
    return head.base + (word << head.shift);
  }
  template <class Word>
  std::uint64_t address(std::size_t item) const noexcept {
    return address_of(load<Word>(entries + item * sizeof(Word)));
  }
  std::uint64_t run(std::size_t entry) const noexcept { return address<std::uint32_t>(2 * entry); }
  std::uint64_t run_bytes(std::size_t entry) const noexcept {
    return std::uint64_t{load<std::uint32_t>(entries + 8 * entry + 4)} * head.bytes;
  }
};

/// Checks the begin of a block of `bytes` bytes. Returns a description of the error; "" if there is
/// none.
std::string check_begin(std::span<const std::byte> head, std::size_t bytes) {
  if (head.size() < sizeof(BlockHead)) return fmt::format("is only {} bytes long", head.size());
  const auto block = load<BlockHead>(head.data());
  if (block.magic != kBlockMagic) return fmt::format("begins with {:#x}", block.magic);
  if (block.segments > kMostSegments || block.data_bytes > bytes) {
    return fmt::format("claims {} segments with {} bytes", block.segments, block.data_bytes);
  }
  return "";
}

/// Visits the segments of a block. visit() returns a description of an error, or "".
template <class Visit>
std::string for_each_segment(std::span<const std::byte> block, std::span<const std::byte> items,
                             Visit&& visit) {
  const auto head = load<BlockHead>(block.data());
  const std::size_t data_begin = block.size();
  std::size_t address_at = sizeof head + head.segments * sizeof(SegmentHead);
  std::size_t data_at = 0;
  for (std::size_t index = 0; index < head.segments; ++index) {
    const std::size_t head_at = sizeof head + index * sizeof(SegmentHead);
    if (head_at + sizeof(SegmentHead) > data_begin) return "is cut off";
    SegmentView view{load<SegmentHead>(block.data() + head_at)};
    const std::size_t addresses = view.head.entries * entry_bytes(view.head.form);
    const std::size_t data = std::size_t{view.head.items} * view.head.bytes;
    data_at = round_up<16>(data_at);
    if (address_at + addresses > data_begin || data_at + data > items.size()) {
      return fmt::format("has a segment of {} items that it is too short for", view.head.items);
    }
    view.entries = block.data() + address_at;
    view.data = items.data() + data_at;
    if (std::string wrong = visit(view); !wrong.empty()) return wrong;
    address_at += round_up<8>(addresses);
    data_at += data;
  }
  if (round_up<16>(address_at) != data_begin || data_at != items.size()) {
    return fmt::format("has {} bytes that belong to nothing", block.size() + items.size());
  }
  return "";
}

template <class Word>
std::string check_each(const SegmentView& view, std::size_t window) {
  if (view.head.entries != view.head.items) {
    return fmt::format("has {} addresses for {} items", view.head.entries, view.head.items);
  }
  Word all = 0;  // at least the maximum, and faster
  for (std::size_t at = 0; at < view.head.items; ++at) {
    all |= load<Word>(view.entries + at * sizeof(Word));
  }
  const bool fits = view.head.bytes <= window;
  if (fits && view.address_of(all) <= window - view.head.bytes) return "";
  std::uint64_t largest = 0;
  for (std::size_t at = 0; at < view.head.items; ++at) {
    largest = std::max(largest, view.address<Word>(at));
  }
  if (fits && largest <= window - view.head.bytes) return "";
  return fmt::format("writes to offset {}", largest);
}

std::string check_runs(const SegmentView& view, std::size_t window) {
  std::uint64_t remaining = std::uint64_t{view.head.items} * view.head.bytes;
  for (std::size_t at = 0; at < view.head.entries; ++at) {
    const std::uint64_t bytes = view.run_bytes(at);
    if (bytes > remaining)
      return fmt::format("has a run of {} bytes where {} are left", bytes, remaining);
    if (bytes > window || view.run(at) > window - bytes) {
      return fmt::format("writes to offset {}", view.run(at));
    }
    remaining -= bytes;
  }
  return remaining == 0 ? "" : fmt::format("has {} bytes without an address", remaining);
}

std::string check_handler(const SegmentHead& head, const BlockTarget& target) {
  if (head.handler >= target.handlers.size()) return fmt::format("is for handler {}", head.handler);
  if (head.bytes != target.handlers[head.handler] || head.entries != 0) {
    return fmt::format("has items of {} bytes for handler {}", head.bytes, head.handler);
  }
  return "";
}

std::string check_segment(const SegmentView& view, const BlockTarget& target) {
  const SegmentHead& head = view.head;
  if (head.bytes == 0 || head.bytes > kLargestItem || head.bytes % kItemStep != 0) {
    return fmt::format("has items of {} bytes", head.bytes);
  }
  if (head.kind == ItemKind::send) return check_handler(head, target);
  const bool wide = head.form == kWide;
  if (head.kind > ItemKind::send || (head.kind == ItemKind::add && head.bytes != 8) ||
      head.form > kRuns || head.shift > (wide ? 0 : 31) || head.base > (wide ? 0 : target.bytes)) {
    return fmt::format("has items of kind {}, form {}", static_cast<unsigned>(head.kind),
                       head.form);
  }
  if (head.form == kRuns) return check_runs(view, target.bytes);
  return wide ? check_each<std::uint64_t>(view, target.bytes)
              : check_each<std::uint32_t>(view, target.bytes);
}

/// Writes items one by one and prefetches later ones. A size known at compile time makes the copy a
/// few instructions.
template <class Word, std::size_t known>
void put_each(const SegmentView& view, std::byte* memory) noexcept {
  const std::size_t bytes = known > 0 ? known : view.head.bytes;
  const std::size_t items = view.head.items;
  for (std::size_t at = 0; at < items; ++at) {
    if (at + kAhead < items) prefetch_for_write(memory + view.address<Word>(at + kAhead), 64);
    std::memcpy(memory + view.address<Word>(at), view.data + at * bytes, known > 0 ? known : bytes);
  }
}

/// Writes items of one cache line, with non-temporal stores where the target is aligned to a line.
template <class Word>
void put_lines(const SegmentView& view, std::byte* memory) noexcept {
  const std::size_t items = view.head.items;
  for (std::size_t at = 0; at < items; ++at) {
    std::byte* const to = memory + view.address<Word>(at);
    if (reinterpret_cast<std::uintptr_t>(to) % kLineBytes == 0) {
      copy_line_past_cache(to, view.data + at * kLineBytes);
    } else {
      std::memcpy(to, view.data + at * kLineBytes, kLineBytes);
    }
  }
  end_past_cache();
}

template <class Word>
void put_each(const SegmentView& view, std::byte* memory, bool past_cache) noexcept {
  if (past_cache && view.head.bytes == kLineBytes) return put_lines<Word>(view, memory);
  switch (view.head.bytes) {
    case 8: return put_each<Word, 8>(view, memory);
    case 16: return put_each<Word, 16>(view, memory);
    case 32: return put_each<Word, 32>(view, memory);
    case 64: return put_each<Word, 64>(view, memory);
    case 128: return put_each<Word, 128>(view, memory);
    case 256: return put_each<Word, 256>(view, memory);
    default: return put_each<Word, 0>(view, memory);
  }
}

/// Writes runs; `past_cache`: with non-temporal stores, for memory that is larger than the caches.
void put_runs(const SegmentView& view, std::byte* memory, bool past_cache) noexcept {
  const std::byte* data = view.data;
  for (std::size_t at = 0; at < view.head.entries; ++at) {
    const std::size_t bytes = view.run_bytes(at);
    if (past_cache) {
      copy_past_cache(memory + view.run(at), data, bytes);
    } else {
      std::memcpy(memory + view.run(at), data, bytes);
    }
    data += bytes;
  }
  if (past_cache) end_past_cache();
}

template <class Word>
void add_each(const SegmentView& view, std::byte* memory) noexcept {
  const std::size_t items = view.head.items;
  for (std::size_t at = 0; at < items; ++at) {
    if (at + kAhead < items) prefetch_for_write(memory + view.address<Word>(at + kAhead), 8);
    add_word(memory + view.address<Word>(at), view.data + 8 * at);
  }
}

void add_runs(const SegmentView& view, std::byte* memory) noexcept {
  const std::byte* data = view.data;
  for (std::size_t at = 0; at < view.head.entries; ++at) {
    std::byte* to = memory + view.run(at);
    for (const std::byte* const end = data + view.run_bytes(at); data < end; data += 8, to += 8) {
      add_word(to, data);
    }
  }
}

void write_items(const SegmentView& view, const BlockTarget& target) noexcept {
  std::byte* const memory = target.memory;
  const bool put = view.head.kind == ItemKind::put, past_cache = target.bytes > kCacheBytes;
  switch (view.head.form) {
    case kRuns: return put ? put_runs(view, memory, past_cache) : add_runs(view, memory);
    case kWide:
      return put ? put_each<std::uint64_t>(view, memory, past_cache)
                 : add_each<std::uint64_t>(view, memory);
    default:
      return put ? put_each<std::uint32_t>(view, memory, past_cache)
                 : add_each<std::uint32_t>(view, memory);
  }
}

void hand_over(const SegmentView& view, const BlockTarget& target,
               std::vector<std::byte>& scratch) {
  const std::byte* items = view.data;
  if (reinterpret_cast<std::uintptr_t>(items) % 16 != 0) {
    scratch.assign(items, items + std::size_t{view.head.items} * view.head.bytes);
    items = scratch.data();
  }
  target.handler->handle(view.head.handler, items, view.head.items);
}

}  // namespace

std::string apply_block(std::span<const std::byte> block, const BlockTarget& target,
                        std::vector<std::byte>& scratch) {
  if (std::string wrong = check_begin(block, block.size()); !wrong.empty()) return wrong;
  const std::size_t data_bytes = load<BlockHead>(block.data()).data_bytes;
  return apply_block(block.first(block.size() - data_bytes), block.last(data_bytes), target,
                     scratch);
}

std::string apply_block(std::span<const std::byte> head, std::span<const std::byte> data,
                        const BlockTarget& target, std::vector<std::byte>& scratch) {
  if (std::string wrong = check_begin(head, data.size()); !wrong.empty()) return wrong;
  std::string wrong = for_each_segment(
      head, data, [&](const SegmentView& view) { return check_segment(view, target); });
  if (!wrong.empty()) return wrong;
  return for_each_segment(head, data, [&](const SegmentView& view) {
    if (view.head.kind == ItemKind::send) {
      hand_over(view, target, scratch);
    } else {
      write_items(view, target);
    }
    return std::string();
  });
}

}  // namespace weir::rt
