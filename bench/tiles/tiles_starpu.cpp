// StarPU tasks on plain LAPACK tiles.
#include <array>
#include <map>

#include "common/starpu_session.hpp"
#include "common/tile_algorithms.hpp"
#include "common/tiled_cholesky.hpp"

namespace weir_bench {
namespace {

const Blas* tile_blas = nullptr;  // of the codelets

double* tile_of(void* buffer) { return reinterpret_cast<double*>(STARPU_MATRIX_GET_PTR(buffer)); }
int order_of(void* buffer) { return static_cast<int>(STARPU_MATRIX_GET_NX(buffer)); }

void run_potrf(void** buffers, void*) {
  const int n = order_of(buffers[0]);
  tile_blas->potrf(n, tile_of(buffers[0]), n);
}
void run_trsm(void** buffers, void*) {
  tile_blas->trsm(order_of(buffers[0]), tile_of(buffers[0]), tile_of(buffers[1]));
}
void run_syrk(void** buffers, void*) {
  tile_blas->syrk(order_of(buffers[0]), tile_of(buffers[0]), tile_of(buffers[1]));
}
void run_update(void** buffers, void*) {
  tile_blas->gemm_transposed(order_of(buffers[0]), tile_of(buffers[0]), tile_of(buffers[1]),
                             tile_of(buffers[2]));
}
void run_gemm(void** buffers, void*) {
  tile_blas->gemm(order_of(buffers[0]), tile_of(buffers[0]), tile_of(buffers[1]), 1,
                  tile_of(buffers[2]));
}

class StarpuTiles final : public TileAlgorithms {
 public:
  explicit StarpuTiles(const Blas& blas) {
    tile_blas = &blas;
    blas.set_threads(1);
    prepare_codelet(potrf_, "potrf", run_potrf, 0);
    prepare_codelet(trsm_, "trsm", run_trsm, 1);
    prepare_codelet(syrk_, "syrk", run_syrk, 1);
    prepare_codelet(update_, "update", run_update, 2);
    prepare_codelet(gemm_, "gemm", run_gemm, 2);
    starpu_codelet* const codelets[] = {&potrf_, &trsm_, &syrk_, &update_, &gemm_};
    for (std::size_t i = 0; i < models_.size(); ++i) measure_codelet(*codelets[i], models_[i]);
  }

  void adopt(TiledMatrix& matrix) override {
    auto& handles = handles_[&matrix];
    const auto n = static_cast<std::uint32_t>(matrix.tile_order());
    for (int row = 0; row < matrix.tiles(); ++row) {
      for (int column = 0; column < matrix.tiles(); ++column) {
        starpu_matrix_data_register(&handles.emplace_back(), STARPU_MAIN_RAM,
                                    reinterpret_cast<uintptr_t>(matrix.tile(row, column)), n, n, n,
                                    sizeof(double));
      }
    }
  }
  void release(TiledMatrix& matrix) override {
    for (starpu_data_handle_t handle : handles_[&matrix]) starpu_data_unregister(handle);
    handles_.erase(&matrix);
  }
  void acquire(TiledMatrix& matrix) override {
    for (starpu_data_handle_t handle : handles_[&matrix]) {
      check_starpu(starpu_data_acquire(handle, STARPU_RW));
    }
  }
  void hand_back(TiledMatrix& matrix) override {
    for (starpu_data_handle_t handle : handles_[&matrix]) starpu_data_release(handle);
  }

  void cholesky(TiledMatrix& a) override {
    visit_cholesky(a.tiles(), [&](const TileTask& task) { submit(a, task); });
    check_starpu(starpu_task_wait_for_all());
  }

  void multiply(TiledMatrix& a, TiledMatrix& b, TiledMatrix& c) override {
    for (int column = 0; column < c.tiles(); ++column) {
      for (int row = 0; row < c.tiles(); ++row) {
        for (int step = 0; step < c.tiles(); ++step) {
          check_starpu(starpu_task_insert(&gemm_, STARPU_R, handle(a, row, step), STARPU_R,
                                          handle(b, step, column), STARPU_RW,
                                          handle(c, row, column), 0));
        }
      }
    }
    check_starpu(starpu_task_wait_for_all());
  }

  std::string config() const override {
    return session_.describe() + ", tile kernels of " + tile_blas->description();
  }

 private:
  starpu_data_handle_t handle(TiledMatrix& matrix, int row, int column) {
    return handles_[&matrix][static_cast<std::size_t>(row * matrix.tiles() + column)];
  }

  void submit(TiledMatrix& matrix, const TileTask& task) {
    const auto target = handle(matrix, task.row, task.column);
    const auto left = handle(matrix, task.row, task.step);
    const auto right = handle(matrix, task.column, task.step);
    switch (task.kernel) {
      case TileKernel::potrf:
        return check_starpu(
            starpu_task_insert(&potrf_, STARPU_PRIORITY, STARPU_MAX_PRIO, STARPU_RW, target, 0));
      case TileKernel::trsm:
        return check_starpu(starpu_task_insert(&trsm_, STARPU_PRIORITY, STARPU_MAX_PRIO, STARPU_R,
                                               right, STARPU_RW, target, 0));
      case TileKernel::syrk:
        return check_starpu(starpu_task_insert(&syrk_, STARPU_R, left, STARPU_RW, target, 0));
      case TileKernel::gemm:
        return check_starpu(
            starpu_task_insert(&update_, STARPU_R, left, STARPU_R, right, STARPU_RW, target, 0));
    }
  }

  std::array<starpu_perfmodel, 5> models_{};  // of the codelets: StarPU keeps them when it ends
  StarpuSession session_;
  starpu_codelet potrf_, trsm_, syrk_, update_, gemm_;
  std::map<const TiledMatrix*, std::vector<starpu_data_handle_t>> handles_;
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [argv](const Arguments& arguments) {
    StarpuTiles algorithms(Blas::open(argv));
    return measure_tiles(algorithms, arguments);
  });
}
