// Packets of a fabric that are damaged on their way.
//
// What the transport under test sends to rank 1 comes back as if rank 1 had sent it, so that it
// answers itself, and all headers and numbers are right until the input damages them. An input is a
// list of steps: a byte that says what, and those it needs.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "fabric/transport.hpp"
#include "target.hpp"

namespace {

using namespace weir::rt;
using weir::fuzz::require;

constexpr std::size_t kWindow = 256, kAround = 64;
constexpr std::byte kUntouched{0xa5};
constexpr std::size_t kPacketBytes = 256, kMostPackets = 32, kMostOperations = 64;

/// Takes bytes off the front of the input; zeros when there are none.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}
  bool exhausted() const noexcept { return left_ == 0; }
  std::uint8_t byte() noexcept {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  std::uint32_t word() noexcept {
    const std::uint32_t low = byte();
    return low | static_cast<std::uint32_t>(byte()) << 8;
  }

 private:
  const std::uint8_t* data_;
  std::size_t left_;
};

using Packet = std::vector<std::byte>;

/// Packets in flight, which the input can change.
struct Wire {
  std::deque<Packet> packets;
};

class Mirror final : public Link {
 public:
  explicit Mirror(Wire& wire) : wire_(wire) {}

  const LinkInfo& info() const noexcept override { return info_; }
  bool send(Rank, Parts parts) noexcept override {
    if (wire_.packets.size() >= kMostPackets) return false;
    Packet& packet = wire_.packets.emplace_back();
    for (const auto& part : parts) packet.insert(packet.end(), part.begin(), part.end());
    require(packet.size() <= kPacketBytes, "a packet is as large as the link allows");
    return true;
  }
  bool receive(PacketSink& sink) noexcept override {
    if (wire_.packets.empty()) return false;
    const Packet packet = std::move(wire_.packets.front());
    wire_.packets.pop_front();
    sink.packet(1, packet);
    return true;
  }
  std::uint32_t bell() const noexcept override { return 0; }
  void wait(std::uint32_t, std::int64_t) noexcept override {}
  void wake() noexcept override {}

 private:
  const LinkInfo info_{.name = "mirror", .rank = 0, .ranks = 2, .packet_bytes = kPacketBytes};
  Wire& wire_;
};

/// One operation, with memory of its own for what it gets.
struct Operation {
  std::vector<std::byte> local;
  unsigned ended = 0;
};

class Watcher final : public TransportSink {
 public:
  void arrived(Rank from, std::span<const std::byte> frame) noexcept override {
    require(from == 1, "frames are of the rank that there is");
    for (const std::byte each : frame) sum_ ^= each;
  }
  void completed(void* token, std::int64_t, Outcome outcome) noexcept override {
    ++static_cast<Operation*>(token)->ended;
    if (!outcome.ok()) weir::fuzz::require_one_line(outcome.message);
  }
  void lost(Rank rank, const std::string& why) noexcept override {
    require(rank == 1 && !lost_, "a rank is lost once");
    weir::fuzz::require_one_line(why);
    lost_ = true;
  }
  bool has_lost() const noexcept { return lost_; }

 private:
  std::byte sum_{};
  bool lost_ = false;
};

class Session {
 public:
  Session(Input input, bool sums)
      : input_(input),
        memory_(kWindow + 2 * kAround, kUntouched),
        transport_(std::make_unique<Mirror>(wire_), {.build = "fuzz",
                                                     .sends_heartbeats = false,
                                                     .lost_after_ns = 0,
                                                     .sends_checksums = sums}) {
    transport_.expose(0, memory_.data() + kAround, kWindow);
  }

  void run() {
    while (!input_.exhausted()) step();
    for (std::size_t pass = 0; pass < 4 * kMostPackets; ++pass) transport_.progress(watcher_);
    if (watcher_.has_lost()) ++weir::fuzz::refused;
    transport_.drop(1, "is dropped at the end");
    transport_.progress(watcher_);
    for (const Operation& operation : operations_) {
      require(operation.ended == 1, "every operation ends once");
    }
    for (std::size_t at = 0; at < kAround; ++at) {
      require(memory_[at] == kUntouched && memory_[kAround + kWindow + at] == kUntouched,
              "nothing is written outside of the window");
    }
  }

 private:
  void step() {
    switch (input_.byte() % 8) {
      case 0: return send_frame();
      case 1: return start(OneSidedKind::put);
      case 2: return start(OneSidedKind::get);
      case 3:
        return start(input_.byte() % 2 == 0 ? OneSidedKind::fetch_add : OneSidedKind::compare_swap);
      case 4: return damage();
      case 5: return cut();
      case 6:
        if (!wire_.packets.empty()) wire_.packets.push_back(wire_.packets.front());
        return;
      default: transport_.progress(watcher_);
    }
  }

  void send_frame() {
    if (watcher_.has_lost()) return;
    const std::vector<std::byte> frame(
        std::min<std::size_t>(input_.byte(), transport_.info().frame_bytes));
    const std::span<const std::byte> part = frame;
    transport_.send(1, std::span(&part, 1));
  }

  void start(OneSidedKind kind) {
    if (watcher_.has_lost() || operations_.size() == kMostOperations) return;
    const bool moves = kind == OneSidedKind::put || kind == OneSidedKind::get;
    const std::uint32_t window = input_.byte() % 4 == 3, offset = input_.word();
    Operation& operation = operations_.emplace_back();
    operation.local.resize(moves ? input_.word() % 1024 : sizeof(std::int64_t));
    const bool taken = transport_.start({.kind = kind,
                                         .target = 1,
                                         .window = window,
                                         .offset = offset,
                                         .local = operation.local.data(),
                                         .bytes = operation.local.size(),
                                         .operand = 1,
                                         .token = &operation});
    if (!taken) operations_.pop_back();
  }

  void damage() {
    const std::uint32_t which = input_.byte(), at = input_.byte();
    const std::byte flips{input_.byte()};
    if (wire_.packets.empty()) return;
    Packet& packet = wire_.packets[which % wire_.packets.size()];
    if (!packet.empty()) packet[at % packet.size()] ^= flips;
  }

  void cut() {
    const std::uint32_t which = input_.byte(), to = input_.byte();
    if (wire_.packets.empty()) return;
    Packet& packet = wire_.packets[which % wire_.packets.size()];
    packet.resize(std::min<std::size_t>(to, packet.size()));
  }

  Input input_;
  Wire wire_;
  Watcher watcher_;
  std::deque<Operation> operations_;
  std::vector<std::byte> memory_;
  Transport transport_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const bool sums : {false, true}) Session(Input(data, size), sums).run();
  return 0;
}
