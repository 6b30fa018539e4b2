#!/bin/sh
# Packs what measures and tests weir on a machine with a CUDA card and without a network.
#
#   scripts/gpu_bundle.sh [--cuda FOLDER] [BUILD_FOLDER]      (default: build/release)
#
# Makes build/weir-gpu-COMMIT.tar.gz: the programs, the libraries that they need but for the C
# library, the sources at this commit, and scripts/gpu_run.sh as run.sh. --cuda adds the libraries of
# CUDA in a folder (NVRTC, cuBLAS, cuSOLVER), for machines that have the driver alone. Installs and
# configures what is missing.
set -eu

cuda=""
if [ "${1:-}" = "--cuda" ]; then
  cuda="$(cd "$2" && pwd)"
  shift 2
fi
cd "$(dirname "$0")/.."
build="${1:-build/release}"
commit="$(git rev-parse --short=12 HEAD)"
if [ -n "$(git status --porcelain --untracked-files=no)" ]; then
  echo "gpu_bundle: there are changes that are not committed: the bundle would not be $commit" >&2
  exit 2
fi
scripts/setup.sh build test
[ -f "$build/CMakeCache.txt" ] || cmake --preset release -B "$build" >/dev/null
cmake -S . -B "$build" -DWEIR_BUILD_TESTS=ON -DWEIR_BUILD_BENCH=ON >/dev/null
if grep -q '^WEIR_CUDA_HEADERS:.*NOTFOUND' "$build/CMakeCache.txt"; then
  echo "gpu_bundle: CUDA's headers are missing, so weir has no domains of this kind" >&2
  exit 2
fi
cmake --build "$build" --target weir_cli conformance unit_kernels \
  bench_copies_weir bench_kernels_weir bench_cuda_raw bench_describe

name="weir-gpu-$commit"
folder="build/$name"
rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib" "$folder/bench/programs"
git archive --prefix=source/ HEAD | tar -x -C "$folder"
for program in weir conformance unit_kernels; do
  cp "$build/bin/$program" "$folder/bin"
done
for program in copies_weir kernels_weir cuda_raw describe; do
  cp "$build/bench/programs/$program" "$folder/bench/programs"
done
cp scripts/gpu_run.sh "$folder/run.sh"
echo "$commit" >"$folder/commit"

# Libraries of a file, but for those of the C library, which belong to the loader of the machine.
libraries_of() {
  ldd "$1" | awk '$3 ~ /^\// { print $3 }' |
    grep -Ev '/(libc|libm|libdl|librt|libpthread|ld-linux[^/]*)\.so' || true
}

blas="$(ldconfig -p | awk '$1 ~ /^libopenblas\.so\.0/ { print $NF; exit }')"
[ -z "$blas" ] || cp -L "$blas" "$folder/lib/libopenblas.so.0"
for file in "$folder"/bin/* "$folder"/bench/programs/* $blas; do
  for library in $(libraries_of "$file"); do
    cp -Lu "$library" "$folder/lib"
  done
done
if [ -n "$cuda" ]; then
  for library in nvrtc nvrtc-builtins cublas cublasLt cusolver cusparse nvJitLink; do
    cp -P "$cuda"/lib"$library".so.* "$folder/lib"
  done
fi

tar -C build -czf "build/$name.tar.gz" "$name"
rm -rf "$folder"
echo "build/$name.tar.gz"
