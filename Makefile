# A thin cover over CMake. `make help` lists what there is.
BUILD ?= build
PREFIX ?= /usr/local
CMAKE ?= cmake
CTEST ?= ctest
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
SETUP ?= scripts/setup.sh
CMAKE_FLAGS ?=
empty :=
space := $(empty) $(empty)

.PHONY: all setup build test test-memory test-ranks test-browser test-clang test-isas test-valgrind coverage fuzz soak attack demo bench bench-peers asan tsan test-python wheel install format clean help

all: build

setup:
	@$(SETUP)

build: setup
	@$(CMAKE) -S . -B $(BUILD) $(CMAKE_FLAGS) --log-level=WARNING
	@$(CMAKE) --build $(BUILD) --parallel $(JOBS)

test: build
	$(CTEST) --test-dir $(BUILD) --output-on-failure --parallel $(JOBS)

test-python: build
	@WITH_VENV=1 $(SETUP)
	@scripts/python.sh test $(BUILD)

# Reports in Debian's Chromium, which it installs; SCREENSHOTS=FOLDER keeps pictures of them.
test-browser: build
	@WITH_CHROMIUM=1 $(SETUP)
	@python3 tests/browser.py $(BUILD)/hollow . $(SCREENSHOTS)

wheel:
	@WITH_VENV=1 $(SETUP)
	@scripts/python.sh wheel $(BUILD)

# Builds the three programs alone; what make says is shown only if that fails.
demo: setup
	@echo "Building $(BUILD)/hollow ..."
	@log=$$(mktemp); if $(CMAKE) -S . -B $(BUILD) $(CMAKE_FLAGS) --log-level=WARNING >$$log 2>&1 && \
	    $(CMAKE) --build $(BUILD) --parallel $(JOBS) --target hollow_program hollow_bench hollow_paper >>$$log 2>&1; \
	    then rm -f $$log; else cat $$log >&2; rm -f $$log; exit 1; fi
	@scripts/demo.sh $(BUILD)

bench: build
	@for program in $(BUILD)/bench/bench_*; do \
	    if [ -f "$$program" ] && [ -x "$$program" ]; then "$$program" || exit 1; fi; \
	done; $(BUILD)/hollow bench

# Beside PyTorch, JAX and others from PyPI, in a virtual environment; PEERS=--quick for few repetitions.
bench-peers: build
	@WITH_VENV=1 $(SETUP)
	@python3 bench/peers/peers.py --build $(BUILD) --docs docs $(PEERS)

# What compilers may see differently: warnings, vector code, the tests of kernels and files.
test-clang:
	@WITH_CLANG=1 $(SETUP)
	@$(MAKE) --no-print-directory build BUILD=build-clang CMAKE_FLAGS="$(CMAKE_FLAGS) -DCMAKE_C_COMPILER=clang"
	$(CTEST) --test-dir build-clang --output-on-failure --parallel $(JOBS) -R 'test_(kernel|ops|io|json|csv|npy|net|plan)$$'

# The kernels without AVX2, then with it but without AVX-512, which this machine may never run otherwise. Only kernels are compiled again.
ISA_TESTS = test_kernel test_ops test_plan test_net test_family test_operator test_flow test_diff
test-isas:
	@$(SETUP)
	@for isas in base $$(grep -qw avx2 /proc/cpuinfo && echo 'base;avx2'); do echo "instruction sets: $$isas"; \
	    $(CMAKE) -S . -B build-base $(CMAKE_FLAGS) -DHL_ISAS="$$isas" --log-level=WARNING && \
	    $(CMAKE) --build build-base --parallel $(JOBS) --target $(ISA_TESTS) && \
	    $(CTEST) --test-dir build-base --output-on-failure --parallel $(JOBS) -R '^($(subst $(space),|,$(ISA_TESTS)))$$' || exit 1; done

SECONDS ?= 60
fuzz:
	@WITH_FUZZER=1 $(SETUP)
	@$(CMAKE) -S . -B build-fuzz $(CMAKE_FLAGS) -DCMAKE_C_COMPILER=clang -DHL_FUZZ=ON -DHL_ISAS=base -DHL_HARDEN=OFF -DBUILD_TESTING=OFF --log-level=WARNING
	@$(CMAKE) --build build-fuzz --parallel $(JOBS) --target fuzz
	@JOBS=$(JOBS) scripts/fuzz.sh build-fuzz $(SECONDS)

# Fits that take minutes under the sanitizers are left out: the tests of the program run the same code on smaller data.
asan:
	@$(MAKE) --no-print-directory build BUILD=build-asan CMAKE_FLAGS="$(CMAKE_FLAGS) -DHL_SANITIZE=ON"
	$(CTEST) --test-dir build-asan --output-on-failure --parallel $(JOBS) -E 'test_(density_fit|vae_fit|sde_fit|fit_members|ode_stiff|calibrate)|example_density'

# What uses threads.
TSAN_TESTS = test_base test_plan test_operator test_flow test_ode_multistep
tsan:
	@$(SETUP)
	@$(CMAKE) -S . -B build-tsan $(CMAKE_FLAGS) -DCMAKE_C_FLAGS=-fsanitize=thread --log-level=WARNING
	@$(CMAKE) --build build-tsan --parallel $(JOBS) --target $(TSAN_TESTS)
	$(CTEST) --test-dir build-tsan --output-on-failure --parallel $(JOBS) -R '^($(subst $(space),|,$(TSAN_TESTS)))$$'

# Memory that nobody wrote, which the sanitizers do not see.
VALGRIND_TESTS = test_json test_options test_ode_rows test_ode_multistep
test-valgrind: build
	@WITH_VALGRIND=1 $(SETUP)
	@for test in $(VALGRIND_TESTS); do echo "valgrind $$test"; \
	    valgrind -q --error-exitcode=1 --leak-check=full $(BUILD)/tests/$$test >/dev/null || exit 1; done

# -O1, as tests take hours at -O0; without what would merge or remove branches before they are counted. Counters need not be exact, so threads do not
# lock them. Counts of earlier runs are dropped. DOCS=docs/reliability.md puts the table there.
COVERAGE = --coverage -fprofile-update=single -O1 -fno-early-inlining --param=logical-op-non-short-circuit=0
coverage:
	@$(MAKE) --no-print-directory build BUILD=build-coverage CMAKE_FLAGS="$(CMAKE_FLAGS) -DCMAKE_BUILD_TYPE=Debug -DHL_HARDEN=OFF -DCMAKE_C_FLAGS='$(COVERAGE)'"
	@find build-coverage -name '*.gcda' -delete
	-$(CTEST) --test-dir build-coverage --parallel $(JOBS) --timeout 3600
	@scripts/coverage.py build-coverage | tee build-coverage/coverage.txt
	@$(if $(DOCS),scripts/reliability.py $(DOCS) build-coverage/coverage.txt)

test-memory: build
	tests/test_memory.sh $(abspath $(BUILD))/hollow $(abspath $(BUILD))/tests/libfail_malloc.so 0

# All commands, again and again, some of them killed; prints a line of JSON.
soak: build
	@python3 scripts/soak.py $(BUILD)/hollow $(SECONDS)

# Inputs as outputs, and odd tables, through all commands; prints lines of JSON.
attack: build
	@python3 scripts/attack.py $(BUILD)/hollow

# 1 to 4 ranks times 1 and 2 threads, all kinds of training; then a random rank killed at a random moment, 20 times.
test-ranks: build
	FULL=1 tests/test_cli_ranks.sh $(BUILD)/hollow
	tests/kill_ranks.sh $(BUILD)/hollow

install: CMAKE_FLAGS += -DCMAKE_INSTALL_PREFIX="$(abspath $(PREFIX))"
install: build
	$(CMAKE) --install $(BUILD)

format:
	clang-format -i $$(git ls-files --cached --others --exclude-standard '*.c' '*.h')

clean:
	$(CMAKE) -E rm -rf $(BUILD) build-asan build-tsan build-clang build-base build-fuzz build-coverage

help:
	@echo "make           install what is missing and build; the program is $(BUILD)/hollow"
	@echo "make test      build and run all tests"
	@echo "make test-python  test the Python package with numpy, scikit-learn, torch, ... from PyPI in a virtual environment"
	@echo "make test-browser  open reports in Chromium (installs it); SCREENSHOTS=FOLDER keeps pictures"
	@echo "make wheel     make a Python wheel in $(BUILD)/dist, and test it"
	@echo "make demo      build and run the demonstration"
	@echo "make bench     build and run the benchmarks: one line of JSON for each case"
	@echo "make bench-peers  measure beside PyTorch, JAX and their solvers, from PyPI; writes docs/benchmarks.md; PEERS=--quick"
	@echo "make test-clang   build in build-clang with clang, run the tests that compilers may break"
	@echo "make test-isas    build in build-base with kernels of the base instruction set alone, then with AVX2, run the tests of numbers"
	@echo "make fuzz SECONDS=60   build the fuzz targets in build-fuzz with clang, run each for so long"
	@echo "make test-memory  fail every allocation of the process, one at a time, in each command"
	@echo "make soak SECONDS=600  run all commands for so long, a third of them killed, and check results, files and memory"
	@echo "make attack    every input of every command as its output, and odd tables through all commands"
	@echo "make test-ranks   mpirun: 1 to 4 ranks x 1 and 2 threads write the same bytes; kill -9 of a rank, 20 times"
	@echo "make asan      build in build-asan with the address and undefined-behaviour sanitizers, run all tests but long fits"
	@echo "make tsan      build in build-tsan with the thread sanitizer, run the tests of what uses threads"
	@echo "make test-valgrind  run a few tests under valgrind"
	@echo "make coverage  build in build-coverage, run all tests, print how many lines and branches they ran; DOCS=docs/reliability.md: also there"
	@echo "make install   install to PREFIX (now $(PREFIX)); respects DESTDIR"
	@echo "make format    format the C files with clang-format"
	@echo "make clean     remove the build directories"
	@echo
	@echo "Variables: BUILD, PREFIX, DESTDIR, JOBS, CMAKE, CMAKE_FLAGS (as -DHL_WERROR=ON), SETUP=true (install nothing)"
