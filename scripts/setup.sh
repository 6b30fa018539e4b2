#!/bin/sh
# Installs what building, testing and measuring weir needs, from Debian and PyPI.
#
#   scripts/setup.sh [build] [test] [docs] [bench] [lint] [fuzz]      (default: build test)
#
# Silent when everything is there. Uses sudo only when it is not run by root.
set -eu

cd "$(dirname "$0")/.."
groups="${*:-build test}"
log="${TMPDIR:-/tmp}/weir-setup.$$.log"

packages_of() {
  case "$1" in
    build) echo "g++ cmake ninja-build pkg-config libhwloc-dev libfmt-dev libspdlog-dev
                 nlohmann-json3-dev libprotozero-dev libcli11-dev opencl-c-headers libopenblas0-pthread
                 libopenblas-dev liblapacke-dev libpng-dev libturbojpeg0-dev zlib1g-dev
                 python3-numpy python3-scipy" ;;
    test) echo "libgtest-dev librapidcheck-dev librandom123-dev relacy-dev binutils python3-venv
                python3-dev gfortran ocl-icd-libopencl1 pocl-opencl-icd mesa-opencl-icd chromium
                bowtie2-examples opencv-data libopenmpi-dev openmpi-bin libmpich-dev mpich iproute2" ;;
    docs) echo "doxygen python3-sphinx python3-breathe python3-myst-parser furo" ;;
    bench) echo "libconcurrentqueue-dev libstarpu-dev libtbb-dev ocl-icd-opencl-dev pocl-opencl-icd
                 libopenmpi-dev openmpi-bin gfortran libcoarrays-openmpi-dev" ;;
    lint) echo "clang-16 clang-format-16 clang-tidy-16 libclang-rt-16-dev libomp-16-dev" ;;
    fuzz) echo "clang-16 libclang-rt-16-dev llvm-16" ;;
    *) echo "setup: unknown group '$1': choose from build, test, docs, bench, lint, fuzz" >&2; exit 2 ;;
  esac
}

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q "ok installed"; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    echo "setup: installing packages needs root: run 'scripts/setup.sh $groups' as root" >&2
    exit 1
  fi
}

missing=""
for group in $groups; do
  packages="$(packages_of "$group")"
  for package in $packages; do
    installed "$package" || missing="$missing $package"
  done
done

if [ -n "$missing" ]; then
  echo "setup: installing$missing" >&2
  export DEBIAN_FRONTEND=noninteractive
  if ! { as_root apt-get update -q &&
         as_root apt-get install -q -y --no-install-recommends $missing; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup: installing failed; the whole log is in $log" >&2
    exit 1
  fi
  rm -f "$log"
fi

# From PyPI: pyamg has real matrices, QuantLib prices options, scikit-learn finds clusters (as new as
# Debian's NumPy allows), parasail aligns sequences, OpenCV finds faces in scikit-image's photographs,
# nanobind is what the Python package is built with, pytest and Numba test it. Without them those tests
# say that they are skipped.
modules="pyamg QuantLib parasail cv2=opencv-python-headless<5 skimage=scikit-image
         sklearn=scikit-learn<1.6 nanobind pytest numba"
case " $groups " in
  *" test "*)
    if [ ! -x build/venv/bin/python3 ]; then
      mkdir -p build
      /usr/bin/python3 -m venv --system-site-packages build/venv >"$log" 2>&1 || true
    fi
    for wanted in $modules; do
      module=${wanted%%=*} package=${wanted#*=}
      build/venv/bin/python3 -c "from importlib.util import find_spec
raise SystemExit(find_spec('$module') is None)" 2>/dev/null ||
        build/venv/bin/python3 -m pip install --quiet --disable-pip-version-check "$package" \
          >"$log" 2>&1 ||
        echo "setup: $module is not to be had from PyPI; what needs it is not tested" >&2
      rm -f "$log"
    done
    # fpm builds the Fortran module its own way.
    [ -x build/venv/bin/fpm ] ||
      build/venv/bin/python3 -m pip install --quiet --disable-pip-version-check fpm >"$log" 2>&1 ||
      echo "setup: fpm is not to be had from PyPI; the package for it is not tested" >&2
    # CUDA's headers and its compiler, as far as they are needed without a card.
    if ! ls build/venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13 >/dev/null 2>&1; then
      build/venv/bin/python3 -m pip install --quiet --disable-pip-version-check --no-deps \
        nvidia-cuda-runtime==13.0.96 nvidia-cuda-nvrtc==13.0.88 >"$log" 2>&1 ||
        echo "setup: CUDA's headers are not to be had from PyPI; without others the kind cuda is left out" >&2
      rm -f "$log"
    fi ;;
esac
