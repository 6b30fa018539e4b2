#!/bin/sh
# Tests and measures weir on the CUDA card of this machine; a part of what gpu_bundle.sh packs.
#
#   ./run.sh [CARD [N [BENCH]]]      (default: 0 8192 full)
#
# N is the order of the matrices; BENCH full, quick or none says how much of the suite "cuda" of
# bench/run is measured, for which Python 3 is needed. For a machine that is lent for minutes:
#
#   RUN_STEPS    only these of "tests apps bench"
#   RUN_ROWS     only rows of the suite whose name matches this expression, in three rounds
#   RUN_SECONDS  ends after about so long; a step that had no time left has failed
#
# Writes results/: machine.json, and for each step its output or report; results.tar.gz is all of
# it. Ends with 0 when every step has passed, 1 when one has not, and 2 when there is no card to use
# or for wrong usage. Needs no network.
set -eu
begun="$(date +%s)"

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
for word in ${RUN_STEPS:=tests apps bench}; do
  case "$word" in
    tests | apps | bench) ;;
    *)
      echo "run: RUN_STEPS has words of 'tests apps bench', not '$word'" >&2
      exit 2
      ;;
  esac
done

# CUDA's libraries are the bundle's, or else a toolkit's or those of Python's packages.
libraries="$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
packages="$(python3 -c 'print(__import__("sysconfig").get_path("purelib"))' 2>/dev/null || true)"
for folder in /usr/local/cuda/lib64 "$packages"/nvidia/*/lib; do
  if [ -d "$folder" ]; then libraries="$libraries:$folder"; fi
done
export LD_LIBRARY_PATH="$libraries"
export WEIR_CUDA_DRIVER="${WEIR_CUDA_DRIVER:-libcuda.so.1}"
export XDG_CACHE_HOME="$PWD/cache"
export WEIR_BENCH_CARD="$card"
export WEIR_BENCH_MACHINE="$PWD/results/machine.json"
export CUDA_DEVICE_MAX_CONNECTIONS="${CUDA_DEVICE_MAX_CONNECTIONS:-32}"  # places have 8 streams each

# Nothing of an earlier run may pass for a result of this one.
rm -rf results results.tar.gz
mkdir -p results "$XDG_CACHE_HOME"

if ! bin/weir info --domains "host,$domain" --json >results/info.json 2>results/info.log; then
  echo "run: there is no GPU that weir can use: $(cat results/info.log)" >&2
  exit 2
fi

text() { printf '"%s"' "$(printf '%s' "$1" | tr -d '"\\\n')"; }
smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader --id="$card" 2>/dev/null || true; }
device="$(smi name)"
if [ -z "$device" ]; then  # as weir calls it
  device="$(sed -n 's/^ *"description": "\(.*(compute capability .*\)",*$/\1/p' results/info.json |
    head -n 1)"
fi
{
  printf '{"date": %s, "commit": %s, ' "$(text "$(date -u +%Y-%m-%dT%H:%M:%SZ)")" \
    "$(text "$(cat commit)")"
  printf '"domain": %s, "device": %s, "driver": %s, "system": %s}\n' "$(text "$domain")" \
    "$(text "$device")" "$(text "$(smi driver_version)")" "$(text "$(uname -srm)")"
} >results/machine.json

failed=""
wants() { case " $RUN_STEPS " in *" $1 "*) ;; *) return 1 ;; esac; }
# Prints how many seconds a step may take, 0 or less for none.
time_left() {
  left=$((begun + ${RUN_SECONDS:-1000000} - $(date +%s)))
  echo $((left < 1200 ? left : 1200))
}
# step NAME COMMAND...: its output goes to results/NAME.log.
step() {
  name="$1"
  shift
  limit="$(time_left)"
  if [ "$limit" -le 0 ]; then
    failed="$failed $name"
    echo "no time: $name"
  elif timeout -k 5 "$limit" "$@" >"results/$name.log" 2>&1; then
    echo "passed: $name"
  else
    failed="$failed $name"
    echo "FAILED: $name (results/$name.log)"
  fi
}
# report NAME COMMAND...: its output is one JSON object, results/NAME.json; its log is what it says
# beside that.
report() {
  json="results/$1.json"
  name="$1"
  shift
  step "$name" sh -c 'exec >"$1" && shift && exec "$@"' sh "$json" "$@"
  if [ "${failed##* }" = "$name" ] && [ -f "$json" ]; then
    cat "$json" >>"results/$name.log"
    rm "$json"
  fi
}

if wants tests; then
  step conformance bin/conformance --gtest_filter='cuda/*' \
    --gtest_output=json:results/conformance.json
  step kernels env WEIR_TEST_DOMAIN="$domain" bin/unit_kernels \
    --gtest_filter='TileKernels*:TileArguments.*:MemoryKernels.*:-*Getrf*:*PotrfNames*' \
    --gtest_output=json:results/kernels.json
fi

if wants apps; then
  for application in matmul cholesky; do
    for precision in double float; do
      for domains in "$domain" "host,$domain"; do
        report "$application-$precision-$(echo "$domains" | tr ':,' '__')" \
          bin/weir run "$application" --n "$order" --precision "$precision" --domains "$domains" \
          --verify --json
      done
    done
  done
fi

# What it costs beside the driver and its libraries.
if wants bench && [ "$bench" != none ]; then
  set -- source/bench/run cuda --build . --save results
  if [ "$bench" = quick ]; then set -- "$@" --quick; fi
  if [ -n "${RUN_ROWS:-}" ]; then set -- "$@" --only "$RUN_ROWS" --rounds 3; fi
  if command -v python3 >/dev/null; then
    step bench "$@"
  else
    failed="$failed bench"
    echo "FAILED: bench (there is no python3)"
  fi
fi

tar -czf results.tar.gz results
if [ -n "$failed" ]; then
  echo "run: failed:$failed" >&2
  exit 1
fi
