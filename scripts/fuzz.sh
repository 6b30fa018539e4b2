#!/bin/sh
# Runs the fuzzers, one after the other.
#
#   scripts/fuzz.sh BUILD_DIR [TARGET...]      (default: all)
#
# Each runs for FUZZ_SECONDS (default 60) on the files of tests/corpus and on what it found before,
# which it keeps in BUILD_DIR/corpus. An input that it fails on goes to tests/corpus: fix the fault,
# then commit both. Exit code 1 when there is one.
set -eu

if [ $# -lt 1 ]; then
  sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
build="$(cd "$1" && pwd)"
shift
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
  set -- $(cd fuzz && ls -- *_fuzz.cpp | sed 's/_fuzz\.cpp$//')
fi

seconds="${FUZZ_SECONDS:-60}"
export ASAN_SYMBOLIZER_PATH="${ASAN_SYMBOLIZER_PATH:-/usr/bin/llvm-symbolizer-16}"
failed=""
for target in "$@"; do
  seeds="tests/corpus/$target"
  found="$build/corpus/$target"
  log="$build/$target.log"
  mkdir -p "$found" "$seeds"
  dictionary=""
  [ ! -f "$seeds.dict" ] || dictionary="-dict=$seeds.dict"
  if ! "$build/bin/${target}_fuzz" -max_total_time="$seconds" -timeout=25 -report_slow_units=25 \
      -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=4096 -print_final_stats=1 $dictionary \
      -artifact_prefix="$seeds/" "$found" "$seeds" >"$log" 2>&1; then
    failed="$failed $target"
    grep -aE '^fuzz: |ERROR: |runtime error: |Test unit written' "$log" >&2 || tail -n 20 "$log" >&2
  fi
  awk -v target="$target" '/number_of_executed_units/ { runs = $2 }
    / cov: / { for (i = 1; i < NF; ++i) if ($i == "cov:") branches = $(i + 1) }
    END { printf "fuzz: %s: %d inputs, %d branches\n", target, runs, branches }' "$log"
done

if [ -n "$failed" ]; then
  echo "fuzz: failed:$failed; the logs are in $build" >&2
  exit 1
fi
