# make run | test | bench | lint | sanitize | wheel | clean. Each sets up what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
DIST := dist
CORE := $(wildcard src/lrn/recurrence/cpu/*.cpp src/lrn/recurrence/cpu/*.h) src/lrn/recurrence/schemas.py

.PHONY: run test bench lint sanitize wheel clean
.DELETE_ON_ERROR:

run: $(VENV)/installed
	$(BIN)/lrn compare

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto --dist loadfile --no-loadscope-reorder

bench: $(VENV)/installed
	$(BIN)/lrn bench

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The C++ core without torch, under the address and undefined-behaviour sanitizers.
ENGINE := src/lrn/recurrence/cpu
SANITIZE := $(CXX) -std=c++20 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-math-errno \
  -fno-trapping-math -Wno-psabi -DLRN_X86 -I $(ENGINE)

sanitize: build/sanitize/run
	build/sanitize/run

build/sanitize/run: tests/recurrence/cpu/sanitize.cpp $(CORE)
	@mkdir -p $(@D)
	$(SANITIZE) -DLRN_SET=baseline -DLRN_BYTES=16 -c $(ENGINE)/kernels.cpp -o $(@D)/baseline.o & \
	$(SANITIZE) -DLRN_SET=avx2 -DLRN_BYTES=32 '-DLRN_TARGET="arch=x86-64-v3"' -c $(ENGINE)/kernels.cpp -o $(@D)/avx2.o && \
	wait $$!
	$(SANITIZE) $< $(ENGINE)/dispatch.cpp $(@D)/baseline.o $(@D)/avx2.o -o $@

# One wheel for every Python and every torch that we claim, for Linux on x86-64; without the engine it is not made.
wheel: $(VENV)/torch
	LRN_NEEDS_ENGINE=1 $(PIP) wheel --no-deps --no-build-isolation -w $(DIST) .

# The package is installed editable: Python changes need nothing, C++ changes rebuild. It was called lrn once;
# what is left of that goes first, since both would own the same files.
$(VENV)/installed: $(VENV)/torch pyproject.toml CMakeLists.txt tools/lrn_build.py $(CORE)
	@echo "building the engine, and installing what the commands and the tests need: two to four minutes …"
	@$(PIP) uninstall -y lrn 2>/dev/null
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[test]'
	@touch $@

# torch first: the package is built against it, and the pin keeps the registry from choosing another. seqeval here
# too: the registry has only its source, and without isolation that builds as version 0.0.0.
$(VENV)/torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "lrn needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) -V`. Use: make PYTHON=python3.12 ..."; exit 1; }
	@echo "making $(VENV), and installing torch there: one to three minutes …"
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt torch numpy scikit-build-core cmake ninja seqeval
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
