#!/bin/sh
# Factors a real matrix and checks the result: the stiffness of a steel bracket under load.
#
#   scripts/demo.sh [BUILD_FOLDER]      (default: build/release)
#
# Everything it writes is in build/demo. Ends with the exit code of the first step that fails.
set -eu

cd "$(dirname "$0")/.."
build="${1:-build/release}"
folder=build/demo

for program in weir bracket; do
  if [ ! -x "$build/bin/$program" ]; then
    echo "demo: $build/bin/$program is not there: run 'make build' first" >&2
    exit 2
  fi
done

# Nothing of an earlier run may pass for a result of this one.
rm -rf "$folder"
mkdir -p "$folder"

"$build/bin/bracket" --output "$folder"
"$build/bin/weir" run cholesky --input "$folder/K.mtx" --rhs "$folder/f.npy" \
  --solution "$folder/u.npy" --repeat 4 --verify --trace "$folder/timeline.json" \
  --json >"$folder/result.json"

/usr/bin/python3 scripts/demo_result.py "$folder/result.json"

echo "checks that use none of weir's code:"
/usr/bin/python3 scripts/check_bracket.py "$folder" "$folder/u.npy"
echo "timeline: $folder/timeline.json, to be opened at https://ui.perfetto.dev"
