#include "elasticity.hpp"

#include <cmath>

namespace {

using Vector = std::array<double, axes>;

double sign(std::size_t corner, std::size_t axis) { return corner >> axis & 1 ? 1.0 : -1.0; }

/// Gradient of the shape function of a corner at a point of the cube [-1, 1]^3, scaled to its edge.
Vector gradient(std::size_t corner, const Vector& point, double edge) {
  Vector result;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    result[axis] = sign(corner, axis) / (4 * edge);
    for (std::size_t other = 0; other < axes; ++other) {
      if (other != axis) result[axis] *= 1 + sign(corner, other) * point[other];
    }
  }
  return result;
}

void add_point(const Material& material, const std::array<Vector, corners>& gradients,
               double weight, CubeStiffness& stiffness) {
  const double nu = material.poisson_ratio;
  const double mu = weight * material.young_modulus / (2 * (1 + nu));
  const double lambda = 2 * mu * nu / (1 - 2 * nu);
  for (std::size_t row = 0; row < corners * axes; ++row) {
    for (std::size_t column = 0; column < corners * axes; ++column) {
      const Vector& a = gradients[row / axes];
      const Vector& b = gradients[column / axes];
      const std::size_t i = row % axes, j = column % axes;
      const double along = i == j ? a[0] * b[0] + a[1] * b[1] + a[2] * b[2] : 0;
      stiffness[row][column] += lambda * a[i] * b[j] + mu * (a[j] * b[i] + along);
    }
  }
}

}  // namespace

CubeStiffness cube_stiffness(const Material& material, double edge) {
  CubeStiffness stiffness{};
  for (std::size_t point = 0; point < corners; ++point) {  // Gauss points lie towards the corners
    std::array<Vector, corners> gradients;
    const double g = 1 / std::sqrt(3.0);
    const Vector at = {g * sign(point, 0), g * sign(point, 1), g * sign(point, 2)};
    for (std::size_t corner = 0; corner < corners; ++corner) {
      gradients[corner] = gradient(corner, at, edge);
    }
    add_point(material, gradients, edge * edge * edge / 8, stiffness);
  }
  return stiffness;
}
