# make run | test | bench | lint | sanitize | clean. Each sets up what it needs, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
CORE := $(wildcard src/lrn/recurrence/cpu/*.cpp src/lrn/recurrence/cpu/*.h)

.PHONY: run test bench lint sanitize clean
.DELETE_ON_ERROR:

run: $(VENV)/installed
	$(BIN)/lrn demo

test: lint
	$(BIN)/python -m pytest -q

bench: $(VENV)/installed
	$(BIN)/lrn bench

lint: $(VENV)/installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# The package is installed editable: Python changes need nothing, C++ changes rebuild.
$(VENV)/installed: $(VENV)/torch pyproject.toml CMakeLists.txt $(CORE)
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[test]'
	@touch $@

# torch first: the package is built against it, and the pin keeps the registry from choosing another.
$(VENV)/torch: constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "lrn needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) -V`. Use: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt torch numpy scikit-build-core cmake ninja
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
