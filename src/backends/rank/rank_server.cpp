#include "backends/rank/rank_server.hpp"

#include <utility>

#include "backends/rank/rank_copy.hpp"
#include "base/log.hpp"

namespace weir::rt {

RankServer::RankServer(Port& port, RankHost& host) : port_(port), host_(host) {
  port_.listen(Channel::rank, this);
}

RankServer::~RankServer() {
  port_.listen(Channel::rank, nullptr);
  places_.clear();
  await_copies();
  devices_.clear();
}

/// Waits for the copies that this rank makes; works without memory too.
void RankServer::await_copies() noexcept {
  for (bool complete = false; !complete; sys::yield()) {
    try {
      wait([this]() WEIR_REQUIRES(mutex_) { return copies_ == 0; });
      complete = true;
    } catch (...) {  // try again
    }
  }
}

// ---- The thread that serves --------------------------------------------------------------------

/// Waits until is_so() holds; sleeps while other threads make progress.
template <class Condition>
void RankServer::wait(Condition&& is_so) {
  const auto seen = [&] {
    const sys::Lock lock(mutex_);
    return is_so();
  };
  constexpr const char* kWhat = "orders of rank 0";
  if (port_.progress_by() == ProgressBy::caller || port_.info().sees_stalls) {
    port_.wait_until(seen, -1, {kWhat, true});
    return;
  }
  WaitRegistry::Entry entry(port_.waits(), {kWhat, true});
  for (std::uint32_t wakeups = wakeups_.load(); !seen(); wakeups = wakeups_.load()) {
    entry.enter();
    sys::wait(wakeups_, wakeups);
  }
}

void RankServer::ring() noexcept {
  wakeups_.fetch_add(1);
  sys::wake_all(wakeups_);
}

void RankServer::serve() {
  for (;;) {
    wait([this]() WEIR_REQUIRES(mutex_) { return ended_ || !requests_.empty(); });
    Message message;
    {
      const sys::Lock lock(mutex_);
      if (ended_) break;
      message = std::move(requests_.front());
      requests_.pop_front();
    }
    perform(message);
  }
  if (!outcome_.ok()) throw Error(outcome_.status, outcome_.message);
}

void RankServer::perform(const Message& message) {
  WireReader reader(message);
  const auto word = reader.get<RankMessageKind>();
  if (word == RankMessageKind::close_place) return close_place(reader.get<std::uint32_t>());
  if (word == RankMessageKind::close_device) return close_device(reader.get<std::uint32_t>());
  const auto request = reader.get<std::uint64_t>();
  WireWriter details(RankMessageKind::answer);
  Outcome outcome;
  try {
    if (word == RankMessageKind::open_device) {
      open_device(reader, details);
    } else {
      open_place(reader);
    }
  } catch (...) {
    outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    details.cut(1);
  }
  WireWriter answer(RankMessageKind::answer, request, outcome);
  answer.append(details.bytes().data() + 1, details.bytes().size() - 1);
  send(answer);
}

void RankServer::open_device(WireReader& message, WireWriter& answer) {
  const auto number = message.get<std::uint32_t>();
  auto made = std::make_unique<ServedDevice>(host_.open(message.text()));
  if (made->device().info().virtual_time) {
    fail(WEIR_STATUS_UNSUPPORTED, "a rank serves no domain in virtual time: use clock=real");
  }
  answer.put(made->facts());
  const sys::Lock lock(mutex_);
  devices_[number] = std::move(made);
}

void RankServer::open_place(WireReader& message) {
  ServedDevice& on = device(message.get<std::uint32_t>());
  const auto number = message.get<std::uint32_t>();
  PlaceRequest request{.name = message.text(), .cores = {}};
  const auto count = message.get<std::uint32_t>();
  if (count > on.device().info().cores) WireReader::refuse("a place has too many cores");
  for (std::uint32_t i = 0; i < count; ++i) {
    request.cores.push_back(message.get<unsigned>());
    if (request.cores.back() >= on.device().info().cores) WireReader::refuse("a core is not there");
  }
  auto made = std::make_unique<ServedPlace>(port_, on, number, request);
  const sys::Lock lock(mutex_);
  places_[number] = std::move(made);
}

void RankServer::close_place(std::uint32_t number) {
  sys::Lock lock(mutex_);
  const auto closed = places_.extract(number);
  lock.unlock();  // release the mutex before the place joins its threads
}

void RankServer::close_device(std::uint32_t number) {
  sys::Lock lock(mutex_);
  const auto closed = devices_.extract(number);
  lock.unlock();
}

void RankServer::send(const WireWriter& message) noexcept {
  try {
    port_.send(0, Channel::rank, message.bytes());
  } catch (...) {
    end(current_exception_outcome(WEIR_STATUS_NETWORK_ERROR));
  }
}

ServedDevice& RankServer::device(std::uint32_t number) {
  const sys::Lock lock(mutex_);
  const auto found = devices_.find(number);
  if (found == devices_.end()) WireReader::refuse("it names a device that is not there");
  return *found->second;
}

ServedPlace& RankServer::place(std::uint32_t number) {
  const sys::Lock lock(mutex_);
  const auto found = places_.find(number);
  if (found == places_.end()) WireReader::refuse("it names a place that is not there");
  return *found->second;
}

// ---- The thread that makes progress ------------------------------------------------------------

void RankServer::on_message(Rank from, std::span<const std::byte> message) noexcept {
  try {
    if (from != 0) WireReader::refuse("only rank 0 may give orders");
    read(message);
  } catch (...) {
    const Outcome outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
    log::warning("rank {}: {}", from, outcome.message);
    if (from == 0) break_off(outcome);
  }
}

void RankServer::on_rank_lost(Rank rank, const std::string& why) noexcept {
  if (rank != 0) return;
  end(failed_outcome(WEIR_STATUS_NETWORK_ERROR, why.c_str()));
}

/// Stops serving because a message of rank 0 cannot be executed, and notifies rank 0.
void RankServer::break_off(const Outcome& why) noexcept {
  try {
    send(WireWriter(RankMessageKind::broken, why.message));
  } catch (...) {  // rank 0 will notice
  }
  end(why);
}

/// Ends serve().
void RankServer::end(Outcome why) noexcept {
  const sys::Lock lock(mutex_);
  if (ended_) return;
  ended_ = true;
  outcome_ = std::move(why);
  ring();
}

void RankServer::read(std::span<const std::byte> bytes) {
  WireReader message(bytes);
  switch (message.get<RankMessageKind>()) {
    case RankMessageKind::hello: {
      const auto request = message.get<std::uint64_t>();
      return send(WireWriter(RankMessageKind::answer, request, Outcome{}, sys::now_ns()));
    }
    case RankMessageKind::jobs: return place(message.get<std::uint32_t>()).take(message, find_);
    case RankMessageKind::copy: return make_copy(message);
    case RankMessageKind::lend: return lend(message);
    case RankMessageKind::take_back: return port_.withdraw(message.get<WindowId>());
    case RankMessageKind::define: return define(message);
    case RankMessageKind::check_kernels: return answer_known_kernels(message);
    case RankMessageKind::allocate: {
      ServedDevice& on = device(message.get<std::uint32_t>());
      const auto instance = message.get<std::uint32_t>();
      return on.allocate(instance, message.get<std::uint64_t>());
    }
    case RankMessageKind::release: {
      ServedDevice& on = device(message.get<std::uint32_t>());
      return on.release(message.get<std::uint32_t>());
    }
    case RankMessageKind::leave: return end({});
    case RankMessageKind::open_device:
    case RankMessageKind::open_place:
    case RankMessageKind::close_device:
    case RankMessageKind::close_place: return queue_request(bytes);
    default: WireReader::refuse("it says nothing that rank 0 says");
  }
}

void RankServer::queue_request(std::span<const std::byte> message) {
  const sys::Lock lock(mutex_);
  requests_.emplace_back(message.begin(), message.end());
  ring();
}

void RankServer::define(WireReader& message) {
  ServedDevice& on = device(message.get<std::uint32_t>());
  const auto number = message.get<std::uint32_t>();
  ServedKernel kernel;
  const std::string name = message.text();
  try {
    kernel = host_.find_kernel(name, on.device().info());
  } catch (const Error& error) {
    kernel.missing = {error.status(), fmt::format("rank {}: {}", port_.rank(), error.what())};
  }
  kernel.name = name;
  on.define(number, std::move(kernel));
}

void RankServer::answer_known_kernels(WireReader& message) {
  const auto request = message.get<std::uint64_t>();
  std::vector<std::string> names;
  while (!message.empty()) names.push_back(message.text());
  Outcome outcome;
  try {
    for (const std::string& name : names) host_.expect_kernel(name);
  } catch (const Error& error) {
    outcome = {error.status(), fmt::format("rank {}: {}", port_.rank(), error.what())};
  }
  send(WireWriter(RankMessageKind::answer, request, outcome));
}

/// Exposes a region to another rank for a copy.
void RankServer::lend(WireReader& message) {
  message.get<std::uint32_t>();
  const auto number = message.get<std::uint64_t>();
  Outcome outcome;
  WindowId window = 0;
  try {
    const ServedEnd end = served_end(message.end(), find_);
    if (end.device == nullptr || !end.device->direct()) WireReader::refuse("it asks for a window");
    const Region& region = end.region;
    window = port_.expose(end.base + region.offset,
                          static_cast<std::size_t>(region.end() - region.offset));
  } catch (...) {
    outcome = current_exception_outcome(WEIR_STATUS_INTERNAL);
  }
  send(WireWriter(RankMessageKind::lent, number, outcome, window));
}

void RankServer::make_copy(WireReader& message) {
  message.get<std::uint32_t>();
  const auto number = message.get<std::uint64_t>();
  void* const token = reinterpret_cast<void*>(number);
  {
    const sys::Lock lock(mutex_);
    ++copies_;
  }
  try {
    const RankCopyEnd from = message.end(), to = message.end();
    const ServedEnd source = served_end(from, find_), target = served_end(to, find_);
    RankCopy::start(port_, source, target, *this, token);
  } catch (...) {
    const std::int64_t now = sys::now_ns();
    copied(token, current_exception_outcome(WEIR_STATUS_INTERNAL), now, now);
  }
}

void RankServer::copied(void* token, Outcome outcome, std::int64_t started_ns,
                        std::int64_t ended_ns) noexcept {
  try {
    const auto number = reinterpret_cast<std::uint64_t>(token);
    send(WireWriter(RankMessageKind::copied, number, outcome, started_ns, ended_ns));
  } catch (...) {
    end(current_exception_outcome(WEIR_STATUS_INTERNAL));
  }
  const sys::Lock lock(mutex_);
  --copies_;
  ring();
}

}  // namespace weir::rt
