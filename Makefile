# The verbs of the project. Each sets up what it needs; Python 3.11+ and make are enough.
#
#   make install    .venv with the package, its extras and the tools, pinned by constraints.txt
#   make lint       ruff: rules and format
#   make check      lint, then strict mypy, then make test
#   make test       the tests but for the slow ones, in parallel; at most five minutes
#   make test-slow  the slow tests: Spark, browsers, sites, waiting clients, large runs
#   make test-all   both
#   make compiled   compile the hot cores with mypyc; fakekafka --version says which build runs
#   make pure       take the compiled build away
#   make test-compiled  tests of both builds side by side, and of the cores on the compiled one
#   make wheel      two wheels in dist: for any platform, and with the compiled cores
#   make dist       what strangers install, from the last commit: built, checked and tried out
#   make release    a commit and a tag for VERSION=0.3.0 with its changelog, then make dist
#   make fresh      new examples for the tests that use Hypothesis; SEED=123 repeats some
#   make docs       generated pages, then the site in out/docs
#   make gallery    five traces and their pages in out/gallery, each verified
#   make bench      the figures that matter; NAMES='start memory' SIZE=small COMPARE=<commit>
#   make bench-peers  the same for other fakes of Kafka and for Kafka; NAMES='mock kfake kafka'
#   make peers      get what these need: kfake is compiled, Kafka's jars are loaded
#   make clients    suites of released clients against a served cluster; NAMES='java kafkajs'
#   make sameness   twelve kinds of programs, 20 seeds, 5 processes; PYTHONS='python3.12 python3.13'
#   make mutants    wrong versions of the source, each to be caught; NAMES='replication acls' JOBS=2
#   make oracle     record what brokers of Kafka do: VERSION=3.9, NAMES='rolling topic_grows'
#   make oracle-files  files of ours under Kafka's tools and brokers, and of theirs here
#   make oracle-random  the same histories here and on Kafka: VERSION=3.9 N=20 SEED=1
#   make demo       a minute's tour; installs no more than it runs
#
# PYTHON=python3.12 chooses another interpreter, ARGS='-k election' goes to pytest.

ifeq ($(OS),Windows_NT)
SHELL := bash
SCRIPTS := Scripts
else
SHELL := /bin/bash
SCRIPTS := bin
endif
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help install lint format typecheck check test test-slow test-all compiled pure \
	test-compiled test-cores wheel dist release fresh docs gallery bench bench-peers peers clients \
	sameness mutants oracle oracle-random demo \
	constraints clean

VENV := .venv
BIN := $(VENV)/$(SCRIPTS)
STAMP := $(VENV)/.installed
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
ARGS ?=
NAMES ?=
COMPARE ?=
SIZE ?=

help:
	@sed -n 's/^#  *make \([a-z-]*\)  */\1\t/p' Makefile | expand -t 16

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "fakekafka needs Python 3.11 or newer: none found" >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
		echo "no virtual environment: on Debian install the package python3-venv" >&2; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		setuptools wheel
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		--no-build-isolation --editable '.[dev]'
	mkdir -p $(VENV)/src && ln -sfn ../.. $(VENV)/src/fakekafka # for mypy, see pyproject.toml
	@touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

typecheck: $(STAMP)
	$(BIN)/mypy

check: lint typecheck test

# Every worker, and every process that a test starts, would compile all of the sources again where
# the surroundings forbid to keep bytecode: collecting alone takes thrice as long then.
test test-slow test-cores fresh: export PYTHONDONTWRITEBYTECODE :=

PURE_TESTS := FAKEKAFKA_BUILD=pure $(BIN)/pytest --dist loadgroup

test: $(STAMP)
	$(PURE_TESTS) -n auto -m 'not slow' $(ARGS)

# Tests of real clients wait more than they work, so that more workers than cores take turns. Those
# marked serial come last, one by one. pytest ends with 5 where ARGS selects none of a part.
test-slow: export FAKEKAFKA_LARGE_TESTS := 1
test-slow: $(STAMP)
	$(PURE_TESTS) -n auto -m 'slow and not clients and not serial' $(ARGS) || test $$? -eq 5
	$(PURE_TESTS) -n 8 -m 'slow and clients and not serial' $(ARGS) || test $$? -eq 5
	$(PURE_TESTS) -m 'slow and serial' $(ARGS) || test $$? -eq 5

test-all: test test-slow

# Needs a C compiler. What is not changed is not compiled again.
compiled: $(STAMP)
	$(BIN)/python building/compile.py

pure:
	rm -rf compiled build/compiled

wheel: compiled
	$(BIN)/python building/wheels.py

dist: $(STAMP)
	$(BIN)/python building/release.py

release: $(STAMP)
	$(BIN)/python building/release.py --version $(VERSION)

CORES := tests/replication tests/protocol tests/election tests/zkfake tests/statemachines \
	tests/coordinators tests/actors tests/programs

test-compiled: $(STAMP)
	@if [[ -z "$${CI:-}" ]] && ! command -v cc >/dev/null; then \
		echo "test-compiled: skipped, as there is no C compiler (cc)"; \
	else \
		$(MAKE) --no-print-directory compiled test-cores; \
	fi

test-cores: $(STAMP)
	FAKEKAFKA_BUILD=compiled $(BIN)/pytest -n auto --dist loadgroup \
		-m 'not slow and not serial' $(CORES) $(ARGS)
	FAKEKAFKA_BUILD=compiled $(BIN)/pytest -m compiled tests/builds $(ARGS)

# Other examples than those of the profiles dev and ci. What fails ends with the command that
# repeats it. A whole number below 2^30, so that it can be typed.
fresh: $(STAMP)
	@seed=$(or $(SEED),$$((RANDOM << 15 | RANDOM))) && echo "make fresh SEED=$$seed" && \
	HYPOTHESIS_PROFILE=fresh $(BIN)/pytest -n auto --dist loadgroup -m hypothesis \
		--hypothesis-seed=$$seed $(ARGS)

PAGES := out/docs/.built
# Pages show what runs print, which any module may change.
PAGE_SOURCES := mkdocs.yml README.md version.py $(shell find \
	actors cli control coordinators debugger docs election examples exploration programs \
	protocol replication scenarios spark_bench statemachines testing tests tracing wire zkfake \
	-name '*.md' -o -name '*.py' -o -name '*.toml' -o -name '*.svg')

docs: $(PAGES)

# What the pages show of runs is that of the source; compiled classes have no source to show.
$(PAGES): export FAKEKAFKA_BUILD := pure
$(PAGES): $(STAMP) $(PAGE_SOURCES)
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@touch $@

gallery: $(STAMP)
	$(BIN)/python docs/trace_gallery.py

bench: $(STAMP)
	BENCH_SIZE=$(SIZE) $(BIN)/python -m \
		$(if $(COMPARE),benchmarks.compare $(COMPARE),benchmarks.run) $(NAMES)

bench-peers: $(STAMP)
	BENCH_SIZE=$(SIZE) $(BIN)/python -m benchmarks.peers $(NAMES)

peers: $(STAMP)
	$(BIN)/python -m benchmarks.peers --get $(NAMES)

clients: $(STAMP)
	$(BIN)/python -m fakekafka.tests.suites $(NAMES)

sameness: $(STAMP)
	$(BIN)/python -m fakekafka.tests.programs.kinds $(PYTHONS)

JOBS ?= 1

mutants: $(STAMP)
	$(BIN)/python -m fakekafka.tests.mutants --jobs $(JOBS) $(NAMES)

VERSION ?= 3.9

oracle: $(STAMP)
	$(BIN)/python -m fakekafka.tests.fidelity record --version $(VERSION) $(NAMES)
	$(if $(NAMES),,$(BIN)/python -m fakekafka.tests.fidelity record-wire --version $(VERSION))

oracle-files: $(STAMP)
	$(BIN)/python -m fakekafka.tests.fidelity load-jars --version $(or $(VERSION),3.9)
	$(BIN)/pytest -q -rs tests/fidelity/test_files.py -k '$(or $(VERSION),3.9)'

N ?= 20
SEED ?=

oracle-random: $(STAMP)
	$(BIN)/python -m fakekafka.tests.fidelity.histories --version $(VERSION) --count $(N) \
		--seed $(or $(SEED),1)

# A contributor's environment serves; else a small one is made, with one client and no tools.
ifeq ($(wildcard $(STAMP)),)
DEMO := $(VENV)/demo
else
DEMO := $(VENV)
endif

demo: $(DEMO)/.installed
	$(DEMO)/$(SCRIPTS)/fakekafka demo

$(VENV)/demo/.installed: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "fakekafka needs Python 3.11 or newer: none found" >&2; exit 2; }
	@test -x $(@D)/$(SCRIPTS)/python || $(PYTHON) -m venv $(@D) || { \
		echo "no virtual environment: on Debian install the package python3-venv" >&2; exit 2; }
	$(@D)/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check \
		-c constraints.txt --editable '.[demo]'
	@touch $@

# After a change of dependencies: what is installed now becomes what everyone installs.
constraints:
	@{ echo "# Exact versions of everything the dev extra installs; written by make constraints."; \
		$(BIN)/python -m pip freeze --all --exclude-editable | grep -vE '^(#|-e|pip==|fakekafka)'; \
	} > constraints.tmp
	@mv constraints.tmp constraints.txt
	@touch $(STAMP)

clean:
	rm -rf $(VENV) build compiled dist out .mypy_cache .ruff_cache .hypothesis *.egg-info
