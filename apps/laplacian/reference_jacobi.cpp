#include "laplacian/reference_jacobi.hpp"

#include <cstddef>
#include <utility>

namespace weir::apps {

template <class T>
std::vector<T> reference_jacobi(const JacobiProblem& problem) {
  const auto n = static_cast<std::int64_t>(problem.n), row = n + 2, plane = row * row;
  const bool deep = problem.dimensions == 3;
  const std::int64_t planes = deep ? n : 1, before = deep ? 1 : 0;
  const auto index = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return static_cast<std::size_t>((z + before) * plane + (y + 1) * row + x + 1);
  };
  const auto for_each = [&](std::int64_t halo, const auto& visit) {
    for (std::int64_t z = deep ? -halo : 0; z < planes + (deep ? halo : 0); ++z) {
      for (std::int64_t y = -halo; y < n + halo; ++y) {
        for (std::int64_t x = -halo; x < n + halo; ++x) visit(x, y, z);
      }
    }
  };
  std::vector<T> now(static_cast<std::size_t>(plane * (planes + 2 * before)));
  for_each(1, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    now[index(x, y, z)] = static_cast<T>(problem.start(x, y, z));
  });
  std::vector<T> next = now;
  const T rate = static_cast<T>(problem.rate());
  for (std::size_t step = 0; step < problem.iterations; ++step) {
    for_each(0, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      const T* const u = now.data() + index(x, y, z);
      T around = (u[-1] + u[1]) + (u[-row] + u[row]);
      if (deep) around = around + (u[-plane] + u[plane]);
      const T laplacian = around - T(2 * problem.dimensions) * u[0];
      next[index(x, y, z)] = u[0] + rate * laplacian;
    });
    std::swap(now, next);
  }
  std::vector<T> cells;
  cells.reserve(static_cast<std::size_t>(n * n * planes));
  for_each(0, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    cells.push_back(now[index(x, y, z)]);
  });
  return cells;
}

template std::vector<float> reference_jacobi(const JacobiProblem& problem);
template std::vector<double> reference_jacobi(const JacobiProblem& problem);

}  // namespace weir::apps
