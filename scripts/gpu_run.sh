#!/bin/sh
# Tests and measures weir on the CUDA card of this machine; a part of what gpu_bundle.sh packs.
#
#   ./run.sh [CARD [N [BENCH]]]      (default: 0 8192 full)
#
# N is the order of the matrices; BENCH full, quick or none says how much of the suite "cuda" of
# bench/run is measured, for which Python 3 is needed.
#
# Writes results/: machine.json, and for each step its output or report. Ends with 0 when every step
# has passed, 1 when one has not, and 2 when there is no card to use or for wrong usage. Needs no
# network.
set -eu

cd "$(dirname "$0")"
card="${1:-0}"
order="${2:-8192}"
bench="${3:-full}"
domain="cuda:$card"
case "$bench" in
  full | quick | none) ;;
  *)
    echo "run: BENCH is full, quick or none, not '$bench'" >&2
    exit 2
    ;;
esac
export LD_LIBRARY_PATH="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export WEIR_CUDA_DRIVER="${WEIR_CUDA_DRIVER:-libcuda.so.1}"
export XDG_CACHE_HOME="$PWD/cache"
export WEIR_BENCH_CARD="$card"
export CUDA_DEVICE_MAX_CONNECTIONS="${CUDA_DEVICE_MAX_CONNECTIONS:-32}"  # places have 8 streams each

# Nothing of an earlier run may pass for a result of this one.
rm -rf results
mkdir -p results "$XDG_CACHE_HOME"

if ! bin/weir info --domains "host,$domain" --json >results/info.json 2>results/info.log; then
  echo "run: there is no card that weir can use: $(cat results/info.log)" >&2
  exit 2
fi

text() { printf '"%s"' "$(printf '%s' "$1" | tr -d '"\\\n')"; }
smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader --id="$card" 2>/dev/null || true; }
{
  printf '{"date": %s, "commit": %s, ' "$(text "$(date -u +%Y-%m-%dT%H:%M:%SZ)")" \
    "$(text "$(cat commit)")"
  printf '"domain": %s, "device": %s, "driver": %s, "system": %s}\n' "$(text "$domain")" \
    "$(text "$(smi name)")" "$(text "$(smi driver_version)")" "$(text "$(uname -srm)")"
} >results/machine.json

failed=""
# step NAME COMMAND...: its output goes to results/NAME.log.
step() {
  name="$1"
  shift
  if timeout 1200 "$@" >"results/$name.log" 2>&1; then
    echo "passed: $name"
  else
    failed="$failed $name"
    echo "FAILED: $name (results/$name.log)"
  fi
}
# report NAME COMMAND...: its output is one JSON object, results/NAME.json.
report() {
  name="$1"
  step "$@"
  if [ "${failed##* }" != "$name" ]; then mv "results/$name.log" "results/$name.json"; fi
}

step conformance bin/conformance --gtest_filter='cuda/*' \
  --gtest_output=json:results/conformance.json
step kernels env WEIR_TEST_DOMAIN="$domain" bin/unit_kernels \
  --gtest_filter='TileKernels*:TileArguments.*:MemoryKernels.*:-*Getrf*:*PotrfNames*' \
  --gtest_output=json:results/kernels.json
step random_programs env WEIR_TEST_PROGRAMS="${WEIR_TEST_PROGRAMS:-20000}" WEIR_TEST_SHRINK=0 bin/random_programs \
  --gtest_filter='Platforms/*' --gtest_output=json:results/random_programs.json

for application in matmul cholesky; do
  for precision in double float; do
    for domains in "$domain" "host,$domain"; do
      report "$application-$precision-$(echo "$domains" | tr ':,' '__')" \
        bin/weir run "$application" --n "$order" --precision "$precision" --domains "$domains" \
        --verify --json
    done
  done
done

# What it costs beside the driver and its libraries.
if [ "$bench" != none ] && ! command -v python3 >/dev/null; then
  failed="$failed bench"
  echo "FAILED: bench (there is no python3)"
elif [ "$bench" = quick ]; then
  step bench source/bench/run cuda --quick --build . --save results
elif [ "$bench" = full ]; then
  step bench source/bench/run cuda --build . --save results
fi

if [ -n "$failed" ]; then
  echo "run: failed:$failed" >&2
  exit 1
fi
