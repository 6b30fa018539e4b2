// One threaded BLAS or LAPACK call for the whole matrix.
#include "common/tile_algorithms.hpp"

namespace weir_bench {
namespace {

class WholeMatrix final : public TileAlgorithms {
 public:
  explicit WholeMatrix(const Blas& blas) : blas_(blas) {}

  void cholesky(TiledMatrix& a) override {
    blas_.potrf(a.tile_order(), a.tile(0, 0), a.tile_order());
  }
  void multiply(TiledMatrix& a, TiledMatrix& b, TiledMatrix& c) override {
    // c is zero, and weir does not read it either.
    blas_.gemm(c.tile_order(), a.tile(0, 0), b.tile(0, 0), 0, c.tile(0, 0));
  }
  std::string config() const override {
    return blas_.description() + ", " + std::to_string(blas_.threads()) + " threads, one call";
  }

 private:
  const Blas& blas_;
};

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [argv](const Arguments& arguments) {
    WholeMatrix algorithms(Blas::open(argv));
    return measure_tiles(algorithms, arguments);
  });
}
