#include <initializer_list>
#include <utility>

#include "forms/opencl_text.hpp"

namespace weir_bench {

void cholesky(TiledMatrix& a) {
  using Tile = std::pair<int, int>;
  const int tiles = a.tiles(), n = a.tile_order();
  const std::size_t bytes = a.tile_bytes();
  cl_platform_id platform;
  cl_device_id device;
  check(clGetPlatformIDs(1, &platform, nullptr));
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
  cl_context context = made(clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr));
  cl_command_queue queue =
      made(clCreateCommandQueue(context, device, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, nullptr));
  cl_program program = made(clCreateProgramWithSource(
      context, 1, const_cast<const char**>(&kernel_text), nullptr, nullptr));
  check(clBuildProgram(program, 1, &device, nullptr, nullptr, nullptr));
  cl_kernel potrf = made(clCreateKernel(program, "potrf_kernel", nullptr));
  cl_kernel trsm = made(clCreateKernel(program, "trsm_kernel", nullptr));
  cl_kernel syrk = made(clCreateKernel(program, "syrk_kernel", nullptr));
  cl_kernel gemm = made(clCreateKernel(program, "gemm_kernel", nullptr));
  TileTable<cl_mem> memory(tiles);
  TileTable<cl_event> ready(tiles);  // of the last command that writes the tile
  const auto launch = [&](cl_kernel kernel, std::size_t items,
                          std::initializer_list<Tile> operands) {
    cl_uint argument = 0;
    std::vector<cl_event> waits;
    check(clSetKernelArg(kernel, argument++, sizeof n, &n));
    for (const auto& [row, column] : operands) {
      check(clSetKernelArg(kernel, argument++, sizeof(cl_mem), &memory(row, column)));
      waits.push_back(ready(row, column));
    }
    const auto& [row, column] = *(operands.end() - 1);
    check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, waits.size(),
                                 waits.data(), &ready(row, column)));
    check(clReleaseEvent(waits.back()));
  };
  for (int row = 0; row < tiles; ++row) {
    for (int column = 0; column <= row; ++column) {
      memory(row, column) =
          made(clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, nullptr));
      check(clEnqueueWriteBuffer(queue, memory(row, column), CL_FALSE, 0, bytes,
                                 a.tile(row, column), 0, nullptr, &ready(row, column)));
    }
  }
  for (int k = 0; k < tiles; ++k) {
    launch(potrf, 1, {{k, k}});
    for (int row = k + 1; row < tiles; ++row) {
      launch(trsm, n, {{k, k}, {row, k}});
    }
    for (int row = k + 1; row < tiles; ++row) {
      for (int column = k + 1; column < row; ++column) {
        launch(gemm, n * n, {{row, k}, {column, k}, {row, column}});
      }
      launch(syrk, n * n, {{row, k}, {row, row}});
    }
    for (int column = 0; column <= k; ++column) {
      check(clEnqueueReadBuffer(queue, memory(k, column), CL_FALSE, 0, bytes, a.tile(k, column), 1,
                                &ready(k, column), nullptr));
    }
    check(clFlush(queue));
  }
  check(clFinish(queue));
  for (int row = 0; row < tiles; ++row) {
    for (int column = 0; column <= row; ++column) {
      check(clReleaseEvent(ready(row, column)));
      check(clReleaseMemObject(memory(row, column)));
    }
  }
  for (cl_kernel kernel : {potrf, trsm, syrk, gemm}) check(clReleaseKernel(kernel));
  check(clReleaseProgram(program));
  check(clReleaseCommandQueue(queue));
  check(clReleaseContext(context));
}

}  // namespace weir_bench
