// What the report says about the software under test.
#include <weir/weir.hpp>

#include "common/blas.hpp"
#include "common/program.hpp"

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [argv](const Arguments&) -> nlohmann::json {
    return {{"weir", weir_version()},
            {"compiler", "g++ " __VERSION__},
            {"blas", Blas::open(argv).description()}};
  });
}
