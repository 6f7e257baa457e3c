# make check is the gate: everything that must hold, on a fresh machine too.
GO ?= go
GOLANGCI := $(GO) tool -modfile=tools/go.mod golangci-lint

AUDIT := $(GO) tool -modfile=tools/audit/go.mod

.PHONY: build run demo check needs format vet lint test chart chart-schema rehearsal cluster proto vuln vuln-if-reachable sbom replay captures recorded forwarded retention cost soak fuzz bench microbench image clean

build: ## bin/dewpoint
	$(GO) build -trimpath -o bin/dewpoint ./cmd/proxy

run: build ## serve on 127.0.0.1:8080, state in dewpoint.db
	./bin/dewpoint

demo: build
	./bin/dewpoint demo

check: needs format vet lint test chart rehearsal vuln-if-reachable ## all of it

needs: ## what the tests need beside Go, installed or named
	@sh scripts/needs.sh

format:
	@out=$$(gofmt -l .); test -z "$$out" || { echo "not gofmt-ed:"; echo "$$out"; exit 1; }

vet:
	$(GO) vet ./...

lint:
	$(GOLANGCI) run ./...

# SEED is what tests of properties and the soak draw from.
SEED ?= 20

test: ## with the race detector; fuzz seeds and import rules included. SEED=0 draws other cases of properties
	@GO="$(GO)" SEED="$(SEED)" sh scripts/test.sh

vuln: ## known vulnerabilities in what the program calls; fails where their database can not be reached
	@GO="$(GO)" sh scripts/vuln.sh

vuln-if-reachable:
	@GO="$(GO)" sh scripts/vuln.sh --if-reachable

sbom: build ## bin/dewpoint.cdx.json: what the program is made of, in CycloneDX form
	$(AUDIT) cyclonedx-gomod bin -json -std -output bin/dewpoint.cdx.json bin/dewpoint

chart: ## the Helm chart: linted and rendered with every value set, and what came out read
	@sh scripts/chart.sh

rehearsal: ## what the chart renders for production, run over a real Redis Cluster and rolled under load
	@GO="$(GO)" sh scripts/rehearsal.sh

cluster: ## the chart installed by helm into a real API server; not a part of check: it builds Kubernetes first, once
	@GO="$(GO)" sh scripts/cluster.sh

proto: ## remakes the Go code of the stores' records, after session/internal/pb/record.proto has changed
	cd tools && $(GO) run ./protogen .. session/internal/pb/record.proto

chart-schema: ## remakes deploy/helm/values.schema.json, after the configuration gained a key
	cd deploy/charttest && $(GO) run ./schema/write ../helm/values.schema.json

# RUNS is a folder of recorded runs; see 'dewpoint replay'.
replay: build
	sh scripts/replay.sh "$(RUNS)"

# CAPTURES is a folder of captured client traffic.
captures:
	DEWPOINT_CAPTURES="$(CAPTURES)" $(GO) test -count=1 -run TestCaptures ./internal/replay

# Recorded runs under kills and over two replicas.
recorded:
	DEWPOINT_RUNS="$(RUNS)" $(GO) test -count=1 -timeout 30m -run TestRecorded ./internal/e2e

forwarded: build ## a SHA-256 of what goes upstream for each of RUNS, a list of folders, under five configurations; equal: byte-identical
	@$(GO) run ./lab/measure forwarded $(RUNS)

retention: ## remakes docs/retention.md
	$(GO) run ./lab/measure retention -doc docs/retention.md -plot docs/img/retention.svg "$(RUNS)"

cost: ## remakes docs/cost.md
	$(GO) run ./lab/measure cost -doc docs/cost.md "$(RUNS)"

soak: build ## remakes docs/reliability.md; takes a quarter of an hour
	$(GO) run ./lab/measure soak -store redis,embedded -seed $(SEED) -doc docs/reliability.md

FUZZTIME ?= 30s
fuzz: ## every fuzz target, FUZZTIME each
	sh scripts/fuzz.sh $(FUZZTIME)

# BENCH holds flags, such as -quick, -only cells or -peers FILE; "-doc docs/benchmarks.md -plots docs/img" remakes the page.
bench: build ## what the proxy adds to a request, beside a bare proxy and nginx
	$(GO) run ./lab/measure bench $(BENCH)

COUNT ?= 6
microbench: ## the benchmarks of packages, for benchstat
	$(GO) test -run '^$$' -bench . -benchmem -count $(COUNT) ./...

image: ## builds the image without an engine or a registry, twice, and tries it; needs root and a Debian mirror
	sh scripts/image.sh

clean:
	rm -rf bin
