#!/bin/sh
# Builds weir for 64-bit Arm on another machine, and runs its tests under qemu-user.
#
#   scripts/aarch64.sh [prepare] [build] [test]     (default: all three)
#
# prepare  installs the cross compiler and qemu-user (as root or with sudo), and unpacks libraries of
#          Debian for arm64 in WEIR_SYSROOT (default /var/tmp/weir-roots/aarch64); no package of
#          another architecture is installed on this machine
# build    configures the preset aarch64 and builds it with WEIR_JOBS processes (default: all cores)
# test     runs the unit tests, random programs (WEIR_TEST_PROGRAMS of each kind, default 2000), the
#          tests on the deterministic scheduler, and Relacy, WEIR_JOBS at a time, or those that the
#          regular expression WEIR_TESTS names. tests/emulation.txt has what cannot run there, and why
#
# qemu-user executes the instructions in the memory order of this machine: an x86-64 does not show what
# a weaker order allows. Needs Debian 12 or later, its mirror (WEIR_MIRROR names another), and 400 MB.
set -eu

cd "$(dirname "$0")/.."
complain() { echo "aarch64: $*" >&2; exit 1; }
say() { echo "aarch64: $*" >&2; }

case "${1:-}" in --help|-h) sed -n '2,16s/^# \{0,1\}//p' "$0"; exit 0 ;; esac
steps="${*:-prepare build test}"
for step in $steps; do
  case "$step" in
    prepare|build|test) ;;
    *) echo "aarch64: unknown step '$step': choose from prepare, build, test" >&2; exit 2 ;;
  esac
done
export WEIR_SYSROOT="${WEIR_SYSROOT:-/var/tmp/weir-roots/aarch64}"
jobs="${WEIR_JOBS:-$(nproc)}"
tested="${WEIR_TESTS:-^(unit_.*|random_programs|queue_programs|scheduler|scheduled_.*|relacy)\$}"
packages="libc6-dev libgomp1 libhwloc-dev libfmt-dev libspdlog-dev nlohmann-json3-dev libprotozero-dev libcli11-dev
  opencl-c-headers libopenblas0-pthread libopenblas-dev liblapacke-dev libpng-dev libturbojpeg0-dev zlib1g-dev
  libgtest-dev librapidcheck-dev librandom123-dev relacy-dev"

# Downloads packages for arm64 by settings of apt that are in a folder of their own.
download() {
  keys=/usr/share/keyrings/debian-archive-keyring.gpg
  release="$(. /etc/os-release; echo "${VERSION_CODENAME:-}")"
  [ -r "$keys" ] && [ -n "$release" ] ||
    complain "this is not Debian, or debian-archive-keyring is missing: unpack packages for arm64 in a folder," \
      "create .complete in it, and name it by WEIR_SYSROOT: $(echo $packages)"
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
  : >"$apt/status"
  echo "deb [signed-by=$keys] ${WEIR_MIRROR:-http://deb.debian.org/debian} $release main" >"$apt/sources.list"
  cat >"$apt/apt.conf" <<END
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
END
  say "downloading libraries of $release for arm64"
  { APT_CONFIG="$apt/apt.conf" apt-get update -q &&
    APT_CONFIG="$apt/apt.conf" apt-get install -q -y --no-install-recommends --download-only $packages
  } >"$apt/log" 2>&1 ||
    { tail -n 10 "$apt/log" >&2; complain "downloading failed; the whole log is in $apt/log"; }
}

prepare() {
  scripts/setup.sh aarch64
  if [ -e "$WEIR_SYSROOT/.complete" ] && [ "$(cat "$WEIR_SYSROOT/.complete")" = "$packages" ]; then
    return
  fi
  mkdir -p "$(dirname "$WEIR_SYSROOT")" || complain "cannot create $WEIR_SYSROOT: name another by WEIR_SYSROOT"
  apt="$WEIR_SYSROOT.apt"
  download
  rm -rf --one-file-system "$WEIR_SYSROOT"
  mkdir -p "$WEIR_SYSROOT/usr/lib"
  ln -s usr/lib "$WEIR_SYSROOT/lib"
  for package in "$apt"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$WEIR_SYSROOT" --no-same-owner --keep-directory-symlink \
        --exclude='./etc' --exclude='./var' --exclude='./*bin' --exclude='./usr/share/doc' --exclude='./usr/share/perl*' ||
      complain "cannot unpack $package in $WEIR_SYSROOT"
  done
  # What the packages do when they are installed: the alternatives of BLAS.
  libraries="$WEIR_SYSROOT/usr/lib/aarch64-linux-gnu"
  for library in "$libraries"/openblas-pthread/lib*.so*; do
    ln -sf "openblas-pthread/${library##*/}" "$libraries/"
  done
  for link in $(find "$libraries" -type l -lname '/*'); do  # links to elsewhere in the same root
    ln -sf "$WEIR_SYSROOT$(readlink "$link")" "$link"
  done
  rm -rf "$apt"
  echo "$packages" >"$WEIR_SYSROOT/.complete"
  say "unpacked $(du -sm "$WEIR_SYSROOT" | cut -f 1) MB in $WEIR_SYSROOT"
}

build() {
  mkdir -p build
  cmake --preset aarch64 >build/aarch64.configure.log 2>&1 ||
    { cat build/aarch64.configure.log >&2; complain "configuring failed"; }
  cmake --build --preset aarch64 --parallel "$jobs"
}

# Runs a command for which the system starts programs of 64-bit Arm by qemu-user, also those that tests
# start. The setting is one of a user namespace and ends with it: Linux 6.7 or later.
emulated() {
  unshare --user --map-root-user --mount sh -c '
    set -e
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
    magic="\\x7fELF\\x02\\x01\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x02\\x00\\xb7\\x00"
    mask="\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xfe\\xff\\xff\\xff"
    printf "%s\n" ":qemu-aarch64:M::$magic:$mask:$(command -v qemu-aarch64):POCF" \
      >/proc/sys/fs/binfmt_misc/register
    exec "$@"' emulated "$@"
}

run_tests() {
  command -v qemu-aarch64 >/dev/null || complain "qemu-aarch64 is missing: run scripts/aarch64.sh prepare"
  probe="build/aarch64/bin/unit_base --gtest_list_tests"
  [ -x "${probe% *}" ] || complain "nothing is built: run scripts/aarch64.sh build"
  export QEMU_LD_PREFIX="$WEIR_SYSROOT"
  run=emulated
  if $probe >/dev/null 2>&1; then run=env; fi  # the system knows qemu-user already
  $run $probe >/dev/null ||
    complain "this system does not start programs of 64-bit Arm: it needs Linux 6.7 and user namespaces, or qemu-user-binfmt"
  cases="$(sed -n 's/^\([^# ][^ ]*\): .*/\1/p' tests/emulation.txt | paste -sd ':')"
  export GTEST_FILTER="-$cases" WEIR_TEST_PROGRAMS="${WEIR_TEST_PROGRAMS:-2000}"
  # weir warns of variables that it does not know: those of this script.
  $run env -u WEIR_JOBS -u WEIR_SYSROOT -u WEIR_TESTS -u WEIR_MIRROR ctest --preset aarch64 --parallel "$jobs" --tests-regex "$tested"
}

for step in $steps; do
  case "$step" in
    prepare) prepare ;;
    build) build ;;
    test) run_tests ;;
  esac
done
