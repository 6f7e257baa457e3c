# make check is the gate: everything that must hold, on a fresh machine too.
GO ?= go
GOLANGCI := $(GO) tool -modfile=tools/go.mod golangci-lint

.PHONY: build run demo check needs format vet lint test chart chart-schema replay captures recorded retention cost fuzz bench clean

build: ## bin/dewpoint
	$(GO) build -trimpath -o bin/dewpoint ./cmd/proxy

run: build ## serve on 127.0.0.1:8080, state in dewpoint.db
	./bin/dewpoint

demo: build
	./bin/dewpoint demo

check: needs format vet lint test chart ## all of it

needs: ## what the tests need beside Go, installed or named
	@sh scripts/needs.sh

format:
	@out=$$(gofmt -l .); test -z "$$out" || { echo "not gofmt-ed:"; echo "$$out"; exit 1; }

vet:
	$(GO) vet ./...

lint:
	$(GOLANGCI) run ./...

test: ## with the race detector; fuzz seeds and import rules included
	$(GO) test -race ./...

chart: ## the Helm chart: linted and rendered with every value set, and what came out read
	@sh scripts/chart.sh

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

retention: ## remakes docs/retention.md
	$(GO) run ./cmd/measure retention -doc docs/retention.md -plot docs/img/retention.svg "$(RUNS)"

cost: ## remakes docs/cost.md
	$(GO) run ./cmd/measure cost -doc docs/cost.md "$(RUNS)"

FUZZTIME ?= 30s
fuzz: ## every fuzz target, FUZZTIME each
	sh scripts/fuzz.sh $(FUZZTIME)

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf bin
