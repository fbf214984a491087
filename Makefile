# Everything starts from a bare Python 3.11 or later; the first command makes .venv and fills it. The system's interpreter
# is preferred: distributions build theirs with profile-guided optimization. With a build that lacks it, such as pyenv's
# default, the tests need about a seventh more CPU time.
PYTHON ?= $(shell /usr/bin/python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo /usr/bin/)python3
BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: test packages lint format docs bench soak reproduce dist clean

# A file's tests share fixtures and kernels, so one worker runs them all. There is one worker more than there are
# processors, as many tests wait for processes, disks and clocks; numerical libraries get one thread each, as more would
# only compete. Bytecode is kept: every worker reads all tests, and half of that time goes to rewriting assertions.
WORKERS := $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
test: $(INSTALLED) packages
	@$(BIN)/python -m compileall -q src # the tests start hundreds of processes
	@for browser in $(BROWSERS); do command -v $$browser && break; done >/dev/null || export DBCARE_TESTS_WITHOUT_BROWSER=1; \
	  PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) \
	    --dist loadfile --no-loadscope-reorder $$($(BIN)/python tests/helpers/file_order.py)

# Real parts for the tests: a browser for the dashboard, a proxy in front of the service, and clocks that jump. They are
# installed where we may; else their tests are skipped, and say so. Chromium's headless shell is the same browser without
# a window, and takes less CPU time.
BROWSERS := chromium-headless-shell chromium chromium-browser google-chrome
PACKAGES := chromium-headless-shell nginx-light openssl libfaketime
packages:
	@dpkg -s $(PACKAGES) >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(PACKAGES) >/dev/null; } \
	  || echo "WARNING: SOME OF $(PACKAGES) ARE MISSING, SO WHAT NEEDS THEM IS NOT TESTED; install them: apt-get install $(PACKAGES)" >&2

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The documentation site; a warning is an error.
docs: $(INSTALLED)
	rm -rf out/site
	$(BIN)/python website/build.py out/site
	@echo "Open out/site/index.html"

reproduce: $(INSTALLED)
	$(BIN)/dbcare reproduce --out out

bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python benchmarks/live.py --out out/benchmarks
	$(BIN)/python benchmarks/server.py --out out/benchmarks
	$(BIN)/python benchmarks/assignments.py --out out/benchmarks
	$(BIN)/python benchmarks/scale.py --out out/benchmarks
	$(BIN)/python benchmarks/export.py --out out/benchmarks
	$(BIN)/python benchmarks/strangers.py --out out/benchmarks
	$(BIN)/python benchmarks/engines.py --out out/benchmarks
	$(BIN)/python benchmarks/pooling.py --out out/benchmarks
	$(BIN)/python benchmarks/reproduce.py --out out/benchmarks
	$(BIN)/python benchmarks/policies.py --out out/benchmarks
	$(BIN)/python benchmarks/rivals.py --reproduce --out out/benchmarks
	$(BIN)/python benchmarks/drift.py --out out/benchmarks
	$(BIN)/python benchmarks/rounds.py --out out/benchmarks
	$(BIN)/python benchmarks/sklearn_search.py --out out/benchmarks
	$(BIN)/python benchmarks/calibration.py --out out/benchmarks

soak: $(INSTALLED) packages
	$(BIN)/pytest -n auto -m soak

# What is published: built, checked, and tried in bare environments, one for each interpreter.
INTERPRETERS ?= $(PYTHON)
dist: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dist]'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python release/try_wheel.py dist/*.whl $(INTERPRETERS)

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dbcare needs Python 3.11 or later: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,dask,postgresql,server,dev]'
	touch $@

clean:
	rm -rf .venv dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
