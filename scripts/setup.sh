#!/bin/sh
# Installs what building, testing and measuring weir needs, from the distribution and PyPI.
#
#   scripts/setup.sh [build] [test] [docs] [bench] [lint] [fuzz] [release] [aarch64] [cluster]
#                                        (default: build test; cluster: the daemons of Slurm, and
#                                        Intel MPI)
#   scripts/setup.sh --list [GROUP...]   prints the packages of this distribution, installs nothing
#   scripts/setup.sh --user              without root: cmake and ninja from PyPI in build/venv; names
#                                        the packages that are missing for a build
#
# Silent when everything is there. Uses sudo only when it is not run by root. Debian 12 and 13 are
# tested; Ubuntu, Fedora, Rocky and Arch have lists that are not.
set -eu

cd "$(dirname "$0")/.."
mode=install
case "${1:-}" in
  --list) mode=list; shift ;;
  --user) mode=user; shift ;;
  --help|-h) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
  -*) echo "setup: unknown option '$1': choose from --list, --user" >&2; exit 2 ;;
esac
groups="${*:-build test}"
log="${TMPDIR:-/tmp}/weir-setup.$$.log"

family=debian
[ ! -r /etc/os-release ] || case "$(. /etc/os-release; echo " $ID ${ID_LIKE:-} ")" in
  *" debian "*|*" ubuntu "*) ;;
  *" fedora "*|*" rhel "*|*" centos "*) family=fedora ;;
  *" arch "*) family=arch ;;
esac

packages_of() {
  case "$family $1" in
    "debian build") echo "g++ cmake ninja-build pkg-config libhwloc-dev libfmt-dev libspdlog-dev
                 nlohmann-json3-dev libprotozero-dev libcli11-dev opencl-c-headers libopenblas0-pthread
                 libopenblas-dev liblapacke-dev libpng-dev libturbojpeg0-dev zlib1g-dev
                 python3-numpy python3-scipy" ;;
    "debian test") echo "libgtest-dev librapidcheck-dev librandom123-dev relacy-dev binutils python3-venv
                python3-dev gfortran ocl-icd-libopencl1 pocl-opencl-icd mesa-opencl-icd chromium
                bowtie2-examples opencv-data libopenmpi-dev openmpi-bin libmpich-dev mpich iproute2 libucx-dev python3-yaml
                $([ -d /usr/share/lmod ] || echo environment-modules)" ;;  # one excludes the other
    "debian cluster") echo "slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge
                   $(! apt-cache show slurm-wlm-mpi-plugins >/dev/null 2>&1 || echo slurm-wlm-mpi-plugins)" ;;
    "debian docs") echo "doxygen python3-sphinx python3-breathe python3-myst-parser furo" ;;
    "debian bench") echo "libconcurrentqueue-dev libstarpu-dev libtbb-dev ocl-icd-opencl-dev pocl-opencl-icd
                 libopenmpi-dev openmpi-bin gfortran libcoarrays-openmpi-dev
                 $(! apt-cache show libomp-16-dev >/dev/null 2>&1 || echo clang-16 libomp-16-dev)" ;;
    "debian lint") echo "clang-16 clang-format-16 clang-tidy-16 libclang-rt-16-dev libomp-16-dev codespell llvm" ;;
    "debian release") echo "debootstrap dpkg-dev file lintian python3-venv python3-dev gfortran
                   libopenmpi-dev libmpich-dev" ;;
    "debian fuzz") echo "clang-16 libclang-rt-16-dev llvm-16" ;;
    "debian aarch64") echo "g++-aarch64-linux-gnu qemu-user debian-archive-keyring cmake ninja-build pkg-config
                python3" ;;
    "fedora build") echo "gcc-c++ cmake ninja-build pkgconf-pkg-config hwloc-devel fmt-devel spdlog-devel
                 json-devel protozero-devel cli11-devel opencl-headers openblas-threads openblas-devel
                 lapack-devel libpng-devel turbojpeg-devel zlib-devel python3-numpy python3-scipy" ;;
    "fedora test") echo "gtest-devel binutils python3-devel gcc-gfortran ocl-icd pocl chromium
                openmpi-devel mpich-devel iproute" ;;
    "arch build") echo "gcc cmake ninja pkgconf hwloc fmt spdlog nlohmann-json protozero cli11
                 opencl-headers openblas lapacke libpng libjpeg-turbo zlib python-numpy python-scipy" ;;
    "arch test") echo "gtest binutils gcc-fortran ocl-icd pocl chromium openmpi iproute2" ;;
    *" build"|*" test"|*" docs"|*" bench"|*" lint"|*" fuzz"|*" release"|*" aarch64"|*" cluster")
      echo "setup: there is no list of '$1' for this distribution; see that of Debian in $0" >&2 ;;
    *) echo "setup: unknown group '$1': choose from build, test, docs, bench, lint, fuzz, release, aarch64, cluster" >&2; exit 2 ;;
  esac
}

installed() {
  case "$family" in
    debian) dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q "ok installed" ;;
    fedora) rpm -q "$1" >/dev/null 2>&1 ;;
    arch) pacman -Qi "$1" >/dev/null 2>&1 ;;
  esac
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null 2>&1; then
    sudo "$@"
  else
    echo "setup: installing packages needs root: run 'scripts/setup.sh $groups' as root, or 'scripts/setup.sh --user'" >&2
    exit 1
  fi
}

install_packages() {
  case "$family" in
    debian)
      export DEBIAN_FRONTEND=noninteractive
      as_root apt-get update -q && as_root apt-get install -q -y --no-install-recommends "$@" ;;
    fedora) as_root dnf install -q -y "$@" ;;
    arch) as_root pacman -S --noconfirm --needed "$@" ;;
  esac
}

if [ "$mode" = list ]; then
  for group in $groups; do packages_of "$group"; done | xargs -n 1 | sort -u
  exit 0
fi

# Header or program -> the packages that have it, for Debian, Fedora and Arch.
if [ "$mode" = user ]; then
  mkdir -p build
  [ -x build/venv/bin/python3 ] || python3 -m venv --system-site-packages build/venv ||
    { echo "setup: python3 has no venv (Debian: python3-venv)" >&2; exit 1; }
  for program in cmake ninja; do
    command -v "$program" >/dev/null 2>&1 || build/venv/bin/pip install --quiet --disable-pip-version-check "$program"
  done
  compiler="${CXX:-g++}"
  missing=""
  need() {  # WHAT DEBIAN FEDORA ARCH
    case "$family" in debian) package=$2 ;; fedora) package=$3 ;; *) package=$4 ;; esac
    missing="$missing $package"
    echo "setup: $1 is missing: ask for the package $package" >&2
  }
  if command -v "$compiler" >/dev/null 2>&1; then
    while read -r header debian fedora arch; do
      echo "#include <$header>" | "$compiler" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null ||
        need "<$header>" "$debian" "$fedora" "$arch"
    done <<END
hwloc.h libhwloc-dev hwloc-devel hwloc
fmt/format.h libfmt-dev fmt-devel fmt
spdlog/spdlog.h libspdlog-dev spdlog-devel spdlog
nlohmann/json.hpp nlohmann-json3-dev json-devel nlohmann-json
protozero/pbf_writer.hpp libprotozero-dev protozero-devel protozero
CLI/CLI.hpp libcli11-dev cli11-devel cli11
CL/cl.h opencl-c-headers opencl-headers opencl-headers
END
  else
    need "a compiler for C++20" g++ gcc-c++ gcc
  fi
  command -v pkg-config >/dev/null 2>&1 || need pkg-config pkg-config pkgconf-pkg-config pkgconf
  [ -z "$missing" ] || exit 1
  echo "setup: everything for a build is there: PATH=$PWD/build/venv/bin:\$PATH; then" \
    "cmake --preset release -DWEIR_BUILD_TESTS=OFF && cmake --build --preset release" >&2
  exit 0
fi

missing=""
for group in $groups; do
  packages="$(packages_of "$group")"
  for package in $packages; do
    installed "$package" || missing="$missing $package"
  done
done

if [ -n "$missing" ]; then
  echo "setup: installing$missing" >&2
  if ! install_packages $missing >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "setup: installing failed; the whole log is in $log" >&2
    exit 1
  fi
  rm -f "$log"
fi

# From PyPI: pyamg has real matrices, QuantLib prices options, scikit-learn finds clusters (as new as
# Debian's NumPy allows), parasail aligns sequences, OpenCV finds faces in scikit-image's photographs,
# nanobind is what the Python package is built with, pytest and Numba test it. Without them those tests
# say that they are skipped. mpich and impi-rt are MPIs with the standard ABI.
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
    # The header of the standard ABI of MPI, and an MPI that has it.
    [ -f build/venv/include/mpi_abi.h ] ||
      build/venv/bin/python3 -m pip install --quiet --disable-pip-version-check mpich==5.0.2 >"$log" 2>&1 ||
      echo "setup: mpich is not to be had from PyPI; the standard ABI of MPI is left out" >&2
    # CUDA's headers and its compiler, as far as they are needed without a card.
    if ! ls build/venv/lib/python3*/site-packages/nvidia/cu13/lib/libnvrtc.so.13 >/dev/null 2>&1; then
      build/venv/bin/python3 -m pip install --quiet --disable-pip-version-check --no-deps \
        nvidia-cuda-runtime==13.0.96 nvidia-cuda-nvrtc==13.0.88 >"$log" 2>&1 ||
        echo "setup: CUDA's headers are not to be had from PyPI; without others the kind cuda is left out" >&2
      rm -f "$log"
    fi ;;
esac
case " $groups " in
  *" cluster "*)  # a second MPI with the standard ABI
    [ -x build/intel/bin/mpiexec ] ||
      build/venv/bin/python3 -m pip install --quiet --disable-pip-version-check --no-deps \
        --ignore-installed --prefix build/intel impi-rt >"$log" 2>&1 ||
      echo "setup: Intel MPI is not to be had from PyPI; ranks that it starts are not tested" >&2
    rm -f "$log" ;;
esac
