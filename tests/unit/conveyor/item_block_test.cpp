#include "conveyor/item_block.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <random>

#include "conveyor/combine_policy.hpp"
#include "no_memory.hpp"

namespace weir::rt {
namespace {

constexpr std::size_t kWindow = 4096;

struct Put {
  ItemType type;
  std::uint64_t address;
  std::vector<std::byte> data;
};

std::vector<std::byte> pattern(std::size_t bytes, std::uint64_t value) {
  std::vector<std::byte> data(bytes);
  for (std::size_t at = 0; at < bytes; at += 8) {
    const std::uint64_t word = value + at;
    std::memcpy(data.data() + at, &word, 8);
  }
  return data;
}

/// A window with handlers that keep what they get.
class Table : public ItemHandler {
 public:
  explicit Table(std::size_t bytes = kWindow) : memory(bytes) {}

  void handle(std::uint16_t handler, const std::byte* items, std::size_t count) override {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(items) % 16, 0u);
    auto& kept = handled[handler];
    kept.insert(kept.end(), items, items + count * sizes[handler]);
  }

  BlockTarget target() { return {memory.data(), memory.size(), sizes, this}; }

  void apply(const Put& put) {
    std::byte* const to = memory.data() + put.address;
    if (put.type.kind == ItemKind::send) {
      handle(put.type.handler, pattern_aligned(put.data), 1);
    } else if (put.type.kind == ItemKind::put) {
      std::memcpy(to, put.data.data(), put.data.size());
    } else {
      std::uint64_t sum, more;
      std::memcpy(&sum, to, 8);
      std::memcpy(&more, put.data.data(), 8);
      sum += more;
      std::memcpy(to, &sum, 8);
    }
  }

  std::vector<std::byte> memory;
  std::vector<std::uint32_t> sizes{8, 24, 256};
  std::map<std::uint16_t, std::vector<std::byte>> handled;

 private:
  const std::byte* pattern_aligned(const std::vector<std::byte>& data) {
    aligned_ = data;
    return aligned_.data();
  }
  std::vector<std::byte> aligned_;
};

std::vector<std::byte> join(const BlockWriter::Parts& parts) {
  std::vector<std::byte> block(parts.head.begin(), parts.head.end());
  block.insert(block.end(), parts.data.begin(), parts.data.end());
  return block;
}

/// Applies what a writer has, as it is and from an address that nothing is aligned on.
std::string deliver(BlockWriter& writer, Table& table, std::size_t* wire = nullptr) {
  const std::vector<std::byte> block = join(writer.close({}));
  if (wire != nullptr) *wire += block.size();
  std::vector<std::byte> shifted(block.size() + 3), scratch;
  std::memcpy(shifted.data() + 3, block.data(), block.size());
  return apply_block({shifted.data() + 3, block.size()}, table.target(), scratch);
}

TEST(ItemBlock, JoinsAdjacentItems) {
  BlockWriter writer(65'536, 0);
  writer.open(false);
  std::vector<std::uint64_t> addresses;
  for (std::uint64_t at = 0; at < 60; ++at) addresses.push_back(64 * at);
  const auto data = pattern(60 * 64, 5);
  ASSERT_EQ(writer.take({ItemKind::put, 0, 64}, addresses.data(), data.data(), 60), 60u);
  Table table;
  std::size_t wire = 0;
  ASSERT_EQ(deliver(writer, table, &wire), "");
  EXPECT_EQ(writer.count().joined, 59u);
  EXPECT_LE(wire, 60u * 64 + 64);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), table.memory.begin()));
}

TEST(ItemBlock, RunsInLargeMemory_AreWrittenToTheirAddresses) {
  constexpr std::size_t kItem = 24, kItems = 40;
  Table table((std::size_t{24} << 20) + 4096), wanted(table.memory.size());
  for (std::uint64_t first : {0u, 1u, 56u, 64u, 100u, 4000u}) {
    BlockWriter writer(65'536, 0);
    writer.open(false);
    const auto data = pattern(kItems * kItem, first + 1);
    std::vector<std::uint64_t> addresses;
    for (std::uint64_t at = 0; at < kItems; ++at) addresses.push_back(first + at * kItem);
    const std::size_t count = first == 1 ? 2 : kItems;  // less than a line, too
    writer.take({ItemKind::put, 0, kItem}, addresses.data(), data.data(), count);
    std::copy_n(data.begin(), count * kItem,
                wanted.memory.begin() + static_cast<std::ptrdiff_t>(first));
    ASSERT_EQ(deliver(writer, table), "");
    EXPECT_EQ(writer.count().joined, count - 1);
  }
  EXPECT_TRUE(table.memory == wanted.memory);
}

/// Some are where lines of memory are, the others across two; the later of two at an address stays.
TEST(ItemBlock, OverlappingLinesInLargeMemory_LastPutWins) {
  constexpr std::size_t kItem = 64, kItems = 200;
  Table table((std::size_t{24} << 20) + 4096), wanted(table.memory.size());
  std::mt19937_64 random(3);
  for (const std::size_t step : {8u, 64u}) {
    for (const std::uint64_t far : {std::uint64_t{0}, table.memory.size() - 4096}) {
      BlockWriter writer(65'536, 0);
      writer.open(false);
      for (std::size_t item = 0; item < kItems; ++item) {
        const std::uint64_t address = far + random() % (4096 - kItem) / step * step;
        const auto data = pattern(kItem, random());
        ASSERT_EQ(writer.take({ItemKind::put, 0, kItem}, &address, data.data(), 1), 1u);
        std::copy(data.begin(), data.end(),
                  wanted.memory.begin() + static_cast<std::ptrdiff_t>(address));
      }
      ASSERT_EQ(deliver(writer, table), "");
      EXPECT_TRUE(table.memory == wanted.memory);
    }
  }
}

TEST(ItemBlock, AlignedFarAddresses_TakeFourBytesEach) {
  const std::uint64_t far[] = {0, std::uint64_t{8} << 32, std::uint64_t{24} << 32, 64};
  const std::uint64_t odd[] = {0, std::uint64_t{8} << 32, std::uint64_t{24} << 32, 1};
  std::size_t sizes[2];
  for (const auto* addresses : {far, odd}) {
    BlockWriter writer(65'536, 0);
    writer.open(false);
    const auto data = pattern(4 * 8, 1);
    ASSERT_EQ(writer.take({ItemKind::put, 0, 8}, addresses, data.data(), 4), 4u);
    const auto parts = writer.close({});
    sizes[addresses == odd] = parts.head.size();
    Table small;
    std::vector<std::byte> scratch;
    const std::string wrong = apply_block(join(parts), small.target(), scratch);
    EXPECT_NE(wrong.find("writes to offset 103079215104"), std::string::npos) << wrong;
  }
  EXPECT_EQ(sizes[0] + 16, sizes[1]);
}

TEST(ItemBlock, RepeatedPutsWhileCombining_ReplaceTheEarlierItem) {
  BlockWriter writer(4096, 0);
  writer.open(true);
  for (std::uint64_t round = 0; round < 100; ++round) {
    for (std::uint64_t line = 0; line < 32; ++line) {
      const std::uint64_t address = 64 * line;
      const auto data = pattern(64, 1000 * round + line);
      ASSERT_EQ(writer.take({ItemKind::put, 0, 64}, &address, data.data(), 1), 1u);
    }
  }
  EXPECT_EQ(writer.count().items, 3200u);
  EXPECT_EQ(writer.count().combined, 3200u - 32);
  Table table;
  ASSERT_EQ(deliver(writer, table), "");
  for (std::uint64_t line = 0; line < 32; ++line) {
    const auto data = pattern(64, 99'000 + line);
    EXPECT_TRUE(
        std::equal(data.begin(), data.end(), table.memory.begin() + 64 * std::ptrdiff_t(line)));
  }
}

TEST(ItemBlock, FullBlock_TakesNoMoreItems) {
  BlockWriter writer(1024, 0);
  writer.open(false);
  std::vector<std::uint64_t> addresses(100);
  const auto data = pattern(100 * 64, 1);
  const std::size_t taken = writer.take({ItemKind::put, 0, 64}, addresses.data(), data.data(), 100);
  EXPECT_EQ(taken, (1024u - 16 - 24) / 68);
  EXPECT_EQ(writer.take({ItemKind::put, 0, 64}, addresses.data(), data.data(), 1), 0u);
  EXPECT_EQ(writer.take({ItemKind::add, 0, 8}, addresses.data(), data.data(), 1), 0u);
  EXPECT_EQ(writer.count().items, taken);
}

TEST(ItemBlock, TakeIntoAnOpenBlock_AllocatesNoMemory) {
  if (!test::NoMemory::kWorks) GTEST_SKIP() << "the sanitizer has operator new to itself";
  BlockWriter writer(65'536, 10);
  writer.open(true);
  const std::uint64_t addresses[] = {8, 8, 16};
  const auto data = pattern(24, 1);
  std::size_t taken = 0;
  {
    const test::NoMemory none;
    taken = writer.take({ItemKind::put, 0, 8}, addresses, data.data(), 3);
  }
  EXPECT_EQ(taken, 3u);
  EXPECT_EQ(writer.count().combined, 1u);
}

TEST(ItemBlock, ItemLimitOfOne_BlockTakesOneItem) {
  BlockWriter writer(65'536, 1);
  writer.open(false);
  const std::uint64_t addresses[] = {8, 16};
  const auto data = pattern(16, 1);
  EXPECT_EQ(writer.take({ItemKind::put, 0, 8}, addresses, data.data(), 2), 1u);
  EXPECT_EQ(writer.take({ItemKind::put, 0, 8}, addresses, data.data(), 2), 0u);
}

constexpr std::byte kBehind{0xa5};

/// Makes so many bytes on 64, behind which comes kBehind.
std::byte* give(std::vector<std::byte>& memory, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  memory.assign(kLine + bytes + 1, kBehind);
  void* begin = memory.data();
  std::size_t room = memory.size();
  begin = std::align(kLine, bytes, begin, room);
  memory.resize(memory.size() - room + bytes + 1);
  return static_cast<std::byte*>(begin);
}

TEST(ItemBlock, PacketWithFarAddresses_StaysInsideItsMemory) {
  for (const std::uint32_t item : {8u, 64u, 256u}) {
    BlockWriter writer(1024, 0);
    std::vector<std::byte> memory;
    std::byte* const packet = give(memory, writer.packet_bytes(65'536));
    writer.open_packet(packet, 65'536);
    std::uint64_t items = 0;
    const auto data = pattern(item, 1);
    // Segments take turns until there are no more; then the rest has one.
    for (bool taken = true; taken; ++items) {
      const std::uint64_t address = (items % 2 << 40) + items * item;
      const bool put = items < 200 ? items % 2 == 0 : true;
      taken = writer.take({put ? ItemKind::put : ItemKind::add, 0, put ? item : 8}, &address,
                          data.data(), 1) == 1;
    }
    const auto parts = writer.close({});
    EXPECT_EQ(parts.data.data(), packet);
    EXPECT_GE(parts.head.data(), packet + parts.data.size());
    EXPECT_EQ((parts.head.data() - packet) % 16, 0);
    EXPECT_LE(parts.head.data() + parts.head.size(), &memory.back());
    EXPECT_EQ(memory.back(), kBehind);
  }
}

/// Whatever is put, in whatever blocks: the same memory and the same items of each handler as one
/// by one.
class RandomBlocks {
 public:
  explicit RandomBlocks(std::uint64_t seed) : random_(seed) {
    span_ = std::size_t{64} << below(6);
    mixed_ = below(3) == 0;
    aligned_ = below(2) == 0;
    base_ = random_type();
  }

  std::string run() {
    Table wanted, got;
    BlockWriter writer(384 + 8 * below(200), below(4) == 0 ? 1 + below(9) : 0);
    begin(writer);
    for (std::size_t left = 1 + below(400); left > 0;) {
      const auto batch = random_batch(std::min<std::size_t>(left, 1 + below(20)));
      for (const Put& put : batch) wanted.apply(put);
      left -= batch.size();
      put(writer, got, batch);
      if (!wrong_.empty()) return wrong_;
    }
    if (std::string wrong = deliver(writer, got); !wrong.empty()) return wrong;
    if (got.memory != wanted.memory) return "the memory differs";
    return got.handled == wanted.handled ? "" : "what handlers got differs";
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  ItemType random_type() {
    switch (below(3)) {
      case 0:
        return {ItemKind::put, 0,
                static_cast<std::uint32_t>(8 * (1 + below(below(4) == 0 ? 32 : 3)))};
      case 1: return {ItemKind::add, 0, 8};
      default: {
        const auto handler = static_cast<std::uint16_t>(below(3));
        return {ItemKind::send, handler, std::vector<std::uint32_t>{8, 24, 256}[handler]};
      }
    }
  }

  std::vector<Put> random_batch(std::size_t count) {
    const ItemType type = mixed_ ? random_type() : base_;
    std::uint64_t step = type.kind == ItemKind::add ? 8
                         : aligned_                 ? type.bytes
                         : below(2) == 0            ? 8
                                                    : 1;
    std::uint64_t address = below(span_) * step % (kWindow - 256) / step * step;
    const bool stream = below(2) == 0;
    std::vector<Put> batch;
    for (std::size_t at = 0; at < count; ++at) {
      if (!stream) address = below(span_) * step % (kWindow - 256) / step * step;
      if (address > kWindow - 256) address = 0;
      batch.push_back({type, address, pattern(type.bytes, random_())});
      address += type.bytes;
    }
    return batch;
  }

  void put(BlockWriter& writer, Table& got, const std::vector<Put>& batch) {
    std::vector<std::uint64_t> addresses;
    std::vector<std::byte> data;
    for (const Put& put : batch) {
      addresses.push_back(put.address);
      data.insert(data.end(), put.data.begin(), put.data.end());
    }
    const ItemType type = batch.front().type;
    for (std::size_t at = 0; at < batch.size();) {
      const std::size_t taken = writer.take(type, addresses.data() + at,
                                            data.data() + at * type.bytes, batch.size() - at);
      at += taken;
      if (at == batch.size()) break;
      if (taken == 0 && writer.empty()) wrong_ = "an empty block takes nothing";
      if (std::string wrong = deliver(writer, got); !wrong.empty()) wrong_ = wrong;
      if (!wrong_.empty()) return;
      if (given_.back() != kBehind) wrong_ = "a block has written behind its memory";
      begin(writer);
    }
  }

  /// In the writer's memory, or in some of ours.
  void begin(BlockWriter& writer) {
    if (below(2) == 0) return writer.open(below(2) == 0);
    const std::size_t bytes = 384 + 8 * below(900);
    if (below(2) == 0) return writer.open_packet(give(given_, writer.packet_bytes(bytes)), bytes);
    writer.open_in(give(given_, writer.memory_bytes()));
  }

  std::vector<std::byte> given_{kBehind};
  std::mt19937_64 random_;
  std::size_t span_;
  bool mixed_, aligned_;
  ItemType base_;
  std::string wrong_;
};

TEST(ItemBlock, RandomItemsEqualThoseAppliedOneByOne) {
  for (std::uint64_t seed = 1; seed <= 3'000; ++seed) {
    ASSERT_EQ(RandomBlocks(seed).run(), "") << "seed " << seed;
  }
}

/// No bytes do harm: a block that is cut or changed is refused, or writes inside the window.
TEST(ItemBlock, DamagedBlocks_AreRefusedOrStayInTheWindow) {
  std::mt19937_64 random(7);
  std::size_t refused = 0;
  for (int round = 0; round < 3'000; ++round) {
    BlockWriter writer(2048, 0);
    writer.open(false);
    for (std::uint64_t at = 0; at < 8; ++at) {
      const std::uint64_t address = random() % 400 * 8;
      const auto data = pattern(24, at);
      writer.take({at % 2 == 0 ? ItemKind::put : ItemKind::send, 1, 24}, &address, data.data(), 1);
    }
    std::vector<std::byte> block = join(writer.close({}));
    if (round % 4 == 0) {
      block.resize(random() % block.size());
    } else {
      for (std::size_t bits = 1 + random() % 3; bits > 0; --bits) {
        block[random() % (block.size() - 192)] ^= std::byte(1u << random() % 8);
      }
    }
    Table table;
    std::vector<std::byte> scratch;
    block.shrink_to_fit();
    refused += apply_block(block, table.target(), scratch).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 1'500u);
}

/// What a rank says of a block that is not for it. None of it is written.
std::string refusal_of(const ItemType& type, std::uint64_t first, std::size_t count, Table& table) {
  BlockWriter writer(65'536, 0);
  writer.open(false);
  std::vector<std::uint64_t> addresses;
  for (std::size_t at = 0; at < count; ++at) addresses.push_back(first + at * type.bytes);
  const auto data = pattern(count * type.bytes, 1);
  writer.take(type, addresses.data(), data.data(), count);
  const std::string wrong = deliver(writer, table);
  EXPECT_EQ(table.memory, std::vector<std::byte>(table.memory.size()));
  EXPECT_TRUE(table.handled.empty());
  return wrong;
}

TEST(ItemBlock, BlockThatDoesNotFitTheTarget_IsRefusedAndWritesNothing) {
  Table table(1024);
  EXPECT_EQ(refusal_of({ItemKind::put, 0, 64}, 0, 17, table), "writes to offset 0");
  EXPECT_EQ(refusal_of({ItemKind::put, 0, 64}, 512, 9, table), "writes to offset 512");
  EXPECT_EQ(refusal_of({ItemKind::put, 0, 64}, 961, 1, table), "writes to offset 961");
  EXPECT_EQ(refusal_of({ItemKind::add, 0, 8}, 1024, 1, table), "writes to offset 1024");
  EXPECT_EQ(refusal_of({ItemKind::send, 1, 32}, 0, 3, table),
            "has items of 32 bytes for handler 1");
  EXPECT_EQ(refusal_of({ItemKind::send, 3, 8}, 0, 3, table), "is for handler 3");
  EXPECT_EQ(refusal_of({ItemKind::put, 0, 12}, 0, 2, table), "has items of 12 bytes");
}

TEST(CombinePolicy, FewRepeats_CombinesLessAndLessOften) {
  CombinePolicy policy;
  std::size_t combining = 0;
  for (int block = 0; block < 1024; ++block) {
    combining += policy.combines() ? 1 : 0;
    policy.sent(1000, policy.combines() ? 100 : 0);
  }
  EXPECT_GE(combining, 5u);
  EXPECT_LE(combining, 8u);
}

TEST(CombinePolicy, ManyRepeats_KeepsCombining) {
  CombinePolicy policy;
  policy.sent(1000, 0);
  while (!policy.combines()) policy.sent(1000, 0);
  for (int block = 0; block < 100; ++block) {
    ASSERT_TRUE(policy.combines());
    policy.sent(1000, 250);
  }
}

}  // namespace
}  // namespace weir::rt
