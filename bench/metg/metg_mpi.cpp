// Task Bench's patterns in plain MPI, without a runtime: each rank has a block of the points, one
// rank a core. Before a step it receives the outputs that its tasks read; after it, it sends those
// that others read.
//
//   metg_mpi PATTERNS [--ranks N] ...   default: a rank for each core
#include <cstdio>

#define OMPI_SKIP_MPICXX 1  // the C interface is enough
#include <mpi.h>

#include "common/halves.hpp"
#include "common/mpirun.hpp"
#include "metg/driver.hpp"

namespace weir_bench::metg {
namespace {

/// An output of a step that travels.
struct Message {
  std::uint32_t point;
  int rank;  ///< the other one
};

class MpiDriver final : public PlainDriver {
 public:
  MpiDriver() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }

  void prepare(const Problem& problem) override {
    PlainDriver::prepare(problem);
    received_.assign(problem.steps(), {});
    sent_.assign(problem.steps(), {});
    sends_.assign(problem.settings().fields, {});
    problem.graph().for_each_task([&](std::uint32_t step, std::uint32_t point) {
      for (std::uint32_t read : problem.graph().predecessors(step, point)) {
        const int owner = owner_of(read), reader = owner_of(point);
        if (owner == reader) continue;
        if (reader == rank_) add(received_[step], {read, owner});
        if (owner == rank_) add(sent_[step - 1], {read, reader});
      }
    });
  }

  double run() override {
    outputs().clear();
    MPI_Barrier(MPI_COMM_WORLD);
    const double seconds = time_of([&] { run_tasks(); });
    problem().verify_end([&](std::size_t number) -> const void* {
      const std::size_t output = number / problem().settings().fields % problem().width();
      const bool mine = owner_of(static_cast<std::uint32_t>(output)) == rank_;
      return mine ? outputs().at(number) : nullptr;
    });
    return seconds;
  }

  double largest(double value) const override {
    double found = 0;
    MPI_Allreduce(&value, &found, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return found;
  }
  std::size_t cores() const override { return static_cast<std::size_t>(ranks_); }

  std::string config() const override {
    return "Open MPI, " + std::to_string(ranks_) + " ranks, a block of points each";
  }

 protected:
  void run_tasks() override {
    for (std::uint32_t step = 0; step < problem().steps(); ++step) run_step(step);
    for (std::vector<MPI_Request>& requests : sends_) wait_for(requests);
  }

 private:
  int owner_of(std::uint32_t point) const {
    return static_cast<int>(std::uint64_t{point} * static_cast<unsigned>(ranks_) /
                            problem().width());
  }

  static void add(std::vector<Message>& messages, const Message& message) {
    for (const Message& each : messages) {
      if (each.point == message.point && each.rank == message.rank) return;
    }
    messages.push_back(message);
  }

  static void wait_for(std::vector<MPI_Request>& requests) {
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    requests.clear();
  }

  void* memory_of(const TaskId& id) const { return outputs().at(problem().output_of(id)); }
  int bytes() const { return static_cast<int>(problem().settings().output_bytes); }
  int tag_of(const TaskId& id) const {
    return static_cast<int>(id.graph * problem().width() + id.point);
  }

  void run_step(std::uint32_t step) {
    const std::uint32_t graphs = problem().settings().graphs;
    for (const Message& message : received_[step]) {
      for (std::uint32_t graph = 0; graph < graphs; ++graph) {
        const TaskId id = {graph, step - 1, message.point};
        MPI_Irecv(memory_of(id), bytes(), MPI_BYTE, message.rank, tag_of(id), MPI_COMM_WORLD,
                  &receives_.emplace_back());
      }
    }
    std::vector<MPI_Request>& sends = sends_[step % problem().settings().fields];
    wait_for(sends);  // their outputs are written again
    wait_for(receives_);
    const Points here = problem().graph().points(step);
    for (std::uint32_t graph = 0; graph < graphs; ++graph) {
      for (std::uint32_t point = here.first; point < here.first + here.count; ++point) {
        if (owner_of(point) == rank_) execute({graph, step, point});
      }
    }
    for (const Message& message : sent_[step]) {
      for (std::uint32_t graph = 0; graph < graphs; ++graph) {
        const TaskId id = {graph, step, message.point};
        MPI_Isend(memory_of(id), bytes(), MPI_BYTE, message.rank, tag_of(id), MPI_COMM_WORLD,
                  &sends.emplace_back());
      }
    }
  }

  int rank_ = 0, ranks_ = 1;
  std::vector<std::vector<Message>> received_, sent_;  ///< by step: of the step before; of this one
  std::vector<MPI_Request> receives_;
  std::vector<std::vector<MPI_Request>> sends_;  ///< by field
};

/// Binds this process to a core of its own, as mpirun does not when it has to oversubscribe.
void take_core() {
  const std::vector<std::size_t> cores = allowed_cores();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  bind_to(cores[static_cast<std::size_t>(rank) % cores.size()]);
}

int run(int count, char** values) {
  const Arguments arguments(count, values);
  if (!under_mpirun()) {
    leave_cores_to_halves();
    setenv("OMPI_MCA_orte_execute_quiet", "1", 0);  // a message of a rank is the last one
    const long ranks = arguments.number("--ranks", static_cast<long>(allowed_cores().size()));
    if (ranks < 1) throw std::invalid_argument("--ranks has to be at least 1");
    become_mpirun(arguments, count, values, static_cast<std::size_t>(ranks));
  }
  MPI_Init(&count, &values);
  take_core();
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  {
    MpiDriver driver;
    const nlohmann::json line = measure_driver(driver, arguments);
    if (rank == 0) std::printf("%s\n", line.dump().c_str());
  }
  MPI_Finalize();
  return 0;
}

}  // namespace
}  // namespace weir_bench::metg

int main(int argc, char** argv) {
  try {
    return weir_bench::metg::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
