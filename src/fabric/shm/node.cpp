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
#include "fabric/wire_up.hpp"

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
      : wire_up_(link, within_ns), info_(link.info()), locations_(info_.ranks) {
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
    node.early = wire_up_.rest();
    return node;
  }

 private:
  void exchange_locations() {
    for (Rank rank = 0; rank < info_.ranks; ++rank) {
      if (rank != info_.rank) wire_up_.send(rank, locations_[info_.rank]);
    }
    for (Rank rank = 0; rank < info_.ranks; ++rank) {
      if (rank == info_.rank) continue;
      locations_[rank] = wire_up_.take<Location>(rank).value_or(Location{.magic = 0});
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
      if (rank != info_.rank) wire_up_.send(rank, offer);
    }
    if (segment == nullptr) fail(outcome.status, "{}", outcome.message);
    return segment;
  }

  /// Opens the segment that the lowest candidate offers. Throws Error.
  std::unique_ptr<Segment> accept() {
    const Rank lowest = candidates_[0];
    const Offer offer = wire_up_.take<Offer>(lowest).value_or(Offer{});
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
      if (rank != info_.rank) wire_up_.send(rank, own);
    }
    std::size_t others = 0;
    for (Rank local = 0; local < candidates_.size(); ++local) {
      const Rank rank = candidates_[local];
      const auto answer = rank == info_.rank ? own : wire_up_.take<Answer>(rank);
      if (node.link == nullptr || !answer || answer->opened == 0) continue;
      node.local[rank] = local;
      static_cast<void>(node.link->why_lost(local));  // watches its process from now on
      others += rank != info_.rank;
    }
    if (others > 0) return;
    node.link.reset();
    node.local.assign(info_.ranks, std::nullopt);
  }

  WireUp wire_up_;
  const LinkInfo& info_;
  std::vector<Location> locations_;  ///< by rank
  std::vector<Rank> candidates_;     ///< for the node of this rank, itself included
  Rank own_ = 0;                     ///< position of this rank in candidates_
};

}  // namespace

bool Node::has_all() const noexcept {
  return std::all_of(local.begin(), local.end(), [](const auto& each) { return each.has_value(); });
}

Node find_node(Link& link, Rank most, std::int64_t within_ns) {
  return NodeSearch(link, most, within_ns).run();
}

}  // namespace weir::rt
