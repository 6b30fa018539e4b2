// A straw man: the least that runs these programs. It matches addresses exactly, keeps ready tasks
// in one queue under a spin lock, and its threads spin for ever. No regions, failures or sleep.
#include <atomic>
#include <deque>
#include <thread>

#include <immintrin.h>

#include "common/task_shapes.hpp"

namespace weir_bench {
namespace {

class SpinLock {
 public:
  void lock() {
    while (taken_.exchange(true, std::memory_order_acquire)) _mm_pause();
  }
  void unlock() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

struct Task {
  std::atomic<int> waits{1};  // predecessors, and the submission itself
  SpinLock lock;              // of the rest
  bool finished = false;
  int followers = 0;
  Task* first_followers[4];
  std::vector<Task*> more_followers;

  void add_follower(Task* task) {
    if (followers < 4) {
      first_followers[followers++] = task;
    } else {
      more_followers.push_back(task);
    }
  }
};

/// Last writer and the readers since, of one datum.
struct Cell {
  Task* writer = nullptr;
  std::vector<Task*> readers;
};

class Scheduler {
 public:
  Scheduler() : worker_([this] { work(); }) {}
  ~Scheduler() {
    stop_ = true;
    worker_.join();
  }
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void read(Task& task, Cell& cell) {
    order(cell.writer, task);
    cell.readers.push_back(&task);
  }
  void write(Task& task, Cell& cell) {
    if (cell.readers.empty()) order(cell.writer, task);
    for (Task* reader : cell.readers) order(reader, task);
    cell.readers.clear();
    cell.writer = &task;
  }
  void submit(Task& task) { release(task); }

  /// Helps until `count` tasks are done.
  void finish(long count) {
    while (done_.load(std::memory_order_acquire) < count) run_one();
    done_ = 0;
  }

 private:
  static void order(Task* before, Task& after) {
    if (before == nullptr || before == &after) return;
    before->lock.lock();
    if (!before->finished) {
      after.waits.fetch_add(1, std::memory_order_relaxed);
      before->add_follower(&after);
    }
    before->lock.unlock();
  }

  void release(Task& task) {
    if (task.waits.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    queue_lock_.lock();
    ready_.push_back(&task);
    queue_lock_.unlock();
    ready_count_.fetch_add(1, std::memory_order_release);
  }

  void run_one() {
    Task* const task = take();
    if (task == nullptr) return _mm_pause();
    empty_task();
    task->lock.lock();
    task->finished = true;
    task->lock.unlock();
    for (int index = 0; index < task->followers; ++index) release(*task->first_followers[index]);
    for (Task* follower : task->more_followers) release(*follower);
    done_.fetch_add(1, std::memory_order_release);
  }

  Task* take() {
    if (ready_count_.load(std::memory_order_acquire) <= 0) return nullptr;
    queue_lock_.lock();
    Task* task = nullptr;
    if (!ready_.empty()) {
      task = ready_.front();
      ready_.pop_front();
    }
    queue_lock_.unlock();
    if (task != nullptr) ready_count_.fetch_sub(1, std::memory_order_relaxed);
    return task;
  }

  void work() {
    while (!stop_.load(std::memory_order_relaxed)) run_one();
  }

  SpinLock queue_lock_;
  std::deque<Task*> ready_;
  alignas(64) std::atomic<long> ready_count_{0};
  alignas(64) std::atomic<long> done_{0};
  std::atomic<bool> stop_{false};
  std::thread worker_;
};

class StrawManTasks final : public TaskShapes {
 public:
  double independent(long tasks) override {
    return timed(tasks, [&](Task&, long) {});
  }
  double operands(long tasks) override {
    std::vector<Cell> cells(static_cast<std::size_t>(tasks));
    return timed(tasks, [&](Task& task, long index) {
      scheduler_.write(task, cells[static_cast<std::size_t>(index)]);
    });
  }
  double chain(long tasks) override {
    Cell cell;
    return timed(tasks, [&](Task& task, long) { scheduler_.write(task, cell); });
  }
  double cross(long tasks) override {
    Cell cells[2];
    return timed(tasks, [&](Task& task, long index) {
      const long link = index / 2;
      if (link > 0 && link % cross_every == 0) scheduler_.read(task, cells[1 - (index & 1)]);
      scheduler_.write(task, cells[index & 1]);
    });
  }
  double cholesky(int tiles) override {
    std::vector<Cell> cells(static_cast<std::size_t>(packed_tiles(tiles)));
    std::vector<TileTask> program;
    visit_cholesky(tiles, [&](const TileTask& task) { program.push_back(task); });
    const auto cell = [&](int tile) -> Cell& { return cells[static_cast<std::size_t>(tile)]; };
    return timed(static_cast<long>(program.size()), [&](Task& task, long index) {
      const TileTask& step = program[static_cast<std::size_t>(index)];
      const TileReads reads = reads_of(step);
      for (std::size_t read = 0; read < reads.count; ++read) {
        scheduler_.read(task, cell(reads.tile[read]));
      }
      scheduler_.write(task, cell(target_of(step)));
    });
  }
  std::string config() const override {
    return "exact addresses, one spin-locked queue, 1 worker and the calling thread, spinning";
  }

 private:
  /// Making the tasks counts, freeing them does not.
  template <class Declare>
  double timed(long count, Declare&& declare) {
    std::deque<Task> tasks;
    return time_of([&] {
      for (long index = 0; index < count; ++index) {
        Task& task = tasks.emplace_back();
        declare(task, index);
        scheduler_.submit(task);
      }
      scheduler_.finish(count);
    });
  }

  Scheduler scheduler_;
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) {
    StrawManTasks tasks;
    return measure_shape(tasks, arguments);
  });
}
