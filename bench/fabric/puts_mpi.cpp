// Small puts by plain MPI: a message for each item (--by send), or MPI_Put for each (--by put).
// What large messages (--by large) with the same bytes reach, which stay where they arrive. And
// what a program reaches that does nothing but what coalesced puts need (--by blocks): it copies
// items into large messages, which are put in place behind the link. That is the bound of a
// conveyor.
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "common/halves.hpp"
#include "common/mpi_main.hpp"
#include "fabric/put_pattern.hpp"

namespace weir_bench {
namespace {

/// Rank 0 sends offset and data of each item; rank 1 receives and writes, a few receives ahead.
class ByMessages {
 public:
  ByMessages(const PutPattern& pattern, std::byte* table) : pattern_(pattern), table_(table) {}

  void put(const LargePages<std::uint64_t>& offsets, const LargePages<std::byte>& items) const {
    std::vector<std::byte> messages(kAhead * message_bytes());
    MPI_Request requests[kAhead];
    std::fill_n(requests, kAhead, MPI_REQUEST_NULL);
    for (std::size_t item = 0; item < offsets.size(); ++item) {
      const std::size_t slot = item % kAhead;
      MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
      std::byte* const message = messages.data() + slot * message_bytes();
      std::memcpy(message, &offsets[item], sizeof offsets[item]);
      std::memcpy(message + 8, items.data() + item * pattern_.bytes(), pattern_.bytes());
      MPI_Isend(message, static_cast<int>(message_bytes()), MPI_BYTE, 1, 0, MPI_COMM_WORLD,
                &requests[slot]);
    }
    MPI_Waitall(kAhead, requests, MPI_STATUSES_IGNORE);
  }

  void receive() const {
    std::vector<std::byte> messages(kAhead * message_bytes());
    MPI_Request requests[kAhead];
    std::fill_n(requests, kAhead, MPI_REQUEST_NULL);
    const auto start = [&](std::size_t slot) {
      MPI_Irecv(messages.data() + slot * message_bytes(), static_cast<int>(message_bytes()),
                MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[slot]);
    };
    for (std::size_t slot = 0; slot < std::min<std::size_t>(kAhead, pattern_.items()); ++slot) {
      start(slot);
    }
    for (std::size_t item = 0; item < pattern_.items(); ++item) {
      const std::size_t slot = item % kAhead;
      MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
      std::uint64_t offset = 0;
      const std::byte* const message = messages.data() + slot * message_bytes();
      std::memcpy(&offset, message, sizeof offset);
      std::memcpy(table_ + offset, message + 8, pattern_.bytes());
      if (item + kAhead < pattern_.items()) start(slot);
    }
  }

 private:
  static constexpr int kAhead = 64;
  std::size_t message_bytes() const { return 8 + pattern_.bytes(); }

  const PutPattern& pattern_;
  std::byte* table_;
};

/// Writes a line past the cache: it need not be read before.
void write_line(std::byte* to, const std::byte* from) {
#if defined(__x86_64__)
  for (std::size_t at = 0; at < 64; at += sizeof(__m128i)) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at)));
  }
#else
  std::memcpy(to, from, 64);
#endif
}

/// Rank 0 sends blocks of items of 64 bytes, behind them their lines; rank 1 writes them.
class ByBlocks {
 public:
  ByBlocks(const PutPattern& pattern, std::byte* table) : pattern_(pattern), table_(table) {
    if (pattern.bytes() != kLine) throw std::invalid_argument("blocks are of items of 64 bytes");
  }

  void put(const LargePages<std::uint64_t>& offsets, const LargePages<std::byte>& items) {
    std::size_t slot = 0;
    for (std::size_t at = 0; at < offsets.size(); slot = (slot + 1) % kAhead) {
      MPI_Wait(&requests_[slot], MPI_STATUS_IGNORE);
      const std::size_t count = std::min(kItems, offsets.size() - at);
      Block& block = blocks_[slot];
      for (std::size_t i = 0; i < count; ++i, ++at) {
        std::memcpy(block.items[i], items.data() + at * kLine, kLine);
        block.lines[i] = static_cast<std::uint32_t>(offsets[at] / kLine);
      }
      MPI_Isend(&block, static_cast<int>(sizeof block), MPI_BYTE, 1, 0, MPI_COMM_WORLD,
                &requests_[slot]);
    }
    MPI_Waitall(kAhead, requests_, MPI_STATUSES_IGNORE);
  }

  void receive() {
    const std::size_t all = (pattern_.items() + kItems - 1) / kItems;
    for (std::size_t slot = 0; slot < std::min(kAhead, all); ++slot) start(slot);
    for (std::size_t number = 0; number < all; ++number) {
      const std::size_t slot = number % kAhead;
      MPI_Wait(&requests_[slot], MPI_STATUS_IGNORE);
      const std::size_t count = std::min(kItems, pattern_.items() - number * kItems);
      for (std::size_t i = 0; i < count; ++i) {
        write_line(table_ + blocks_[slot].lines[i] * kLine, blocks_[slot].items[i]);
      }
      if (number + kAhead < all) start(slot);
    }
  }

 private:
  static constexpr std::size_t kLine = 64, kItems = 7560, kAhead = 4;
  struct Block {
    std::byte items[kItems][kLine];
    std::uint32_t lines[kItems];
  };

  void start(std::size_t slot) {
    MPI_Irecv(&blocks_[slot], static_cast<int>(sizeof(Block)), MPI_BYTE, 0, 0, MPI_COMM_WORLD,
              &requests_[slot]);
  }

  const PutPattern& pattern_;
  std::byte* const table_;
  std::vector<Block> blocks_{kAhead};
  MPI_Request requests_[kAhead] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL,
                                   MPI_REQUEST_NULL};
};

/// Sends the payload, or receives it, in messages of 1 MiB, a few ahead.
void move_large(const LargePages<std::byte>& payload, bool send) {
  constexpr std::size_t kMessage = 1 << 20, kAhead = 4;
  MPI_Request requests[kAhead];
  std::fill_n(requests, kAhead, MPI_REQUEST_NULL);
  for (std::size_t at = 0; at < payload.size(); at += kMessage) {
    MPI_Request& request = requests[at / kMessage % kAhead];
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    const int bytes = static_cast<int>(std::min(kMessage, payload.size() - at));
    if (send) {
      MPI_Isend(payload.data() + at, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
    } else {
      MPI_Irecv(payload.data() + at, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &request);
    }
  }
  MPI_Waitall(kAhead, requests, MPI_STATUSES_IGNORE);
}

void put_by_window(const PutPattern& pattern, MPI_Win window,
                   const LargePages<std::uint64_t>& offsets, const LargePages<std::byte>& items) {
  const int bytes = static_cast<int>(pattern.bytes());
  for (std::size_t item = 0; item < offsets.size(); ++item) {
    MPI_Put(items.data() + item * pattern.bytes(), bytes, MPI_BYTE, 1,
            static_cast<MPI_Aint>(offsets[item]), bytes, MPI_BYTE, window);
  }
  MPI_Win_flush(1, window);
}

/// Large pages for memory that has not been touched, where the system has some for it.
void ask_for_large_pages(void* memory, std::size_t bytes) {
  constexpr std::size_t kPage = 2u << 20;
  if (std::align(kPage, kPage, memory, bytes) == nullptr) return;
  madvise(memory, bytes / kPage * kPage, MADV_HUGEPAGE);
}

/// The table in memory as weir's has it. Over shared memory Open MPI writes by itself only into a
/// window that it has allocated, whose pages are large only where the system gives such files some.
MPI_Win open_window(const LargePages<std::byte>& own, bool allocated, void*& memory) {
  const auto bytes = static_cast<MPI_Aint>(own.size());
  MPI_Win window = MPI_WIN_NULL;
  memory = own.data();
  if (allocated) {
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    ask_for_large_pages(memory, own.size());
  } else {
    MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  }
  return window;
}

void work(const Arguments& arguments) {
  take_half();
  const PutPattern pattern(arguments);
  const std::string by = arguments.text("--by", "send");
  const bool by_window = by == "put", large = by == "large", by_blocks = by == "blocks";
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool puts = rank == 0;
  const LargePages<std::byte> table(puts ? 0 : pattern.table_bytes());
  void* memory = nullptr;
  MPI_Win window =
      open_window(table, by_window && arguments.text("--network", "shm") == "shm", memory);
  MPI_Win_lock_all(0, window);
  if (!puts) std::memset(memory, 0, table.size());
  const auto offsets = puts ? pattern.offsets() : LargePages<std::uint64_t>();
  const auto items = puts || large ? pattern.payload() : LargePages<std::byte>();
  const ByMessages messages(pattern, table.data());
  std::optional<ByBlocks> blocks;
  if (by_blocks) blocks.emplace(pattern, table.data());
  const auto values = repeat(1, arguments.number("--repeats", 3), [&] {
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = time_of([&] {
      if (large) {
        move_large(items, puts);
      } else if (by_blocks) {
        puts ? blocks->put(offsets, items) : blocks->receive();
      } else if (puts) {
        by_window ? put_by_window(pattern, window, offsets, items) : messages.put(offsets, items);
      } else if (!by_window) {
        messages.receive();
      }
      MPI_Barrier(MPI_COMM_WORLD);
    });
    return pattern.gigabytes() / seconds;
  });
  MPI_Win_sync(window);
  // One-sided puts have no order: which of several for a line is the last is undefined.
  if (!puts && (by == "send" || by_blocks)) pattern.check(table.data());
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  if (!puts) return;
  const nlohmann::json line = {{"value", median(values)},
                               {"config", "Open MPI, " +
                                              std::string(large       ? "messages of 1 MiB"
                                                          : by_window ? "MPI_Put"
                                                          : by_blocks ? "blocks by hand"
                                                                      : "a message each") +
                                              ", " + arguments.text("--network", "shm")}};
  std::printf("%s\n", line.dump().c_str());
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  weir_bench::leave_cores_to_halves();
  return weir_bench::mpi_main(argc, argv, weir_bench::work);
}
