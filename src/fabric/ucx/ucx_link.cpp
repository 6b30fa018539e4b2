// A link over UCX, in a library of its own that uses only headers of weir, so that libweir itself
// does not need UCX.
//
// Packets are tagged messages; the tag is the sender's rank. UCX matches the messages of a sender
// in order, but completes the receptions of large ones later: packets are delivered in the order
// of the match. The mutex around UCX is for threads that go to sleep: they arm the worker, while
// another thread may make progress.
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "base/threads.hpp"
#include "fabric/buffered_link.hpp"
#include "fabric/link.hpp"
#include "fabric/link_library.hpp"
#include "fabric/ucx/ucx_library.hpp"

namespace weir::rt {

namespace {

constexpr std::size_t kSendsToOne = 8;             ///< maximum in flight to one rank
constexpr std::size_t kSends = 64;                 ///< maximum in flight
constexpr std::size_t kArrivals = 2 * kLinkBurst;  ///< maximum being received
constexpr unsigned kPasses = 64;                   ///< maximum in receive()
constexpr std::int64_t kPatience = 1'000'000'000;  ///< ns, to end a connection

std::int64_t monotonic_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

/// Time to a deadline that may be far: at most an hour, as the sums of clocks overflow.
std::int64_t until_ns(std::int64_t deadline_ns) noexcept {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  return std::min(deadline_ns - monotonic_ns(), kHour);
}

[[noreturn]] void throw_failure(const char* function, ucs_status_t status) {
  throw std::runtime_error(std::string(function) + "() failed: " + ucs_status_string(status));
}

/// Over sockets the rendezvous of large messages only costs: 0.85 GB/s of coalesced puts instead of
/// 0.90 on a link of 8 Gbit/s. With RDMA, and if the user has chosen, nothing changes.
void prefer_eager_sockets(ucp_config_t* config) noexcept {
  const bool chosen = std::getenv("UCX_RNDV_THRESH") != nullptr;
  if (!chosen && access("/sys/class/infiniband", F_OK) != 0) {
    static_cast<void>(ucp_config_modify(config, "RNDV_THRESH", "inf"));
  }
}

/// A context of UCX and its worker.
class Worker {
 public:
  /// Throws std::runtime_error.
  explicit Worker(Rank ranks) {
    ucp_params_t context{};
    context.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
    context.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
    context.estimated_num_eps = ranks;
    ucp_config_t* config = nullptr;
    if (const ucs_status_t read = ucp_config_read(nullptr, nullptr, &config); read != UCS_OK) {
      throw_failure("ucp_config_read", read);
    }
    prefer_eager_sockets(config);
    const ucs_status_t begun = ucp_init(&context, config, &context_);
    ucp_config_release(config);
    if (begun != UCS_OK) throw_failure("ucp_init", begun);
    ucp_worker_params_t worker{};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    ucs_status_t made = ucp_worker_create(context_, &worker, &worker_);
    if (made == UCS_OK) made = ucp_worker_get_efd(worker_, &descriptor_);
    if (made == UCS_OK) made = ucp_worker_get_address(worker_, &address_, &address_bytes_);
    if (made == UCS_OK) return;
    end();
    throw_failure("ucp_worker_create", made);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { end(); }

  ucp_worker_h get() const noexcept { return worker_; }
  /// Becomes readable when an armed worker has something to do.
  int descriptor() const noexcept { return descriptor_; }
  std::span<const std::byte> address() const noexcept {
    return {reinterpret_cast<const std::byte*>(address_), address_bytes_};
  }

 private:
  void end() noexcept {
    if (address_ != nullptr) ucp_worker_release_address(worker_, address_);
    if (worker_ != nullptr) ucp_worker_destroy(worker_);
    ucp_cleanup(context_);
  }

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_address_t* address_ = nullptr;
  std::size_t address_bytes_ = 0;
  int descriptor_ = -1;
};

/// Lets threads sleep until a worker has something to do or the bell changes. One of them polls
/// the descriptors; the others wait for it.
class Bell {
 public:
  /// Throws std::runtime_error.
  Bell() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) throw std::runtime_error("eventfd() failed");
  }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;
  ~Bell() { close(event_); }

  std::uint32_t value() const noexcept { return value_.load(); }

  /// `arm` returns the descriptor to poll, -1 when the worker has been destroyed, or nullopt when
  /// the worker has events.
  template <class Arm>
  void wait(std::uint32_t value, std::int64_t deadline_ns, const Arm& arm) noexcept {
    {
      sys::Lock lock(mutex_);
      if (value_.load() != value) return;
      if (polled_) {
        const std::int64_t remaining = until_ns(deadline_ns);
        if (remaining > 0) condition_.wait_for(lock, std::chrono::nanoseconds(remaining));
        return;
      }
      polled_ = true;
    }
    if (const std::optional<int> descriptor = arm()) poll_until(*descriptor, deadline_ns);
    {
      const sys::Lock lock(mutex_);
      polled_ = false;
      std::uint64_t count = 0;
      static_cast<void>(!read(event_, &count, sizeof count));
    }
    condition_.notify_all();
  }

  void wake() noexcept {
    {
      const sys::Lock lock(mutex_);
      value_.fetch_add(1);
      const std::uint64_t one = 1;
      if (polled_) static_cast<void>(!write(event_, &one, sizeof one));
    }
    condition_.notify_all();
  }

 private:
  void poll_until(int descriptor, std::int64_t deadline_ns) noexcept {
    const std::int64_t remaining = until_ns(deadline_ns);
    if (remaining <= 0) return;
    std::array<pollfd, 2> polled{pollfd{event_, POLLIN, 0}, pollfd{descriptor, POLLIN, 0}};
    const timespec time{remaining / 1'000'000'000, remaining % 1'000'000'000};
    ppoll(polled.data(), descriptor < 0 ? 1 : 2, &time, nullptr);
  }

  const int event_;
  std::atomic<std::uint32_t> value_{0};
  sys::Mutex mutex_;
  std::condition_variable_any condition_;
  bool polled_ WEIR_GUARDED_BY(mutex_) = false;  ///< by a thread in wait()
};

class DroppingSink final : public PacketSink {
 public:
  void packet(Rank, std::span<const std::byte>) noexcept override {}
};

class WorkerLink final : public BufferedLink<UcxLink> {
 public:
  /// Throws std::runtime_error.
  WorkerLink(Rank rank, Rank ranks) : BufferedLink(kSends), peers_(ranks) {
    worker_.emplace(ranks);
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "ucx (%u.%u.%u)", major, minor, release);
    info_.name = name.data();
    info_.rank = rank;
    info_.ranks = ranks;
    info_.packet_bytes = kLinkPacketBytes;
    info_.reserved_bytes = kBufferReservedBytes;
    info_.can_sleep = true;
    for (Send& send : sends_) {
      send.link = this;
      free_.push_back(&send);
    }
    for (Arrival& arrival : arrivals_) unused_.push_back(&arrival);
    arrived_.reserve(kArrivals);
  }
  WorkerLink(const WorkerLink&) = delete;
  WorkerLink& operator=(const WorkerLink&) = delete;
  ~WorkerLink() override { leave(); }

  // ---- Connecting -------------------------------------------------------------------------------

  std::span<const std::byte> address() const noexcept override { return worker_->address(); }

  std::string connect(Rank rank, std::span<const std::byte> address) noexcept override {
    ucp_ep_params_t endpoint{};
    endpoint.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                          UCP_EP_PARAM_FIELD_ERR_HANDLER;
    endpoint.address = reinterpret_cast<const ucp_address_t*>(address.data());
    endpoint.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    endpoint.err_handler.cb = [](void* peer, ucp_ep_h, ucs_status_t status) {
      static_cast<Peer*>(peer)->fail(status);
    };
    endpoint.err_handler.arg = &peers_[rank];
    const sys::Lock lock(ucx_mutex_);
    const ucs_status_t made = ucp_ep_create(worker_->get(), &endpoint, &peers_[rank].endpoint);
    return made == UCS_OK ? std::string() : reason("UCX says ", ucs_status_string(made));
  }

  void begin(std::unique_ptr<Link> starter) noexcept override { starter_ = std::move(starter); }

  void note_joined(Rank rank) noexcept override {
    if (!std::exchange(peers_[rank].joined, true)) ++joined_;
  }

  // ---- Packets ----------------------------------------------------------------------------------

  const LinkInfo& info() const noexcept override { return info_; }

  bool receive(PacketSink& sink) noexcept override {
    bool progressed = receive_from_starter();
    unsigned delivered = 0;
    for (unsigned i = 0; i < kPasses && delivered < kLinkBurst; ++i) {
      const bool any = take_messages();
      delivered += deliver(sink, kLinkBurst - delivered);
      progressed |= any;
      if (!any && !progress()) break;
    }
    return progressed || delivered > 0;
  }

  bool drained() noexcept override {
    if (free_.size() < kSends) progress();
    return free_.size() == kSends && starter_->drained();
  }

  // ---- Ends -------------------------------------------------------------------------------------

  void call_before_end(void (*leave)()) noexcept override { starter_->call_before_end(leave); }

  /// First delivers what has been sent, then meets the other ranks by the link that started them.
  void leave() noexcept override {
    if (std::exchange(has_left_, true)) return;
    close_endpoints();
    if (starter_ != nullptr) starter_->leave();
    drop_messages();
    const sys::Lock lock(ucx_mutex_);
    worker_.reset();
  }

  std::string why_lost(Rank rank) noexcept override {
    const Peer& peer = peers_[rank];
    return peer.why.empty() ? starter_->why_lost(rank) : reason(peer.why.c_str());
  }

  void cut(Rank rank, bool announced) noexcept override {
    Peer& peer = peers_[rank];
    peer.cut = true;
    note_joined(rank);
    const ucs_status_ptr_t request = close(peer, UCP_EP_CLOSE_FLAG_FORCE);
    if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);  // when it has completed
    starter_->cut(rank, announced);
  }

  // ---- Sleeping ---------------------------------------------------------------------------------

  std::uint32_t bell() const noexcept override { return bell_.value(); }

  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override {
    bell_.wait(bell, deadline_ns, [this]() -> std::optional<int> {
      const sys::Lock lock(ucx_mutex_);
      if (!worker_) return -1;
      if (ucp_worker_arm(worker_->get()) != UCS_OK) return std::nullopt;
      return worker_->descriptor();
    });
  }

  void wake() noexcept override { bell_.wake(); }

 private:
  struct Peer {
    ucp_ep_h endpoint = nullptr;
    std::size_t sends = 0;
    std::string why;  ///< why the rank is lost
    bool cut = false;
    bool joined = false;  ///< it has what the starter has sent to it

    void fail(ucs_status_t status) noexcept {
      if (why.empty()) why = reason("cannot be reached: UCX says ", ucs_status_string(status));
    }
  };
  struct Send {
    WorkerLink* link = nullptr;
    Rank to = 0;
    PacketBuffer buffer;
  };
  struct Arrival {
    Rank from = 0;
    PacketBuffer buffer;
    std::size_t bytes = 0;
    bool complete = false;
    ucs_status_t status = UCS_OK;
  };

  bool is_reachable(Rank rank) const noexcept override {
    return peers_[rank].why.empty() && !peers_[rank].cut;
  }

  bool has_room(Rank to) noexcept override {
    const auto full = [&] { return free_.empty() || peers_[to].sends == kSendsToOne; };
    if (full()) progress();
    return !full();
  }

  bool progress() noexcept {
    const sys::Lock lock(ucx_mutex_);
    return ucp_worker_progress(worker_->get()) != 0;
  }

  /// Until they join, the starter may have to make progress for what this rank sent to connect.
  bool receive_from_starter() noexcept {
    if (joined_ + 1 == info_.ranks) return false;
    DroppingSink none;
    return starter_->receive(none);
  }

  void start_send(Rank to, BufferedPacket packet) noexcept override {
    Send& send = *free_.back();
    send.to = to;
    send.buffer = std::move(packet.buffer);
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.cb.send = [](void* request, ucs_status_t status, void* sent) {
      static_cast<Send*>(sent)->link->finish(*static_cast<Send*>(sent), status);
      ucp_request_free(request);
    };
    how.user_data = &send;
    const sys::Lock lock(ucx_mutex_);
    free_.pop_back();
    ++peers_[to].sends;
    const ucs_status_ptr_t request = ucp_tag_send_nbx(
        peers_[to].endpoint, send.buffer.get() + packet.first, packet.bytes, info_.rank, &how);
    if (!UCS_PTR_IS_PTR(request)) finish(send, UCS_PTR_STATUS(request));
  }

  void finish(Send& send, ucs_status_t status) noexcept {
    Peer& peer = peers_[send.to];
    if (status != UCS_OK) peer.fail(status);
    --peer.sends;
    buffers_.recycle(std::move(send.buffer));
    free_.push_back(&send);
  }

  /// Begins to receive messages that UCX has matched. Returns whether there were any.
  bool take_messages() noexcept {
    bool any = false;
    while (!unused_.empty() && take_message()) any = true;
    return any;
  }

  bool take_message() noexcept {
    Arrival& arrival = *unused_.back();
    if (arrival.buffer == nullptr) arrival.buffer = buffers_.take();
    if (arrival.buffer == nullptr) return false;
    const sys::Lock lock(ucx_mutex_);
    ucp_tag_recv_info_t found{};
    const ucp_tag_message_h message = ucp_tag_probe_nb(worker_->get(), 0, 0, 1, &found);
    if (message == nullptr) return false;
    unused_.pop_back();
    arrived_.push_back(&arrival);
    arrival.from = static_cast<Rank>(found.sender_tag);
    arrival.bytes = found.length;
    arrival.complete = false;
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    how.cb.recv = [](void* request, ucs_status_t status, const ucp_tag_recv_info_t*, void* into) {
      static_cast<Arrival*>(into)->status = status;
      static_cast<Arrival*>(into)->complete = true;
      ucp_request_free(request);
    };
    how.user_data = &arrival;
    const ucs_status_ptr_t request = ucp_tag_msg_recv_nbx(worker_->get(), arrival.buffer.get(),
                                                          kPacketBufferBytes, message, &how);
    if (UCS_PTR_IS_PTR(request)) return true;
    arrival.status = UCS_PTR_STATUS(request);
    arrival.complete = true;
    return true;
  }

  /// Delivers complete packets, of each rank in order. Returns how many.
  unsigned deliver(PacketSink& sink, unsigned most) noexcept {
    unsigned delivered = 0;
    for (std::size_t i = 0; i < arrived_.size() && delivered < most;) {
      Arrival& arrival = *arrived_[i];
      const auto same = [&](const Arrival* each) { return each->from == arrival.from; };
      const auto here = arrived_.begin() + static_cast<std::ptrdiff_t>(i);
      if (!arrival.complete || std::any_of(arrived_.begin(), here, same)) {
        ++i;
        continue;
      }
      arrived_.erase(here);
      deliver(arrival, sink);
      unused_.push_back(&arrival);
      ++delivered;
    }
    return delivered;
  }

  void deliver(const Arrival& arrival, PacketSink& sink) noexcept {
    if (arrival.from >= info_.ranks) return;
    Peer& peer = peers_[arrival.from];
    if (peer.cut) return;
    if (arrival.status != UCS_OK) return peer.fail(arrival.status);
    note_joined(arrival.from);
    sink.packet(arrival.from, {arrival.buffer.get(), arrival.bytes});
  }

  /// Begins to end a connection. Returns the request, null if that has been done.
  ucs_status_ptr_t close(Peer& peer, unsigned flags) noexcept {
    if (peer.endpoint == nullptr) return nullptr;
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = flags;
    const sys::Lock lock(ucx_mutex_);
    return ucp_ep_close_nbx(std::exchange(peer.endpoint, nullptr), &how);
  }

  void close_endpoints() noexcept {
    std::vector<ucs_status_ptr_t> requests(peers_.size());
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      requests[i] =
          close(peers_[i], is_reachable(static_cast<Rank>(i)) ? 0 : UCP_EP_CLOSE_FLAG_FORCE);
    }
    const std::int64_t deadline = monotonic_ns() + kPatience;
    for (const ucs_status_ptr_t request : requests) {
      if (!UCS_PTR_IS_PTR(request)) continue;
      while (ucp_request_check_status(request) == UCS_INPROGRESS && monotonic_ns() < deadline) {
        progress();
      }
      ucp_request_free(request);
    }
  }

  /// UCX complains about messages that were not received.
  void drop_messages() noexcept {
    DroppingSink none;
    const std::int64_t deadline = monotonic_ns() + kPatience;
    while ((take_messages() || progress()) && monotonic_ns() < deadline) deliver(none, kArrivals);
  }

  LinkInfo info_;
  std::unique_ptr<Link> starter_;
  bool has_left_ = false;
  std::deque<Peer> peers_;
  std::size_t joined_ = 0;  ///< other ranks that have

  std::array<Send, kSends> sends_;
  std::vector<Send*> free_;
  std::array<Arrival, kArrivals> arrivals_;
  std::vector<Arrival*> unused_, arrived_;  ///< arrived_: in the order in which UCX matched them

  Bell bell_;
  sys::Mutex ucx_mutex_;  ///< held during calls of UCX
  std::optional<Worker> worker_;
};

}  // namespace

}  // namespace weir::rt

extern "C" [[gnu::visibility("default")]] const char* weir_ucx_link_build() {
  return weir::rt::link_build();
}

extern "C" [[gnu::visibility("default")]] weir::rt::UcxLink* weir_ucx_link_open(
    weir::rt::Rank rank, weir::rt::Rank ranks, char* message, std::size_t bytes) {
  try {
    return new weir::rt::WorkerLink(rank, ranks);
  } catch (const std::runtime_error& error) {
    message[std::string_view(error.what()).copy(message, bytes - 1)] = '\0';
  } catch (const std::bad_alloc&) {
    message[std::string_view("there is no memory for its buffers").copy(message, bytes - 1)] = '\0';
  }
  return nullptr;
}
