#!/usr/bin/python3
"""Checks the displacements of the bracket that weir computed, and the bracket's equations.

usage: check_bracket.py FOLDER SOLUTION.npy

FOLDER holds what examples/bracket wrote. Three checks, none of which uses code of weir's:
  assembly      fields whose energy or force is known in closed form: a shear or a stretch that
                grows with the height above the clamp, and rigid motions away from the clamp
  residual      |K u - f| / (|K| |u| + |f|) of weir's solution, in maximum norms
  displacement  against the solution of SciPy's sparse solver
Exit code 0 when all hold, 2 for a wrong call, 3 for a file that cannot be used, 5 otherwise.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import scipy.io
import scipy.sparse
import scipy.sparse.linalg

BAD_INPUT = 3
MISMATCH = 5

ENERGY_LIMIT = 1e-11
RIGID_LIMIT = 1e-12
DISPLACEMENT_LIMIT = 1e-9


class Bracket:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        with open(folder / "bracket.json", encoding="utf-8") as file:
            self.facts = json.load(file)
        self.stiffness = scipy.sparse.csc_matrix(scipy.io.mmread(str(folder / "K.mtx")))
        self.load = np.load(folder / "f.npy")
        self.nodes = np.load(folder / "nodes.npy")
        if not self.stiffness.shape[0] == self.load.size == self.nodes.size:
            raise ValueError(f"{folder}: K is {self.stiffness.shape}, f {self.load.shape}, "
                             f"nodes {self.nodes.shape}: these do not belong together")

    def unknowns(self):
        return self.load.size


def worst_energy(bracket):
    """u = z a has the energy V (mu (ax^2 + ay^2) + (lambda + 2 mu) az^2), and no clamped part."""
    facts = bracket.facts
    poisson = facts["poisson_ratio"]
    shear = facts["young_modulus_mpa"] / (2 * (1 + poisson))
    stretch = 2 * shear * (1 - poisson) / (1 - 2 * poisson)
    volume = facts["cubes"] * facts["cell_mm"] ** 3
    worst = 0.0
    for axis, modulus in enumerate((shear, shear, stretch)):
        field = np.outer(bracket.nodes[:, 2], np.eye(3)[axis]).ravel()
        energy = field @ (bracket.stiffness @ field)
        worst = max(worst, abs(energy / (modulus * volume) - 1))
    return worst


def rigid_motions(nodes):
    for axis in np.eye(3):
        yield np.broadcast_to(axis, nodes.shape)
        yield np.cross(axis, nodes)


def worst_rigid_force(bracket):
    """Rows of nodes that share no cube with a clamped one have no force in a rigid motion."""
    away = np.repeat(bracket.nodes[:, 2] > 1.5 * bracket.facts["cell_mm"], 3)
    magnitudes = abs(bracket.stiffness)
    worst = 0.0
    for motion in rigid_motions(bracket.nodes):
        force = (bracket.stiffness @ motion.ravel())[away]
        worst = max(worst, abs(force).max() / (magnitudes @ abs(motion.ravel())).max())
    return worst


def backward_error(bracket, solution):
    norm = abs(bracket.stiffness).sum(axis=1).max()
    residual = abs(bracket.stiffness @ solution - bracket.load).max()
    return residual / (norm * abs(solution).max() + abs(bracket.load).max())


def scipy_solution(bracket):
    factors = scipy.sparse.linalg.splu(
        bracket.stiffness, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0,
        options={"SymmetricMode": True})
    return factors.solve(bracket.load)


def tip(bracket, solution):
    """The mean displacement of the loaded face along the load, in mm."""
    return bracket.load @ solution / abs(bracket.load).sum()


class Verdict:
    def __init__(self):
        self.holds = True

    def show(self, what, text, values_and_limits):
        holds = all(value <= limit for value, limit in values_and_limits)
        self.holds = self.holds and holds
        print(f"{what:<13} {text}: {'ok' if holds else 'MISMATCH'}")


def check(bracket, solution):
    verdict = Verdict()
    energy, rigid = worst_energy(bracket), worst_rigid_force(bracket)
    verdict.show("assembly", f"energies off by {energy:.1e}, rigid motions by {rigid:.1e}",
                 [(energy, ENERGY_LIMIT), (rigid, RIGID_LIMIT)])

    error = backward_error(bracket, solution)
    limit = bracket.unknowns() * np.finfo(float).eps
    verdict.show("residual", f"{error:.1e}, limit {limit:.1e}", [(error, limit)])

    expected = scipy_solution(bracket)
    difference = abs(solution - expected).max() / abs(expected).max()
    verdict.show("displacement",
                 f"tip {tip(bracket, solution):.6f} mm with weir, {tip(bracket, expected):.6f} mm "
                 f"with SciPy, all within {difference:.1e} of the largest",
                 [(difference, DISPLACEMENT_LIMIT)])
    return verdict.holds


def read_solution(path, bracket):
    solution = np.load(path)
    if solution.size != bracket.unknowns():
        raise ValueError(f"{path}: found {solution.size} numbers, "
                         f"expected {bracket.unknowns()} displacements")
    return solution.astype(float).ravel()


def refuse(reason):
    print(f"check_bracket: {reason}", file=sys.stderr)
    return BAD_INPUT


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", help="what examples/bracket wrote")
    parser.add_argument("solution", help="the displacements, .npy")
    options = parser.parse_args()
    try:
        bracket = Bracket(options.folder)
        solution = read_solution(options.solution, bracket)
    except OSError as error:
        return refuse(f"{error.filename}: {error.strerror}")
    except KeyError as error:
        return refuse(f"{options.folder}/bracket.json: there is no {error}")
    except ValueError as error:
        return refuse(error)
    return 0 if check(bracket, solution) else MISMATCH


if __name__ == "__main__":
    sys.exit(main())
