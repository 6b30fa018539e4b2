#!/bin/sh
# Makes the image of a report for the README: a run in virtual time, shown by Chromium.
#
#   docs/pictures/report.sh BUILD_DIR      writes docs/pictures/report.png; repeat it when the report changes
set -eu

[ $# -eq 1 ] || { sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2; }
weir="$(cd "$1" && pwd)/bin/weir"
cd "$(dirname "$0")"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

device=clock=virtual,kernels=skip
XDG_CACHE_HOME="$scratch" "$weir" run cholesky --n 2048 --policy finish --repeat 2 \
  --domains "host:cores=4,gflops=30,$device,sim:cores=8,gflops=20,gbps=8,$device" \
  --report "$scratch/report.html" >"$scratch/run.log"
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --virtual-time-budget=3000 \
  --window-size=1280,1270 --screenshot=report.png "file://$scratch/report.html" 2>"$scratch/chromium.log"
echo "pictures: docs/pictures/report.png"
