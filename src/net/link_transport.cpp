#include "net/link_transport.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <elf.h>
#include <link.h>

#include <weir/version.h>

#include "net/checksum.hpp"
#include "net/one_sided.hpp"
#include "net/wire.hpp"

namespace weir::rt {

enum class LinkTransport::Kind : std::uint8_t {
  hello,
  leave,
  heartbeat,
  frame,
  put,
  get,
  change,
  put_done,
  get_part,
  change_done,
  end,  ///< like leave, from a process that ends without having closed the fabric
  count
};

struct LinkTransport::Header {
  static constexpr std::uint32_t kMagic = 0x72696577;
  /// summed: a checksum follows the body
  enum class Format : std::uint8_t { plain = 1, summed = 2 };

  std::uint32_t magic = kMagic;
  Format format = Format::plain;
  Kind kind = Kind::heartbeat;
  std::uint16_t check = 0;
  std::uint32_t bytes = 0;     ///< after the header, without the checksum
  std::uint32_t sequence = 0;  ///< number of the packet from this rank to that one

  std::uint16_t expected_check() const noexcept {
    std::uint64_t mix = bytes * 0x9E3779B97F4A7C15u ^ sequence * 0xC2B2AE3D27D4EB4Fu;
    mix = (mix ^ magic ^ static_cast<std::uint64_t>(format) << 40 ^
           static_cast<std::uint64_t>(kind) << 32) *
          0x165667B19E3779F9u;
    return static_cast<std::uint16_t>(mix >> 48);
  }
  bool sound() const noexcept {
    return magic == kMagic && (format == Format::plain || format == Format::summed) &&
           check == expected_check() && kind < Kind::count;
  }
};

struct LinkTransport::Hello {
  std::int64_t lost_after_ns;
  std::uint32_t sends_heartbeats, unused;
};
struct LinkTransport::Put {
  std::uint64_t token, offset;
  std::uint32_t window, last;
};
struct LinkTransport::Get {
  std::uint64_t token, offset, bytes;
  std::uint32_t window, unused;
};
struct LinkTransport::Change {
  std::uint64_t token, offset;
  std::int64_t operand, expected;
  std::uint32_t window, kind;
};
struct LinkTransport::Reply {
  std::uint64_t token;
  std::uint64_t cursor;  ///< offset of the following bytes
  std::int64_t old;
  std::uint32_t status, unused;
};

namespace {

constexpr std::size_t kLargestFixed = 40;
constexpr std::int64_t kLongestInterval = 250'000'000;
constexpr std::int64_t kLongestLeave = 5'000'000'000;
constexpr unsigned kPassesPerCheck = 64;

/// Collects the linker's build ids of the program and of the library that contains this function.
struct BuildIds {
  std::string text;
  const void* here;

  static int look(dl_phdr_info* info, std::size_t, void* self) {
    auto& ids = *static_cast<BuildIds*>(self);
    const bool program = ids.text.empty();
    bool ours = false;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& part = info->dlpi_phdr[i];
      const auto at = reinterpret_cast<std::uintptr_t>(ids.here);
      const auto from = static_cast<std::uintptr_t>(info->dlpi_addr + part.p_vaddr);
      ours = ours || (part.p_type == PT_LOAD && at >= from && at - from < part.p_memsz);
    }
    if (!program && !ours) return 0;
    ids.text += program ? "program" : " weir";
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type == PT_NOTE) ids.read_notes(*info, info->dlpi_phdr[i]);
    }
    return 0;
  }

  void read_notes(const dl_phdr_info& info, const ElfW(Phdr) & part) {
    const auto* at = reinterpret_cast<const std::byte*>(info.dlpi_addr + part.p_vaddr);
    const std::byte* const end = at + part.p_memsz;
    const auto padded = [](std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; };
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const std::byte* const id = at + sizeof note + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && id + note.n_descsz <= end) {
        text += ' ';
        for (std::size_t i = 0; i < std::min<std::size_t>(note.n_descsz, 8); ++i) {
          text += fmt::format("{:02x}", static_cast<unsigned>(id[i]));
        }
      }
      at = id + padded(note.n_descsz);
    }
  }
};

/// Returns the heartbeat interval for ranks that lose a peer after `lost_after_ns` of silence.
std::int64_t interval_for(std::int64_t lost_after_ns) noexcept {
  if (lost_after_ns <= 0) return kLongestInterval;
  return std::clamp<std::int64_t>(lost_after_ns / 8, 1'000'000, kLongestInterval);
}

/// Returns the checksum of a packet's body, which may be in several parts.
std::uint64_t checksum(std::span<const std::byte> first, Parts others) noexcept {
  Checksum sum;
  sum.add(first);
  for (const auto& other : others) sum.add(other);
  return sum.value();
}

/// Removes the checksum at the end of a packet. Throws Error if it does not match.
void cut_off_checksum(std::span<const std::byte>& bytes) {
  std::uint64_t sent = 0;
  if (bytes.size() < sizeof sent) fail(WEIR_STATUS_NETWORK_ERROR, "its checksum is missing");
  std::memcpy(&sent, bytes.last(sizeof sent).data(), sizeof sent);
  bytes = bytes.first(bytes.size() - sizeof sent);
  if (checksum(bytes, {}) != sent) {
    fail(WEIR_STATUS_NETWORK_ERROR, "its {} bytes have another checksum than those that were sent",
         bytes.size());
  }
}

}  // namespace

std::string build_id() {
  static const char here = 0;
  BuildIds ids{{}, &here};
  dl_iterate_phdr(&BuildIds::look, &ids);
  return fmt::format("{} ({})", WEIR_VERSION_STRING, ids.text);
}

// ---- Joining and leaving ------------------------------------------------------------------------

LinkTransport::LinkTransport(std::unique_ptr<Link> link, Membership membership)
    : link_(std::move(link)), membership_(std::move(membership)) {
  const LinkInfo& facts = link_->info();
  info_ = {.name = facts.name,
           .rank = facts.rank,
           .ranks = facts.ranks,
           .frame_bytes = facts.packet_bytes - sizeof(Header) - sizeof(std::uint64_t),
           .reserved_bytes = membership_.sends_checksums ? 0 : facts.reserved_bytes,
           .shares_memory = facts.shares_memory,
           .owner_must_poll = !facts.shares_memory,
           .can_sleep = facts.can_sleep,
           .sees_stalls = facts.sees_stalls,
           .seeded = facts.seeded,
           .lost_after_ns = membership_.lost_after_ns};
  if (membership_.lost_after_ns > 0) {
    info_.patience_ns = std::min(membership_.lost_after_ns, kLongestLeave);
  } else {
    info_.patience_ns = kLongestLeave;
  }
  interval_ns_ = interval_for(membership_.lost_after_ns);
  peers_.resize(info_.ranks);
  slots_.resize(kSlots);
  free_.reserve(kSlots);
  ended_.reserve(kSlots);
  delivering_.reserve(kSlots);
  unsent_.reserve(kSlots);
  lost_.reserve(info_.ranks);
  for (std::uint32_t i = kSlots; i > 0; --i) free_.push_back(i - 1);
  join();
}

void LinkTransport::send_hellos(std::vector<bool>& sent) {
  const Hello hello{membership_.lost_after_ns, membership_.sends_heartbeats, 0};
  const std::span<const std::byte> build = std::as_bytes(std::span(membership_.build));
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    if (!sent[rank]) sent[rank] = push(rank, Kind::hello, hello, build);
  }
}

void LinkTransport::join() {
  std::vector<bool> sent(info_.ranks);
  sent[info_.rank] = true;
  peers_[info_.rank].joined = true;
  peers_[info_.rank].build = membership_.build;
  const std::int64_t deadline = sys::deadline_after(membership_.join_within_ns);
  const auto everybody = [&] {
    return std::all_of(sent.begin(), sent.end(), [](bool each) { return each; }) &&
           std::all_of(peers_.begin(), peers_.end(), [](const Peer& each) { return each.joined; });
  };
  send_hellos(sent);
  while (!everybody()) {
    const std::uint32_t bell = link_->bell();
    const bool heard = link_->receive(*this);
    send_hellos(sent);
    for (Rank rank = 0; rank < info_.ranks; ++rank) {
      const std::string why = peers_[rank].joined ? std::string() : link_->why_lost(rank);
      if (!why.empty()) receive_all();  // including packets of a rank that has left already
      const Peer& peer = peers_[rank];
      if (peer.lost && !peer.left) fail(WEIR_STATUS_NETWORK_ERROR, "{}", peer.why);
      if (peer.joined) continue;
      if (!why.empty()) fail(WEIR_STATUS_NETWORK_ERROR, "rank {} {} before it joined", rank, why);
      if (sys::now_ns() < deadline) continue;
      fail(WEIR_STATUS_NETWORK_ERROR, "rank {} has not joined the fabric within {} s", rank,
           membership_.join_within_ns / 1'000'000'000);
    }
    if (!heard) link_->wait(bell, std::min(deadline, sys::now_ns() + 10'000'000));
  }
  compare_builds();
  checked_ns_ = sys::now_ns();
  for (Peer& peer : peers_) peer.received_ns = peer.sent_ns = checked_ns_;
}

/// Does nothing inside a call of Link::receive(), which is not reentrant.
bool LinkTransport::receive() noexcept {
  if (std::exchange(receiving_, true)) return false;
  const bool any = link_->receive(*this);
  receiving_ = false;
  return any;
}

/// Receives everything that has arrived, for a rank that sends no more.
void LinkTransport::receive_all() noexcept {
  constexpr unsigned kMostBursts = 1000;
  for (unsigned i = 0; i < kMostBursts && receive(); ++i) {
  }
}

void LinkTransport::compare_builds() const {
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    if (peers_[rank].build == peers_[0].build) continue;
    fail(WEIR_STATUS_UNSUPPORTED,
         "rank {} runs weir {}, rank 0 runs weir {}: start the same program on all ranks", rank,
         peers_[rank].build, peers_[0].build);
  }
}

LinkTransport::~LinkTransport() {
  if (!has_left_) leave(Kind::leave);
}

void LinkTransport::leave_at_exit() noexcept {
  if (has_left_) return;
  leave(Kind::end);
  link_->leave();
  has_left_ = true;
  next_check_ns_.store(sys::kNever);
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    if (rank != info_.rank)
      mark_lost(rank, reason("is out of reach: this rank has left the fabric"));
  }
}

void LinkTransport::leave(Kind farewell) noexcept {
  const std::int64_t deadline = sys::deadline_after(info_.patience_ns);
  struct Nobody final : TransportSink {
    void arrived(Rank, std::span<const std::byte>) noexcept override {}
    void completed(void*, std::int64_t, Outcome) noexcept override {}
    void lost(Rank, const std::string&) noexcept override {}
  } nobody;
  Rank next = 0;
  const auto over = [&] {
    while (next < info_.ranks &&
           (next == info_.rank || peers_[next].lost || push_parts(next, farewell, {}, {}))) {
      ++next;
    }
    return next == info_.ranks && link_->drained();
  };
  IdleWait wait{.what = "room to leave", .patience = Patience::some};
  for (;;) {
    const std::uint32_t bell = link_->bell();
    const std::uint64_t since = link_->activity();
    if (answers_.empty() && over()) break;
    if (sys::now_ns() >= deadline) break;
    if (progress(nobody)) continue;
    try {
      static_cast<void>(link_->idle(wait, since));
    } catch (...) {  // no memory: the next pass reports it
    }
    link_->wait(bell, std::min(deadline, sys::now_ns() + 1'000'000));
  }
  link_->resumed(wait);
}

// ---- Packets ------------------------------------------------------------------------------------

bool LinkTransport::push_parts(Rank to, Kind kind, std::span<const std::byte> first, Parts others,
                               LinkSend send) noexcept {
  Peer& peer = peers_[to];
  std::array<std::byte, sizeof(Header) + kLargestFixed> front;
  std::array<std::span<const std::byte>, 6> parts;
  Header header;
  header.kind = kind;
  header.sequence = peer.sent;
  header.format = membership_.sends_checksums ? Header::Format::summed : Header::Format::plain;
  std::size_t bytes = first.size(), count = 1;
  for (const auto& other : others) {
    bytes += other.size();
    parts[count++] = other;
  }
  header.bytes = static_cast<std::uint32_t>(bytes);
  header.check = header.expected_check();
  std::memcpy(front.data(), &header, sizeof header);
  if (!first.empty()) std::memcpy(front.data() + sizeof header, first.data(), first.size());
  parts[0] = std::span(front).first(sizeof header + first.size());
  std::uint64_t sum = 0;
  if (membership_.sends_checksums) {
    sum = checksum(first, others);
    parts[count++] = bytes_of(sum);
  }
  if (!(link_.get()->*send)(to, std::span(parts).first(count))) return false;
  ++peer.sent;
  peer.sent_ns = checked_ns_;
  return true;
}

template <class Fixed>
bool LinkTransport::push(Rank to, Kind kind, const Fixed& fixed,
                         std::span<const std::byte> body) noexcept {
  static_assert(sizeof fixed <= kLargestFixed);
  return push_parts(to, kind, bytes_of(fixed), {&body, 1});
}

bool LinkTransport::send(Rank to, Parts parts) {
  return peers_[to].lost || push_parts(to, Kind::frame, {}, parts);
}

bool LinkTransport::send_reserved(Rank to, Parts parts) {
  static_assert(sizeof(Header) + 64 <= kReservedFront);
  if (!peers_[to].lost) return push_parts(to, Kind::frame, {}, parts, &Link::send_reserved);
  link_->unreserve(const_cast<std::byte*>(parts.back().data()));
  return true;
}

void LinkTransport::packet(Rank from, std::span<const std::byte> bytes) noexcept {
  Peer& peer = peers_[from];
  if (peer.lost) return;
  try {
    const Header header = cut_off<Header>(bytes);
    if (!header.sound()) fail(WEIR_STATUS_NETWORK_ERROR, "its header is none of weir's");
    if (header.format == Header::Format::summed) cut_off_checksum(bytes);
    if (header.bytes != bytes.size()) {
      fail(WEIR_STATUS_NETWORK_ERROR, "it has {} bytes where its header says {}", bytes.size(),
           header.bytes);
    }
    if (header.sequence != peer.received++) {
      fail(WEIR_STATUS_NETWORK_ERROR, "it is packet {} where {} was due", header.sequence,
           peer.received - 1);
    }
    if (!peer.joined && header.kind != Kind::hello) {
      fail(WEIR_STATUS_NETWORK_ERROR, "it came before the rank joined");
    }
    peer.received_ns = checked_ns_;
    take(from, header.kind, bytes);
  } catch (const Error& error) {
    mark_lost(from, reason("sent a packet that is refused: ", error.what()));
  } catch (...) {
    mark_lost(from, reason("sent more than there is memory for"));
  }
}

void LinkTransport::take(Rank from, Kind kind, std::span<const std::byte> rest) {
  Peer& peer = peers_[from];
  switch (kind) {
    case Kind::hello: {
      if (peer.joined) fail(WEIR_STATUS_NETWORK_ERROR, "it joins a second time");
      const Hello hello = cut_off<Hello>(rest);
      peer.sends_heartbeats = hello.sends_heartbeats != 0;
      interval_ns_ = std::min(interval_ns_, interval_for(hello.lost_after_ns));
      peer.build.assign(reinterpret_cast<const char*>(rest.data()), rest.size());
      peer.joined = true;
      return;
    }
    case Kind::leave: peer.left = true; return mark_lost(from, "has left the fabric");
    case Kind::end:
      peer.left = true;
      return mark_lost(from, "has ended without closing the fabric");
    case Kind::frame:
      if (sink_ != nullptr) return sink_->arrived(from, rest);
      early_.emplace_back(from, std::vector<std::byte>(rest.begin(), rest.end()));
      return;
    case Kind::put: return take_put(from, rest);
    case Kind::get: return take_get(from, rest);
    case Kind::change: return take_change(from, rest);
    case Kind::put_done:
    case Kind::get_part:
    case Kind::change_done: return take_reply(from, kind, rest);
    default: return;
  }
}

void LinkTransport::mark_lost(Rank rank, std::string why) noexcept {
  Peer& peer = peers_[rank];
  if (peer.lost) return;
  peer.lost = true;
  lost_.push_back(rank);
  try {
    peer.why = fmt::format("rank {} {}", rank, why);
  } catch (...) {
    peer.why = std::move(why);
  }
}

void LinkTransport::drop(Rank rank, const std::string& why) noexcept {
  mark_lost(rank, reason(why.c_str()));
}

// ---- One-sided operations: the target -----------------------------------------------------------

void LinkTransport::expose(WindowId window, void* memory, std::size_t bytes) {
  windows_[window] = {static_cast<std::byte*>(memory), bytes};
  link_->expose(window, memory, bytes);
}

bool LinkTransport::withdraw(WindowId window) noexcept {
  windows_.erase(window);
  return link_->withdraw(window);
}

std::byte* LinkTransport::reach(WindowId window, std::uint64_t offset,
                                std::uint64_t bytes) noexcept {
  const auto found = windows_.find(window);
  if (found == windows_.end()) return nullptr;
  const Window& known = found->second;
  return offset <= known.bytes && bytes <= known.bytes - offset ? known.memory + offset : nullptr;
}

void LinkTransport::take_put(Rank from, std::span<const std::byte> rest) {
  const Put put = cut_off<Put>(rest);
  std::byte* const at = reach(put.window, put.offset, rest.size());
  if (at != nullptr && !rest.empty()) std::memcpy(at, rest.data(), rest.size());
  if (put.last == 0) return;
  answers_.push_back({.to = from,
                      .kind = Kind::put_done,
                      .token = put.token,
                      .status = at != nullptr ? WEIR_STATUS_OK : WEIR_STATUS_INVALID_ARGUMENT});
}

void LinkTransport::take_get(Rank from, std::span<const std::byte> rest) {
  const Get get = cut_off<Get>(rest);
  const bool there = reach(get.window, get.offset, get.bytes) != nullptr;
  answers_.push_back({.to = from,
                      .kind = Kind::get_part,
                      .token = get.token,
                      .window = get.window,
                      .offset = get.offset,
                      .bytes = get.bytes,
                      .status = there ? WEIR_STATUS_OK : WEIR_STATUS_INVALID_ARGUMENT});
}

void LinkTransport::take_change(Rank from, std::span<const std::byte> rest) {
  const Change change = cut_off<Change>(rest);
  std::byte* const at = reach(change.window, change.offset, sizeof(std::int64_t));
  Answer answer{.to = from, .kind = Kind::change_done, .token = change.token};
  const OneSided operation{.kind = static_cast<OneSidedKind>(change.kind),
                           .operand = change.operand,
                           .expected = change.expected};
  if (at == nullptr || !change_word(operation, at, answer.old)) {
    answer.status = WEIR_STATUS_INVALID_ARGUMENT;
  }
  answers_.push_back(answer);
}

bool LinkTransport::push_answer(Answer& answer) noexcept {
  if (peers_[answer.to].lost) return true;
  Reply reply{answer.token, answer.cursor, answer.old, static_cast<std::uint32_t>(answer.status),
              0};
  if (answer.kind != Kind::get_part) return push(answer.to, answer.kind, reply);
  const std::size_t most = info_.frame_bytes - sizeof reply;
  do {
    const std::size_t piece = std::min<std::uint64_t>(most, answer.bytes - answer.cursor);
    const std::byte* const at = reach(answer.window, answer.offset + answer.cursor, piece);
    if (at == nullptr) answer.status = WEIR_STATUS_INVALID_ARGUMENT;
    reply.cursor = answer.cursor;
    reply.status = static_cast<std::uint32_t>(answer.status);
    const bool failed = answer.status != WEIR_STATUS_OK;
    const std::span<const std::byte> body(at, failed ? 0 : piece);
    if (!push(answer.to, answer.kind, reply, body)) return false;
    if (failed) return true;
    answer.cursor += piece;
  } while (answer.cursor < answer.bytes);
  return true;
}

bool LinkTransport::push_answers() noexcept {
  bool moved = false;
  for (std::size_t left = answers_.size(); left > 0; --left) {
    Answer answer = answers_.front();
    answers_.pop_front();
    if (push_answer(answer)) {
      moved = true;
    } else {
      try {
        answers_.push_back(answer);
      } catch (...) {
        mark_lost(answer.to, reason("is owed an answer that there is no memory for"));
      }
    }
  }
  return moved;
}

// ---- One-sided operations: the initiator --------------------------------------------------------

bool LinkTransport::start(const OneSided& operation) {
  if (ended_.size() >= free_.size()) return false;
  const std::uint32_t index = free_.back();
  unsent_.push_back(index);
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.operation = operation;
  slot.cursor = 0;
  slot.live = slot.direct = true;
  bool moved = false;
  if (unsent_.size() == 1 && push_slot(slot, index, moved)) unsent_.pop_back();
  return true;
}

/// Returns whether nothing remains to be sent.
bool LinkTransport::push_slot(Slot& slot, std::uint32_t index, bool& moved) noexcept {
  const OneSided& operation = slot.operation;
  if (!slot.live) return true;
  if (peers_[operation.target].lost) return true;  // deliver_lost() ends the operation
  std::int64_t old = 0;
  std::optional<Outcome> outcome;
  if (slot.direct) outcome = link_->direct(operation, slot.cursor, old);
  if (outcome) {
    moved = true;
    const bool over = !outcome->ok() || slot.cursor >= operation.bytes;
    if (over) end(slot, old, *outcome);
    return over;
  }
  if (std::exchange(slot.direct, false)) slot.cursor = 0;
  const std::uint64_t token = std::uint64_t{slot.generation} << 32 | index;
  if (operation.kind == OneSidedKind::get) {
    return moved = push(operation.target, Kind::get,
                        Get{token, operation.offset, operation.bytes, operation.window, 0});
  }
  if (operation.kind != OneSidedKind::put) {
    return moved = push(operation.target, Kind::change,
                        Change{token, operation.offset, operation.operand, operation.expected,
                               operation.window, static_cast<std::uint32_t>(operation.kind)});
  }
  const std::size_t most = info_.frame_bytes - sizeof(Put);
  for (;;) {
    const std::size_t piece = std::min<std::uint64_t>(most, operation.bytes - slot.cursor);
    const bool last = slot.cursor + piece == operation.bytes;
    const Put put{token, operation.offset + slot.cursor, operation.window, last};
    if (!push(operation.target, Kind::put, put, {operation.local + slot.cursor, piece})) {
      return false;
    }
    moved = true;
    slot.cursor += piece;
    if (last) return true;
  }
}

bool LinkTransport::push_slots() noexcept {
  bool moved = false;
  std::erase_if(unsent_,
                [&](std::uint32_t index) { return push_slot(slots_[index], index, moved); });
  return moved;
}

LinkTransport::Slot* LinkTransport::find(std::uint64_t token, Rank from) noexcept {
  const auto index = static_cast<std::uint32_t>(token);
  if (index >= slots_.size()) return nullptr;
  Slot& slot = slots_[index];
  const bool same = slot.live && slot.generation == static_cast<std::uint32_t>(token >> 32);
  return same && slot.operation.target == from ? &slot : nullptr;
}

std::string LinkTransport::refusal(const OneSided& operation) const {
  if (operation.kind == OneSidedKind::fetch_add || operation.kind == OneSidedKind::compare_swap) {
    return fmt::format(
        "rank {} refuses an atomic operation: it has no window {} with an aligned "
        "word at {}",
        operation.target, operation.window, operation.offset);
  }
  return fmt::format("rank {} refuses access: it has no window {} with the bytes {} to {}",
                     operation.target, operation.window, operation.offset,
                     operation.offset + operation.bytes);
}

LinkTransport::Kind LinkTransport::answer_to(OneSidedKind operation) noexcept {
  if (operation == OneSidedKind::put) return Kind::put_done;
  return operation == OneSidedKind::get ? Kind::get_part : Kind::change_done;
}

void LinkTransport::take_reply(Rank from, Kind kind, std::span<const std::byte> rest) {
  const Reply reply = cut_off<Reply>(rest);
  Slot* const slot = find(reply.token, from);
  if (slot == nullptr) fail(WEIR_STATUS_NETWORK_ERROR, "it answers what nobody asked");
  const OneSided& operation = slot->operation;
  if (kind != answer_to(operation.kind)) {
    fail(WEIR_STATUS_NETWORK_ERROR, "it answers another question than was asked");
  }
  if (reply.status != WEIR_STATUS_OK) {
    return end(*slot, 0, {static_cast<weir_status>(reply.status), refusal(operation)});
  }
  if (kind == Kind::get_part) {
    if (reply.cursor != slot->cursor || rest.size() > operation.bytes - slot->cursor) {
      fail(WEIR_STATUS_NETWORK_ERROR, "it has other bytes than those asked for");
    }
    if (!rest.empty()) std::memcpy(operation.local + slot->cursor, rest.data(), rest.size());
    slot->cursor += rest.size();
    if (slot->cursor < operation.bytes) return;
  }
  end(*slot, reply.old, {});
}

void LinkTransport::end(Slot& slot, std::int64_t old, Outcome outcome) noexcept {
  ended_.push_back({slot.operation.token, old, std::move(outcome)});
  slot.live = false;
  ++slot.generation;
  free_.push_back(static_cast<std::uint32_t>(&slot - slots_.data()));
}

// ---- Progress -----------------------------------------------------------------------------------

bool LinkTransport::progress(TransportSink& sink) noexcept {
  sink_ = &sink;
  bool happened = false;
  while (!early_.empty()) {
    const auto [from, bytes] = std::move(early_.front());
    early_.pop_front();
    sink.arrived(from, bytes);
    happened = true;
  }
  if (!has_left_) happened |= progress_link();
  happened |= deliver_lost(sink);
  happened |= deliver_ended(sink);
  sink_ = nullptr;
  return happened;
}

bool LinkTransport::progress_link() noexcept {
  if (++passes_ % kPassesPerCheck == 0) check_peers();
  bool happened = receive();
  happened |= push_answers();
  happened |= push_slots();
  if (!happened && passes_ % kPassesPerCheck != 0) check_peers();
  return happened;
}

bool LinkTransport::deliver_ended(TransportSink& sink) noexcept {
  if (ended_.empty()) return false;
  delivering_.swap(ended_);
  for (Ended& each : delivering_) sink.completed(each.token, each.old, std::move(each.outcome));
  delivering_.clear();
  return true;
}

bool LinkTransport::deliver_lost(TransportSink& sink) noexcept {
  if (reported_ == lost_.size()) return false;
  while (reported_ < lost_.size()) {
    const Rank rank = lost_[reported_++];
    const std::string& why = peers_[rank].why;
    if (!has_left_) link_->cut(rank, peers_[rank].left);
    std::erase_if(answers_, [rank](const Answer& answer) { return answer.to == rank; });
    end_operations_on(rank, sink);
    sink.lost(rank, why);
    end_operations_on(rank, sink);  // operations that sink.lost() has started
  }
  return true;
}

void LinkTransport::end_operations_on(Rank rank, TransportSink& sink) noexcept {
  for (Slot& slot : slots_) {
    if (slot.live && slot.operation.target == rank) {
      end(slot, 0, failed_outcome(WEIR_STATUS_NETWORK_ERROR, peers_[rank].why.c_str()));
    }
  }
  std::erase_if(unsent_, [&](std::uint32_t index) { return !slots_[index].live; });
  deliver_ended(sink);
}

void LinkTransport::check_peers() noexcept {
  const std::int64_t now = sys::now_ns();
  const std::int64_t away = now - checked_ns_;
  checked_ns_ = now;
  if (now < next_check_ns_.load(std::memory_order_relaxed)) return;
  next_check_ns_.store(now + interval_ns_ / 2, std::memory_order_relaxed);
  for (Rank rank = 0; rank < info_.ranks; ++rank) {
    Peer& peer = peers_[rank];
    if (rank == info_.rank || peer.lost) continue;
    // A rank that did not make progress for a while cannot know whether others were silent.
    if (away > 2 * interval_ns_) peer.received_ns = now;
    if (membership_.sends_heartbeats && now - peer.sent_ns >= interval_ns_) {
      push_parts(rank, Kind::heartbeat, {}, {});
    }
    if (std::string why = link_->why_lost(rank); !why.empty()) {
      receive_all();
      mark_lost(rank, std::move(why));
    } else if (peer.sends_heartbeats && membership_.lost_after_ns > 0 &&
               now - peer.received_ns > membership_.lost_after_ns) {
      std::array<char, 64> text{};
      fmt::format_to_n(text.data(), text.size() - 1, "has not answered for {} ms",
                       (now - peer.received_ns) / 1'000'000);
      mark_lost(rank, reason(text.data()));
    }
  }
}

void LinkTransport::wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept {
  const std::int64_t look = next_check_ns_.load(std::memory_order_relaxed);
  link_->wait(bell, std::min(deadline_ns, std::max(look, sys::now_ns() + 100'000)));
}

}  // namespace weir::rt
