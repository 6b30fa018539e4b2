#include "fabric/fabric_watchdog.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "fabric/wire.hpp"

namespace weir::rt {

namespace {

constexpr std::int64_t kRankChecksInLimit = 32;
constexpr std::int64_t kRankAnswerNs = 1'000'000'000;
constexpr std::size_t kMostText = 512;  ///< maximum length of an answer

/// Returns "0", "1, 3", "0, 2-5".
std::string list_of(const std::vector<Rank>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::size_t first = i;
    while (i + 1 < ranks.size() && ranks[i + 1] == ranks[i] + 1) ++i;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", ranks[first]);
    if (i > first) text += fmt::format("{}{}", i > first + 1 ? "-" : ", ", ranks[i]);
  }
  return text;
}

/// Turns "waits for a barrier" into "wait for a barrier".
std::string in_plural(const std::string& words) {
  constexpr std::pair<const char*, const char*> kVerbs[] = {
      {"waits ", "wait "}, {"is ", "are "}, {"does ", "do "}, {"has ", "have "}};
  for (const auto& [one, many] : kVerbs) {
    if (words.starts_with(one)) return many + words.substr(std::string_view(one).size());
  }
  return words;
}

}  // namespace

FabricWatchdog::FabricWatchdog(Port& port, std::int64_t limit_ns)
    : port_(port), limit_ns_(limit_ns), answers_(port.ranks()) {
  port_.listen(Channel::watch, this);
  if (limit_ns_ == 0 || port_.ranks() == 1) return;
  try {
    thread_.emplace("weir watchdog", [this] { watch(); });
  } catch (...) {
    port_.listen(Channel::watch, nullptr);
    throw;
  }
}

FabricWatchdog::~FabricWatchdog() {
  sys::Lock lock(mutex_);
  leaving_ = true;
  lock.unlock();
  changed_.notify_all();
  thread_.reset();
  port_.listen(Channel::watch, nullptr);
}

// ---- Answers ------------------------------------------------------------------------------------

void FabricWatchdog::on_message(Rank from, std::span<const std::byte> message) noexcept {
  try {
    const auto header = cut_off<Header>(message);
    if (header.kind == Kind::question) return answer(from, header.number);
    const auto bytes = message.first(std::min(message.size(), kMostText));
    std::string waits(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const sys::Lock lock(mutex_);
    if (header.number != number_) return;
    answers_[from] = {true, one_line(std::move(waits))};
  } catch (...) {  // the report says that the rank has not answered
  }
  changed_.notify_all();
}

void FabricWatchdog::answer(Rank to, std::uint32_t number) {
  const std::string waits = port_.waits().state().waits;
  const Header header{Kind::answer, number};
  port_.post(to, Channel::watch, bytes_of(header), std::as_bytes(std::span(waits)));
}

void FabricWatchdog::on_rank_lost(Rank, const std::string&) noexcept { changed_.notify_all(); }

// ---- Questions ----------------------------------------------------------------------------------

void FabricWatchdog::watch() {
  port_.leave_out_this_thread();
  const std::int64_t period = std::max<std::int64_t>(limit_ns_ / kRankChecksInLimit, 1'000'000);
  sys::Lock lock(mutex_);
  while (!leaving_) {
    changed_.wait_until(lock, sys::now_ns() + period);
    if (leaving_) return;
    lock.unlock();
    try {
      check(sys::now_ns());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "weir: rank %u: nothing comes any more; the report failed: %s\n",
                   port_.rank(), error.what());
    }
    lock.lock();
  }
}

void FabricWatchdog::check(std::int64_t now_ns) {
  const WaitRegistry::State state = port_.waits().state();
  if (std::exchange(movement_, state.movement) != state.movement) moved_ns_ = now_ns;
  if (state.since_ns == 0) return;
  const std::int64_t began = std::max(state.since_ns, moved_ns_);
  if (std::exchange(began_ns_, began) != began) printed_.clear();
  if (now_ns - std::max(began, asked_ns_) < limit_ns_) return;
  asked_ns_ = now_ns;
  print_report(now_ns - began);
}

void FabricWatchdog::print_report(std::int64_t for_ns) {
  if (!ask()) return;
  const WaitRegistry::State state = port_.waits().state();
  if (state.movement != movement_ || state.since_ns == 0) return;
  std::string words = describe(state.waits);
  if (words == printed_) return;
  const std::string line = fmt::format("weir: rank {}: nothing has come for {:.1f} s: {}\n",
                                       port_.rank(), static_cast<double>(for_ns) * 1e-9, words);
  printed_ = std::move(words);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

/// Asks all ranks and waits a limited time for their answers. Returns false when the watchdog is
/// stopping.
bool FabricWatchdog::ask() {
  sys::Lock lock(mutex_);
  const Header question{Kind::question, ++number_};
  answers_.assign(port_.ranks(), {});
  lock.unlock();
  for (Rank rank = 0; rank < port_.ranks(); ++rank) {
    if (rank == port_.rank() || !port_.alive(rank)) continue;
    try {
      port_.post(rank, Channel::watch, bytes_of(question));
    } catch (const Error& error) {
      if (error.status() != WEIR_STATUS_NETWORK_ERROR) throw;
    }
  }
  const std::int64_t deadline = sys::now_ns() + kRankAnswerNs;
  lock.lock();
  while (!leaving_ && !all_answered() && sys::now_ns() < deadline) {
    changed_.wait_until(lock, deadline);
  }
  return !leaving_;
}

bool FabricWatchdog::all_answered() const noexcept {
  for (Rank rank = 0; rank < port_.ranks(); ++rank) {
    if (rank != port_.rank() && port_.alive(rank) && !answers_[rank].received) return false;
  }
  return true;
}

// ---- Words --------------------------------------------------------------------------------------

/// Returns "waits for a barrier".
std::string FabricWatchdog::describe_rank(Rank rank, const Answer& answer) const {
  if (!port_.alive(rank)) {
    const std::string name = fmt::format("rank {} ", rank), why = port_.why_lost(rank);
    return why.starts_with(name) ? why.substr(name.size()) : why;
  }
  if (!answer.received) return "does not answer";
  return answer.waits.empty() ? "is in no call of the fabric" : "waits for " + answer.waits;
}

std::string FabricWatchdog::describe(const std::string& own_waits) {
  const sys::Lock lock(mutex_);
  answers_[port_.rank()] = {true, own_waits};
  std::vector<std::pair<std::string, std::vector<Rank>>> groups;  // ranks with the same description
  bool all_wait = true;
  for (Rank rank = 0; rank < port_.ranks(); ++rank) {
    all_wait = all_wait && (!port_.alive(rank) || !answers_[rank].waits.empty());
    std::string words = describe_rank(rank, answers_[rank]);
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return group.first == words; });
    if (same != groups.end()) {
      same->second.push_back(rank);
    } else {
      groups.emplace_back(std::move(words), std::vector<Rank>{rank});
    }
  }
  std::string text = all_wait ? "all ranks wait for each other: " : "";
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto& [words, ranks] = groups[i];
    text += fmt::format("{}{} {} {}", i == 0 ? "" : ", ", ranks.size() == 1 ? "rank" : "ranks",
                        list_of(ranks), ranks.size() == 1 ? words : in_plural(words));
  }
  return text;
}

}  // namespace weir::rt
