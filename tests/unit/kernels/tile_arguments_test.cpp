// What the tile kernels say about wrong arguments.
#include <cstdint>

#include "kernel_fixture.hpp"

namespace weir::kernels {
namespace {

class TileArguments : public KernelTest {
 protected:
  void refuse(const std::string& name, const std::vector<weir_scalar>& scalars,
              const std::vector<Argument>& arguments, const char* reason) {
    const Ending ending = call(name, scalars, arguments);
    EXPECT_EQ(ending.status, WEIR_STATUS_INVALID_ARGUMENT) << reason;
    EXPECT_NE(ending.message.find(reason), std::string::npos) << ending.message;
  }
  void refuse_gemm(const std::vector<weir_scalar>& scalars, const char* reason) {
    refuse("blas.dgemm", scalars, {reads(a_), reads(b_), writes(c_)}, reason);
  }
  void refuse_operands(const std::vector<Argument>& operands, const char* reason) {
    refuse("blas.dgemm", good_, operands, reason);
  }

  const std::vector<weir_scalar> good_ = {letter('N'), letter('N'), real(1), real(0)};
  Guarded<double> a_{4, 3}, b_{3, 5}, c_{4, 5};
};

TEST_F(TileArguments, WrongCountOfScalarsOrOperands_IsRefused) {
  refuse_gemm({letter('N')},
              "1 scalar is given where the kernel takes 4 (transa, transb, alpha, beta)");
  refuse_operands({reads(a_)}, "1 operand is given where the kernel takes 3 (A, B, C)");
  if (has_own_memory_) return;  // only the host has getrf
  Guarded<std::int32_t> pivots(3, 1);
  refuse("lapack.dgetrf", {real(1)}, {writes(a_), writes(pivots)}, "takes 0 (none)");
}

TEST_F(TileArguments, ScalarOfTheWrongType_IsRefusedButF32IsAccepted) {
  refuse_gemm({real(1), letter('N'), real(1), real(0)},
              "scalar 1 (transa) is an f64: expected an i64");
  refuse_gemm({letter('N'), letter('N'), weir_scalar_i64(1), real(0)},
              "scalar 3 (alpha) is an i64: expected an f64 or f32");
  succeed("blas.dgemm", {letter('n'), letter('N'), weir_scalar_f32(1), real(0)},
          {reads(a_.fill(1)), reads(b_.fill(1)), writes(c_)});
  EXPECT_EQ(c_(3, 4), 3);
}

TEST_F(TileArguments, UnsignedScalar_IsAcceptedOnlyInRange) {
  succeed("blas.dgemm", {weir_scalar_u64('n'), letter('N'), real(1), real(0)},
          {reads(a_.fill(1)), reads(b_.fill(1)), writes(c_)});
  EXPECT_EQ(c_(3, 4), 3);
  refuse_gemm({weir_scalar_u64(std::uint64_t{1} << 63), letter('N'), real(1), real(0)},
              "scalar 1 (transa) is a u64: expected an i64");
}

TEST_F(TileArguments, UnknownLetter_IsRefused) {
  refuse_gemm({letter('N'), letter('X'), real(1), real(0)},
              "scalar 2 (transb) is 'X': expected a letter of NTC");
  refuse_gemm({weir_scalar_i64(7), letter('N'), real(1), real(0)}, "scalar 1 (transa) is 7");
}

TEST_F(TileArguments, ShapesThatDoNotFit_AreRefused) {
  refuse_operands({reads(b_), reads(a_), writes(c_)},
                  "op(A) is 3 x 5, op(B) 4 x 3 and C 4 x 5: they do not fit");
  refuse("blas.dsyrk", {letter('L'), letter('N'), real(1), real(1)}, {reads(a_), writes(c_)},
         "operand 2 (C) is 4 x 5: expected a square");
  Guarded<double> square(3, 3);
  refuse("blas.dsyrk", {letter('L'), letter('N'), real(1), real(1)}, {reads(a_), writes(square)},
         "op(A) is 4 x 3 and C 3 x 3: they do not fit");
  const std::vector<weir_scalar> left = {letter('L'), letter('L'), letter('N'), letter('N'),
                                         real(1)};
  refuse("blas.dtrsm", left, {reads(square), writes(c_)},
         "A is of order 3 and B 4 x 5: they do not fit from the left");
  refuse("lapack.dpotrf", {letter('L'), weir_scalar_i64(0)}, {writes(c_)},
         "is 4 x 5: expected a square");
  refuse("lapack.dpotrf", {letter('L'), weir_scalar_i64(-1)}, {writes(square)},
         "scalar 2 (first) is -1: expected the rows before the tile");
  if (has_own_memory_) return;  // only the host has getrf
  Guarded<std::int32_t> pivots(5, 1);
  refuse("lapack.dgetrf", {}, {writes(c_), writes(pivots)},
         "operand 2 (pivots) is 5 x 1 int32: expected 4 in one column");
}

TEST_F(TileArguments, UnalignedColumnsOrSeveralPlanes_AreRefused) {
  const auto with = [&](weir_region region) {
    return std::vector<Argument>{
        {a_.data(), a_.bytes(), region, WEIR_ACCESS_READ}, reads(b_), writes(c_)};
  };
  refuse_operands(with({0, {20, 3, 1}, {32, 0}}),
                  "columns of 20 bytes, 32 apart: expected multiples of 8");
  refuse_operands(with({0, {24, 2, 1}, {36, 0}}),
                  "columns of 24 bytes, 36 apart: expected multiples of 8");
  refuse_operands(with({4, {24, 2, 1}, {32, 0}}), "expected a multiple of 8");
  refuse_operands(with({0, {8, 1, 2}, {8, 16}}), "operand 1 (A) has 2 planes: expected one");
}

TEST_F(TileArguments, AccessModeThatDoesNotMatchTheKernel_IsRefused) {
  const Argument c_to_read = {c_.data(), c_.bytes(), c_.region(), WEIR_ACCESS_READ};
  refuse_operands({reads(a_), reads(b_), c_to_read},
                  "operand 3 (C) is enqueued for reading, but the kernel writes it");
  const Argument a_to_write = {a_.data(), a_.bytes(), a_.region(), WEIR_ACCESS_WRITE};
  refuse_operands({a_to_write, reads(b_), writes(c_)},
                  "operand 1 (A) is enqueued for writing, but the kernel reads it");
}

TEST_F(TileArguments, OneColumnNeedsNoStride) {
  Guarded<double> x(3, 1), y(4, 1);
  a_.fill(1), x.fill(2);
  const Argument plain_x = {x.data(), x.bytes(), weir_region_range(0, x.bytes()), WEIR_ACCESS_READ};
  succeed("blas.dgemm", good_, {reads(a_), plain_x, writes(y)});
  EXPECT_EQ(y(3, 0), 6);
}

}  // namespace
}  // namespace weir::kernels
