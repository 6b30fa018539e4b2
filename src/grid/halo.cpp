#include "grid/halo.hpp"

#include <algorithm>
#include <cassert>
#include <string_view>
#include <utility>

#include "base/config.hpp"
#include "base/counted.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace weir::rt {

namespace {

/// FNV-1a, for lists that are too long to compare as text.
class Fingerprint {
 public:
  void add(std::int64_t number) noexcept {
    for (int i = 0; i < 8; ++i) {
      value_ = (value_ ^ (static_cast<std::uint64_t>(number) >> (8 * i) & 0xff)) * 0x100000001b3u;
    }
  }
  void add(const GridRange& range) noexcept {
    for (std::size_t d = 0; d < 3; ++d) {
      add(range.begin[d]);
      add(range.end[d]);
    }
  }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

std::string_view as_words(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr std::string_view kStopped = "cannot go on with its halo";

/// Returns what a rank tells the others when it stops for a reason: the first cause, which they may
/// hear of later, without the ranks in between. "" without memory.
std::string why_stopped(std::string_view reason) noexcept {
  const std::size_t found = reason.rfind(kStopped);
  if (found != reason.npos)
    reason.remove_prefix(std::min(found + kStopped.size() + 2, reason.size()));
  try {
    return fmt::format("{}: {}", kStopped, reason);
  } catch (...) {
    return {};
  }
}

}  // namespace

Halo::Layout::Layout(const Partition& given, const weir_halo_options& options, Rank rank)
    : grid(given),
      shape(make_halo_shape(grid, options)),
      arrays(grid, shape, rank, {options.fields, options.field_count},
             {options.arrays, options.array_count}),
      plan(make_halo_plan(
          grid,
          options.transfers == nullptr
              ? make_transfers(grid, shape, rank)
              : read_transfers(grid, shape, {options.transfers, options.transfer_count}, rank),
          rank, arrays)),
      check(options.check || config::checks_halos()) {}

Halo::Halo(GroupHub& hub, const std::function<HaloRequest()>& read)
    : hub_(hub),
      rank_(hub_.port().rank()),
      ranks_(hub_.port().ranks()),
      hellos_(ranks_),
      hellos_missing_(ranks_ - 1),
      why_lost_(ranks_) {
  hub_.enter(*this, number_);
  try {
    const HaloRequest request = read();
    const weir_halo_options& options = request.options;
    if (request.grid->ranks != ranks_) {
      fail_argument("the grid is for {}: the fabric has {}", counted(request.grid->ranks, "rank"),
                    ranks_);
    }
    if (options.fields == nullptr) fail_argument("a halo needs at least one field");
    if (options.arrays == nullptr && options.array_count > 0) fail_argument("arrays is NULL");
    layout_.emplace(*request.grid, options, rank_);
    if (layout_->check) check_arrays(options);
    prepare_messages();
    agree(options);
  } catch (const std::exception& error) {
    // All ranks detect a difference between hellos themselves; other failures must be sent to them.
    if (!all_hellos_sent_ && !has_failed()) send_to_all(Kind::failure, error.what());
    hub_.leave(number_);
    throw;
  }
}

Halo::~Halo() { close(); }

void Halo::close() noexcept {
  if (closed_.exchange(true)) return;
  abort_exchange("has destroyed its halo");
  hub_.leave(number_);
  fail_with(WEIR_STATUS_INVALID_ARGUMENT, "the halo was destroyed before its step was complete");
  end_exchanged_step();
}

/// Checks that the arrays match the program's locate(): tags cannot, as they are computed from the
/// same array descriptions. Throws Error.
void Halo::check_arrays(const weir_halo_options& options) const {
  if (options.locate == nullptr) {
    return log::info(
        "the arrays of a halo that is checked are believed: set locate to compare them");
  }
  const auto locate = [&](std::size_t block, std::size_t field, const GridCell& cell) {
    return options.locate(block, field, cell.data(), options.payload);
  };
  const HaloCheck check(layout_->grid, layout_->arrays, layout_->plan);
  const std::string wrong = check.find_misplaced(rank_, locate);
  if (!wrong.empty()) fail_argument("{}", wrong);
}

bool Halo::has_failed() {
  sys::Lock lock(mutex_);
  return !failure_.ok();
}

void Halo::prepare_messages() {
  info_.checked = layout_->check;
  for (const HaloPlan::Peer& peer : layout_->plan.peers) {
    Peer& mine = peers_.emplace_back();
    mine.early.reserve(wire_bytes(peer.receives));
    mine.taken.reserve(wire_bytes(peer.receives));
    for (const HaloPlan::Message& message : peer.outgoing) {
      const Parts parts = parts_of(peer.sends, message);
      if (!layout_->check && !is_packed(parts)) continue;
      mine.packed.resize(std::max(mine.packed.size(), wire_bytes(parts)));
      info_.bytes_packed += message.bytes;
    }
    ++info_.neighbours;
    info_.bytes_sent += peer.send_bytes;
  }
  for (const HaloPlan::Copy& copy : layout_->plan.copies) {
    info_.bytes_copied += copy.from.memory.bytes();
  }
}

/// Returns the size on the wire: with tags in checked mode.
std::size_t Halo::wire_bytes(Parts parts) const noexcept {
  const HaloCheck check(layout_->grid, layout_->arrays, layout_->plan);
  std::size_t sum = 0;
  for (const HaloPlan::Part& part : parts) {
    sum += layout_->check ? check.bytes(part) : part.memory.bytes();
  }
  return sum;
}

bool Halo::is_packed(Parts parts) noexcept {
  return parts.size() > 1 || (parts.size() == 1 && !joined(parts[0].memory).contiguous());
}

std::string Halo::describe(const weir_halo_options& options) const {
  const Partition& grid = layout_->grid;
  std::string text =
      fmt::format("a grid of {} cells in {} dimensions\n",
                  fmt::join(std::span(grid.cells).first(grid.dimensions), " x "), grid.dimensions);
  text += "a period in";
  for (unsigned d = 0; d < grid.dimensions; ++d) {
    if (grid.periodic[d]) text += fmt::format(" {}", kDimensionNames[d]);
  }
  if (text.ends_with("in")) text += " no dimension";
  Fingerprint blocks;
  for (const GridBlock& block : grid.blocks) {
    blocks.add(block.cells);
    blocks.add(block.rank);
  }
  text +=
      fmt::format("\n{} blocks with the fingerprint {:x}\n", grid.blocks.size(), blocks.value());
  text += fmt::format("a halo of {} cells{}\n",
                      fmt::join(std::span(layout_->shape.width).first(grid.dimensions), " x "),
                      layout_->shape.corners ? " with corners" : "");
  text += fmt::format("{} fields\n", options.field_count);
  for (std::size_t i = 0; i < options.field_count; ++i) {
    const char* const type = options.fields[i].type;
    text += fmt::format("a field {} of {} bytes an element{}\n", i, options.fields[i].element_bytes,
                        type != nullptr ? one_line(fmt::format(", {}", type)) : "");
  }
  Fingerprint transfers;
  for (std::size_t i = 0; options.transfers != nullptr && i < options.transfer_count; ++i) {
    const weir_halo_transfer& each = options.transfers[i];
    transfers.add(static_cast<std::int64_t>(each.from));
    transfers.add(static_cast<std::int64_t>(each.to));
    transfers.add(each.source);
    for (const std::int64_t cell : each.target) transfers.add(cell);
  }
  if (options.transfers != nullptr) {
    text += fmt::format("{} transfers of its own with the fingerprint {:x}\n",
                        options.transfer_count, transfers.value());
  }
  return text + (layout_->check ? "the check on\n" : "the check off\n");
}

void Halo::agree(const weir_halo_options& options) {
  const std::string mine = describe(options);
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (rank != rank_) hub_.post(rank, number_, Kind::hello, 0, std::as_bytes(std::span(mine)));
  }
  if (!await_none(&Halo::hellos_missing_, options.timeout_ns, "halos of the other ranks")) {
    std::string waiting;
    sys::Lock lock(mutex_);
    for (Rank rank = 0; rank < ranks_; ++rank) {
      if (rank != rank_ && hellos_[rank].empty()) waiting += fmt::format(" {}", rank);
    }
    fail(WEIR_STATUS_TIMEOUT, "no halo was made in time on rank{}", waiting);
  }
  all_hellos_sent_ = true;
  compare(mine);
}

void Halo::compare(const std::string& mine) const {
  // The hellos do not change any more: each rank has sent its own.
  const std::vector<std::string_view> own = split(mine, '\n');
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_ || hellos_[rank] == mine) continue;
    const std::vector<std::string_view> theirs = split(hellos_[rank], '\n');
    std::size_t i = 0;
    while (i < own.size() && i < theirs.size() && own[i] == theirs[i]) ++i;
    fail_argument("rank {} has {}, rank {} has {}: make the same halo on all ranks", rank,
                  i < theirs.size() ? theirs[i] : "nothing more", rank_,
                  i < own.size() ? own[i] : "nothing more");
  }
}

bool Halo::await_none(std::size_t Halo::*missing, std::int64_t timeout_ns, const char* what) {
  const auto complete = [&] {
    sys::Lock lock(mutex_);
    if (this->*missing > 0) throw_failure();
    return this->*missing == 0;
  };
  return hub_.port().wait_until(complete, timeout_ns, what);
}

void Halo::throw_failure() const {
  if (!failure_.ok()) throw Error(failure_.status, failure_.message);
  const auto refuse_lost = [this](Rank rank) WEIR_REQUIRES(mutex_) {
    if (!why_lost_[rank].empty()) fail(WEIR_STATUS_NETWORK_ERROR, "{}", why_lost_[rank]);
  };
  for (Rank rank = 0; rank < ranks_ && hellos_missing_ > 0; ++rank) {
    if (rank != rank_ && hellos_[rank].empty()) refuse_lost(rank);
  }
  // A rank that has finished its step may leave while others still work: only missing messages
  // count.
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].next < started_) refuse_lost(layout_->plan.peers[i].rank);
  }
}

void Halo::fail_with(weir_status status, const char* message) noexcept {
  sys::Lock lock(mutex_);
  if (failure_.ok()) failure_ = failed_outcome(status, message);
}

std::optional<std::size_t> Halo::peer_index(Rank rank) const noexcept {
  if (!layout_) return std::nullopt;
  const std::vector<HaloPlan::Peer>& peers = layout_->plan.peers;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    if (peers[i].rank == rank) return i;
  }
  return std::nullopt;
}

void Halo::abort_exchange(std::string_view why) noexcept {
  if (!has_left_.exchange(true)) send_to_all(Kind::leave, why.empty() ? kStopped : why);
}

template <class Body>
void Halo::attempt(const Body& body) {
  try {
    body();
  } catch (...) {
    const weir_status status = current_exception_outcome(WEIR_STATUS_INTERNAL).status;
    const bool recoverable = status == WEIR_STATUS_BUSY || status == WEIR_STATUS_TIMEOUT ||
                             status == WEIR_STATUS_INVALID_ARGUMENT;
    sys::Lock lock(mutex_);
    const bool goes_on = recoverable && failure_.ok();
    const bool announces = !goes_on && !failure_announced_;
    lock.unlock();
    if (announces)
      abort_exchange(why_stopped(current_exception_outcome(WEIR_STATUS_INTERNAL).message));
    throw;
  }
}

void Halo::start() {
  attempt([this] { begin_step(); });
}

void Halo::finish(std::int64_t timeout_ns) {
  attempt([this, timeout_ns] { end_step(timeout_ns); });
}

void Halo::exchange(Step& step) noexcept {
  try {
    start();
  } catch (...) {
    return step.done(current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  {
    sys::Lock lock(mutex_);
    assert(step_ == nullptr);
    step_ = &step;
    wait_began_ns_ = sys::now_ns();
  }
  end_exchanged_step();
}

void Halo::abandon(const char* why) noexcept {
  fail_with(WEIR_STATUS_NETWORK_ERROR, why);
  try {
    abort_exchange(fmt::format("takes no part in a step of its halo: {}", why));
  } catch (const std::bad_alloc&) {
    abort_exchange("takes no part in a step of its halo");
  }
}

void Halo::end_exchanged_step() noexcept {
  Outcome outcome;
  Step* ended = nullptr;
  bool announces = false;
  {
    sys::Lock lock(mutex_);
    if (step_ == nullptr) return;
    try {
      throw_failure();
    } catch (...) {
      outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    }
    if (outcome.ok() && missing_ > 0) return;
    if (outcome.ok()) {
      assert(started_ == finished_ + 1);
      ++finished_;
    } else if (failure_.ok()) {
      failure_ = failed_outcome(outcome.status, outcome.message.c_str());
    }
    announces = !outcome.ok() && !failure_announced_;
    info_.wait_ns += sys::now_ns() - wait_began_ns_;
    ended = std::exchange(step_, nullptr);
  }
  if (announces) abort_exchange(why_stopped(outcome.message));
  ended->done(outcome);
}

void Halo::begin_step() {
  const std::int64_t begin = sys::now_ns();
  std::vector<std::size_t> early(peers_.size());
  {
    sys::Lock lock(mutex_);
    throw_failure();
    if (started_ != finished_) {
      fail(WEIR_STATUS_BUSY, "step {} of the halo is not finished: call weir_halo_finish()",
           finished_);
    }
    ++started_;
    missing_ = 0;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      Peer& peer = peers_[i];
      missing_ += layout_->plan.peers[i].incoming.size();
      // Messages of the next step may arrive as soon as this rank has sent its own.
      early[i] = std::exchange(peer.early_count, 0);
      peer.taken.clear();
      peer.early.swap(peer.taken);
    }
    throw_failure();
  }
  try {
    for (std::size_t i = 0; i < peers_.size(); ++i) send_to(i);
    copy_own();
  } catch (...) {
    const Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    fail_with(outcome.status, outcome.message.c_str());
    throw;
  }
  for (std::size_t i = 0; i < peers_.size(); ++i) take_early(i, early[i]);
  info_.send_ns += sys::now_ns() - begin;
}

void Halo::end_step(std::int64_t timeout_ns) {
  const std::int64_t begin = sys::now_ns();
  if (started_ == finished_) {
    fail_argument("no step of the halo has been started: call weir_halo_start() first");
  }
  const bool done = await_none(&Halo::missing_, timeout_ns, "cells of the neighbours");
  info_.wait_ns += sys::now_ns() - begin;
  sys::Lock lock(mutex_);
  if (!done) {
    const auto late = std::count_if(peers_.begin(), peers_.end(),
                                    [this](const Peer& peer) { return peer.next < started_; });
    fail(WEIR_STATUS_TIMEOUT, "{} of the {} neighbours' cells of step {} have not come", late,
         peers_.size(), finished_);
  }
  throw_failure();
  ++finished_;
}

weir_halo_info Halo::info() const {
  sys::Lock lock(mutex_);
  weir_halo_info info = info_;
  info.steps = finished_;
  return info;
}

void Halo::send_to(std::size_t index) {
  const HaloPlan::Peer& peer = layout_->plan.peers[index];
  std::vector<std::byte>& packed = peers_[index].packed;
  const HaloCheck check(layout_->grid, layout_->arrays, layout_->plan);
  const std::uint64_t step = started_ - 1;
  for (const HaloPlan::Message& message : peer.outgoing) {
    const Parts parts = parts_of(peer.sends, message);
    if (!layout_->check && is_packed(parts) && send_reserved(peer.rank, parts, message.bytes)) {
      continue;
    }
    std::span<const std::byte> body;
    if (layout_->check) {
      std::byte* at = packed.data();
      for (const HaloPlan::Part& part : parts) at = check.pack(part, step, at);
      body = {packed.data(), at};
    } else if (is_packed(parts)) {
      body = {packed.data(), pack_all(parts, packed.data())};
    } else if (!parts.empty()) {
      body = {parts[0].memory.first, message.bytes};
    }
    hub_.send(peer.rank, number_, Kind::cells, step, body);
  }
}

/// Packs cells into reserved memory and sends it. Returns false if there is no reserved memory.
bool Halo::send_reserved(Rank to, Parts parts, std::size_t bytes) {
  std::byte* const memory = hub_.port().reserve(to, bytes);
  if (memory == nullptr) return false;
  pack_all(parts, memory);
  hub_.send_reserved(to, number_, Kind::cells, started_ - 1, {memory, bytes});
  return true;
}

std::byte* Halo::pack_all(Parts parts, std::byte* to) {
  for (const HaloPlan::Part& part : parts) {
    pack(part.memory, to);
    to += part.memory.bytes();
  }
  return to;
}

void Halo::copy_own() {
  const HaloCheck check(layout_->grid, layout_->arrays, layout_->plan);
  std::vector<std::byte> tagged;
  for (const HaloPlan::Copy& each : layout_->plan.copies) {
    if (!layout_->check) {
      copy(each.from.memory, each.to.memory);
      continue;
    }
    tagged.resize(check.bytes(each.from));
    check.pack(each.from, started_ - 1, tagged.data());
    const std::string wrong = check.unpack(tagged.data(), each.to, started_ - 1);
    if (wrong.empty()) continue;
    fail_with(WEIR_STATUS_INVALID_ARGUMENT, wrong.c_str());
    send_to_all(Kind::failure, wrong);
    fail_argument("{}", wrong);
  }
}

void Halo::take(Parts parts, std::span<const std::byte> message) {
  const std::byte* at = message.data();
  const HaloCheck check(layout_->grid, layout_->arrays, layout_->plan);
  for (const HaloPlan::Part& part : parts) {
    if (!layout_->check) {
      unpack(at, part.memory);
      at += part.memory.bytes();
      continue;
    }
    const std::string wrong = check.unpack(at, part, started_ - 1);
    at += check.bytes(part);
    if (wrong.empty()) continue;
    fail_with(WEIR_STATUS_INVALID_ARGUMENT, wrong.c_str());
    send_to_all(Kind::failure, wrong);
    return;
  }
}

void Halo::take_early(std::size_t index, std::size_t count) {
  const HaloPlan::Peer& peer = layout_->plan.peers[index];
  std::span<const std::byte> rest = peers_[index].taken;
  for (std::size_t i = 0; i < count; ++i) {
    const Parts parts = parts_of(peer.receives, peer.incoming[i]);
    const std::size_t bytes = wire_bytes(parts);
    take(parts, rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  sys::Lock lock(mutex_);
  assert(missing_ >= count && rest.empty());
  missing_ -= count;
}

void Halo::take_message(Rank from, GroupHub::Kind kind, std::uint64_t step,
                        std::span<const std::byte> body) noexcept {
  try {
    switch (kind) {
      case Kind::hello: {
        sys::Lock lock(mutex_);
        if (from < ranks_ && hellos_[from].empty()) {
          hellos_[from] = as_words(body);
          --hellos_missing_;
        }
        return;
      }
      case Kind::cells: return receive_cells(from, step, body);
      case Kind::leave: return note_loss(from, fmt::format("rank {} {}", from, as_words(body)));
      case Kind::failure:
        mark_failure_announced();
        return fail_with(WEIR_STATUS_NETWORK_ERROR,
                         fmt::format("rank {}: {}", from, as_words(body)).c_str());
    }
  } catch (...) {
    const Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    fail_with(outcome.status, outcome.message.c_str());
  }
}

void Halo::received(Rank from, GroupHub::Kind kind, std::uint64_t step,
                    std::span<const std::byte> body) noexcept {
  take_message(from, kind, step, body);
  end_exchanged_step();
}

void Halo::receive_cells(Rank from, std::uint64_t step, std::span<const std::byte> body) {
  const std::optional<std::size_t> index = peer_index(from);
  Parts parts;
  std::size_t bytes = 0;
  if (index) {
    const HaloPlan::Peer& plan = layout_->plan.peers[*index];
    parts = parts_of(plan.receives, plan.incoming[peers_[*index].received]);
    bytes = wire_bytes(parts);
  }
  if (!index || body.size() != bytes) {
    return fail_with(
        WEIR_STATUS_NETWORK_ERROR,
        fmt::format("rank {} sent {} bytes of cells: {} were expected", from, body.size(), bytes)
            .c_str());
  }
  Peer& peer = peers_[*index];
  {
    sys::Lock lock(mutex_);
    if (!failure_.ok()) return;
    if (step != peer.next || step > started_) {
      failure_ = failed_outcome(
          WEIR_STATUS_NETWORK_ERROR,
          fmt::format("rank {} sent cells of step {}: this is step {}", from, step, started_)
              .c_str());
      return;
    }
    if (++peer.received == layout_->plan.peers[*index].incoming.size()) {
      peer.received = 0;
      ++peer.next;
    }
    if (step == started_) {
      // start() waits for this copy, because it needs the data.
      peer.early.insert(peer.early.end(), body.begin(), body.end());
      ++peer.early_count;
      return;
    }
  }
  take(parts, body);
  sys::Lock lock(mutex_);
  --missing_;
}

void Halo::lost(Rank rank, const std::string& why) noexcept {
  note_loss(rank, why);
  end_exchanged_step();
}

void Halo::note_loss(Rank rank, const std::string& why) noexcept {
  try {
    sys::Lock lock(mutex_);
    if (why_lost_[rank].empty()) why_lost_[rank] = why;
  } catch (...) {
    fail_with(WEIR_STATUS_NETWORK_ERROR, "a rank is lost");
  }
}

void Halo::mark_failure_announced() noexcept {
  sys::Lock lock(mutex_);
  failure_announced_ = true;
}

void Halo::send_to_all(Kind kind, std::string_view message) noexcept {
  if (kind == Kind::failure) mark_failure_announced();
  for (Rank rank = 0; rank < ranks_; ++rank) {
    if (rank == rank_ || !hub_.port().alive(rank)) continue;
    try {
      hub_.post(rank, number_, kind, 0, std::as_bytes(std::span(message)));
    } catch (...) {
      // The rank is lost and needs no message.
    }
  }
}

}  // namespace weir::rt
