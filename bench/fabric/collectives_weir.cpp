// A collective operation of ranks that share memory, in microseconds: the mean of many.
//
//   collectives_weir barrier|broadcast|reduce [--ranks N] [--bytes B] [--count N]
#include <weir/communicator.hpp>

#include "common/halves.hpp"
#include "common/launch.hpp"
#include "fabric/collectives.hpp"

namespace weir_bench {
namespace {

class Group {
 public:
  unsigned rank() const { return all_.rank(); }
  unsigned size() const { return all_.size(); }
  void barrier() { all_.barrier(); }
  void broadcast(std::vector<double>& numbers) { all_.broadcast(0, std::span(numbers)); }
  void reduce(std::vector<double>& numbers) { all_.reduce(std::span(numbers)); }

 private:
  weir::Fabric fabric_;
  weir::Communicator all_{fabric_};
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  try {
    const Arguments arguments(argc, argv);
    leave_cores_to_halves();
    if (std::getenv("WEIR_RANK") == nullptr) {
      return launch(static_cast<unsigned>(arguments.number("--ranks", 2)), argc, argv);
    }
    Group group;
    measure_collectives(arguments, group, "weir, shared memory");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
