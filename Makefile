# One command per habit. Needs only python3 (3.11 or newer) and make; everything else goes into .venv.
# The control plane of the end-to-end tests is built with Go, into the user's cache.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
PIP    := $(PY) -m pip --disable-pip-version-check --quiet
# Touched when an install has finished, so that a broken one is not taken for a good one.
READY  := $(VENV)/.ready

# Recorded verdicts of kube-scheduler: the sample in the repository, or a folder of your own (docs/oracle.md).
ORACLE       ?= tests/oracle/data
# Recorded verdicts of the kubelet about NUMA (docs/numa-oracle.md).
NUMA_ORACLE  := $(if $(filter command line environment,$(origin ORACLE)),$(ORACLE),tests/numa_oracle/data)
# Workloads in the format of kube-scheduler's benchmark: ours, or a folder of your own (docs/simulate.md).
SCHEDULER_PERF ?= examples/workloads
# openb, the trace of the FGD paper: a tiny one of ours, or a folder with the published files (docs/simulate.md).
OPENB ?= examples/traces
FUZZ_OBJECTS ?= 100000
PYTEST_ARGS  ?=
BENCH_ARGS   ?=
SCHEDULER    ?= kubenexus
DEMO_ARGS    ?=
CHAOS_ARGS   ?=
WEB_PICTURES ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test controlplane helm kueue manifests package image sbom e2e chaos conformance web-test lint fmt fuzz oracle numa-oracle simulate openb bench bench-live bench-peers bench-latency bench-reservations bench-webhook soak docs docs-site changelog constraints clean

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with the kubenexus command and all tools, from pinned versions

$(READY): pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; name another with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "make: KubeNexus needs Python 3.11 or newer, $(PYTHON) is $$($(PYTHON) -V 2>&1); name another with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "make: $(PYTHON) cannot make virtual environments; install its venv module (Debian: python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@# The build backend comes from the pinned set too: an isolated build would fetch whatever is newest.
	$(PIP) install -c constraints.txt hatchling editables
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev]'
	@# As pip compiles what it installs: else, where Python writes no bytecode, every process compiles everything again.
	@$(PY) -m compileall -q src bench
	@touch $@

demo: $(READY) ## see it work: a cluster in the box, the real scheduler, a story in acts (DEMO_ARGS=--keep)
	$(PY) -m kubenexus demo $(DEMO_ARGS)

# Tests start many processes. Without bytecode each compiles the whole package: 0.4 s.
test: $(READY) ## run all tests but e2e (PYTEST_ARGS='-k keys' for some)
	PYTHONDONTWRITEBYTECODE= $(PY) -m pytest -n auto --dist worksteal $(PYTEST_ARGS)

controlplane: $(READY) ## build etcd and Kubernetes for e2e into the user's cache, once (or name KUBEBUILDER_ASSETS)
	$(PY) -m tests.e2e.controlplane.build

helm: $(READY) ## build the helm that renders the chart into the user's cache, once (or name HELM)
	$(PY) -m tests.e2e.helm.build

kueue: $(READY) ## build the Kueue of the end-to-end tests into the user's cache, once (or name KUEUE_ASSETS)
	$(PY) -m tests.e2e.kueue.build

manifests: helm ## write deploy/kubenexus-*.yaml and the chart's roles from the chart and the code
	$(PY) -m tests.deploy.role_rules deploy/helm/kubenexus/files
	cp deploy/resourcereservations.yaml deploy/queues.yaml deploy/helm/kubenexus/files/crds/
	$(PY) -m tests.deploy.manifests deploy

package: $(READY) ## build dist/kubenexus-*.whl and .tar.gz; the same commit gives the same bytes
	rm -rf dist
	$(PY) -m hatchling build -d dist

sbom: $(READY) ## write build/sbom.cdx.json: the packages that run in production, as CycloneDX
	@rm -rf build/production && mkdir -p build
	$(PIP) install -c constraints.txt --no-build-isolation --target build/production '.[fast]'
	$(PY) scripts/sbom.py build/production > build/sbom.cdx.json

image: $(READY) ## build the image with docker, podman or buildah; where none of them runs, take its steps one by one
	$(PY) -m tests.e2e.image.build

e2e: controlplane helm kueue ## run the end-to-end tests against a real control plane, which is built first if it is missing
	$(PY) -m pytest tests/e2e $(PYTEST_ARGS)

chaos: controlplane ## many seeds of faults through a real socket, judged by a checker (CHAOS_ARGS='--seed 17' for one again)
	$(PY) -m tests.chaos $(CHAOS_ARGS)

conformance: controlplane ## run Kubernetes' own scheduling specs against us (SCHEDULER=kube-scheduler for comparison)
	$(PY) -m tests.conformance.run $(SCHEDULER)

# The browser is Debian's; its driver brings none of its own.
web-test: $(READY) ## walk the web page with Chromium at 20 and 5,000 nodes (WEB_PICTURES=docs/pictures: new screenshots)
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }
	$(PIP) install -r tests/browser/requirements.txt
	$(PY) -m tests.browser $(WEB_PICTURES)

lint: $(READY) ## check style, formatting, types and the order of the packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: $(READY) ## put the code into its one format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

fuzz: $(READY) ## throw FUZZ_OBJECTS (100000) hostile objects at the decoder and the ledger (FUZZ_ARGS=--grow: grow them)
	$(PY) -m kubenexus.testing.fuzz --objects $(FUZZ_OBJECTS) $(FUZZ_ARGS)

oracle: $(READY) ## compare our answers with recorded ones of kube-scheduler: a sample, or ORACLE=folder
	$(PY) -m kubenexus.testing.oracle $(ORACLE)

numa-oracle: $(READY) ## compare our predictions about NUMA with recorded verdicts of the kubelet: a sample, or ORACLE=folder
	$(PY) -m kubenexus.testing.numa_oracle $(NUMA_ORACLE)

simulate: $(READY) ## play workloads in virtual time (SCHEDULER_PERF=folder for kube-scheduler's own)
	$(BIN)/kubenexus simulate scheduler-perf $(SCHEDULER_PERF) --label short --label integration-test

openb: $(READY) ## GPU policies beside the published results of the FGD paper (OPENB=folder with the trace, OPENB_ARGS=...)
	$(PY) -m bench.openb $(OPENB) $(OPENB_ARGS)

bench: $(READY) ## measure decisions; prints a table and writes build/bench.json (BENCH_ARGS=...)
	$(PY) -m bench $(BENCH_ARGS)

bench-live: $(READY) ## side by side with kube-scheduler on a real control plane, 75 minutes (BENCH_ARGS=...)
	$(PY) -m bench.live $(BENCH_ARGS)

bench-peers: controlplane ## other gang schedulers beside us, each built from its Go module first, once (BENCH_ARGS=...)
	$(PY) -m bench.peers $(BENCH_ARGS)

bench-latency: $(READY) ## how soon pods are bound, and gangs once their last pod exists, 5 minutes (BENCH_ARGS=...)
	$(PY) -m bench.latency $(BENCH_ARGS)

bench-reservations: $(READY) ## what gangs that wait leave idle, in virtual time, 1 minute; fails above a quarter
	$(PY) -m bench.reservations

bench-webhook: $(READY) ## how soon the webhook answers at 500 requests a second; fails above 10 ms (BENCH_ARGS=...)
	$(PY) -m bench.webhook $(BENCH_ARGS)

soak: $(READY) ## 200,000 pods come and go: is the scheduler as small afterwards? 15 minutes (BENCH_ARGS=...)
	$(PY) -m bench.soak $(BENCH_ARGS)

docs: $(READY) ## write the generated pages anew (docs/keys.md, docs/reference/, docs/*-golden.md and others)
	@mkdir -p build
	$(PY) -m kubenexus keys --markdown > build/keys.md
	$(PY) -m tests.plugins.devices.golden_page > build/devices-golden.md
	$(PY) -m tests.plugins.network_fabric.golden_page > build/fabric-golden.md
	$(PY) -m tests.plugins.numa.golden_page > build/numa-golden.md
	$(PY) -m tests.plugins.workload.golden_page > build/placement-golden.md
	$(PY) -m tests.api.classification.golden_page > build/classification-golden.md
	$(PY) -m tests.placement.page > build/placement.md
	$(PY) -m kubenexus.explain.api_schema > build/api-schema.json
	mv build/keys.md build/placement.md build/api-schema.json build/*-golden.md docs/
	$(PY) -m docsite.reference docs/reference

docs-site: $(VENV)/.docs-ready ## build the documentation site into build/site, with strict links; no network once installed
	$(PY) -m docsite.build
	$(PY) -m docsite.check build/site

$(VENV)/.docs-ready: $(READY)
	$(PIP) install -c constraints.txt --no-build-isolation -e '.[docs]'
	@touch $@

changelog: $(READY) ## gather the fragments of changes/ into CHANGELOG.md for this version
	$(BIN)/towncrier build --yes

constraints: ## pin every dependency to its newest release (then run setup, lint and test)
	@rm -rf build/pins && mkdir -p build
	$(PYTHON) -m venv build/pins
	build/pins/bin/python -m pip --disable-pip-version-check --quiet install hatchling editables '.[dev,docs]'
	@sed -n '/^#/p' constraints.txt > build/constraints.txt
	build/pins/bin/python -m pip --disable-pip-version-check freeze --exclude kubenexus >> build/constraints.txt
	mv build/constraints.txt constraints.txt

clean: ## remove everything that was made here, .venv too
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
