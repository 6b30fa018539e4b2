// The kernels of kernels.wk as an expert writes them in OpenCL C, on one in-order queue.
#include <array>
#include <map>

#include "devices/opencl_by_hand.hpp"
#include "devices/problems.hpp"

namespace weir_bench {
namespace {

constexpr char kText[] = R"(
#define WIDTH 256
#define PARTS 64
#define TILE 16

kernel __attribute__((reqd_work_group_size(WIDTH, 1, 1)))
void saxpy(global const float* restrict x, global float* restrict y, float a, int n) {
  const int i = get_global_id(0);
  if (i < n) y[i] += a * x[i];
}

kernel __attribute__((reqd_work_group_size(WIDTH, 1, 1)))
void stencil(global const float* restrict x, global float* restrict y, int side) {
  const int column = get_global_id(0), pitch = side + 2;
  const int i = ((int)get_global_id(1) + 1) * pitch + 1 + column;
  if (column < side) y[i] = x[i - 1] + x[i + 1] + x[i - pitch] + x[i + pitch] - 4 * x[i];
}

kernel __attribute__((reqd_work_group_size(WIDTH, 1, 1)))
void reduce(global const float* restrict x, global float* restrict sums) {
  local float part[WIDTH];
  const int mine = get_local_id(0);
  global const float* from = x + get_group_id(0) * WIDTH * PARTS;
  float sum = 0;
  for (int k = 0; k < PARTS; ++k) sum += from[k * WIDTH + mine];
  part[mine] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = WIDTH / 2; step > 0; step /= 2) {
    if (mine < step) part[mine] += part[mine + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (mine == 0) sums[get_group_id(0)] = part[0];
}

kernel __attribute__((reqd_work_group_size(TILE, TILE, 1)))
void multiply(global const float* restrict a, global const float* restrict b,
              global float* restrict c, int n) {
  local float a_tile[TILE][TILE], b_tile[TILE][TILE];
  const int row = get_local_id(0), column = get_local_id(1);
  const int at_row = get_global_id(0), at_column = get_global_id(1);
  float sum = 0;
  for (int step = 0; step < n; step += TILE) {
    a_tile[column][row] = a[(step + column) * n + at_row];
    b_tile[column][row] = b[at_column * n + step + row];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < TILE; ++k) sum += a_tile[k][row] * b_tile[column][k];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[at_column * n + at_row] = sum;
}
)";

using Sizes = std::array<std::size_t, 2>;
struct Grid {
  Sizes items, group;
};

Grid grid_of(const std::string& name) {
  if (name == "saxpy") return {{elements, 1}, {group_width, 1}};
  if (name == "stencil") return {{side, side}, {group_width, 1}};
  if (name == "reduce") return {{elements / parts, 1}, {group_width, 1}};
  return {{order, order}, {tile, tile}};
}

void set_arguments(const Problem& problem, cl_kernel kernel, cl_mem first, cl_mem second,
                   cl_mem result) {
  cl_uint index = 0;
  set_argument(kernel, index++, first);
  if (problem.second > 0) set_argument(kernel, index++, second);
  set_argument(kernel, index++, result);
  if (problem.name == "saxpy") set_argument(kernel, index++, factor);
  const std::map<std::string, std::size_t> sizes = {
      {"saxpy", elements}, {"stencil", side}, {"multiply", order}};
  const auto size = sizes.find(problem.name);
  if (size != sizes.end()) set_argument(kernel, index, static_cast<cl_int>(size->second));
}

double rate(const Problem& problem) {
  const Device device(0);
  const auto bytes = [](std::size_t count) {
    return std::max<std::size_t>(count, 1) * sizeof(float);
  };
  std::vector<float> first(problem.first), second(problem.second), result(problem.result);
  const Arrays arrays{first.data(), second.data(), result.data()};
  arrays.fill(problem);
  cl_mem x = device.buffer(bytes(problem.first)), y = device.buffer(bytes(problem.second)),
         out = device.buffer(bytes(problem.result));
  device.write(x, first.data(), bytes(problem.first));
  if (problem.second > 0) device.write(y, second.data(), bytes(problem.second));
  device.write(out, result.data(), bytes(problem.result));
  cl_kernel kernel = device.kernel(kText, problem.name.c_str());
  set_arguments(problem, kernel, x, y, out);
  const Grid grid = grid_of(problem.name);
  const auto calls = [&](long count) {
    for (long call = 0; call < count; ++call) {
      check(clEnqueueNDRangeKernel(device.queue(), kernel, 2, nullptr, grid.items.data(),
                                   grid.group.data(), 0, nullptr, nullptr),
            "enqueueing a kernel");
    }
    device.finish();
  };
  const double found = rate_of(problem, calls, [&] {
    device.read(out, result.data(), bytes(problem.result));
    arrays.check(problem);
  });
  clReleaseKernel(kernel);
  for (cl_mem buffer : {x, y, out}) clReleaseMemObject(buffer);
  return found;
}

}  // namespace
}  // namespace weir_bench

int main(int argc, char** argv) {
  using namespace weir_bench;
  return run_program(argc, argv, [](const Arguments& arguments) -> nlohmann::json {
    const Problem problem = Problem::of(arguments.verb());
    return {{"value", rate(problem)}, {"unit", problem.unit}, {"config", "one in-order queue"}};
  });
}
