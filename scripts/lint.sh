#!/bin/sh
# Checks format, layers, spelling and, with clang-tidy, names and mistakes.
#
#   scripts/lint.sh BUILD_DIR [FOLDER...]     only in these folders, default: src apps tools examples
#
# BUILD_DIR is built: what was compiled there is checked. Joined sources take a third of the time.
set -eu

if [ $# -lt 1 ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
build="$(cd "$1" && pwd)"
shift
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- src apps tools examples
if [ ! -f "$build/compile_commands.json" ]; then
  echo "lint: $build has no compile_commands.json: configure it first" >&2
  exit 2
fi

failed=""
scripts/format.sh --check || { echo "lint: run scripts/format.sh" >&2; failed="$failed format"; }
/usr/bin/python3 tests/layers/check_layers.py . || failed="$failed layers"

# Tests misspell on purpose. tests/words/codespell.txt has names and terms that are no mistakes.
if command -v codespell >/dev/null; then
  codespell -I tests/words/codespell.txt --skip '*.json,*.svg,*.dot,*/__pycache__' \
    ./*.md docs include src apps tools python fortran examples scripts cmake packaging tests/docs tests/words ||
    failed="$failed codespell"
else
  echo "lint: codespell is missing: run scripts/setup.sh lint" >&2
  failed="$failed codespell"
fi

sources() {
  /usr/bin/python3 - "$build/compile_commands.json" "$@" <<'END'
import json, os, re, sys
root, build = os.getcwd(), os.path.dirname(sys.argv[1])
folders = tuple(folder.rstrip("/") + "/" for folder in sys.argv[2:])
def parts(name):  # of joined sources, those that they include
    if not name.startswith(build + "/"):
        return [os.path.relpath(name, root)]
    included = re.findall(r'#include "(/.*)"', open(name).read())
    return [os.path.relpath(name, build), *(os.path.relpath(each, root) for each in included)]
def inside(name):
    return any(part.startswith(folders) for part in parts(name))
names = {entry["file"] for entry in json.load(open(sys.argv[1]))}
print("\n".join(sorted(name for name in names if os.path.exists(name) and inside(name))))
END
}

# Clang does not know some of the options of g++. It speaks only of files with findings.
tidy='said="$(clang-tidy-16 -p "$0" --quiet --extra-arg=-Wno-unknown-warning-option \
  --extra-arg=-Wno-ignored-optimization-argument "$1" 2>&1)" || { echo "$said"; exit 1; }'
names="$(sources "$@")"
if [ -n "$names" ]; then
  echo "$names" | xargs -P "$(nproc)" -n 1 sh -c "$tidy" "$build" || failed="$failed clang-tidy"
else
  echo "lint: no source is in $*" >&2
  failed="$failed sources"
fi

if [ -n "$failed" ]; then
  echo "lint: failed:$failed" >&2
  exit 1
fi
echo "lint: clean"
