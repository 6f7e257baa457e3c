# make check is the gate for every change, on a fresh machine too. make help lists the other targets.
GO ?= go
GOLANGCI := $(GO) tool -modfile=tools/go.mod golangci-lint

AUDIT := $(GO) tool -modfile=tools/audit/go.mod

# The stages of the gate; see scripts/gate.sh.
CHECK := format lint test schema
SLOW := slow-tests chart rehearsal soak-short vuln-if-reachable

export GO
# scripts/prometheus.sh installs its programs here.
export PATH := $(PATH):$(CURDIR)/bin/prometheus

.PHONY: help build install run demo check slow ci needs format windows lint test slow-tests schema chart chart-docs chart-package chart-schema rehearsal cluster vuln vuln-if-reachable \
	dist sbom replay captures recorded matrix forwarded retention cost economics soak soak-short fuzz bench microbench image clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

# RACE=1 builds with the race detector: 'make soak-short RACE=1' finds races under kills and faults.
build: ## bin/dewpoint
	$(GO) build $(if $(RACE),-race) -trimpath -o bin/dewpoint ./cmd/proxy

install: build ## dewpoint in the bin folder of GOPATH
	@mkdir -p "$$($(GO) env GOPATH)/bin" && cp bin/dewpoint "$$($(GO) env GOPATH)/bin/"

run: build ## serve on 127.0.0.1:8080, state in dewpoint.db
	./bin/dewpoint

demo: build ## a sample run, condensed, without a network
	./bin/dewpoint demo

check: ## the gate for every change: format, linters, tests with the race detector, the schema of the chart's values
	@sh scripts/needs.sh check && sh scripts/gate.sh $(CHECK)

slow: needs ## the rest: slow tests, real clients, the chart, its rehearsal, a short soak, known vulnerabilities, Windows, each fuzz target for 30 s
	@sh scripts/gate.sh $(SLOW) windows fuzz

ci: needs ## check and slow, then replays of RUNS and CAPTURES if given; at most 75 minutes
	@GATE_LIMIT=4500 sh scripts/gate.sh $(CHECK) $(SLOW) $(if $(RUNS),replay recorded) $(if $(CAPTURES),captures)

needs: ## install what all tests use besides Go, or name what is missing
	@sh scripts/needs.sh slow && sh scripts/prometheus.sh

format: ## fail if a file is not gofmt-ed
	@out=$$(gofmt -l .); test -z "$$out" || { echo "not gofmt-ed:"; echo "$$out"; exit 1; }

windows: ## whether the program builds for Windows
	GOOS=windows $(GO) build -o /dev/null ./cmd/proxy

lint: ## golangci-lint, pinned in tools/go.mod, with all that go vet checks; and go vet of what is written for Windows
	$(GOLANGCI) run ./...
	GOOS=windows $(GO) vet ./internal/platform

# SEED seeds the property tests and the soak.
SEED ?= 20

test: ## tests with the race detector, including fuzz seeds and import rules. SEED=0 draws other property cases
	@SEED="$(SEED)" sh scripts/test.sh -short -timeout 30m

slow-tests: ## the tests that -short skips
	@sh scripts/slow.sh

vuln: ## known vulnerabilities in the code that the program calls; fails without their database. VULNDB is a copy of it
	@sh scripts/vuln.sh

vuln-if-reachable: ## the same, but only a notice if the database cannot be reached
	@sh scripts/vuln.sh --if-reachable

# VERSION is that of the chart and of a section of CHANGELOG.md.
dist: ## bin/dist: the archives of a release, as VERSION=0.1.0
	@sh scripts/dist.sh "$(VERSION)"

sbom: build ## bin/dewpoint.cdx.json: the program's components, in CycloneDX format
	$(AUDIT) cyclonedx-gomod bin -json -std -output bin/dewpoint.cdx.json bin/dewpoint

schema: ## the schema of the chart's values is that of the configuration
	cd deploy/charttest && $(GO) test -count=1 ./schema

chart: ## lint the Helm chart, render it with every set of values, and check the result
	@sh scripts/prometheus.sh && sh scripts/chart.sh

rehearsal: ## run what the chart renders for production over a real Redis Cluster, and roll it under load
	@sh scripts/rehearsal.sh

cluster: ## install the chart with helm into a real API server; not part of check, since it builds Kubernetes first
	@sh scripts/cluster.sh

chart-schema: ## regenerate deploy/helm/values.schema.json, after the configuration gained a key
	cd deploy/charttest && $(GO) test ./schema -run TestTheChartHasTheSchemaOfThisConfiguration -update

chart-docs: ## regenerate the table of values in deploy/helm/README.md
	@sh scripts/chart-docs.sh

chart-package: ## bin/chart: the chart as an archive and as an OCI layout
	@mkdir -p bin/chart && cd deploy/charttest && $(GO) run ./package ../helm ../../bin/chart

# RUNS is a folder of recorded runs; see 'dewpoint replay'.
replay: build ## replay RUNS through the built binary and judge every request
	sh scripts/replay.sh "$(RUNS)"

# CAPTURES is a folder of captured client traffic.
captures: ## check to which conversation each request of CAPTURES belongs
	DEWPOINT_CAPTURES="$(CAPTURES)" $(GO) test -count=1 -run TestCaptures ./internal/replay

recorded: ## RUNS under kills, over two replicas, with failing summarisers, and under every condenser, seal and protocol; and recall from them
	DEWPOINT_RUNS="$(RUNS)" $(GO) test -count=1 -timeout 45m -run TestRecorded ./internal/e2e ./internal/replay ./lab/retention

matrix: ## RUNS (files or folders) in both newer protocols under every condenser and seal, with kills and two replicas; minutes per run
	DEWPOINT_MATRIX="$(RUNS)" $(GO) test -count=1 -timeout 0 -v -run TestMatrix ./internal/e2e

forwarded: build ## a SHA-256 of the bytes sent upstream for each of RUNS (folders) and CAPTURES, under five configurations
	@$(GO) run ./lab/measure forwarded -captures "$(CAPTURES)" $(RUNS)

retention: ## regenerate lab/retention.md
	$(GO) run ./lab/measure retention -doc lab/retention.md "$(RUNS)"

cost: ## regenerate lab/cost.md
	$(GO) run ./lab/measure cost -doc lab/cost.md "$(RUNS)"
	$(GO) run ./lab/measure saved -doc lab/cost.md "$(RUNS)"

economics: ## regenerate lab/economics.md
	$(GO) run ./lab/measure economics -doc lab/economics.md "$(RUNS)"

soak-short: build ## a minute of the soak over each store, for 'make slow'
	$(GO) run ./lab/measure soak -store redis,embedded -seed $(SEED) -duration 40s -sessions 60 -steps 14

soak: build ## regenerate lab/reliability.md; takes a quarter of an hour
	$(GO) run ./lab/measure soak -store redis,embedded -seed $(SEED) -doc lab/reliability.md

FUZZTIME ?= 30s
fuzz: ## run every fuzz target for FUZZTIME; FUZZCORPUS keeps findings. Random, so not part of make ci
	sh scripts/fuzz.sh $(FUZZTIME)

# BENCH holds flags, such as -quick or -only cells; "-doc lab/benchmarks.md" regenerates the page.
bench: build ## measure what the proxy adds to a request, against a bare proxy and nginx
	$(GO) run ./lab/measure bench $(BENCH)

COUNT ?= 6
microbench: ## package benchmarks, for benchstat
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./...

image: ## build the image twice without a container engine or registry, compare and try it; needs root and a Debian mirror
	sh scripts/image.sh

clean: ## remove bin
	rm -rf bin
