// Calls of built-in kernels through the public interface, and matrices with guarded edges.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <weir/weir.h>

#include "kernels/builtin.hpp"

namespace weir::kernels {

/// In which reference results are computed.
template <class T>
using Precise = std::conditional_t<std::is_same_v<T, float>, double, long double>;

/// A column-major matrix whose padding between columns must stay untouched.
template <class T>
class Guarded {
 public:
  static constexpr T kCanary = T(-7654.25);

  Guarded(int rows, int columns, int padding = 0)
      : rows_(rows),
        columns_(columns),
        stride_(rows + padding),
        values_(static_cast<std::size_t>(stride_) * static_cast<std::size_t>(columns), kCanary) {}

  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int stride() const { return stride_; }
  T* data() { return values_.data(); }
  std::size_t bytes() const { return values_.size() * sizeof(T); }
  T& operator()(int i, int j) { return values_[index(i, j)]; }
  T operator()(int i, int j) const { return values_[index(i, j)]; }

  Guarded& fill(T value) {
    return fill([=](int, int) { return value; });
  }
  template <class Function>
  Guarded& fill(const Function& value_of)
    requires std::is_invocable_v<Function, int, int>
  {
    for (int j = 0; j < columns_; ++j) {
      for (int i = 0; i < rows_; ++i) (*this)(i, j) = static_cast<T>(value_of(i, j));
    }
    return *this;
  }
  Guarded& randomize(unsigned seed) {
    std::mt19937 engine(seed);
    return fill([&](int, int) { return static_cast<double>(engine()) / 2147483648.0 - 1; });
  }

  bool padding_is_intact() const {
    for (int j = 0; j < columns_; ++j) {
      for (int i = rows_; i < stride_; ++i) {
        if (values_[index(i, j)] != kCanary) return false;
      }
    }
    return true;
  }

  weir_region region() const {
    return weir_region_tile(0, 0, static_cast<std::size_t>(rows_),
                            static_cast<std::size_t>(columns_), static_cast<std::size_t>(stride_),
                            sizeof(T));
  }

 private:
  std::size_t index(int i, int j) const {
    return static_cast<std::size_t>(j) * static_cast<std::size_t>(stride_) +
           static_cast<std::size_t>(i);
  }

  int rows_, columns_, stride_;
  std::vector<T> values_;
};

/// One operand of a call: memory of the test and how it is used.
struct Argument {
  void* address;
  std::size_t bytes;
  weir_region region;
  weir_access access;
};

template <class T>
Argument reads(Guarded<T>& matrix) {
  return {matrix.data(), matrix.bytes(), matrix.region(), WEIR_ACCESS_READ};
}
template <class T>
Argument writes(Guarded<T>& matrix) {
  return {matrix.data(), matrix.bytes(), matrix.region(), WEIR_ACCESS_READ_WRITE};
}

/// How a call ended.
struct Ending {
  weir_status status;
  std::string message;
};

/// Where the kernels run: WEIR_TEST_DOMAIN, or on the host.
inline const char* test_domain() {
  const char* const given = std::getenv("WEIR_TEST_DOMAIN");
  return given == nullptr ? "host" : given;
}

/// A runtime with one stream on all cores of a domain.
class KernelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const BlasInfo info = blas_info();
    std::printf("BLAS: %s %s, kernels for %s, from %s %s\n", info.name.c_str(),
                info.version.c_str(), info.kernels.c_str(), info.library.c_str(),
                info.problem.c_str());
  }

  void SetUp() override {
    if (!blas_info().available) GTEST_SKIP() << blas_info().problem;
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = test_domain();
    const weir_status status = weir_runtime_create(&options, &runtime_);
    if (status == WEIR_STATUS_UNAVAILABLE) GTEST_SKIP() << weir_last_error();
    ASSERT_EQ(status, WEIR_STATUS_OK) << weir_last_error();
    weir_domain_info info = WEIR_DOMAIN_INFO_INIT;
    ASSERT_EQ(weir_domain_get_info(weir_runtime_get_domain(runtime_, 0), &info), WEIR_STATUS_OK);
    has_own_memory_ = !info.aliases_host;
    weir_place* place = nullptr;
    ASSERT_EQ(weir_place_create(weir_runtime_get_domain(runtime_, 0), nullptr, &place),
              WEIR_STATUS_OK);
    ASSERT_EQ(weir_stream_create(place, nullptr, &stream_), WEIR_STATUS_OK);
  }
  void TearDown() override { weir_runtime_destroy(runtime_); }

  /// Runs a kernel and waits for it.
  Ending call(const std::string& name, const std::vector<weir_scalar>& scalars,
              const std::vector<Argument>& arguments) {
    std::vector<weir_operand> operands;
    for (const Argument& argument : arguments) {
      weir_buffer* buffer = nullptr;
      EXPECT_EQ(weir_buffer_wrap(runtime_, argument.address, argument.bytes, nullptr, &buffer),
                WEIR_STATUS_OK)
          << weir_last_error();
      operands.push_back({buffer, argument.region, argument.access});
    }
    if (has_own_memory_) move(operands, true);
    weir_compute compute = WEIR_COMPUTE_INIT;
    compute.kernel_name = name.c_str();
    compute.scalars = scalars.data();
    compute.scalar_count = scalars.size();
    compute.operands = operands.data();
    compute.operand_count = operands.size();
    Ending ending{weir_stream_compute(stream_, &compute, nullptr), ""};
    if (has_own_memory_ && ending.status == WEIR_STATUS_OK) move(operands, false);
    if (ending.status == WEIR_STATUS_OK) {
      ending.status = weir_stream_synchronize(stream_, WEIR_FOREVER);
    }
    if (ending.status != WEIR_STATUS_OK) ending.message = weir_last_error();
    for (const weir_operand& operand : operands) weir_buffer_destroy(operand.buffer);
    return ending;
  }

  /// Copies operands to a domain that has a memory of its own, or what was written back.
  void move(const std::vector<weir_operand>& operands, bool there) {
    weir_domain* const domain = weir_runtime_get_domain(runtime_, 0);
    for (const weir_operand& operand : operands) {
      if (!there && (operand.access & WEIR_ACCESS_WRITE) == 0) continue;
      weir_transfer transfer = WEIR_TRANSFER_INIT;
      transfer.source = {there ? nullptr : domain, operand.buffer, operand.region};
      transfer.target = {there ? domain : nullptr, operand.buffer, operand.region};
      EXPECT_EQ(weir_stream_transfer(stream_, &transfer, nullptr), WEIR_STATUS_OK)
          << weir_last_error();
    }
  }

  void succeed(const std::string& name, const std::vector<weir_scalar>& scalars,
               const std::vector<Argument>& arguments) {
    const Ending ending = call(name, scalars, arguments);
    ASSERT_EQ(ending.status, WEIR_STATUS_OK) << name << ": " << ending.message;
  }

  weir_runtime* runtime_ = nullptr;
  weir_stream* stream_ = nullptr;
  bool has_own_memory_ = false;  ///< the domain has a memory of its own
};

template <class T>
std::string blas_name(const char* library, const char* routine) {
  return std::string(library) + (sizeof(T) == 4 ? ".s" : ".d") + routine;
}

inline weir_scalar letter(char value) { return weir_scalar_i64(value); }
inline weir_scalar real(double value) { return weir_scalar_f64(value); }

template <class T>
double epsilon() {
  return static_cast<double>(std::numeric_limits<T>::epsilon());
}

}  // namespace weir::kernels
