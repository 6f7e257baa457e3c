# make check is the gate: everything that must hold, on a fresh machine too. make help lists the rest.
GO ?= go
GOLANGCI := $(GO) tool -modfile=tools/go.mod golangci-lint

AUDIT := $(GO) tool -modfile=tools/audit/go.mod

# What the gate is made of; see scripts/gate.sh.
CHECK := format vet lint test chart
SLOW := slow-tests rehearsal soak-short vuln-if-reachable

export GO
# Where scripts/prometheus.sh puts its programs.
export PATH := $(PATH):$(CURDIR)/bin/prometheus

.PHONY: help build run demo check slow ci needs format vet lint test slow-tests chart chart-docs chart-package chart-schema rehearsal cluster vuln vuln-if-reachable \
	sbom replay captures recorded matrix forwarded retention cost economics soak soak-short fuzz bench microbench image clean

help: ## what there is to make
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

# RACE=1 builds the program with the race detector: for 'make soak-short RACE=1', which tells of races that kills and faults bring about.
build: ## bin/dewpoint
	$(GO) build $(if $(RACE),-race) -trimpath -o bin/dewpoint ./cmd/proxy

run: build ## serve on 127.0.0.1:8080, state in dewpoint.db
	./bin/dewpoint

demo: build ## a sample run, condensed, without a network
	./bin/dewpoint demo

check: needs ## the gate of every change: format, vet, linters, tests with the race detector, the chart
	@sh scripts/gate.sh $(CHECK)

slow: needs ## what takes longer: slow tests, the rehearsal, a short soak, known vulnerabilities, each fuzz target for 30 s
	@sh scripts/gate.sh $(SLOW) fuzz

ci: needs ## check and slow, then the replays of RUNS and CAPTURES if they are given; at most 75 minutes
	@GATE_LIMIT=4500 sh scripts/gate.sh $(CHECK) $(SLOW) $(if $(RUNS),replay recorded) $(if $(CAPTURES),captures)

needs: ## what the tests use besides Go: installed, or named where it cannot be
	@sh scripts/needs.sh && sh scripts/prometheus.sh

format: ## fails if a file is not gofmt-ed
	@out=$$(gofmt -l .); test -z "$$out" || { echo "not gofmt-ed:"; echo "$$out"; exit 1; }

vet: ## go vet
	$(GO) vet ./...

lint: ## golangci-lint, pinned in tools/go.mod
	$(GOLANGCI) run ./...

# SEED is what tests of properties and the soak draw from.
SEED ?= 20

test: ## tests with the race detector, fuzz seeds and import rules included. SEED=0 draws other cases of properties
	@SEED="$(SEED)" sh scripts/test.sh -short -timeout 30m

slow-tests: ## the tests that -short leaves out
	@sh scripts/slow.sh

vuln: ## known vulnerabilities in what the program calls; fails where their database cannot be reached. VULNDB is a copy of it
	@sh scripts/vuln.sh

vuln-if-reachable: ## the same, and a notice where the database cannot be reached
	@sh scripts/vuln.sh --if-reachable

sbom: build ## bin/dewpoint.cdx.json: what the program is made of, in CycloneDX form
	$(AUDIT) cyclonedx-gomod bin -json -std -output bin/dewpoint.cdx.json bin/dewpoint

chart: ## the Helm chart: linted and rendered with every value set, and what came out read
	@sh scripts/chart.sh

rehearsal: ## what the chart renders for production, run over a real Redis Cluster and rolled under load
	@sh scripts/rehearsal.sh

cluster: ## the chart installed by helm into a real API server; not a part of check: it builds Kubernetes first, once
	@sh scripts/cluster.sh

chart-schema: ## remakes deploy/helm/values.schema.json, after the configuration gained a key
	cd deploy/charttest && $(GO) test ./schema -run TestTheChartHasTheSchemaOfThisConfiguration -update

chart-docs: ## remakes the table of values in deploy/helm/README.md
	@sh scripts/chart-docs.sh

chart-package: ## bin/chart: the chart as an archive and as an OCI layout
	@mkdir -p bin/chart && cd deploy/charttest && $(GO) run ./package ../helm ../../bin/chart

# RUNS is a folder of recorded runs; see 'dewpoint replay'.
replay: build ## RUNS through the built binary, judged
	sh scripts/replay.sh "$(RUNS)"

# CAPTURES is a folder of captured client traffic.
captures: ## CAPTURES: which conversation each request belongs to
	DEWPOINT_CAPTURES="$(CAPTURES)" $(GO) test -count=1 -run TestCaptures ./internal/replay

recorded: ## RUNS under kills, over two replicas, with failing summarisers, under every condenser with every seal in every protocol; and what of them is recalled
	DEWPOINT_RUNS="$(RUNS)" $(GO) test -count=1 -timeout 45m -run TestRecorded ./internal/e2e ./internal/replay ./lab/retention

matrix: ## RUNS, files or folders, in both newer protocols under every condenser and seal, with kills and two replicas; minutes a run
	DEWPOINT_MATRIX="$(RUNS)" $(GO) test -count=1 -timeout 0 -v -run TestMatrix ./internal/e2e

forwarded: build ## a SHA-256 of what goes upstream for each of RUNS, a list of folders, and CAPTURES, under five configurations
	@$(GO) run ./lab/measure forwarded -captures "$(CAPTURES)" $(RUNS)

retention: ## remakes lab/retention.md
	$(GO) run ./lab/measure retention -doc lab/retention.md "$(RUNS)"

cost: ## remakes lab/cost.md
	$(GO) run ./lab/measure cost -doc lab/cost.md "$(RUNS)"
	$(GO) run ./lab/measure saved -doc lab/cost.md "$(RUNS)"

economics: ## remakes lab/economics.md
	$(GO) run ./lab/measure economics -doc lab/economics.md "$(RUNS)"

soak-short: build ## a minute of it over each store, for 'make slow'
	$(GO) run ./lab/measure soak -store redis,embedded -seed $(SEED) -duration 40s -sessions 60 -steps 14

soak: build ## remakes lab/reliability.md; takes a quarter of an hour
	$(GO) run ./lab/measure soak -store redis,embedded -seed $(SEED) -doc lab/reliability.md

FUZZTIME ?= 30s
fuzz: ## explores: every fuzz target, FUZZTIME each; FUZZCORPUS keeps what is found. It is random, so that make ci does without
	sh scripts/fuzz.sh $(FUZZTIME)

# BENCH holds flags, such as -quick or -only cells; "-doc lab/benchmarks.md" remakes the page.
bench: build ## what the proxy adds to a request, next to a bare proxy and nginx
	$(GO) run ./lab/measure bench $(BENCH)

COUNT ?= 6
microbench: ## the benchmarks of packages, for benchstat
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./...

image: ## builds the image without an engine or a registry, twice, and tries it; needs root and a Debian mirror
	sh scripts/image.sh

clean: ## removes bin
	rm -rf bin
