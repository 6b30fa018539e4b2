#include "fabric/window_server.hpp"

#include <algorithm>
#include <cstring>

namespace weir::rt {

void WindowServer::take(Rank from, PacketKind kind, std::span<const std::byte> body) {
  if (kind == PacketKind::put) return take_put(from, body);
  return kind == PacketKind::get ? take_get(from, body) : take_change(from, body);
}

void WindowServer::take_put(Rank from, std::span<const std::byte> rest) {
  const auto put = cut_off<PutPacket>(rest);
  std::byte* const at = windows_.find(put.window, put.offset, rest.size());
  if (at != nullptr && !rest.empty()) std::memcpy(at, rest.data(), rest.size());
  if (put.last == 0) return;
  answers_.push_back({.to = from,
                      .kind = PacketKind::put_done,
                      .token = put.token,
                      .status = at != nullptr ? WEIR_STATUS_OK : WEIR_STATUS_INVALID_ARGUMENT});
}

void WindowServer::take_get(Rank from, std::span<const std::byte> rest) {
  const auto get = cut_off<GetPacket>(rest);
  const bool there = windows_.find(get.window, get.offset, get.bytes) != nullptr;
  answers_.push_back({.to = from,
                      .kind = PacketKind::get_part,
                      .token = get.token,
                      .window = get.window,
                      .offset = get.offset,
                      .bytes = get.bytes,
                      .status = there ? WEIR_STATUS_OK : WEIR_STATUS_INVALID_ARGUMENT});
}

void WindowServer::take_change(Rank from, std::span<const std::byte> rest) {
  const auto change = cut_off<ChangePacket>(rest);
  std::byte* const at = windows_.find(change.window, change.offset, sizeof(std::int64_t));
  Answer answer{.to = from, .kind = PacketKind::change_done, .token = change.token};
  const OneSided operation{.kind = static_cast<OneSidedKind>(change.kind),
                           .operand = change.operand,
                           .expected = change.expected};
  if (at == nullptr || !change_word(operation, at, answer.old)) {
    answer.status = WEIR_STATUS_INVALID_ARGUMENT;
  }
  answers_.push_back(answer);
}

/// Returns whether the answer is complete.
bool WindowServer::push(Answer& answer) noexcept {
  if (liveness_.is_lost(answer.to)) return true;
  ReplyPacket reply{answer.token, answer.cursor, answer.old,
                    static_cast<std::uint32_t>(answer.status), 0};
  if (answer.kind != PacketKind::get_part) {
    return packets_.send_struct(answer.to, answer.kind, reply);
  }
  const std::size_t most = packets_.body_bytes() - sizeof reply;
  do {
    const std::size_t piece = std::min<std::uint64_t>(most, answer.bytes - answer.cursor);
    const std::byte* const at = windows_.find(answer.window, answer.offset + answer.cursor, piece);
    if (at == nullptr) answer.status = WEIR_STATUS_INVALID_ARGUMENT;
    reply.cursor = answer.cursor;
    reply.status = static_cast<std::uint32_t>(answer.status);
    const bool failed = answer.status != WEIR_STATUS_OK;
    const std::span<const std::byte> body(at, failed ? 0 : piece);
    if (!packets_.send_struct(answer.to, answer.kind, reply, body)) return false;
    if (failed) return true;
    answer.cursor += piece;
  } while (answer.cursor < answer.bytes);
  return true;
}

bool WindowServer::push() noexcept {
  bool moved = false;
  for (std::size_t remaining = answers_.size(); remaining > 0; --remaining) {
    Answer answer = answers_.front();
    answers_.pop_front();
    if (push(answer)) {
      moved = true;
    } else {
      try {
        answers_.push_back(answer);
      } catch (...) {
        liveness_.mark_lost(answer.to, reason("is owed an answer that there is no memory for"));
      }
    }
  }
  return moved;
}

void WindowServer::forget(Rank rank) noexcept {
  std::erase_if(answers_, [rank](const Answer& answer) { return answer.to == rank; });
}

}  // namespace weir::rt
