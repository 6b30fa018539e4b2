#include "runtime/fabric.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "base/config.hpp"
#include "base/sys.hpp"
#include "base/text.hpp"
#include "fabric/inproc.hpp"
#include "fabric/mpi/mpi_library.hpp"
#include "fabric/shm/launch.hpp"
#include "fabric/shm/node_link.hpp"
#include "fabric/ucx/ucx_library.hpp"
#include "runtime/conveyor.hpp"
#include "runtime/grid.hpp"
#include "runtime/rank_service.hpp"

namespace weir::rt {

namespace {

constexpr Rank kMostRanks = 1024;

const char* chosen(const char* option, const char* variable) noexcept {
  if (option != nullptr && *option != '\0') return option;
  const char* const value = sys::environment(variable);
  return value != nullptr ? value : "";
}

ProgressBy progress_of(const weir_fabric_options& options) {
  const std::string_view text = chosen(options.progress, "WEIR_PROGRESS");
  if (text.empty() || text == "hybrid") return ProgressBy::hybrid;
  if (text == "thread") return ProgressBy::thread;
  if (text == "caller") return ProgressBy::caller;
  fail_argument("the progress of a fabric is '{}': choose from thread, caller, hybrid", text);
}

std::int64_t lost_after(std::int64_t chosen_ns) {
  if (chosen_ns < 0) {
    fail_argument("lost_after_ns is {}: expected a time in nanoseconds, 0 for {}", chosen_ns,
                  config::lost_after_ns());
  }
  return chosen_ns > 0 ? chosen_ns : config::lost_after_ns();
}

/// Returns how many ranks of a machine share memory at most, once config::check_values() has
/// accepted it.
Rank node_size() {
  return static_cast<Rank>(parse_unsigned(chosen(nullptr, "WEIR_NODE_SIZE")).value_or(UINT32_MAX));
}

Membership membership_of(const weir_fabric_options& options) {
  Membership membership;
  membership.build = build_id();
  membership.sends_heartbeats = progress_of(options) != ProgressBy::caller;
  membership.lost_after_ns = lost_after(options.lost_after_ns);
  membership.sends_checksums = config::checks_frames();
  return membership;
}

Owned<weir_fabric> join(std::unique_ptr<Link> link, const weir_fabric_options& options) {
  auto transport = std::make_unique<Transport>(std::move(link), membership_of(options));
  return Owned<weir_fabric>(new weir_fabric(std::move(transport), progress_of(options)));
}

/// Runs the program of one rank. When it returns the rank leaves, even if a runtime still uses the
/// fabric, so that other ranks neither serve it nor wait for it.
void run_rank(Owned<weir_fabric> owned, const std::function<void(weir_fabric&)>& program) {
  const auto leave = [](weir_fabric* fabric) noexcept {
    try {
      Port& port = weir_fabric::check(fabric).port();
      if (port.rank() == 0) dismiss_ranks(port);
      if (fabric->end_program()) weir_fabric::bury(fabric);
    } catch (const Error&) {  // the program has closed the fabric
    }
  };
  const std::unique_ptr<weir_fabric, decltype(leave)> fabric(owned.release(), leave);
  program(*fabric);
}

/// Throws Error for an invalid number of ranks.
void check_ranks(Rank ranks) {
  if (ranks == 0 || ranks > kMostRanks) {
    fail_argument("cannot start {} ranks: choose 1 to {}", ranks, kMostRanks);
  }
}

/// With a seed waiting ranks make progress, unless the program requests a progress thread, because
/// the system decides when that runs. Throws Error.
weir_fabric_options options_of_simulation(weir_fabric_options options) {
  const bool chosen = options.progress != nullptr && *options.progress != '\0';
  if (options.seed != 0 && !chosen) options.progress = "caller";
  progress_of(options);
  return options;
}

/// Throws an outcome that is a failure.
void expect(const Outcome& outcome) {
  if (!outcome.ok()) fail(outcome.status, "{}", outcome.message);
}

/// Waits for the completion of one operation.
class OneCompletion final : public Completion {
 public:
  void completed(std::int64_t old, const Outcome& outcome) noexcept override {
    old_ = old;
    try {
      outcome_ = outcome;
    } catch (...) {
      outcome_ = failed_outcome(outcome.status, "");
    }
    done_.store(true, std::memory_order_seq_cst);
  }
  bool done() const noexcept { return done_.load(std::memory_order_seq_cst); }
  std::int64_t result() const {
    expect(outcome_);
    return old_;
  }

 private:
  std::int64_t old_ = 0;
  Outcome outcome_;
  sys::Atomic<bool> done_{false};
};

}  // namespace

// ---- The end of the process ---------------------------------------------------------------------

namespace {

/// Fabrics that are open when the process exits. Never destroyed, because threads may run longer.
struct OpenFabrics {
  static OpenFabrics& instance() {
    static auto* const all = new OpenFabrics;
    return *all;
  }

  sys::Mutex mutex;
  std::int64_t process = 0;  ///< the process that opened them, not a forked child
  std::vector<Fabric*> fabrics WEIR_GUARDED_BY(mutex);
};

/// Leaves all open fabrics. Waits for one that another thread is closing.
void leave_open_fabrics() {
  OpenFabrics& open = OpenFabrics::instance();
  if (open.process != getpid()) return;
  const sys::Lock lock(open.mutex);
  for (Fabric* const fabric : open.fabrics) fabric->port().leave_at_exit();
}

}  // namespace

/// MPI has registered its exit handler before, so that one runs after this.
void Fabric::leave_before_exit() {
  OpenFabrics& open = OpenFabrics::instance();
  const sys::Lock lock(open.mutex);
  open.process = getpid();
  open.fabrics.push_back(this);
  std::atexit(leave_open_fabrics);
}

// ---- Fabric -------------------------------------------------------------------------------------

Fabric::Fabric(std::unique_ptr<Transport> transport, ProgressBy progress)
    : name_(fmt::format("rank {}", transport->info().rank)),
      port_(new Port(std::move(transport), progress)),
      collectives_(*port_),
      collective_hub_(*port_),
      conveyor_hub_(*port_),
      halo_hub_(*port_, Channel::grid),
      share_hub_(*port_, Channel::share),
      message_hub_(*port_, Channel::message, GroupHub::Numbering::given),
      watchdog_(*port_, port_->info().seeded ? 0 : config::watchdog_ns()) {
  std::vector<Rank> all(port_->ranks());
  std::iota(all.begin(), all.end(), Rank{0});
  world_.reset(new weir_communicator(*this, collective_hub_, 0, std::move(all)));
}

Fabric::~Fabric() {
  {
    OpenFabrics& open = OpenFabrics::instance();
    const sys::Lock lock(open.mutex);
    std::erase(open.fabrics, this);
  }
  if (port_->rank() == 0) dismiss_ranks(*port_);
}

void Fabric::attach() {
  if (port_->info().seeded) {
    fail(WEIR_STATUS_UNSUPPORTED,
         "a runtime on a fabric with a seed needs threads, whose order a seed cannot decide: set "
         "the progress to hybrid, for an order that differs from run to run");
  }
  const sys::Lock lock(mutex_);
  if (closed_) fail_argument("the fabric of {} has been closed", name_);
  ++runtimes_;
}

bool Fabric::detach() noexcept {
  const sys::Lock lock(mutex_);
  return --runtimes_ == 0 && closed_;
}

bool Fabric::close() {
  const sys::Lock lock(mutex_);
  if (std::exchange(closed_, true)) fail_argument("the fabric of {} has been closed", name_);
  return runtimes_ == 0;
}

bool Fabric::end_program() noexcept {
  const sys::Lock lock(mutex_);
  closed_ = true;
  if (runtimes_ > 0) port_->leave_at_exit();
  return runtimes_ == 0;
}

FabricUse::FabricUse(weir_fabric* fabric)
    : fabric_(fabric != nullptr ? &weir_fabric::check(fabric) : nullptr) {
  if (fabric_ != nullptr) fabric_->attach();
}

FabricUse::~FabricUse() {
  if (fabric_ != nullptr && fabric_->detach()) weir_fabric::bury(fabric_);
}

void close_fabric(weir_fabric& fabric) {
  if (fabric.close()) weir_fabric::bury(&fabric);
}

weir_window* Fabric::create_window(void* memory, std::size_t bytes, std::int64_t timeout_ns) {
  std::list<Owned<weir_window>> made;
  Window::create_on_all_ranks(collectives_, timeout_ns, [&](std::int64_t deadline) -> Window& {
    made.emplace_back().reset(new weir_window(*this, memory, bytes, deadline));
    return *made.front();
  });
  return windows_.add(std::move(made));
}

weir_conveyor* Fabric::create_conveyor(const weir_conveyor_options& options) {
  std::list<Owned<weir_conveyor>> made(1);
  made.front().reset(new weir_conveyor(conveyors_, conveyor_hub_, collectives_, options));
  return conveyors_.add(std::move(made));
}

weir_halo* Fabric::create_halo(const std::function<HaloRequest()>& read) {
  std::list<Owned<weir_halo>> made;
  Owned<weir_halo> halo(new weir_halo(halos_, halo_hub_, [&] {
    made.emplace_back();
    return read();
  }));
  made.front() = std::move(halo);
  return halos_.add(std::move(made));
}

void Fabric::destroy_window(weir_window* window) noexcept { windows_.destroy(window); }

void Fabric::barrier(std::int64_t timeout_ns) { expect(port_->barrier(timeout_ns)); }

weir_communicator* Fabric::create_communicator(
    Communicator& parent, const std::function<void(std::uint32_t, Communicator::Part&)>& agree) {
  constexpr std::uint32_t kMost = 1u << 22;  // a number has 10 bits for the rank
  const std::uint32_t mine = next_communicator_.fetch_add(1);
  if (mine >= kMost) fail(WEIR_STATUS_UNSUPPORTED, "a rank can make {} communicators", kMost);
  Communicator::Part part;
  try {
    std::list<Owned<weir_communicator>> made(1);
    agree(port_->rank() * kMost + mine, part);
    if (part.ranks.empty()) return nullptr;
    made.front().reset(new weir_communicator(*this, collective_hub_, part.number, part.ranks));
    return communicators_.add(std::move(made));
  } catch (...) {  // the other ranks must not wait for this one
    parent.give_up(current_exception_outcome(WEIR_STATUS_INTERNAL));
    if (part.number != Communicator::Part::kNone) {
      collective_hub_.refuse(part.number);
      message_hub_.refuse(part.number);
    }
    throw;
  }
}

void Fabric::destroy_communicator(weir_communicator* communicator) noexcept {
  communicators_.destroy(communicator);
}

void Fabric::listen(weir_fabric_handler handler, void* payload) {
  port_->listen(Channel::user, nullptr);
  handler_ = handler;
  payload_ = payload;
  if (handler != nullptr) port_->listen(Channel::user, this);
}

void Fabric::send(Rank to, std::span<const std::byte> message) {
  port_->send(to, Channel::user, message);
}

void Fabric::on_message(Rank from, std::span<const std::byte> message) noexcept {
  handler_(from, message.data(), message.size(), payload_);
  handled_.fetch_add(1);
}

/// Whether all other ranks have left or are lost, and there was one.
bool Fabric::all_peers_lost() const noexcept {
  for (Rank rank = 0; rank < port_->ranks(); ++rank) {
    if (rank != port_->rank() && port_->alive(rank)) return false;
  }
  return port_->ranks() > 1;
}

bool Fabric::progress(std::int64_t timeout_ns) {
  const auto has_message = [this] { return handled_.load() != seen_.load(); };
  // If the transport detects stalls, it reports more than the error below.
  const bool stalls = timeout_ns < 0 && port_->info().sees_stalls;
  bool received = false;  // another thread may take the message meanwhile
  const auto done = [&] {
    received = has_message();
    return received || (!stalls && all_peers_lost());
  };
  const bool any = port_->wait_until(done, timeout_ns, "a message");
  for (; any && !received; received = has_message()) {
    if (port_->progress()) continue;
    {
      const Port::ListenerScope no_thread_runs_the_handler(*port_);
      if (has_message()) break;
    }
    fail(WEIR_STATUS_NETWORK_ERROR,
         "no message will come: all other ranks have left or are lost, {}",
         port_->why_lost(port_->rank() == 0 ? 1 : 0));
  }
  seen_.store(handled_.load());
  return any;
}

// ---- Opening ------------------------------------------------------------------------------------

std::uint64_t started_rank() noexcept {
  const char* const rank = was_launched() ? launched_rank() : rank_by_mpi();
  return rank != nullptr ? parse_unsigned(rank).value_or(0) : 0;
}

namespace {

/// What may carry packets between the ranks that a launcher of MPI has started.
struct Engines {
  Rank node = 1;          ///< maximum ranks of this machine that share memory
  bool ucx = false;       ///< UCX instead of MPI between nodes, if all ranks have it
  bool only_ucx = false;  ///< throw Error if it cannot be used
};

/// Throws Error.
std::unique_ptr<Link> mpi_link_with(const Engines& engines) {
  std::unique_ptr<Link> outer = mpi_link();
  if (outer->info().ranks == 1) return outer;
  const std::int64_t within_ns = Membership{}.join_within_ns;
  Node node = find_node(*outer, engines.node, within_ns);
  if (engines.ucx && !node.has_all()) {
    outer = ucx_link(std::move(outer), node.early, within_ns, engines.only_ucx);
  }
  return std::make_unique<NodeLink>(std::move(outer), std::move(node));
}

}  // namespace

Owned<weir_fabric> open_fabric(const weir_fabric_options& options) {
  config::check_values();
  const Rank most = node_size();
  std::string_view transport = chosen(options.transport, "WEIR_TRANSPORT");
  const bool automatic = transport.empty() || transport == "auto";
  if (automatic) {
    transport = was_launched() ? "shm" : started_by_mpi() != nullptr ? "mpi" : "self";
  }
  if (transport == "self") return join(InprocHub(1, 0).link(0), options);
  if (transport == "shm" || transport == "mpi" || transport == "ucx") {
    const bool ucx = transport == "ucx";
    auto link = transport == "shm" ? launched_link()
                                   : mpi_link_with({automatic ? most : 1, automatic || ucx, ucx});
    link->call_before_end(leave_open_fabrics);
    Owned<weir_fabric> fabric = join(std::move(link), options);
    fabric->leave_before_exit();
    return fabric;
  }
  if (transport == "inproc") {
    fail_argument("the transport inproc is for weir_fabric_simulate(), not for weir_fabric_open()");
  }
  fail_argument("there is no transport '{}': choose from auto, self, inproc, shm, mpi, ucx",
                transport);
}

namespace {

/// Calls the functions of the program.
class ProgramObserver final : public LaunchObserver {
 public:
  explicit ProgramObserver(const weir_launch_options& options) noexcept : options_(options) {}

  bool takes_output() const noexcept override { return options_.on_output != nullptr; }
  void on_output(Rank rank, int stream, std::span<const char> text) noexcept override {
    options_.on_output(rank, stream, text.data(), text.size(), options_.payload);
  }
  void on_end(Rank rank, int status) noexcept override {
    if (options_.on_end != nullptr) options_.on_end(rank, status, options_.payload);
  }
  int next_signal() noexcept override {
    return options_.next_signal != nullptr ? options_.next_signal(options_.payload) : 0;
  }

 private:
  const weir_launch_options& options_;
};

}  // namespace

int launch_fabric(const weir_launch_options& options, Rank ranks, const char* const* arguments) {
  config::check_values();
  check_ranks(ranks);
  if (arguments == nullptr || arguments[0] == nullptr) {
    fail_argument("the program to launch is NULL");
  }
  ProgramObserver observer(options);
  return launch_ranks(ranks, arguments, lost_after(options.lost_after_ns), observer);
}

void simulate_fabric(const weir_fabric_options& given, Rank ranks,
                     const std::function<void(weir_fabric&)>& program) {
  config::check_values();
  check_ranks(ranks);
  const weir_fabric_options options = options_of_simulation(given);
  const std::string_view transport = options.transport != nullptr ? options.transport : "";
  if (!transport.empty() && transport != "inproc") {
    fail_argument("cannot simulate ranks over '{}': only over inproc", transport);
  }
  InprocHub hub(ranks, options.seed);
  hub.report_stalls();
  if (options.seed != 0 && progress_of(options) == ProgressBy::caller) hub.decide_by_seed();
  std::vector<Outcome> outcomes(ranks);
  {
    std::vector<sys::Thread> threads;
    threads.reserve(ranks);
    // The link of a rank without a thread is destroyed before the threads of the other ranks are
    // joined.
    std::vector<std::shared_ptr<std::unique_ptr<Link>>> links;
    for (Rank rank = 0; rank < ranks; ++rank) {
      links.push_back(std::make_shared<std::unique_ptr<Link>>(hub.link(rank)));
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      threads.emplace_back(fmt::format("weir-rank-{}", rank), [&, rank, link = links[rank]] {
        try {
          run_rank(join(std::move(*link), options), program);
        } catch (...) {
          outcomes[rank] = current_exception_outcome(WEIR_STATUS_INTERNAL);
        }
      });
    }
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (!outcomes[rank].ok())
      fail(outcomes[rank].status, "rank {}: {}", rank, outcomes[rank].message);
  }
}

}  // namespace weir::rt

// ---- Communicator ------------------------------------------------------------------------------

weir_communicator::weir_communicator(weir::rt::Fabric& fabric, weir::rt::CollectiveHub& hub,
                                     std::uint32_t number, std::vector<weir::rt::Rank> ranks)
    : Communicator(hub, number, std::move(ranks)),
      fabric_(fabric),
      name_(fmt::format("{} of {} ranks", number, size())),
      messages_(std::make_shared<weir::rt::TaggedMessages>(fabric.message_hub(), number,
                                                           Communicator::ranks())) {}

void weir_communicator::revoke() {
  Communicator::revoke();
  messages_->fail_all({WEIR_STATUS_NETWORK_ERROR, "the program has revoked the communicator"});
}

std::uint32_t weir_communicator::next_message(bool is_send, unsigned peer, std::uint32_t tag) {
  const weir::rt::sys::Lock lock(mutex_);
  return message_numbers_[{is_send, peer, tag}]++ % weir::rt::TaggedMessages::kOfCollective;
}

// ---- Window -------------------------------------------------------------------------------------

using namespace weir::rt;

weir_window::weir_window(Fabric& fabric, void* memory, std::size_t bytes, std::int64_t deadline_ns)
    : Window(fabric.port(), memory, bytes, deadline_ns),
      fabric_(fabric),
      name_(fmt::format("{} bytes", bytes)) {}

void weir_window::put(Rank rank, std::size_t offset, std::span<const std::byte> data) {
  check_range(rank, offset, data.size());
  fabric_.port().put(rank, id(rank), offset, data, nullptr);
}

void weir_window::get(Rank rank, std::size_t offset, std::span<std::byte> data) {
  check_range(rank, offset, data.size());
  fabric_.port().get(rank, id(rank), offset, data, nullptr);
}

template <class Start>
std::int64_t weir_window::change(Rank rank, std::size_t offset, const Start& start) {
  check_range(rank, offset, sizeof(std::int64_t));
  if (offset % sizeof(std::int64_t) != 0) {
    fail_argument("an atomic operation at {} is not on a multiple of 8", offset);
  }
  Port& port = fabric_.port();
  if (port.inside_listener()) {
    fail(WEIR_STATUS_BUSY, "a handler of messages must not wait for an atomic operation");
  }
  OneCompletion done;
  start(port, &done);
  port.wait_until([&] { return done.done(); }, -1, "an atomic operation");
  return done.result();
}

std::int64_t weir_window::fetch_add(Rank rank, std::size_t offset, std::int64_t operand) {
  return change(rank, offset, [&](Port& port, Completion* done) {
    port.fetch_add(rank, id(rank), offset, operand, done);
  });
}

std::int64_t weir_window::compare_swap(Rank rank, std::size_t offset, std::int64_t expected,
                                       std::int64_t desired) {
  return change(rank, offset, [&](Port& port, Completion* done) {
    port.compare_swap(rank, id(rank), offset, expected, desired, done);
  });
}

void weir_window::flush(Rank rank, std::int64_t timeout_ns) {
  check_range(rank, 0, 0);
  expect(fabric_.port().flush(rank, timeout_ns));
}
