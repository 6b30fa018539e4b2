#include "fabric/collectives.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "fabric/wire.hpp"

namespace weir::rt {

enum class Collectives::Kind : std::uint32_t { call, result, given_up };

struct Collectives::Header {
  Kind kind;
  std::uint32_t number;
  std::uint32_t detail;  ///< call: bytes of the description; result: the status
};

namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void append(std::vector<std::byte>& bytes, std::span<const std::byte> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
}

}  // namespace

Collectives::Collectives(Port& port) : port_(port), calls_(port.ranks()), given_up_(port.ranks()) {
  port_.listen(Channel::collective, this);
}
Collectives::~Collectives() { port_.listen(Channel::collective, nullptr); }

std::vector<Collectives::Bytes> Collectives::exchange(const std::string& what,
                                                      std::span<const std::byte> contribution,
                                                      std::int64_t timeout_ns) {
  if (!broken_.empty()) {
    fail(WEIR_STATUS_NETWORK_ERROR, "an earlier collective operation failed: {}", broken_);
  }
  if (port_.inside_listener()) {
    fail(WEIR_STATUS_BUSY, "a handler of messages must not wait for a {}", what);
  }
  const std::uint32_t number = number_++;
  try {
    call(number, what, contribution);
    const auto arrived = [&] {
      sys::Lock lock(mutex_);
      return results_.contains(number) || !lost_.empty();
    };
    const bool in_time = port_.wait_until(arrived, timeout_ns, what.c_str());
    sys::Lock lock(mutex_);
    const auto found = results_.find(number);
    if (found == results_.end()) {
      if (!in_time) fail(WEIR_STATUS_TIMEOUT, "not all ranks have called the {} in time", what);
      fail(WEIR_STATUS_NETWORK_ERROR, "{} failed: {}", what, lost_);
    }
    const Result result = std::move(found->second);
    results_.erase(found);
    lock.unlock();
    if (result.status != WEIR_STATUS_OK) fail(result.status, "{}", result.message);
    return unpack(result.bytes);
  } catch (...) {
    give_up();
    throw;
  }
}

/// Rank 0 may have failed in this operation and left already. Its failure has then arrived, or
/// arrives later, as a result.
void Collectives::call(std::uint32_t number, const std::string& what,
                       std::span<const std::byte> contribution) {
  const Header header{Kind::call, number, static_cast<std::uint32_t>(what.size())};
  Bytes head(sizeof header + what.size());
  std::memcpy(head.data(), &header, sizeof header);
  what.copy(reinterpret_cast<char*>(head.data() + sizeof header), what.size());
  try {
    port_.post(0, Channel::collective, head, contribution);
  } catch (const Error& error) {
    if (error.status() != WEIR_STATUS_NETWORK_ERROR) throw;
  }
}

/// Announces the failure of this rank, so that the other ranks do not wait for its next call.
void Collectives::give_up() noexcept {
  broken_ = current_exception_outcome(WEIR_STATUS_INTERNAL).message;
  const Header header{Kind::given_up, 0, 0};
  try {
    port_.post(0, Channel::collective, bytes_of(header), std::as_bytes(std::span(broken_)));
  } catch (...) {  // rank 0 learns of it when this rank leaves
  }
}

std::vector<Collectives::Bytes> Collectives::unpack(const Bytes& bytes) const {
  std::vector<Bytes> parts;
  std::span<const std::byte> rest = bytes;
  for (Rank rank = 0; rank < port_.ranks(); ++rank) {
    const auto size = cut_off<std::uint64_t>(rest);
    if (size > rest.size()) {
      fail(WEIR_STATUS_NETWORK_ERROR, "the result of a collective operation is cut short");
    }
    const auto part = rest.first(static_cast<std::size_t>(size));
    parts.emplace_back(part.begin(), part.end());
    rest = rest.subspan(part.size());
  }
  return parts;
}

void Collectives::on_message(Rank from, std::span<const std::byte> message) noexcept {
  attempt([&] {
    const auto header = cut_off<Header>(message);
    if (header.kind == Kind::result) {
      take_result(header, message);
    } else if (port_.rank() == 0 && header.kind == Kind::call) {
      take_call(from, header, message);
    } else if (port_.rank() == 0) {
      given_up_[from] = reason("has given up: ", text_of(message).c_str());
      answer_if_complete();
    }
  });
}

/// Calls act(). If it throws, no more results will arrive.
template <class Act>
void Collectives::attempt(const Act& act) noexcept {
  try {
    act();
  } catch (...) {
    Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    sys::Lock lock(mutex_);
    lost_ = std::move(outcome.message);
  }
}

void Collectives::take_result(const Header& header, std::span<const std::byte> rest) {
  Result result;
  result.status = static_cast<weir_status>(header.detail);
  if (result.status == WEIR_STATUS_OK) {
    result.bytes.assign(rest.begin(), rest.end());
  } else {
    result.message = text_of(rest);
  }
  sys::Lock lock(mutex_);
  results_[header.number] = std::move(result);
}

void Collectives::take_call(Rank from, const Header& header, std::span<const std::byte> rest) {
  const std::size_t what = std::min<std::size_t>(header.detail, rest.size());
  const auto bytes = rest.subspan(what);
  calls_[from][header.number] = {text_of(rest.first(what)), Bytes(bytes.begin(), bytes.end())};
  answer_if_complete();
}

void Collectives::on_rank_lost(Rank rank, const std::string& why) noexcept {
  if (rank == 0) {
    sys::Lock lock(mutex_);
    lost_ = reason(why.c_str());
  }
  if (port_.rank() == 0) attempt([this] { answer_if_complete(); });
}

/// Returns which rank calls another operation than rank 0; "" if none does.
std::string Collectives::difference() const {
  const std::string& first = calls_[0].at(answered_).what;
  for (Rank rank = 1; rank < port_.ranks(); ++rank) {
    const auto found = calls_[rank].find(answered_);
    if (found == calls_[rank].end() || found->second.what == first) continue;
    return fmt::format("rank 0 calls {} where rank {} calls {}: all ranks must call the same",
                       first, rank, found->second.what);
  }
  return {};
}

/// Returns the description of the next operation to answer, from the lowest rank that has called
/// it; null if no rank has.
const std::string* Collectives::due() const {
  for (const auto& calls : calls_) {
    const auto found = calls.find(answered_);
    if (found != calls.end()) return &found->second.what;
  }
  return nullptr;
}

/// Returns why a call cannot complete; "" while it can.
std::string Collectives::why_blocked(const std::string& what) const {
  for (Rank rank = 0; rank < port_.ranks(); ++rank) {
    if (!given_up_[rank].empty()) {
      return fmt::format("{} failed: rank {} {}", what, rank, given_up_[rank]);
    }
    if (calls_[rank].contains(answered_) || port_.alive(rank)) continue;
    return fmt::format("{} failed: {}", what, port_.why_lost(rank));
  }
  return {};
}

void Collectives::answer_if_complete() {
  while (const std::string* const what = due()) {
    if (std::string why = why_blocked(*what); !why.empty()) {
      answer({WEIR_STATUS_NETWORK_ERROR, std::move(why), {}});
      continue;
    }
    if (!calls_[0].contains(answered_)) return;
    Result result;
    if (std::string wrong = difference(); !wrong.empty()) {
      result = {WEIR_STATUS_INVALID_ARGUMENT, std::move(wrong), {}};
    }
    for (const auto& calls : calls_) {
      if (result.status != WEIR_STATUS_OK) break;
      const auto found = calls.find(answered_);
      if (found == calls.end()) return;
      const std::uint64_t size = found->second.bytes.size();
      append(result.bytes, bytes_of(size));
      append(result.bytes, found->second.bytes);
    }
    answer(result);
  }
}

void Collectives::answer(const Result& result) {
  const Header header{Kind::result, answered_, static_cast<std::uint32_t>(result.status)};
  const std::span<const std::byte> body = result.status == WEIR_STATUS_OK
                                              ? std::span<const std::byte>(result.bytes)
                                              : std::as_bytes(std::span(result.message));
  for (auto& calls : calls_) calls.erase(answered_);
  ++answered_;
  std::exception_ptr failed;
  for (Rank rank = 0; rank < port_.ranks(); ++rank) {
    if (!port_.alive(rank)) continue;
    try {
      port_.post(rank, Channel::collective, bytes_of(header), body);
    } catch (...) {
      if (rank == port_.rank()) {
        failed = std::current_exception();
      } else {  // it would wait forever
        port_.drop(rank, "could not be given the result of a collective operation");
      }
    }
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace weir::rt
