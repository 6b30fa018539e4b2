# A thin front: each target installs what is missing, configures, builds and runs.
#
#   make demo    factor a real matrix and show the verified result
#   make test    build and run all tests
#   make build   leaves the command line tool at build/release/bin/weir
#   make bench   measure weir and its peers; writes docs/measurements/
#   make format  format the sources          make lint   check format, layers and clang-tidy
#   make asan    run the tests with the address and undefined-behaviour sanitizers
#   make tsan    run the tests with the thread sanitizer

.PHONY: demo build test bench format lint asan tsan clean setup
.DEFAULT_GOAL := build

CMAKE_CONFIGURE = cmake --preset $(1) >build/$(1).configure.log 2>&1 \
  || { cat build/$(1).configure.log; exit 1; }

setup:
	@scripts/setup.sh build

build: setup
	@mkdir -p build
	@$(call CMAKE_CONFIGURE,release)
	@cmake --build --preset release

demo: build
	@scripts/demo.sh build/release

test:
	@scripts/setup.sh build test
	@$(MAKE) --no-print-directory build
	@ctest --preset release --output-on-failure

bench:
	@scripts/setup.sh build bench
	@mkdir -p build
	@$(call CMAKE_CONFIGURE,bench)
	@cmake --build --preset bench
	@bench/run all --save docs/measurements

asan tsan:
	@scripts/setup.sh build test lint
	@mkdir -p build
	@$(call CMAKE_CONFIGURE,$@)
	@cmake --build --preset $@
	@ctest --preset $@

format:
	@scripts/setup.sh lint
	@scripts/format.sh

lint:
	@scripts/setup.sh build test lint
	@mkdir -p build
	@$(call CMAKE_CONFIGURE,release)
	@scripts/lint.sh build/release

clean:
	@rm -rf build
