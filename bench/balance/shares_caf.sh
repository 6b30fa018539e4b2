#!/bin/sh
# Runs the images of shares_caf: shares_caf IMAGES ARGUMENT...
images=$1
shift
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
exec "@BENCH_MPIRUN@" --oversubscribe -n "$images" "$(dirname "$0")/shares_caf_images" "$@"
