# A thin front: each target installs what is missing, configures, builds and runs.
#
#   make demo    factor a real matrix and show the verified result
#   make test    build and run all tests
#   make build   leaves the command line tool at build/release/bin/weir
#   make bench   measure weir and its peers; writes docs/measurements/
#   make format  format the sources          make lint   check format, layers and clang-tidy
#   make asan    run the tests with the address and undefined-behaviour sanitizers
#   make tsan    run the tests with the thread sanitizer
#   make fuzz    run the fuzzers, FUZZ_SECONDS each (60), FUZZ_TARGETS only if given

.PHONY: demo build test bench format lint asan tsan fuzz clean
.DEFAULT_GOAL := build

# Configures and builds a preset; $(2): more arguments for CMake.
define BUILD
@mkdir -p build
@cmake --preset $(1) $(2) >build/$(1).configure.log 2>&1 || { cat build/$(1).configure.log; exit 1; }
@cmake --build --preset $(1)
endef

build:
	@scripts/setup.sh build
	$(call BUILD,release,-DWEIR_BUILD_TESTS=OFF)

demo: build
	@scripts/demo.sh build/release

test:
	@scripts/setup.sh build test
	$(call BUILD,release,-DWEIR_BUILD_TESTS=ON)
	@ctest --preset release

bench:
	@scripts/setup.sh build bench
	$(call BUILD,bench)
	@bench/run all --save docs/measurements

asan tsan:
	@scripts/setup.sh build test
	$(call BUILD,$@)
	@ctest --preset $@

fuzz:
	@scripts/setup.sh build fuzz
	$(call BUILD,$@)
	@scripts/fuzz.sh build/fuzz $(FUZZ_TARGETS)

format:
	@scripts/setup.sh lint
	@scripts/format.sh

lint:
	@scripts/setup.sh build test lint
	$(call BUILD,release,-DWEIR_BUILD_TESTS=ON)
	@scripts/lint.sh build/release

clean:
	@rm -rf build
