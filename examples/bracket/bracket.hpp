// An L-shaped bracket: a leg that stands on a clamped face and an arm that carries a load.
//
//        z
//        |  ####################  <- force in -z, spread over the end face
//        |  ####################
//        |  ####
//        |  ####                 5 thicknesses wide and high, 4 deep (in y)
//        |  ####
//        +--****------------ x   * clamped
#pragma once

#include <cstddef>
#include <vector>

#include "elasticity.hpp"

struct Bracket {
  std::size_t cells = 3;  ///< cubes through the thickness
  double thickness = 12;  ///< mm
  double force = 1000;    ///< N
  Material material = {.young_modulus = 210'000, .poisson_ratio = 0.3};  // steel

  double cell() const { return thickness / static_cast<double>(cells); }
};

/// An element of the lower triangle of a symmetric matrix; positions count from 0.
struct Entry {
  std::size_t row, column;
  double value;
};

/// The equations K u = f of the displacements u in mm: unknown 3 n + axis belongs to free node n.
struct Equations {
  std::vector<Entry> stiffness;  ///< lower triangle in N/mm, by columns, each position once
  std::vector<double> load;      ///< in N
  std::vector<double> nodes;     ///< x, y, z of each free node in mm
  std::size_t cubes = 0;
};

/// Builds the mesh and adds up the stiffness of its cubes, without the unknowns that are clamped.
Equations assemble(const Bracket& bracket);
