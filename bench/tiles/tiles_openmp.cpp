// OpenMP tasks on plain LAPACK tiles.
#include <omp.h>

#include "common/tile_algorithms.hpp"
#include "common/tiled_cholesky.hpp"

namespace weir_bench {
namespace {

class OpenmpTiles final : public TileAlgorithms {
 public:
  explicit OpenmpTiles(const Blas& blas) : blas_(blas) { blas.set_threads(1); }

  void cholesky(TiledMatrix& matrix) override {
#pragma omp parallel
#pragma omp single
    visit_cholesky(matrix.tiles(), [&](const TileTask& task) { submit(matrix, task); });
  }

  void multiply(TiledMatrix& a, TiledMatrix& b, TiledMatrix& c) override {
#pragma omp parallel
#pragma omp single
    for (int column = 0; column < c.tiles(); ++column) {
      for (int row = 0; row < c.tiles(); ++row) {
        double* const target = c.tile(row, column);
        for (int step = 0; step < c.tiles(); ++step) {
          const double *const left = a.tile(row, step), *const right = b.tile(step, column);
          const int n = c.tile_order();
#pragma omp task depend(inout : target[0])
          blas_.gemm(n, left, right, step == 0 ? 0 : 1, target);
        }
      }
    }
  }

  std::string config() const override {
    return "GCC's libgomp, " + std::to_string(omp_get_max_threads()) +
           " threads, tile kernels of " + blas_.description();
  }

 private:
  void submit(TiledMatrix& matrix, const TileTask& task) {
    const int n = matrix.tile_order();
    double* const target = matrix.tile(task.row, task.column);
    const double* const left = matrix.tile(task.row, task.step);
    const double* const right = matrix.tile(task.column, task.step);
    switch (task.kernel) {
      case TileKernel::potrf:
#pragma omp task depend(inout : target[0]) priority(3)
        blas_.potrf(n, target, n);
        return;
      case TileKernel::trsm:
#pragma omp task depend(in : right[0]) depend(inout : target[0]) priority(2)
        blas_.trsm(n, right, target);
        return;
      case TileKernel::syrk:
#pragma omp task depend(in : left[0]) depend(inout : target[0]) priority(1)
        blas_.syrk(n, left, target);
        return;
      case TileKernel::gemm:
#pragma omp task depend(in : left[0], right[0]) depend(inout : target[0])
        blas_.gemm_transposed(n, left, right, target);
        return;
    }
  }

  const Blas& blas_;
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [argv](const Arguments& arguments) {
    OpenmpTiles algorithms(Blas::open(argv));
    return measure_tiles(algorithms, arguments);
  });
}
