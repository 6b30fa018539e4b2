#!/bin/sh
# Builds weir in a Debian system into PREFIX, with the command and the module for Open MPI, and lists
# in PREFIX/share/weir/debian-packages what it needs to run. For the Containerfile and weir.def.
#
#   packaging/container/build.sh PREFIX
set -eu

[ $# -eq 1 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
prefix="$1"
cd "$(dirname "$0")/../.."
scripts/setup.sh build
DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends libopenmpi-dev
cmake --preset release -B build/container -DCMAKE_INSTALL_PREFIX="$prefix" -DWEIR_BUILD_TESTS=OFF \
  -DWEIR_BUILD_EXAMPLES=OFF -DWEIR_BUILD_PYTHON=OFF -DWEIR_BUILD_FORTRAN=OFF -DWEIR_BUILD_MPI=ON
cmake --build build/container
cmake --install build/container --strip

# The packages of all libraries that are linked, and a BLAS, which is opened at run time.
mkdir -p "$prefix/share/weir"
{
  echo libopenblas0-pthread
  find "$prefix/bin" "$prefix/lib" -type f \( -name "lib*.so*" -o -name weir \) -exec ldd {} + |
    sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' | sort -u | while read -r library; do
    case "$library" in "$prefix"/*) continue ;; esac
    # Packages of before the merge of /lib and /usr/lib name either.
    dpkg-query -S "$(readlink -f "$library")" 2>/dev/null || dpkg-query -S "*${library##*/lib/}"
  done | sed 's/:.*//'
} | sort -u >"$prefix/share/weir/debian-packages"
cat "$prefix/share/weir/debian-packages"
