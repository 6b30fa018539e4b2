# A thin front: each target installs what is missing, configures, builds and runs.
#
#   make demo    factor a real matrix and show the verified result
#   make test    build and run the tests, with a short form of the proof
#   make build   leaves the command line tool at build/release/bin/weir
#   make docs    makes the documentation site in build/docs/html
#   make bench   measure weir and its peers; writes docs/measurements/
#   make format  format the sources          make lint   check format, layers and clang-tidy
#   make asan    run the tests with the address and undefined-behaviour sanitizers
#   make tsan    run the tests with the thread sanitizer
#   make aarch64 build for 64-bit Arm and run the tests under qemu-user
#   make proof-gate  what each commit passes: random programs, faults, schedules, and checks of the sources
#   make proof   the part for a night; SCALE=0.1 for a tenth of it, RESUME=FILE to go on with one
#   make mutants break the library in many ways, one at a time, and see that the tests notice
#   make release VERSION=X.Y.Z  bump, build wheel, packages and archive, prove each, tag
#   make fuzz    run the fuzzers, FUZZ_SECONDS each (60), FUZZ_TARGETS only if given

.PHONY: demo build test docs bench format lint asan tsan proof-gate proof mutants fuzz aarch64 release clean
.DEFAULT_GOAL := build

# Configures and builds a preset; $(2): more arguments for CMake; $(3): targets (default: all).
define BUILD
@mkdir -p build
@cmake --preset $(1) $(2) >build/$(1).configure.log 2>&1 || { cat build/$(1).configure.log; exit 1; }
@cmake --build --preset $(1) $(if $(3),--target $(3))
endef

# WERROR=ON treats warnings as errors, as continuous integration does.
TESTS = -DWEIR_BUILD_TESTS=ON -DWEIR_WERROR=$(or $(WERROR),OFF)

build:
	@scripts/setup.sh build
	$(call BUILD,release,-DWEIR_BUILD_TESTS=OFF)

demo:
	@scripts/setup.sh build
	$(call BUILD,release,-DWEIR_BUILD_TESTS=OFF,weir_cli bracket)
	@scripts/demo.sh build/release

test:
	@scripts/setup.sh build test
	$(call BUILD,release,$(TESTS) -DWEIR_BUILD_PROOF=OFF)
	@tests/proof/proof.py suite

proof-gate:
	@scripts/setup.sh build test docs
	$(call BUILD,release,$(TESTS) -DWEIR_BUILD_PROOF=ON -DWEIR_TSAN_BUILD=$(CURDIR)/build/tsan)
	@cmake --preset tsan $(TESTS) >build/tsan.configure.log 2>&1 || { cat build/tsan.configure.log; exit 1; }
	@cmake --build --preset tsan --target random_programs queue_programs
	@tests/proof/proof.py gate

proof: proof-gate
	@tests/proof/proof.py long --scale $(or $(SCALE),1) $(if $(RESUME),--resume $(RESUME)) --save docs/measurements/proof.md

mutants:
	@scripts/setup.sh build test
	@tests/mutants/mutants.py --run

docs:
	@scripts/setup.sh docs
	@scripts/docs.sh build/docs

bench:
	@scripts/setup.sh build bench
	$(call BUILD,bench)
	@bench/run all --save docs/measurements

asan:
	@scripts/setup.sh build test lint
	$(call BUILD,asan)
	@ctest --preset asan -j $$(nproc)

tsan:
	@scripts/setup.sh build test lint
	$(call BUILD,tsan-clang)
	@ctest --preset tsan-clang -j $$(nproc)

aarch64:
	@scripts/aarch64.sh

fuzz:
	@scripts/setup.sh build fuzz
	$(call BUILD,$@)
	@scripts/fuzz.sh build/fuzz $(FUZZ_TARGETS)

release:
	@scripts/setup.sh build test release
	@scripts/release.py all "$(VERSION)"

format:
	@scripts/setup.sh lint
	@scripts/format.sh

lint:
	@scripts/setup.sh build test lint
	$(call BUILD,lint)
	@scripts/lint.sh build/lint

clean:
	@rm -rf build
