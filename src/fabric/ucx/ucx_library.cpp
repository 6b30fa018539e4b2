#include "fabric/ucx/ucx_library.hpp"

#include <utility>
#include <vector>

#include <dlfcn.h>

#include "base/config.hpp"
#include "base/log.hpp"
#include "fabric/link_library.hpp"

namespace weir::rt {

namespace {

constexpr const char* kLibrary = "libweir_ucx.so";

/// Where UCX reaches a rank, followed by the address; or why it does not, followed by the reason.
struct Reach {
  static constexpr std::uint64_t kMagic = 0x6863616572637577;
  std::uint64_t magic = kMagic;
  std::uint64_t usable = 0;
};

/// Whether a rank has connected the others, followed by a reason if it has not.
struct Connected {
  static constexpr std::uint64_t kMagic = 0x656e696c72637577;
  std::uint64_t magic = kMagic;
  std::uint64_t all = 0;
};

/// Throws Error if UCX cannot be used.
std::unique_ptr<UcxLink> open_ucx(const LinkInfo& info) {
  if (!config::uses_ucx()) fail(WEIR_STATUS_UNAVAILABLE, "WEIR_UCX is 0");
  const std::string path = ucx_library_path();
  if (path.empty()) {
    fail(WEIR_STATUS_UNAVAILABLE,
         "{} is not beside weir's library: weir was built without UCX (Debian: install {} and "
         "build it again)",
         kLibrary, kUcxPackages);
  }
  void* const library = open_link_library(path, "weir_ucx_link_build", "libucx0");
  const auto open = reinterpret_cast<UcxLinkOpen>(dlsym(library, "weir_ucx_link_open"));
  char message[256] = "";
  std::unique_ptr<UcxLink> link(open(info.rank, info.ranks, message, sizeof message));
  if (link == nullptr) fail(WEIR_STATUS_UNAVAILABLE, "UCX cannot be used: {}", message);
  return link;
}

/// Exchanges addresses, and what becomes of them.
class Connecting {
 public:
  Connecting(Link& starter, EarlyPackets early, std::int64_t within_ns)
      : wire_up_(starter, within_ns, std::move(early)), info_(starter.info()) {}

  /// Returns the connected link; null, with a reason in why(), if a rank cannot use UCX.
  std::unique_ptr<UcxLink> run() {
    std::unique_ptr<UcxLink> link;
    std::string own;
    try {
      link = open_ucx(info_);
    } catch (const Error& error) {
      own = error.what();
    }
    addresses_.resize(info_.ranks);
    const bool reached = exchange(Reach{.usable = link != nullptr},
                                  link ? link->address() : bytes_of_text(own), &Reach::usable, own);
    if (!reached) return nullptr;
    for (Rank rank = 0; rank < info_.ranks && own.empty(); ++rank) {
      if (rank != info_.rank) own = link->connect(rank, addresses_[rank]);
    }
    const bool connected =
        exchange(Connected{.all = own.empty()}, bytes_of_text(own), &Connected::all, own);
    return connected ? std::move(link) : nullptr;
  }

  const std::string& why() const noexcept { return why_; }
  EarlyPackets rest() noexcept { return wire_up_.rest(); }

 private:
  static std::span<const std::byte> bytes_of_text(const std::string& text) noexcept {
    return std::as_bytes(std::span(text));
  }

  /// Sends a struct to all ranks and receives theirs, with what follows them in addresses_. Returns
  /// whether `well` holds on all.
  template <class Fixed>
  bool exchange(const Fixed& own, std::span<const std::byte> rest, std::uint64_t Fixed::*well,
                const std::string& own_reason) {
    for (Rank rank = 0; rank < info_.ranks; ++rank) {
      if (rank != info_.rank) wire_up_.send(rank, own, rest);
    }
    for (Rank rank = 0; rank < info_.ranks; ++rank) {
      if (rank == info_.rank) {
        if (own.*well == 0) note(rank, own_reason);
        continue;
      }
      std::vector<std::byte>& bytes = addresses_[rank];
      const auto theirs = wire_up_.take<Fixed>(rank, &bytes);
      if (!theirs) {
        note(rank, "runs another weir");
      } else if ((*theirs).*well == 0) {
        note(rank, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      }
    }
    return why_.empty();
  }

  void note(Rank rank, const std::string& why) {
    if (why_.empty()) why_ = fmt::format("rank {}: {}", rank, why);
  }

  WireUp wire_up_;
  const LinkInfo& info_;
  std::vector<std::vector<std::byte>> addresses_;  ///< by rank
  std::string why_;
};

}  // namespace

std::string ucx_library_path() { return link_library_path(kLibrary); }

std::unique_ptr<Link> ucx_link(std::unique_ptr<Link> starter, EarlyPackets& early,
                               std::int64_t within_ns, bool required) {
  Connecting connecting(*starter, std::move(early), within_ns);
  std::unique_ptr<UcxLink> link = connecting.run();
  early = connecting.rest();
  if (link != nullptr) {
    link->begin(std::move(starter));
    return link;
  }
  if (required) {
    fail(WEIR_STATUS_UNAVAILABLE, "not all ranks can use UCX: {}", connecting.why());
  }
  log::info("{} carries packets, not UCX: {}", starter->info().name, connecting.why());
  return starter;
}

}  // namespace weir::rt
