#!/bin/sh
# Formats the C and C++ sources.
#
#   scripts/format.sh [--check]      --check changes nothing and fails when something would change
set -eu

cd "$(dirname "$0")/.."
case "${1:-}" in
  "") mode="-i" ;;
  --check) mode="--dry-run --Werror" ;;
  *) echo "format: unknown option '$1': the only one is --check" >&2; exit 2 ;;
esac

find include src apps tools examples tests bench fuzz python fortran -type f \
  \( -name '*.h' -o -name '*.hpp' -o -name '*.c' -o -name '*.cpp' \) -print0 2>/dev/null |
  xargs -0 -r clang-format-16 $mode
