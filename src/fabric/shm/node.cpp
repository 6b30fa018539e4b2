#include "fabric/shm/node.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <new>
#include <string>
#include <tuple>

#include <sys/stat.h>
#include <unistd.h>

#include "base/counted.hpp"
#include "base/log.hpp"
#include "base/threads.hpp"
#include "fabric/wire.hpp"

namespace weir::rt {

namespace {

// What ranks send each other to find their nodes, in this order.

/// Where a rank runs.
struct Location {
  static constexpr std::uint64_t kMagic = 0x6472616372696577;
  std::uint64_t magic = kMagic;
  std::array<char, 40> system{};  ///< id of the running system
  std::uint64_t processes = 0;    ///< its table of processes; 0: unknown, it shares no memory
  std::uint32_t user = 0, most = 0;
  std::int32_t process = 0;
  std::uint32_t unused = 0;

  auto key() const noexcept { return std::tuple(magic, system, processes, user, most); }
};

/// The segment of the lowest candidate, to the others.
struct Offer {
  static constexpr std::uint64_t kMagic = 0x7265666672696577;
  std::uint64_t magic = kMagic;
  std::uint64_t file = 0;
  std::int32_t descriptor = -1;  ///< -1: none
  std::uint32_t unused = 0;
};

/// Whether a candidate has opened the segment, to the others.
struct Answer {
  static constexpr std::uint64_t kMagic = 0x776e736172696577;
  std::uint64_t magic = kMagic;
  std::uint64_t opened = 0;
};

/// Sends and receives packets of a link, one rank after the other.
class Exchange final : private PacketSink {
 public:
  Exchange(Link& link, std::int64_t within_ns)
      : link_(link), within_ns_(within_ns), deadline_ns_(sys::deadline_after(within_ns)) {}

  /// Throws Error.
  template <class Fixed>
  void send(Rank to, const Fixed& fixed) {
    const auto bytes = bytes_of(fixed);
    while (!link_.send(to, {&bytes, 1})) advance(to);
  }
  /// Waits for the next packet of a rank. Returns nothing, and keeps the packet, if it is another
  /// one: the rank runs another weir. Throws Error.
  template <class Fixed>
  std::optional<Fixed> take(Rank from) {
    const auto is_next = [from](const Node::Packet& each) { return each.first == from; };
    auto found = std::find_if(packets_.begin(), packets_.end(), is_next);
    while (found == packets_.end()) {
      advance(from);
      found = std::find_if(packets_.begin(), packets_.end(), is_next);
    }
    std::span<const std::byte> bytes = found->second;
    if (bytes.size() != sizeof(Fixed)) return std::nullopt;
    const auto fixed = cut_off<Fixed>(bytes);
    if (fixed.magic != Fixed::kMagic) return std::nullopt;
    packets_.erase(found);
    return fixed;
  }
  /// Returns the packets that were not taken.
  std::deque<Node::Packet> rest() noexcept { return std::move(packets_); }

 private:
  void packet(Rank from, std::span<const std::byte> bytes) noexcept override {
    try {
      packets_.emplace_back(from, std::vector<std::byte>(bytes.begin(), bytes.end()));
    } catch (...) {
      no_memory_ = true;
    }
  }

  /// Receives, or waits a moment. Throws Error if the rank will not answer.
  void advance(Rank rank) {
    const std::uint32_t bell = link_.bell();
    const std::string why = link_.why_lost(rank);
    const bool received = link_.receive(*this);  // also what a rank sent before it ended
    if (no_memory_) throw std::bad_alloc();
    if (received) return;
    if (!why.empty()) fail(WEIR_STATUS_NETWORK_ERROR, "rank {} {} before it joined", rank, why);
    const std::int64_t now = sys::now_ns();
    if (now >= deadline_ns_) {
      fail(WEIR_STATUS_NETWORK_ERROR, "rank {} has not joined the fabric within {} s", rank,
           within_ns_ / 1'000'000'000);
    }
    link_.wait(bell, std::min(deadline_ns_, now + 200'000));
  }

  Link& link_;
  const std::int64_t within_ns_, deadline_ns_;
  std::deque<Node::Packet> packets_;
  bool no_memory_ = false;
};

Location own_location(Rank most) {
  Location location;
  std::string system;
  struct stat processes {};
  std::ifstream("/proc/sys/kernel/random/boot_id") >> system;
  const bool known = !system.empty() && stat("/proc/self/ns/pid", &processes) == 0;
  system.copy(location.system.data(), location.system.size());
  location.processes = known ? processes.st_ino : 0;
  location.user = geteuid();
  location.most = most;
  location.process = getpid();
  return location;
}

class NodeSearch {
 public:
  NodeSearch(Link& link, Rank most, std::int64_t within_ns)
      : exchange_(link, within_ns), info_(link.info()), locations_(info_.ranks) {
    locations_[info_.rank] = own_location(most);
  }

  Node run() {
    Node node;
    node.local.resize(info_.ranks);
    exchange_locations();
    find_candidates();
    if (candidates_.size() > 1) {
      node.link = open();
      agree(node);
    }
    node.early = exchange_.rest();
    return node;
  }

 private:
  void exchange_locations() {
    for (Rank rank = 0; rank < info_.ranks; ++rank) {
      if (rank != info_.rank) exchange_.send(rank, locations_[info_.rank]);
    }
    for (Rank rank = 0; rank < info_.ranks; ++rank) {
      if (rank == info_.rank) continue;
      locations_[rank] = exchange_.take<Location>(rank).value_or(Location{.magic = 0});
    }
  }

  void find_candidates() {
    const Location& own = locations_[info_.rank];
    std::vector<Rank> alike;
    for (Rank rank = 0; rank < info_.ranks; ++rank) {
      if (locations_[rank].key() == own.key()) alike.push_back(rank);
    }
    if (own.processes == 0) alike = {info_.rank};
    const auto here = std::find(alike.begin(), alike.end(), info_.rank) - alike.begin();
    own_ = static_cast<Rank>(here) % own.most;
    const auto first = alike.begin() + (here - static_cast<std::ptrdiff_t>(own_));
    const auto count = std::min<std::ptrdiff_t>(own.most, alike.end() - first);
    candidates_.assign(first, first + count);
    report_others(own);
  }

  /// Ranks of this system that cannot be candidates.
  void report_others(const Location& own) const {
    const auto others =
        std::count_if(locations_.begin(), locations_.end(), [&own](const Location& each) {
          return each.system == own.system &&
                 (each.processes != own.processes || each.user != own.user);
        });
    if (others == 0) return;
    log::info("{} of this machine {} no memory with this one: another container or user",
              counted(static_cast<std::size_t>(others), "rank"), others == 1 ? "shares" : "share");
  }

  /// Returns the link of this rank in the segment; null if it cannot be opened.
  std::unique_ptr<ShmLink> open() {
    try {
      return std::make_unique<ShmLink>(own_ == 0 ? create() : accept(), own_);
    } catch (const Error& error) {
      if (error.status() == WEIR_STATUS_NETWORK_ERROR) throw;
      log::warning("{} connects the {} of this machine, without shared memory: {}", info_.name,
                   counted(candidates_.size(), "rank"), error.what());
      return nullptr;
    }
  }

  /// Creates the segment and offers it to the other candidates. Throws Error.
  std::unique_ptr<Segment> create() {
    std::unique_ptr<Segment> segment;
    Offer offer;
    Outcome outcome;
    try {
      segment = std::make_unique<Segment>(static_cast<Rank>(candidates_.size()));
      offer.file = segment->file();
      offer.descriptor = segment->descriptor();
    } catch (const Error& error) {
      outcome = {error.status(), error.what()};
    }
    for (const Rank rank : candidates_) {
      if (rank != info_.rank) exchange_.send(rank, offer);
    }
    if (segment == nullptr) fail(outcome.status, "{}", outcome.message);
    return segment;
  }

  /// Opens the segment that the lowest candidate offers. Throws Error.
  std::unique_ptr<Segment> accept() {
    const Rank lowest = candidates_[0];
    const Offer offer = exchange_.take<Offer>(lowest).value_or(Offer{});
    if (offer.descriptor < 0) {
      fail(WEIR_STATUS_UNAVAILABLE, "rank {} has created no segment", lowest);
    }
    return Segment::open(locations_[lowest].process, offer.descriptor, offer.file,
                         static_cast<Rank>(candidates_.size()));
  }

  /// Leaves only those candidates in the node that have opened the segment.
  void agree(Node& node) {
    const Answer own{.opened = node.link != nullptr};
    for (const Rank rank : candidates_) {
      if (rank != info_.rank) exchange_.send(rank, own);
    }
    std::size_t others = 0;
    for (Rank local = 0; local < candidates_.size(); ++local) {
      const Rank rank = candidates_[local];
      const auto answer = rank == info_.rank ? own : exchange_.take<Answer>(rank);
      if (node.link == nullptr || !answer || answer->opened == 0) continue;
      node.local[rank] = local;
      static_cast<void>(node.link->why_lost(local));  // watches its process from now on
      others += rank != info_.rank;
    }
    if (others > 0) return;
    node.link.reset();
    node.local.assign(info_.ranks, std::nullopt);
  }

  Exchange exchange_;
  const LinkInfo& info_;
  std::vector<Location> locations_;  ///< by rank
  std::vector<Rank> candidates_;     ///< for the node of this rank, itself included
  Rank own_ = 0;                     ///< position of this rank in candidates_
};

}  // namespace

Node find_node(Link& link, Rank most, std::int64_t within_ns) {
  return NodeSearch(link, most, within_ns).run();
}

}  // namespace weir::rt
