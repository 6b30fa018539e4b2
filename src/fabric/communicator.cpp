#include "fabric/communicator.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "fabric/wire.hpp"

namespace weir::rt {

namespace {

/// Parts in which a broadcast forwards data.
constexpr std::size_t kChunk = 256u << 10;
/// Vectors that every rank gathers from all ranks, rather than a segment of each.
constexpr std::size_t kShort = 4096;

void copy(std::span<std::byte> to, std::span<const std::byte> from) {
  assert(to.size() == from.size());
  if (!from.empty()) std::memmove(to.data(), from.data(), from.size());
}

}  // namespace

void Communicator::run(const CollectiveCall& call, std::int64_t timeout_ns,
                       const std::function<void()>& act) {
  mailbox_.begin(call, timeout_ns);
  try {
    act();
  } catch (...) {
    const Outcome why = current_exception_outcome(WEIR_STATUS_INTERNAL);
    mailbox_.give_up(mailbox_.operation(), why);
    mailbox_.end();
    fail(why.status, "{} failed: {}", text_of(call), why.message);
  }
  mailbox_.end();
}

void Communicator::check_root(std::uint32_t root, bool may_be_all) const {
  if (root < size() || (may_be_all && root == kAllRanks)) return;
  fail_argument("there is no rank {} in the group: it has the ranks 0 to {}", root, size() - 1);
}

std::span<std::byte> Communicator::scratch(std::size_t bytes) {
  if (scratch_.size() < bytes) scratch_.resize(bytes);
  return std::span(scratch_).first(bytes);
}

/// Sends to one rank and receives from another.
void Communicator::exchange(unsigned to, std::span<const std::byte> data, unsigned from,
                            std::span<std::byte> into, std::uint32_t round) {
  auto& message = mailbox_.expect(from, round, into);
  mailbox_.send(to, round, data);
  mailbox_.await(message);
}

// ---- Operations without arithmetic --------------------------------------------------------------

/// In round k a rank hears from the rank 2^k before it, which has heard from 2^k ranks.
void Communicator::barrier(std::int64_t timeout_ns) {
  run({.what = Collective::barrier}, timeout_ns, [&] {
    std::uint32_t round = 0;
    for (unsigned step = 1; step < size(); step *= 2) {
      exchange((rank() + step) % size(), {}, (rank() + size() - step) % size(), {}, round++);
    }
  });
}

/// By a binomial tree. With 6 ranks and root 0: 0 sends to 4, 2, 1; 4 to 5; 2 to 3.
void Communicator::broadcast(unsigned root, std::span<std::byte> data, std::int64_t timeout_ns) {
  check_root(root, false);
  const CollectiveCall call{.what = Collective::broadcast, .root = root, .count = data.size()};
  run(call, timeout_ns, [&] {
    const unsigned place = (rank() + size() - root) % size();  // in the tree, whose root is 0
    const unsigned subtree = place == 0 ? std::bit_ceil(size()) : place & (0u - place);
    const auto rank_at = [&](unsigned at) { return (at + root) % size(); };
    std::uint32_t round = 0;
    for (std::size_t begin = 0; begin == 0 || begin < data.size(); begin += kChunk) {
      const auto chunk = data.subspan(begin, std::min(kChunk, data.size() - begin));
      if (place != 0) mailbox_.await(mailbox_.expect(rank_at(place - subtree), round, chunk));
      for (unsigned step = subtree / 2; step > 0; step /= 2) {
        if (place + step < size()) mailbox_.send(rank_at(place + step), round, chunk);
      }
      ++round;
    }
  });
}

/// Bruck's algorithm: in round k a rank has 2^k blocks, its own first, and gets as many more. Then
/// the blocks are rotated to their places. `blocks` begins with the own block.
void Communicator::gather_blocks(std::span<std::byte> blocks, std::size_t block) {
  std::uint32_t round = 0;
  for (unsigned have = 1; have < size(); have *= 2) {
    const std::size_t more = std::min(have, size() - have) * block;
    exchange((rank() + size() - have) % size(), blocks.first(more), (rank() + have) % size(),
             blocks.subspan(have * block, more), round++);
  }
  std::rotate(blocks.begin(),
              blocks.begin() + static_cast<std::ptrdiff_t>((size() - rank()) * block),
              blocks.begin() + static_cast<std::ptrdiff_t>(size() * block));
}

/// Rank i has the bytes from bounds[i] to bounds[i + 1]; afterwards all ranks have all. A rank
/// sends to the next one what it has got last.
void Communicator::gather_ring(std::span<std::byte> data, const std::vector<std::size_t>& bounds,
                               std::uint32_t round) {
  const auto part = [&](unsigned of) {
    return data.subspan(bounds[of], bounds[of + 1] - bounds[of]);
  };
  for (unsigned step = 1; step < size(); ++step) {
    const unsigned newest = (rank() + size() - step + 1) % size();
    const unsigned next = (newest + size() - 1) % size();
    exchange((rank() + 1) % size(), part(newest), (rank() + size() - 1) % size(), part(next),
             round + step);
  }
}

void Communicator::gather(std::uint32_t root, std::span<const std::byte> own,
                          std::span<std::byte> all, std::int64_t timeout_ns) {
  check_root(root, true);
  const bool receives = root == kAllRanks || root == rank();
  if (receives && all.size() != own.size() * size()) {
    fail_argument("{} bytes for a gather of {} bytes from each of {} ranks", all.size(), own.size(),
                  size());
  }
  const CollectiveCall call{.what = Collective::gather, .root = root, .count = own.size()};
  run(call, timeout_ns, [&] {
    const std::size_t block = own.size();
    if (root == kAllRanks && block <= kShort) {
      copy(all.first(block), own);
      gather_blocks(all, block);
    } else if (root == kAllRanks) {
      std::vector<std::size_t> bounds(size() + 1);
      for (unsigned i = 0; i <= size(); ++i) bounds[i] = i * block;
      copy(all.subspan(bounds[rank()], block), own);
      gather_ring(all, bounds, 0);
    } else if (!receives) {
      mailbox_.send(root, 0, own);
    } else {
      copy(all.subspan(rank() * block, block), own);
      std::vector<CollectiveMailbox::Message*> messages;
      for (unsigned from = 0; from < size(); ++from) {
        if (from == rank()) continue;
        messages.push_back(&mailbox_.expect(from, 0, all.subspan(from * block, block)));
      }
      for (auto* const message : messages) mailbox_.await(*message);
    }
  });
}

void Communicator::scatter(unsigned root, std::span<const std::byte> all, std::span<std::byte> own,
                           std::int64_t timeout_ns) {
  check_root(root, false);
  if (rank() == root && all.size() != own.size() * size()) {
    fail_argument("{} bytes for a scatter of {} bytes to each of {} ranks", all.size(), own.size(),
                  size());
  }
  const CollectiveCall call{.what = Collective::scatter, .root = root, .count = own.size()};
  run(call, timeout_ns, [&] {
    if (rank() != root) return mailbox_.await(mailbox_.expect(root, 0, own));
    for (unsigned step = 1; step < size(); ++step) {
      const unsigned to = (root + step) % size();
      mailbox_.send(to, 0, all.subspan(to * own.size(), own.size()));
    }
    copy(own, all.subspan(root * own.size(), own.size()));
  });
}

void Communicator::all_to_all(std::span<const std::span<const std::byte>> parts,
                              std::span<const std::span<std::byte>> received,
                              std::int64_t timeout_ns) {
  assert(parts.size() == size() && received.size() == size());
  if (parts[rank()].size() != received[rank()].size()) {
    fail_argument("rank {} sends {} bytes to itself, and receives {}", rank(), parts[rank()].size(),
                  received[rank()].size());
  }
  run({.what = Collective::all_to_all}, timeout_ns, [&] {
    std::vector<CollectiveMailbox::Message*> messages;
    for (unsigned step = 1; step < size(); ++step) {
      const unsigned from = (rank() + size() - step) % size();
      messages.push_back(&mailbox_.expect(from, 0, received[from]));
    }
    for (unsigned step = 1; step < size(); ++step) {
      const unsigned to = (rank() + step) % size();
      mailbox_.send(to, 0, parts[to]);
    }
    copy(received[rank()], parts[rank()]);
    for (auto* const message : messages) mailbox_.await(*message);
  });
}

// ---- Reductions ---------------------------------------------------------------------------------

void Communicator::reduce(std::uint32_t root, const Numbers& numbers, std::int64_t timeout_ns) {
  check_root(root, true);
  const CollectiveCall call{.what = Collective::reduce,
                            .type = numbers.type,
                            .operation = numbers.operation,
                            .root = root,
                            .count = numbers.count()};
  run(call, timeout_ns, [&] {
    if (size() == 1 || numbers.bytes.empty()) return;
    numbers.bytes.size() <= kShort ? reduce_short(root, numbers) : reduce_long(root, numbers);
  });
}

void Communicator::reduce_short(std::uint32_t root, const Numbers& numbers) {
  const std::size_t block = numbers.bytes.size();
  const std::span<std::byte> all = scratch(size() * block);
  if (root != kAllRanks && root != rank()) return mailbox_.send(root, 0, numbers.bytes);
  if (root == kAllRanks) {
    copy(all.first(block), numbers.bytes);
    gather_blocks(all, block);
  } else {
    copy(all.subspan(rank() * block, block), numbers.bytes);
    std::vector<CollectiveMailbox::Message*> messages;
    for (unsigned from = 0; from < size(); ++from) {
      if (from == rank()) continue;
      messages.push_back(&mailbox_.expect(from, 0, all.subspan(from * block, block)));
    }
    for (auto* const message : messages) mailbox_.await(*message);
  }
  copy(numbers.bytes, all.first(block));
  for (unsigned from = 1; from < size(); ++from) {
    numbers.combine(numbers.bytes.data(), all.data() + from * block, numbers.count());
  }
}

void Communicator::reduce_long(std::uint32_t root, const Numbers& numbers) {
  std::vector<std::size_t> bounds(size() + 1);
  for (unsigned i = 0; i <= size(); ++i) bounds[i] = numbers.count() * i / size() * numbers.size;
  const auto segment = [&](unsigned of) {
    return numbers.bytes.subspan(bounds[of], bounds[of + 1] - bounds[of]);
  };
  const std::span<std::byte> own = segment(rank());
  const std::span<std::byte> theirs = scratch(size() * own.size());
  std::vector<CollectiveMailbox::Message*> messages(size());
  for (unsigned from = 0; from < size(); ++from) {
    if (from == rank()) continue;
    messages[from] = &mailbox_.expect(from, 0, theirs.subspan(from * own.size(), own.size()));
  }
  for (unsigned step = 1; step < size(); ++step) {
    const unsigned to = (rank() + step) % size();
    mailbox_.send(to, 0, segment(to));
  }
  copy(theirs.subspan(rank() * own.size(), own.size()), own);
  for (unsigned from = 0; from < size(); ++from) {
    if (from != rank()) mailbox_.await(*messages[from]);
    const std::byte* const part = theirs.data() + from * own.size();
    if (from == 0) {
      copy(own, theirs.first(own.size()));
    } else {
      numbers.combine(own.data(), part, own.size() / numbers.size);
    }
  }
  if (root == kAllRanks) return gather_ring(numbers.bytes, bounds, 0);
  if (rank() != root) return mailbox_.send(root, 1, own);
  for (unsigned from = 0; from < size(); ++from) {
    if (from != rank()) messages[from] = &mailbox_.expect(from, 1, segment(from));
  }
  for (unsigned from = 0; from < size(); ++from) {
    if (from != rank()) mailbox_.await(*messages[from]);
  }
}

/// In chunks from rank to rank. A rank receives what the ranks before it have combined.
void Communicator::scan(Collective kind, const Numbers& numbers, std::int64_t timeout_ns) {
  const CollectiveCall call{
      .what = kind, .type = numbers.type, .operation = numbers.operation, .count = numbers.count()};
  run(call, timeout_ns, [&] {
    const std::size_t chunk = std::max<std::size_t>(kChunk / numbers.size, 1) * numbers.size;
    const bool first = rank() == 0, last = rank() + 1 == size();
    const std::span<std::byte> both = scratch(2 * chunk);
    std::uint32_t round = 0;
    for (std::size_t begin = 0; begin < numbers.bytes.size(); begin += chunk) {
      const auto here = numbers.bytes.subspan(begin, std::min(chunk, numbers.bytes.size() - begin));
      if (first) {
        if (!last) mailbox_.send(1, round, here);
      } else {
        const auto prefix = both.first(here.size()), mine = both.subspan(chunk, here.size());
        mailbox_.await(mailbox_.expect(rank() - 1, round, prefix));
        copy(mine, here);
        copy(here, prefix);  // what an exclusive scan leaves
        numbers.combine(prefix.data(), mine.data(), here.size() / numbers.size);
        if (!last) mailbox_.send(rank() + 1, round, prefix);
        if (kind == Collective::scan) copy(here, prefix);
      }
      ++round;
    }
  });
}

// ---- Groups -------------------------------------------------------------------------------------

void Communicator::split(const Choice& choice, std::int64_t timeout_ns, Part& part) {
  std::vector<Choice> choices;
  run({.what = Collective::split}, timeout_ns, [&] {
    choices.resize(size());
    choices[0] = choice;
    gather_blocks(std::as_writable_bytes(std::span(choices)), sizeof(Choice));
  });
  if (choice.color < 0) return;
  const auto is_before = [&](unsigned a, unsigned b) { return choices[a].key < choices[b].key; };
  unsigned first = rank();
  for (unsigned i = size(); i-- > 0;) {
    if (choices[i].color == choice.color && !is_before(first, i)) first = i;
  }
  part.number = choices[first].number;
  std::vector<unsigned> members;
  for (unsigned i = 0; i < size(); ++i) {
    if (choices[i].color == choice.color) members.push_back(i);
  }
  std::stable_sort(members.begin(), members.end(), is_before);
  for (const unsigned member : members) part.ranks.push_back(ranks()[member]);
}

void Communicator::revoke() {
  mailbox_.give_up(0, {WEIR_STATUS_NETWORK_ERROR, "the program has revoked the communicator"});
}

}  // namespace weir::rt
