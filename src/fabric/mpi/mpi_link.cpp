// A link over MPI. It is compiled once per MPI into a separate library that uses only headers of
// weir, so that libweir itself does not need MPI.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifndef WEIR_MPI_HEADER
#define WEIR_MPI_HEADER <mpi.h>
#endif
#include WEIR_MPI_HEADER
#include <time.h>
#include <unistd.h>

#include "base/threads.hpp"
#include "fabric/buffered_link.hpp"
#include "fabric/link.hpp"
#include "fabric/link_library.hpp"
#include "fabric/mpi/mpi_library.hpp"

namespace weir::rt {

namespace {

constexpr int kTag = 0x5749;
constexpr std::size_t kReceives = 4;               ///< posted per rank
constexpr std::size_t kSendsToOne = 8;             ///< maximum in flight to one rank
constexpr std::size_t kSends = 64;                 ///< maximum in flight
constexpr std::int64_t kLongestSleep = 2'000'000;  ///< MPI cannot wake a thread

constexpr std::chrono::seconds kPatience{10};  ///< for ranks that leave later, and for MPI
constexpr std::chrono::microseconds kPollInterval{200};

std::atomic<bool> link_is_open{false};  ///< a thread may be in MPI
pid_t own_process = 0;                  ///< not a forked child of it
int own_rank = 0;

// One thread at a time: the one that closes the fabric, later the one that ends the process.
bool finalizes_well = true;  ///< no rank was lost without leaving
bool has_left = false;       ///< this rank has begun to wait for the others
MPI_Request leaving = MPI_REQUEST_NULL;
volatile std::sig_atomic_t death_notified = 0;

/// Receives and drops a message for which no receive is posted. Returns false if there is none.
bool take_one(MPI_Comm communicator) noexcept {
  int found = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, kTag, communicator, &found, &status) != MPI_SUCCESS) return false;
  if (found == 0) return false;
  const PacketBuffer packet(static_cast<std::byte*>(std::malloc(kPacketBufferBytes)));
  return packet != nullptr &&
         MPI_Recv(packet.get(), kPacketBufferBytes, MPI_BYTE, status.MPI_SOURCE, kTag, communicator,
                  MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

void begin_to_leave(MPI_Comm communicator) noexcept {
  if (leaving != MPI_REQUEST_NULL) return;
  has_left = true;
  finalizes_well = MPI_Ibarrier(communicator, &leaving) == MPI_SUCCESS && finalizes_well;
}

/// Drops incoming messages until all ranks have arrived: some MPI libraries report unreceived
/// messages on standard output. Returns false if ranks have not arrived when `waits()` becomes
/// false.
template <class Waits>
bool await_others(MPI_Comm communicator, const Waits& waits) noexcept {
  for (int here = 0; finalizes_well && here == 0;) {
    finalizes_well = MPI_Test(&leaving, &here, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    while (take_one(communicator)) {
    }
    if (here != 0) return true;
    if (!waits()) return false;
    std::this_thread::sleep_for(kPollInterval);
  }
  return false;
}

/// Returns whether the launcher keeps ranks alive when one has died, so that some may never arrive.
bool some_may_be_missing() noexcept {
  return death_notified != 0 || std::getenv("OMPI_MCA_orte_enable_recovery") != nullptr;
}

/// Waits up to kPatience for a thread that is leaving the fabric. Returns whether no thread is in
/// MPI.
bool await_link() noexcept {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (link_is_open.load() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kPollInterval);
  }
  if (!link_is_open.load()) return true;
  std::fprintf(stderr, "weir: rank %d: a thread is in the fabric: left without MPI_Finalize()\n",
               own_rank);
  return false;
}

/// Ends the process with its status, unless the guard is destroyed within kPatience because
/// MPI_Finalize() has returned.
class FinalizeGuard {
 public:
  explicit FinalizeGuard(int status) : thread_([this, status] { watch(status); }) {}
  FinalizeGuard(const FinalizeGuard&) = delete;
  FinalizeGuard& operator=(const FinalizeGuard&) = delete;
  ~FinalizeGuard() {
    {
      const sys::Lock lock(mutex_);
      finished_ = true;
    }
    condition_.notify_all();
    thread_.join();
  }

 private:
  void watch(int status) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    sys::Lock lock(mutex_);
    while (!finished_ && condition_.wait_until(lock, deadline) == std::cv_status::no_timeout) {
    }
    if (finished_) return;
    std::fprintf(stderr,
                 "weir: rank %d: MPI_Finalize() has not returned within %d s: left without it\n",
                 own_rank, static_cast<int>(kPatience.count()));
    _exit(status);
  }

  sys::Mutex mutex_;
  std::condition_variable_any condition_;
  bool finished_ WEIR_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// Finalises MPI at the end of the process. Other ranks may work for hours more, and launchers
/// treat an end without MPI_Finalize() as a failure and kill them: a successful process therefore
/// waits for them without limit, a failed one only for kPatience. MPI_Finalize() may wait for lost
/// ranks, and MPICH over UCX also for a rank that is inside MPI_Finalize() and does not respond any
/// more.
void finalize(int status, void*) {
  if (getpid() != own_process || !await_link()) return;
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0 || !finalizes_well) return;
  if (!has_left) begin_to_leave(MPI_COMM_WORLD);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  const auto waits = [&] {
    const bool well = status == 0 && !some_may_be_missing();
    return well || std::chrono::steady_clock::now() < deadline;
  };
  if (!await_others(MPI_COMM_WORLD, waits)) return;
  std::optional<FinalizeGuard> guard;
  try {
    guard.emplace(status);
  } catch (...) {  // no thread
  }
  std::fflush(nullptr);  // waits for threads that read from a stream
  MPI_Finalize();
}

/// Returns the short name: the version text is "Open MPI v4.1.4, package: ...", "MPICH
/// Version:\t4.0.2\n..." or "MPICH Version:      5.0.2\n...".
std::string name_of_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(text, &length);
  std::string name(text, static_cast<std::size_t>(length));
  name.resize(std::min(name.find_first_of(",\n"), name.size()));
  for (const char* word : {"Version:", "\t", " v"}) {
    const std::size_t at = name.find(word);
    if (at != std::string::npos) name.replace(at, std::strlen(word), *word == ' ' ? " " : "");
  }
  const auto is_blank_again = [](char before, char next) { return before == ' ' && next == ' '; };
  name.erase(std::unique(name.begin(), name.end(), is_blank_again), name.end());
  return "mpi (" + name + ")";
}

class MpiLink final : public BufferedLink<Link> {
 public:
  MpiLink(MPI_Comm communicator, bool own_communicator)
      : BufferedLink(kSends), communicator_(communicator), own_communicator_(own_communicator) {
    int rank = 0, ranks = 1;
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(communicator_, &rank);
    own_rank = rank;
    MPI_Comm_size(communicator_, &ranks);
    info_.name = name_of_library();
    info_.rank = static_cast<Rank>(rank);
    info_.ranks = static_cast<Rank>(ranks);
    info_.packet_bytes = kLinkPacketBytes;
    info_.reserved_bytes = kBufferReservedBytes;
    peers_.resize(info_.ranks);
    heads_.assign(info_.ranks, MPI_REQUEST_NULL);
    arrived_.resize(info_.ranks);
    sent_.resize(kSends);
    for (Rank other = 0; other < info_.ranks; ++other) post_receives(other);
    sends_.assign(kSends, MPI_REQUEST_NULL);
    targets_.resize(kSends);
    outgoing_.resize(kSends);
    for (std::size_t i = 0; i < kSends; ++i) free_.push_back(i);
    link_is_open = true;
  }
  MpiLink(const MpiLink&) = delete;
  MpiLink& operator=(const MpiLink&) = delete;

  ~MpiLink() override { leave(); }

  void leave() noexcept override {
    if (std::exchange(has_left_, true)) return;
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized == 0) leave_mpi();
    link_is_open = false;
  }

  /// MPI_Finalize() first deletes the attributes of MPI_COMM_SELF, which calls `leave`.
  void call_before_end(void (*leave)()) noexcept override {
    if (!own_communicator_) return;  // finalize() is called last
    const auto call = [](MPI_Comm, int, void* function, void*) -> int {
      reinterpret_cast<void (*)()>(function)();
      return MPI_SUCCESS;
    };
    int key = MPI_KEYVAL_INVALID;
    if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, call, &key, nullptr) == MPI_SUCCESS) {
      MPI_Comm_set_attr(MPI_COMM_SELF, key, reinterpret_cast<void*>(leave));
    }
  }

  const LinkInfo& info() const noexcept override { return info_; }

  bool receive(PacketSink& sink) noexcept override {
    bool any = false;
    for (unsigned i = 0; i < kLinkBurst; ++i) {
      int count = 0;
      const int error = arrived_.test(heads_, count);
      if (count == MPI_UNDEFINED || count == 0) break;
      for (int k = 0; k < count; ++k) {
        const auto from = static_cast<Rank>(arrived_.indices[static_cast<std::size_t>(k)]);
        const MPI_Status& status = arrived_.statuses[static_cast<std::size_t>(k)];
        take(from, status, error == MPI_ERR_IN_STATUS ? status.MPI_ERROR : error, sink);
      }
      any = true;
    }
    if (free_.size() < kSends) complete_sends();
    return any;
  }

  bool drained() noexcept override {
    complete_sends();
    return free_.size() == kSends;
  }

  std::string why_lost(Rank rank) noexcept override { return reason(peers_[rank].why.c_str()); }

  void cut(Rank rank, bool announced) noexcept override {
    finalizes_well = finalizes_well && announced;
    peers_[rank].cut = true;
    forget_receives(rank);
    forget_sends(rank);
  }

  std::uint32_t bell() const noexcept override { return bell_.load(); }

  void wait(std::uint32_t bell, std::int64_t deadline_ns) noexcept override {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    const std::int64_t remaining = deadline_ns - (time.tv_sec * 1'000'000'000 + time.tv_nsec);
    if (remaining <= 0) return;
    sys::Lock lock(mutex_);
    condition_.wait_for(lock, std::chrono::nanoseconds(std::min(remaining, kLongestSleep)),
                        [&] { return bell_.load() != bell; });
  }

  void wake() noexcept override {
    {
      const sys::Lock lock(mutex_);
      bell_.fetch_add(1);
    }
    condition_.notify_all();
  }

 private:
  void leave_mpi() noexcept {
    for (Rank rank = 0; rank < info_.ranks; ++rank) forget_receives(rank);
    finalizes_well = drained() && finalizes_well;
    for (Rank rank = 0; rank < info_.ranks; ++rank) forget_sends(rank);
    if (!finalizes_well) return;
    begin_to_leave(communicator_);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    const auto waits = [&] { return std::chrono::steady_clock::now() < deadline; };
    const bool all_left = await_others(communicator_, waits);
    if (own_communicator_ && all_left) MPI_Comm_free(&communicator_);
  }

  bool is_reachable(Rank rank) const noexcept override {
    return peers_[rank].why.empty() && !peers_[rank].cut;
  }

  bool has_room(Rank to) noexcept override {
    const auto full = [&] { return free_.empty() || peers_[to].sends == kSendsToOne; };
    if (full()) complete_sends();
    return !full();
  }

  void start_send(Rank to, BufferedPacket packet) noexcept override {
    const std::size_t slot = free_.back();
    const int error = MPI_Isend(packet.buffer.get() + packet.first, static_cast<int>(packet.bytes),
                                MPI_BYTE, static_cast<int>(to), kTag, communicator_, &sends_[slot]);
    if (error != MPI_SUCCESS) {
      buffers_.recycle(std::move(packet.buffer));
      return give_up(to, error);
    }
    outgoing_[slot] = std::move(packet.buffer);
    free_.pop_back();
    targets_[slot] = to;
    ++peers_[to].sends;
  }

  struct Receive {
    MPI_Request request = MPI_REQUEST_NULL;
    PacketBuffer buffer;
  };
  /// Results of MPI_Testsome().
  struct Tested {
    std::vector<int> indices;
    std::vector<MPI_Status> statuses;

    void resize(std::size_t requests) {
      indices.resize(requests);
      statuses.resize(requests);
    }
    int test(std::vector<MPI_Request>& requests, int& count) noexcept {
      return MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &count,
                          indices.data(), statuses.data());
    }
  };
  struct Peer {
    std::array<Receive, kReceives> receives;
    std::size_t first = 0;  ///< index of the receive that completes next; its request is in heads_
    std::size_t sends = 0;
    std::string why;  ///< why the rank is lost
    bool cut = false;

    Receive& next() noexcept { return receives[first]; }
  };

  void post_receives(Rank rank) {
    Peer& peer = peers_[rank];
    if (rank == info_.rank) return;
    for (Receive& receive : peer.receives) {
      receive.buffer = new_packet_buffer();
      post(rank, receive);
    }
    heads_[rank] = peer.next().request;
  }

  void post(Rank rank, Receive& receive) noexcept {
    const int error = MPI_Irecv(receive.buffer.get(), kPacketBufferBytes, MPI_BYTE,
                                static_cast<int>(rank), kTag, communicator_, &receive.request);
    if (error != MPI_SUCCESS) give_up(rank, error);
  }

  void take(Rank from, const MPI_Status& status, int error, PacketSink& sink) noexcept {
    Peer& peer = peers_[from];
    if (peer.cut) return;
    if (error != MPI_SUCCESS) return give_up(from, error);
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    Receive& receive = peer.next();
    receive.request = heads_[from] = MPI_REQUEST_NULL;
    sink.packet(from, {receive.buffer.get(), static_cast<std::size_t>(bytes)});
    if (peer.cut) return;
    post(from, receive);
    peer.first = (peer.first + 1) % kReceives;
    heads_[from] = peer.next().request;
  }

  void complete_sends() noexcept {
    int count = 0;
    const int error = sent_.test(sends_, count);
    if (count == MPI_UNDEFINED) return;
    for (int k = 0; k < count; ++k) {
      const auto slot = static_cast<std::size_t>(sent_.indices[static_cast<std::size_t>(k)]);
      const int own = error == MPI_ERR_IN_STATUS
                          ? sent_.statuses[static_cast<std::size_t>(k)].MPI_ERROR
                          : error;
      if (own != MPI_SUCCESS) give_up(targets_[slot], own);
      --peers_[targets_[slot]].sends;
      sends_[slot] = MPI_REQUEST_NULL;
      buffers_.recycle(std::move(outgoing_[slot]));
      free_.push_back(slot);
    }
  }

  void give_up(Rank rank, int error) noexcept {
    finalizes_well = false;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    std::string& why = peers_[rank].why;
    if (why.empty()) why = reason("cannot be reached: MPI says ", text);
  }

  void forget_receives(Rank rank) noexcept {
    Peer& peer = peers_[rank];
    peer.next().request = heads_[rank];
    heads_[rank] = MPI_REQUEST_NULL;
    for (Receive& receive : peer.receives) {
      if (receive.request == MPI_REQUEST_NULL) continue;
      int complete = 0;
      MPI_Cancel(&receive.request);
      if (MPI_Test(&receive.request, &complete, MPI_STATUS_IGNORE) == MPI_SUCCESS && complete) {
        continue;
      }
      MPI_Request_free(&receive.request);
      static_cast<void>(receive.buffer.release());  // MPI may still write to it
    }
  }

  /// MPI may still read unsent buffers, also of sends to a rank that has left: leaks them, and
  /// frees the slots for other ranks.
  void forget_sends(Rank rank) noexcept {
    if (peers_[rank].sends == 0) return;
    for (std::size_t slot = 0; slot < kSends; ++slot) {
      if (sends_[slot] == MPI_REQUEST_NULL || targets_[slot] != rank) continue;
      MPI_Request_free(&sends_[slot]);
      sends_[slot] = MPI_REQUEST_NULL;
      static_cast<void>(outgoing_[slot].release());
      free_.push_back(slot);
    }
    peers_[rank].sends = 0;
  }

  MPI_Comm communicator_;
  const bool own_communicator_;
  bool has_left_ = false;
  LinkInfo info_;
  std::deque<Peer> peers_;
  std::vector<MPI_Request> heads_;  ///< by rank: the receive that completes next

  std::vector<PacketBuffer> outgoing_;  ///< of the sends in flight
  std::vector<MPI_Request> sends_;
  std::vector<Rank> targets_;
  std::vector<std::size_t> free_;

  // Separate: a packet's receiver may send.
  Tested arrived_, sent_;

  sys::Mutex mutex_;  // held while the bell changes
  std::condition_variable_any condition_;
  std::atomic<std::uint32_t> bell_{0};
};

/// MPICH's mpirun announces the death of a rank to the others by a signal, whose default action
/// would end them.
void outlive_notices() {
#if defined MPICH_VERSION || defined MPI_ABI_VERSION
  if (std::getenv("PMI_RANK") == nullptr) return;
  struct sigaction now {};
  if (sigaction(SIGUSR1, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) return;
  now.sa_handler = [](int) { death_notified = 1; };
  now.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &now, nullptr);
#endif
}

/// Returns a description of the error; "" if MPI is ready for calls from one thread at a time.
std::string start_mpi(bool& was_running) {
  int running = 0, finalized = 0, level = 0;
  MPI_Initialized(&running);
  MPI_Finalized(&finalized);
  was_running = running != 0;
  if (finalized != 0) return "MPI has been finalised: open the fabric before";
  if (running != 0) {
    MPI_Query_thread(&level);
    return level >= MPI_THREAD_SERIALIZED
               ? ""
               : "the program has initialised MPI for one thread: call MPI_Init_thread() with "
                 "MPI_THREAD_SERIALIZED, or MULTIPLE to call MPI beside weir";
  }
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level) != MPI_SUCCESS) {
    return "MPI_Init_thread() failed";
  }
  own_process = getpid();
  on_exit(finalize, nullptr);
  return level >= MPI_THREAD_SERIALIZED ? "" : "this MPI was built without MPI_THREAD_SERIALIZED";
}

}  // namespace

}  // namespace weir::rt

extern "C" [[gnu::visibility("default")]] const char* weir_mpi_link_build() {
  return weir::rt::link_build();
}

extern "C" [[gnu::visibility("default")]] weir::rt::Link* weir_mpi_link_open(char* message,
                                                                             std::size_t bytes) {
  using namespace weir::rt;
  const auto refuse = [&](const std::string& why) -> Link* {
    message[why.copy(message, bytes - 1)] = '\0';
    return nullptr;
  };
  try {
    bool was_running = false;
    const std::string wrong = start_mpi(was_running);
    if (!wrong.empty()) return refuse(wrong);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    outlive_notices();
    MPI_Comm communicator = MPI_COMM_WORLD;
    // Messages of the program and of weir must not be confused.
    if (was_running && MPI_Comm_dup(MPI_COMM_WORLD, &communicator) != MPI_SUCCESS) {
      return refuse("MPI_Comm_dup() failed");
    }
    return new MpiLink(communicator, was_running);
  } catch (const std::bad_alloc&) {
    return refuse("there is no memory for its buffers");
  }
}
