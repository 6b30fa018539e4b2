// Linear elasticity on cubes.
#pragma once

#include <array>
#include <cstddef>

/// Corners of a cube: bit 0 of the number of a corner says whether it is at the far end in x, bit 1
/// in y, bit 2 in z.
inline constexpr std::size_t corners = 8;
inline constexpr std::size_t axes = 3;

struct Material {
  double young_modulus;  ///< N/mm2
  double poisson_ratio;
};

/// Forces at the corners that unit displacements of the corners cause; unknown 3 c + axis.
using CubeStiffness = std::array<std::array<double, corners * axes>, corners * axes>;

/// Integrates the stiffness of a cube of linear elements with 2 x 2 x 2 Gauss points. edge in mm.
CubeStiffness cube_stiffness(const Material& material, double edge);
