#!/bin/sh
# Proves in an empty Debian system that weir installs and runs there.
#
#   scripts/roots.sh source   RELEASE            make demo and make test, from a clean clone
#   scripts/roots.sh archive  RELEASE FILE.tgz   make demo, from a source archive
#   scripts/roots.sh wheel    RELEASE FILE.whl   pip install without a compiler; Python, weir run
#   scripts/roots.sh packages RELEASE FOLDER     apt install of FOLDER/*.deb, programs, apt purge
#   scripts/roots.sh container RELEASE           the steps of the Containerfile and of weir.def
#   scripts/roots.sh shell    RELEASE            a shell in the root
#
# RELEASE: bookworm, trixie, ... The empty system is made once, by debootstrap, in
# $WEIR_ROOTS/RELEASE (default /var/tmp/weir-roots); each run works on a copy of it, which it removes.
# Run it as root. The settings of this machine for apt, pip and names are used there, too.
set -eu

[ $# -ge 2 ] || { sed -n '2,13s/^# \{0,1\}//p' "$0" >&2; exit 2; }
what="$1" release="$2" given="${3:-}"
cd "$(dirname "$0")/.."
roots="${WEIR_ROOTS:-/var/tmp/weir-roots}"
base="$roots/$release"
if [ ! -e "$base/.complete" ]; then
  rm -rf "$base"
  mkdir -p "$roots"
  debootstrap --variant=minbase --include=ca-certificates "$release" "$base" >"$roots/$release.log" 2>&1 ||
    { tail -n 5 "$roots/$release.log" >&2; exit 1; }
  touch "$base/.complete"
fi

root="$roots/$release.$$"
trap 'rm -rf --one-file-system "$root" "$root".*' EXIT
cp -a "$base" "$root"
mkdir -p "$root/given"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  [ ! -e "$file" ] || cp -L "$file" "$root$file"
done
cp /etc/apt/apt.conf.d/99* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true

case "$what" in
  source)
    git clone -q . "$root/given/weir"
    script='apt-get update -q && apt-get install -q -y --no-install-recommends git make
git config --global --add safe.directory "*"
cd /given/weir
time make demo
time make test' ;;
  archive)
    cp "$given" "$root/given"
    script='apt-get update -q && apt-get install -q -y --no-install-recommends make
tar -xzf /given/*.tar.gz -C /given
cd /given/weir-*/
time make demo
build/release/bin/weir --version' ;;
  wheel)
    cp "$given" "$root/given"
    cp scripts/try_installed.py "$root/given"
    script='apt-get update -q && apt-get install -q -y --no-install-recommends python3 python3-venv
! command -v cc && ! command -v g++
python3 -m venv /given/venv
time /given/venv/bin/pip install -q /given/*.whl
PATH=/given/venv/bin:$PATH python /given/try_installed.py
/given/venv/bin/pip install -q scipy-openblas32
/given/venv/bin/weir run cholesky --n 2048 --verify --repeat 3
/given/venv/bin/pip uninstall -q -y weir-runtime
! ls -d /given/venv/lib/python3*/site-packages/weir* 2>/dev/null' ;;
  packages)
    cp "$given"/*.deb "$root/given"
    cp scripts/try_installed.py tests/install/consumer.c tests/install/consumer.cpp "$root/given"
    script='apt-get update -q
apt-get install -q -y --no-install-recommends /given/*.deb g++ pkg-config
python3 /given/try_installed.py
man -w weir 2>/dev/null || ls /usr/share/man/man1/weir.1.gz
g++ -std=c++20 /given/consumer.cpp $(pkg-config --cflags --libs weir) -o /given/consumer
/given/consumer
apt-get purge -q -y "libweir*" weir-tools python3-weir libhstreams
left=$(find / -xdev \( -name "*weir*" -o -name "*hstreams*" \) ! -path "/given*" ! -path "/proc*" ! -path "/var/lib/dpkg/*")
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }' ;;
  container)
    # The working tree as git knows it: a build from a clean checkout.
    mkdir "$root.context"
    git ls-files -co --exclude-standard -z | xargs -0 cp -a --parents -t "$root.context"
    for file in packaging/container/Containerfile packaging/container/weir.def; do
      scripts/run_container.py "$release" "$root" "$root.context" "$file" -- --version
      scripts/run_container.py "$release" "$root" "$root.context" "$file" -- run cholesky --n 1024 --verify
    done
    echo "roots: $what works in $release"
    exit 0 ;;
  shell) script='exec bash -i' ;;
  *) echo "roots: unknown '$what': choose from source, archive, wheel, packages, container, shell" >&2; exit 2 ;;
esac
echo "set -e
export DEBIAN_FRONTEND=noninteractive
$script" >"$root/given/run.sh"

unshare -m -p -f --mount-proc="$root/proc" bash -c '
  mount -t sysfs none "$1/sys"
  mount --rbind /dev "$1/dev"
  mount -t tmpfs none "$1/dev/shm"
  exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8 \
    bash /given/run.sh' _ "$root"
echo "roots: $what works in $release"
