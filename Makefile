# Everything starts from a bare Python 3.11 or later; the first command creates .venv and installs what it needs there:
# `make demo` the package alone, `make reproduce` what figures need, too, all others its extras and tools. The system's
# interpreter is preferred, because distributions build theirs with profile-guided optimization. With a build that lacks
# it, such as pyenv's default, the tests need about a seventh more CPU time.
PYTHON ?= $(shell /usr/bin/python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo /usr/bin/)python3
BIN := .venv/bin
BASE := .venv/.base
INSTALLED := .venv/.installed
LAB := .venv/.lab
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test packages lint format docs bench soak reproduce dist clean

# The main job, watched: a study of a simulated shop, until it stops.
demo: $(BASE)
	@$(BIN)/dbcare demo

# A file's tests share fixtures and kernels, so one worker runs them all. There is one worker more than there are
# processors, as many tests wait for processes, disks and clocks; numerical libraries get one thread each, as more would
# only compete. Bytecode is kept: every worker reads all tests, and half of that time goes to rewriting assertions.
WORKERS := $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
test: $(INSTALLED) packages
	@$(BIN)/python -m compileall -q src # the tests start hundreds of processes
	@for browser in $(BROWSERS); do command -v $$browser && break; done >/dev/null || export DBCARE_TESTS_WITHOUT_BROWSER=1; \
	  PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) \
	    --dist loadfile --no-loadscope-reorder

# Real parts for the tests: a browser for the dashboard, a proxy in front of the service, and clocks that jump. They are
# installed where we may; else their tests are skipped, and say so. Chromium's headless shell is the same browser without
# a window, and takes less CPU time.
BROWSERS := chromium-headless-shell chromium chromium-browser google-chrome
PACKAGES := chromium-headless-shell nginx-light openssl libfaketime
WHAT_FOR = "Installing what tests need: a browser for the dashboard, a proxy in front of the service, and clocks that jump ($(PACKAGES))."
packages:
	@dpkg -s $(PACKAGES) >/dev/null 2>&1 || { [ "$$(id -u)" = 0 ] && echo $(WHAT_FOR) >&2 && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(PACKAGES) >/dev/null; } \
	  || echo "WARNING: SOME OF $(PACKAGES) ARE MISSING, SO WHAT NEEDS THEM IS NOT TESTED; install them: apt-get install $(PACKAGES)" >&2
	@command -v promtool >/dev/null || [ -x $(BIN)/promtool ] || { echo "Downloading promtool, which checks the alert rules." >&2; $(GET_PROMTOOL); } \
	  || echo "WARNING: NO promtool, SO PROMETHEUS DOES NOT READ THE ALERT RULES; install it: apt-get install prometheus" >&2

# Prometheus' own check of alert rules: a single program out of its package, which would also start a server.
GET_PROMTOOL = { cd $(BIN) && { apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }; } \
  && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >promtool && chmod +x promtool && rm -f prometheus_*.deb; } >/dev/null 2>&1

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
	@echo "Open out/site/index.html. For excerpts in the search: python3 -m http.server --directory out/site"

reproduce: $(LAB)
	$(BIN)/dbcare reproduce --out out

bench: $(INSTALLED)
	$(PIP_INSTALL) -e '.[bench]'
	$(BIN)/python -m benchmarks all --out out/benchmarks

soak: $(INSTALLED) packages
	$(BIN)/pytest -n auto -m soak

# What is published: built, checked, and tried in bare environments, one for each interpreter.
INTERPRETERS ?= $(PYTHON)
dist: $(INSTALLED)
	$(PIP_INSTALL) -e '.[dist]'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(BIN)/python release/try_wheel.py dist/*.whl $(INTERPRETERS)

# All fill the same environment, in any order: what is installed with extras has the package, too.
$(BASE): pyproject.toml constraints.txt
	$(CREATE_VENV)
	$(PIP_INSTALL) -e .
	@touch $@

# What the paper's experiments need: 0.6 GB instead of the 1.9 GB for tests.
$(LAB): pyproject.toml constraints.txt
	$(CREATE_VENV)
	$(PIP_INSTALL) -e '.[lab]'
	@touch $(BASE) $@

$(INSTALLED): pyproject.toml constraints.txt
	$(CREATE_VENV)
	$(PIP_INSTALL) -e '.[lab,dask,postgresql,server,dev]'
	@touch $(BASE) $(LAB) $@

# Debian's python3 cannot create environments without python3-venv: root installs it, others are told to.
define CREATE_VENV
@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3-venv >/dev/null \
  && $(PYTHON) -c 'import ensurepip'; } || { echo "$(PYTHON) cannot create virtual environments. Install what is missing and retry: sudo apt-get install python3-venv" >&2; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dbcare needs Python 3.11 or later: make PYTHON=python3.12 ...")'
@echo "Installing into .venv; this takes a minute or more, once." >&2
$(PYTHON) -m venv .venv
endef

clean:
	rm -rf .venv dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
