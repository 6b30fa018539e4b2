// Sequences of calls on a fabric of one rank, its communicators, windows, grids, halos and
// conveyors: each byte of an input is a choice, right or wrong. Each call must end with a
// documented status and a message of one line; windows hold what was put, and tables of conveyors
// what was added. No handle is used that is not live.
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include <weir/weir.h>

#include "choices.hpp"
#include "target.hpp"

namespace {

using weir::fuzz::Choices;
using weir::fuzz::require;

constexpr std::size_t kMostCalls = 120, kObjects = 3, kBytes = 4096, kWords = 64;
constexpr std::int64_t kLong = 60'000'000'000;

constexpr std::int64_t kTimeouts[] = {kLong, kLong, 0, 1, 1000};
constexpr unsigned kRanks[] = {0, 0, 0, 0, 0, 1, UINT32_MAX};
constexpr std::size_t kSizes[] = {64, 8, 4096, 1000, 0, 1, SIZE_MAX};
constexpr std::size_t kOffsets[] = {0, 8, 16, 56, 1, 992, 4088, 4095, SIZE_MAX, SIZE_MAX - 7};
constexpr std::size_t kAmounts[] = {8, 1, 64, 0, 1000, 4096};
constexpr std::size_t kCells[] = {8, 1, 2, 3, 5, 0, SIZE_MAX};
constexpr std::size_t kBlocks[] = {1, 2, 0, 3, 9, SIZE_MAX};
constexpr std::size_t kWidths[] = {1, 0, 2, 3, 100, SIZE_MAX};
constexpr std::size_t kElements[] = {8, 4, 1, 16, 0};
constexpr std::int64_t kColors[] = {0, 0, 7, WEIR_NO_COLOR, INT64_MIN, INT64_MAX};
constexpr unsigned kRoots[] = {0, 0, 0, WEIR_ALL_RANKS, 1};
constexpr std::size_t kItems[] = {8, 16, 64, 256, 0, 7, 264, SIZE_MAX};

weir_status ended(weir_status status) {
  require(status >= WEIR_STATUS_OK && status < WEIR_STATUS_INTERNAL, "a documented status");
  if (status != WEIR_STATUS_OK) weir::fuzz::require_one_line(weir_last_error());
  return status;
}
bool worked(weir_status status) { return ended(status) == WEIR_STATUS_OK; }

struct Group {
  weir_communicator* handle = nullptr;
  bool has_failed = false;  ///< it is revoked or shrunk: its operations fail
};

struct Window {
  weir_window* handle = nullptr;
  std::vector<unsigned char> own, wanted;  ///< memory of the program's, if it is; what is in it
};

struct Halo {
  weir_halo* handle = nullptr;
  std::vector<std::vector<unsigned char>> memory;
};

struct Conveyor {
  weir_conveyor* handle = nullptr;
  weir_producer* producer = nullptr;
  std::array<std::int64_t, kWords> table{};
  std::int64_t added = 0;
  bool written = false;  ///< by other than adds
};

weir_status take_items(const weir_items* items) {
  return items->count % 7 == 6 ? WEIR_STATUS_KERNEL_ERROR : WEIR_STATUS_OK;
}

void receive(unsigned from, const void*, std::size_t, void* received) {
  require(from == 0, "there is one rank");
  ++*static_cast<std::size_t*>(received);
}

class Interpreter {
 public:
  void run(Choices in) {
    weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
    options.transport = "self";
    options.progress = "caller";
    require(worked(weir_fabric_open(&options, &fabric_)), "a rank alone joins");
    for (std::size_t call = 0; call < kMostCalls && !in.exhausted(); ++call) step(in);
    for (auto& conveyor : conveyors_) end(conveyor);
    for (auto& halo : halos_) end(halo);
    for (auto& grid : grids_) weir_grid_destroy(std::exchange(grid, nullptr));
    for (auto& window : windows_) end(window);
    for (Group& group : groups_) weir_communicator_destroy(std::exchange(group, {}).handle);
    weir_fabric_close(fabric_);
  }

 private:
  void step(Choices& in) {
    const std::size_t at = in.below(kObjects);
    switch (in.below(11)) {
      case 0: return together(in);
      case 1: return messages(in);
      case 2: return open_window(in, windows_[at]);
      case 3:
      case 4: return use_window(in, windows_[at]);
      case 5: return make_grid(in, grids_[at]);
      case 6: return use_halo(in, halos_[at], grids_[in.below(kObjects)]);
      case 7: return open_conveyor(in, conveyors_[at]);
      case 8: return make_group(in, groups_[at], groups_[in.below(kObjects)]);
      case 9: return use_group(in, groups_[at]);
      default: return use_conveyor(in, conveyors_[at]);
    }
  }

  void together(Choices& in) {
    std::array<std::int64_t, 4> numbers{1, 2, 3, 4};
    std::array<double, 4> values{};
    const auto op = static_cast<weir_fabric_op>(in.below(4));
    const std::size_t count = in.below(5);
    switch (in.below(5)) {
      case 0: ended(weir_fabric_barrier(fabric_, in.from(kTimeouts))); break;
      case 1:
        ended(weir_fabric_reduce_int64(fabric_, in.one_in(20) ? nullptr : numbers.data(), count, op,
                                       kLong));
        require(numbers[3] == 4, "what one rank has is the result");
        break;
      case 2: ended(weir_fabric_reduce_double(fabric_, values.data(), count, op, kLong)); break;
      case 3:
        ended(weir_fabric_broadcast(fabric_, in.from(kRanks), numbers.data(), 8 * count, kLong));
        break;
      default: require(weir_fabric_is_alive(fabric_, 0), "a rank lives for itself"); break;
    }
  }

  // ---- Communicators ----

  void make_group(Choices& in, Group& group, Group& parent) {
    Group made;
    switch (in.below(4)) {
      case 0:
        ended(weir_communicator_shrink(parent.handle, kLong, &made.handle));
        require(parent.handle == nullptr || made.handle != nullptr, "one rank is left");
        parent.has_failed = true;
        break;
      case 1: ended(weir_communicator_split_by_node(parent.handle, kLong, &made.handle)); break;
      default: {
        const bool of_all = in.one_in(2);
        const bool works = of_all || (parent.handle != nullptr && !parent.has_failed);
        const std::int64_t color = in.from(kColors);
        weir_communicator* const from = of_all ? weir_fabric_communicator(fabric_) : parent.handle;
        const bool done =
            worked(weir_communicator_split(from, color, in.byte(), kLong, &made.handle));
        require(done == (works && color >= WEIR_NO_COLOR), "one rank splits its group");
        require((made.handle != nullptr) == (done && color >= 0), "a color has a group");
      }
    }
    weir_communicator_destroy(std::exchange(group, made).handle);
  }

  void use_group(Choices& in, Group& group) {
    std::array<std::int32_t, 16> own, all{};
    own.fill(in.byte());
    const std::size_t bytes = in.below(sizeof own + 1), expected = in.one_in(9) ? 1 : bytes;
    const unsigned root = in.from(kRoots);
    const std::int64_t timeout = in.from(kTimeouts);
    weir_communicator* const of = group.handle;
    void* const into = in.one_in(20) ? nullptr : all.data();
    weir_status status = WEIR_STATUS_OK;
    switch (in.below(8)) {
      case 0: return note(group, weir_communicator_barrier(of, timeout));
      case 1: return note(group, weir_communicator_broadcast(of, root, into, bytes, timeout));
      case 2: return reduce(in, group, root);
      case 3:
        if (of == nullptr || !in.one_in(4)) return;
        group.has_failed = true;
        require(worked(weir_communicator_revoke(of)), "a communicator is revoked");
        return;
      case 4: status = weir_communicator_gather(of, root, own.data(), into, bytes, timeout); break;
      case 5: status = weir_communicator_scatter(of, root, own.data(), into, bytes, timeout); break;
      case 6: status = weir_communicator_all_to_all(of, own.data(), into, bytes, timeout); break;
      default:
        status = weir_communicator_all_to_all_v(of, own.data(), &bytes, into, &expected, timeout);
        break;
    }
    note(group, status);
    require(status != WEIR_STATUS_OK || bytes == 0 || std::memcmp(into, own.data(), bytes) == 0,
            "what one rank has is the result");
  }

  void reduce(Choices& in, Group& group, unsigned root) {
    std::array<std::int64_t, 8> values;
    values.fill(in.byte());
    const std::array<std::int64_t, 8> before = values;
    weir_reduction reduction = WEIR_REDUCTION_INIT;
    reduction.type = static_cast<weir_number>(in.below(11));
    reduction.op = static_cast<weir_fabric_op>(in.below(9));
    reduction.size = in.below(9);
    if (in.one_in(3)) reduction.combine = [](void*, const void*, std::size_t, void*) {};
    const std::size_t count = in.below(9), kind = in.below(3);
    weir_communicator* const of = group.handle;
    note(group, kind == 0 ? weir_communicator_scan(of, values.data(), count, &reduction, kLong)
                : kind == 1
                    ? weir_communicator_exclusive_scan(of, values.data(), count, &reduction, kLong)
                    : weir_communicator_reduce(of, root, values.data(), count, &reduction, kLong));
    require(values == before, "what one rank has is the result");
  }

  /// Operations of one rank do not wait: they fail for wrong arguments, or as the group does.
  static void note(const Group& group, weir_status status) {
    ended(status);
    require(status != WEIR_STATUS_OK || !group.has_failed, "operations fail after a failure");
    require(status == WEIR_STATUS_OK || status == WEIR_STATUS_INVALID_ARGUMENT || group.has_failed,
            "operations of one rank work");
  }

  void messages(Choices& in) {
    const std::array<unsigned char, kBytes> message{};
    switch (in.below(4)) {
      case 0:
        ended(weir_fabric_listen(fabric_, in.one_in(3) ? nullptr : receive, &received_));
        break;
      case 1: ended(weir_fabric_progress(fabric_, in.from({0, 1, 1000}))); break;
      default:
        ended(weir_fabric_send(fabric_, in.from(kRanks), in.one_in(20) ? nullptr : message.data(),
                               in.from(kAmounts)));
        break;
    }
  }

  // ---- Windows ----

  void open_window(Choices& in, Window& window) {
    end(window);
    const std::size_t bytes = in.from(kSizes);
    if (bytes <= kBytes && in.one_in(2)) window.own.assign(bytes, 0);
    unsigned char* const memory = window.own.empty() ? nullptr : window.own.data();
    if (!worked(weir_window_create(fabric_, memory, bytes, WEIR_FOREVER, &window.handle))) return;
    window.wanted.assign(bytes, 0);
  }

  void use_window(Choices& in, Window& window) {
    if (window.handle == nullptr) return;
    const unsigned rank = in.from(kRanks);
    const std::size_t offset = in.from(kOffsets), bytes = in.from(kAmounts);
    const std::size_t size = window.wanted.size();
    const bool inside = rank == 0 && bytes <= size && offset <= size - bytes;
    std::array<unsigned char, kBytes> data;
    data.fill(in.byte());
    switch (in.below(4)) {
      case 0:
        if (worked(weir_window_put(window.handle, rank, offset, data.data(), bytes))) {
          require(inside, "a put is in the window");
          require(worked(weir_window_flush(window.handle, 0, kLong)), "a put is over");
          if (bytes > 0) std::memcpy(window.wanted.data() + offset, data.data(), bytes);
        }
        break;
      case 1:
        if (!worked(weir_window_get(window.handle, rank, offset, data.data(), bytes))) break;
        require(inside, "a get is in the window");
        require(worked(weir_window_flush(window.handle, 0, kLong)), "a get is over");
        require(bytes == 0 || std::memcmp(data.data(), window.wanted.data() + offset, bytes) == 0,
                "a get finds what was put");
        break;
      case 2: change(in, window, rank, offset); break;
      default: ended(weir_window_flush(window.handle, rank, in.from(kTimeouts))); break;
    }
  }

  void change(Choices& in, Window& window, unsigned rank, std::size_t offset) {
    std::int64_t old = 0, was = 0;
    const std::int64_t by = in.byte();
    const bool adds = in.one_in(2);
    const weir_status status =
        adds ? weir_window_fetch_add(window.handle, rank, offset, by, &old)
             : weir_window_compare_swap(window.handle, rank, offset, 0, by, &old);
    if (!worked(status)) return;
    unsigned char* const at = window.wanted.data() + offset;
    std::memcpy(&was, at, sizeof was);
    require(old == was, "an atomic operation returns what was there");
    const std::int64_t now = adds ? was + by : was == 0 ? by : was;
    std::memcpy(at, &now, sizeof now);
  }

  void end(Window& window) {
    if (window.handle != nullptr) {
      require(worked(weir_window_flush(window.handle, 0, kLong)), "what was put is over");
      const void* const memory = weir_window_memory(window.handle);
      require(window.wanted.empty() ||
                  std::memcmp(memory, window.wanted.data(), window.wanted.size()) == 0,
              "a window holds what was put");
    }
    weir_window_destroy(window.handle);
    window = {};
  }

  // ---- Grids ----

  void make_grid(Choices& in, weir_grid*& grid) {
    weir_grid_destroy(std::exchange(grid, nullptr));
    weir_grid_options options = WEIR_GRID_OPTIONS_INIT;
    const std::array<double, 3> weights{1, in.one_in(5) ? -1.0 : 2.5, 1};
    options.dimensions = 1 + static_cast<unsigned>(in.below(4));
    options.ranks = in.one_in(10) ? 2 : 1;
    for (std::size_t d = 0; d < 3; ++d) {
      options.cells[d] = in.from(kCells);
      options.blocks[d] = in.from(kBlocks);
      options.periodic[d] = in.one_in(3);
      const bool weighted = options.blocks[d] <= weights.size() && in.one_in(4);
      options.weights[d] = weighted ? weights.data() : nullptr;
    }
    ended(weir_grid_create(&options, &grid));
  }

  void use_halo(Choices& in, Halo& halo, const weir_grid* grid) {
    switch (in.below(4)) {
      case 0: return make_halo(in, halo, grid);
      case 1:
        if (halo.handle != nullptr) ended(weir_halo_start(halo.handle));
        return;
      case 2:
        if (halo.handle != nullptr) ended(weir_halo_finish(halo.handle, in.from(kTimeouts)));
        return;
      default: {
        weir_halo_info info = WEIR_HALO_INFO_INIT;
        if (halo.handle != nullptr) ended(weir_halo_get_info(halo.handle, &info));
      }
    }
  }

  void make_halo(Choices& in, Halo& halo, const weir_grid* grid) {
    end(halo);
    weir_grid_info info = WEIR_GRID_INFO_INIT;
    if (grid == nullptr || !worked(weir_grid_get_info(grid, &info, nullptr, 0))) return;
    std::vector<weir_grid_block> blocks(info.block_count);
    ended(weir_grid_get_info(grid, &info, blocks.data(), blocks.size()));
    const weir_halo_field field = {in.from(kElements), in.one_in(2) ? "cell" : nullptr};
    weir_halo_options options = WEIR_HALO_OPTIONS_INIT;
    for (std::size_t& width : options.width) width = in.from(kWidths);
    std::vector<weir_grid_array> arrays;
    for (const weir_grid_block& block : blocks) {
      arrays.push_back(
          array_of(halo, block.cells, info.dimensions, field.element_bytes, options.width));
    }
    options.fields = &field;
    options.field_count = 1;
    options.arrays = arrays.data();
    options.array_count = arrays.size() - (in.one_in(20) ? 1 : 0);
    options.corners = in.one_in(2);
    options.check = in.one_in(3);
    ended(weir_halo_create(fabric_, grid, &options, &halo.handle));
  }

  /// Memory for a block and its halo; none for one that is wider than any block.
  static weir_grid_array array_of(Halo& halo, const weir_grid_range& cells, unsigned dimensions,
                                  std::size_t element, const std::size_t (&width)[3]) {
    std::size_t rim[3] = {}, extent[3] = {1, 1, 1};
    for (std::size_t d = 0; d < dimensions; ++d) {
      rim[d] = width[d] < 100 ? width[d] : 0;
      extent[d] = static_cast<std::size_t>(cells.end[d] - cells.begin[d]) + 2 * rim[d];
    }
    const std::size_t row = extent[0] * element, plane = extent[1] * row;
    auto& memory = halo.memory.emplace_back(extent[2] * plane + 1);
    return {memory.data() + rim[2] * plane + rim[1] * row + rim[0] * element, row, plane};
  }

  static void end(Halo& halo) {
    weir_halo_destroy(halo.handle);
    halo = {};
  }

  // ---- Conveyors ----

  void open_conveyor(Choices& in, std::unique_ptr<Conveyor>& conveyor) {
    end(conveyor);
    conveyor = std::make_unique<Conveyor>();
    const weir_conveyor_handler handler = {take_items, nullptr, 16};
    weir_conveyor_options options = WEIR_CONVEYOR_OPTIONS_INIT;
    options.memory = conveyor->table.data();
    options.bytes = sizeof conveyor->table;
    options.handlers = &handler;
    options.handler_count = 1;
    options.block_bytes = in.from({std::size_t{0}, std::size_t{1024}, std::size_t{100}, SIZE_MAX});
    options.block_items = in.below(4);
    options.blocks_in_flight = in.one_in(20) ? SIZE_MAX : in.below(3);
    options.age_ns = in.from({0, -1, 1});
    if (!worked(weir_conveyor_create(fabric_, &options, &conveyor->handle)) ||
        !worked(weir_producer_open(conveyor->handle, &conveyor->producer))) {
      end(conveyor);
    }
  }

  void use_conveyor(Choices& in, const std::unique_ptr<Conveyor>& conveyor) {
    if (conveyor == nullptr) return;
    const std::vector<unsigned char> items(8 * 256, 1);
    const unsigned rank = in.from(kRanks);
    const std::size_t count = in.below(9), item = in.from(kItems);
    std::array<std::uint64_t, 8> offsets;
    std::array<std::int64_t, 8> ones;
    for (std::uint64_t& offset : offsets) offset = in.one_in(30) ? in.byte() : 8 * in.below(kWords);
    ones.fill(1);
    switch (in.below(6)) {
      case 0:
      case 1:
        if (worked(
                weir_producer_add(conveyor->producer, rank, offsets.data(), ones.data(), count))) {
          conveyor->added += static_cast<std::int64_t>(count);
        }
        break;
      case 2:
        conveyor->written = true;
        ended(weir_producer_put(conveyor->producer, rank, offsets.data(), items.data(), item,
                                item <= 256 ? count : 1));
        break;
      case 3:
        ended(weir_producer_send(conveyor->producer, rank, static_cast<unsigned>(in.below(2)),
                                 items.data(), item, item <= 256 ? count : 1));
        break;
      case 4: ended(weir_producer_flush(conveyor->producer, in.from(kTimeouts))); break;
      default: finish(*conveyor); break;
    }
  }

  static void finish(Conveyor& conveyor) {
    weir_conveyor_info info = WEIR_CONVEYOR_INFO_INIT;
    ended(weir_conveyor_finish(conveyor.handle, kLong));  // a handler may have failed
    ended(weir_conveyor_get_info(conveyor.handle, &info));
    const std::int64_t sum =
        std::accumulate(conveyor.table.begin(), conveyor.table.end(), std::int64_t{0});
    require(conveyor.written || sum == conveyor.added, "what was added is in the table");
  }

  static void end(std::unique_ptr<Conveyor>& conveyor) {
    if (conveyor == nullptr) return;
    if (conveyor->producer != nullptr) finish(*conveyor);
    weir_producer_close(conveyor->producer);
    weir_conveyor_destroy(conveyor->handle);
    conveyor.reset();
  }

  weir_fabric* fabric_ = nullptr;
  std::size_t received_ = 0;
  std::array<Group, kObjects> groups_;
  std::array<Window, kObjects> windows_;
  std::array<weir_grid*, kObjects> grids_{};
  std::array<Halo, kObjects> halos_;
  std::array<std::unique_ptr<Conveyor>, kObjects> conveyors_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Interpreter().run({data, size});
  return 0;
}
