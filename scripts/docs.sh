#!/bin/sh
# Makes the documentation site: the pages of the tree and a reference from the public headers.
#
#   scripts/docs.sh FOLDER      writes FOLDER/html; what Doxygen or Sphinx warns of is an error
#
# Needs no network. scripts/setup.sh docs installs what it needs.
set -eu

[ $# -eq 1 ] || { sed -n 2,7p "$0" >&2; exit 2; }
mkdir -p "$1"
out="$(cd "$1" && pwd)"
cd "$(dirname "$0")/.."

for needed in doxygen sphinx-build; do
  command -v "$needed" >/dev/null || {
    echo "docs: $needed is missing: run scripts/setup.sh docs" >&2
    exit 1
  }
done

doxygen - >"$out/doxygen.log" 2>&1 <<END || { cat "$out/doxygen.log" >&2; exit 1; }
INPUT = include/weir
EXCLUDE = include/weir/portable.h include/weir/portable_host.hpp include/weir/export.h
OUTPUT_DIRECTORY = $out
GENERATE_XML = YES
GENERATE_HTML = NO
GENERATE_LATEX = NO
OPTIMIZE_OUTPUT_FOR_C = NO
EXTENSION_MAPPING = h=C
ENABLE_PREPROCESSING = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = WEIR_API= "WEIR_PRINTF(format,first)=" "WEIR_DEVICE_CODE=inline" "WEIR_DEVICE_OR_HOST_CODE=inline"
TYPEDEF_HIDES_STRUCT = YES
EXCLUDE_SYMBOLS = weir::detail
EXTRACT_ALL = YES
JAVADOC_AUTOBRIEF = YES
QUIET = YES
WARN_AS_ERROR = YES
WARN_IF_UNDOCUMENTED = NO
END

WEIR_DOCS_ROOT="$PWD" WEIR_DOCS_XML="$out/xml" \
  sphinx-build -q -E -W --keep-going -c docs/site -d "$out/doctrees" . "$out/html" \
  >"$out/sphinx.log" 2>&1 || { cat "$out/sphinx.log" >&2; exit 1; }
echo '<meta http-equiv="refresh" content="0; url=docs/site/index.html">' >"$out/html/index.html"
echo "docs: $out/html/index.html"
