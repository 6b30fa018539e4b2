// Empty actions in weir.
#include <weir/weir.hpp>

#include "common/task_shapes.hpp"
#include "common/weir_cells.hpp"

namespace weir_bench {
namespace {

constexpr std::size_t cholesky_streams = 8;

class WeirTasks final : public TaskShapes {
 public:
  explicit WeirTasks(const Arguments& arguments)
      : domains_(arguments.text("--domains", "host")),
        runtime_(domains_),
        kernel_(runtime_.kernel("empty", [](weir::Call&) { empty_task(); })),
        places_(make_places(static_cast<std::size_t>(arguments.number("--places", 1)))) {
    for (std::size_t index = 0; index < cholesky_streams; ++index) {
      streams_.push_back(places_[index % places_.size()].stream());
    }
  }

  double independent(long tasks) override {
    weir_compute compute = compute_of(nullptr, 0);
    return timed([&] {
      for (long task = 0; task < tasks; ++task) enqueue(0, compute, nullptr);
    });
  }

  double operands(long tasks) override {
    const weir::Buffer& cells = cells_.of(runtime_, static_cast<std::size_t>(tasks));
    weir_operand operand = WeirCells::cell(cells, 0, WEIR_ACCESS_READ_WRITE);
    const weir_compute compute = compute_of(&operand, 1);
    return timed([&] {
      for (long task = 0; task < tasks; ++task, operand.region.offset += WeirCells::bytes) {
        enqueue(0, compute, nullptr);
      }
    });
  }

  double chain(long tasks) override {
    const weir::Buffer& cells = cells_.of(runtime_, 1);
    const weir_operand operand = WeirCells::cell(cells, 0, WEIR_ACCESS_READ_WRITE);
    const weir_compute compute = compute_of(&operand, 1);
    return timed([&] {
      for (long task = 0; task < tasks; ++task) enqueue(0, compute, nullptr);
    });
  }

  double cross(long tasks) override {
    const weir::Buffer& cells = cells_.of(runtime_, 2);
    const weir_operand operands[2] = {WeirCells::cell(cells, 0, WEIR_ACCESS_READ_WRITE),
                                      WeirCells::cell(cells, 1, WEIR_ACCESS_READ_WRITE)};
    const weir_compute computes[2] = {compute_of(&operands[0], 1), compute_of(&operands[1], 1)};
    weir_event last[2] = {WEIR_EVENT_INIT, WEIR_EVENT_INIT};
    return timed([&] {
      for (long task = 0; task < tasks; ++task) {
        const std::size_t mine = static_cast<std::size_t>(task & 1);
        const long link = task / 2;
        const bool meets = link > 0 && link % cross_every == 0;
        if (meets) {
          weir::check(weir_stream_wait_event(streams_[mine].handle(), &last[1 - mine]));
        }
        const bool awaited = meets || (link + 1) % cross_every == 0;
        enqueue(mine, computes[mine], awaited ? &last[mine] : nullptr);
      }
    });
  }

  /// Row r of tiles belongs to stream r % 8. Each stream waits for the tiles of the others once a
  /// step for the diagonal one and once for the rest of the panel: inside the stream, and only what
  /// touches these tiles waits.
  double cholesky(int tiles) override {
    const weir::Buffer& matrix = cells_.of(runtime_, static_cast<std::size_t>(packed_tiles(tiles)));
    std::vector<Panel> waits(cholesky_streams);
    return timed([&] {
      visit_cholesky(tiles, [&](const TileTask& task) {
        const std::size_t stream = stream_of(task.row);
        if (task.kernel == TileKernel::trsm && task.row == task.step + 1) await(waits);
        if (task.kernel == TileKernel::syrk && task.row == task.step + 1) await(waits);
        const TileReads reads = reads_of(task);
        weir_operand operands[3];
        for (std::size_t index = 0; index < reads.count; ++index) {
          operands[index] = WeirCells::cell(matrix, static_cast<std::size_t>(reads.tile[index]),
                                            WEIR_ACCESS_READ);
        }
        operands[reads.count] = WeirCells::cell(matrix, static_cast<std::size_t>(target_of(task)),
                                                WEIR_ACCESS_READ_WRITE);
        const bool last = task.column == task.step;  // potrf or trsm: the tile is done
        weir_event done = WEIR_EVENT_INIT;
        enqueue(stream, compute_of(operands, reads.count + 1), last ? &done : nullptr);
        if (!last) return;
        for (std::size_t other = 0; other < cholesky_streams; ++other) {
          if (other != stream) waits[other].add(operands[reads.count], done);
        }
      });
    });
  }

  std::string config() const override {
    std::size_t workers = 0;
    for (const weir::Place& place : places_) workers += place.cores();
    return domains_ + ": " + std::to_string(places_.size()) + " place(s), " +
           std::to_string(workers) + " workers and the calling thread";
  }

 private:
  /// Finished tiles of a panel, and the events that say so.
  struct Panel {
    std::vector<weir_operand> operands;
    std::vector<weir_event> events;

    void add(const weir_operand& operand, const weir_event& event) {
      operands.push_back(operand);
      events.push_back(event);
    }
    void clear() {
      operands.clear();
      events.clear();
    }
  };

  static std::size_t stream_of(int row) { return static_cast<std::size_t>(row) % cholesky_streams; }

  std::vector<weir::Place> make_places(std::size_t count) const {
    const weir::Domain domain = runtime_.domain(0);
    return domain.partition(count, count > domain.info().cores);
  }

  weir_compute compute_of(const weir_operand* operands, std::size_t count) const {
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel = kernel_.handle();
    compute.operands = operands;
    compute.operand_count = count;
    return compute;
  }

  void enqueue(std::size_t stream, const weir_compute& compute, weir_event* event) const {
    weir::check(weir_stream_compute(streams_[stream].handle(), &compute, event));
  }

  /// Makes every stream wait for the tiles of the others that were finished since the last call.
  void await(std::vector<Panel>& panels) const {
    for (std::size_t stream = 0; stream < panels.size(); ++stream) {
      Panel& panel = panels[stream];
      if (panel.events.empty()) continue;
      weir_sync sync = WEIR_SYNC_INIT;
      sync.events = panel.events.data();
      sync.event_count = panel.events.size();
      sync.operands = panel.operands.data();
      sync.operand_count = panel.operands.size();
      sync.scope = WEIR_SYNC_SCOPE_OPERANDS;
      weir::check(weir_stream_sync(streams_[stream].handle(), &sync, nullptr));
      panel.clear();
    }
  }

  template <class Submit>
  double timed(Submit&& submit) const {
    return time_of([&] {
      submit();
      runtime_.synchronize();
    });
  }

  std::string domains_;
  weir::Runtime runtime_;
  weir::Kernel kernel_;
  std::vector<weir::Place> places_;
  std::vector<weir::Stream> streams_;
  WeirCells cells_;
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) {
    WeirTasks tasks(arguments);
    return measure_shape(tasks, arguments);
  });
}
