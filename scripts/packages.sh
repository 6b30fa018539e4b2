#!/bin/sh
# Builds the Debian packages of weir for this system: dist/*.deb.
#
#   scripts/packages.sh [--lint]      --lint: also checks them with lintian, and fails on errors
#
# Needs what scripts/setup.sh build installs, and file, dpkg-dev and lintian; packages for Python and
# Fortran are built where python3-dev, nanobind (build/venv) and gfortran are.
set -eu

cd "$(dirname "$0")/.."
lint=""
case "${1:-}" in
  "") ;;
  --lint) lint=yes ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
build=build/packages
libraries="lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)"
mkdir -p dist
rm -f dist/*.deb
cmake --preset release -B "$build" -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="$libraries" \
  -DCMAKE_SKIP_INSTALL_RPATH=ON -DWEIR_PACKAGES=ON -DWEIR_PYTHON_DIR=lib/python3/dist-packages/weir \
  -DWEIR_BUILD_TESTS=OFF -DWEIR_BUILD_EXAMPLES=OFF >"$build.configure.log" ||
  { cat "$build.configure.log"; exit 1; }
cmake --build "$build"
(cd "$build" && cpack -G DEB >cpack.log) || { cat "$build/cpack.log"; exit 1; }
ls -l dist/*.deb
if [ -n "$lint" ]; then
  lintian --fail-on error --suppress-tags initial-upload-closes-no-bugs dist/*.deb
fi
