# make check is the gate for every change, on a fresh machine too. make help lists the other targets.
GO ?= go

AUDIT := $(GO) tool -modfile=tools/audit/go.mod

# The stages of the gate; see scripts/gate.sh.
QUICK := format vet quick-tests
CHECK := format lint test race schema
SAMPLED := e2e clients-sample slow-tests chart rehearsal soak-short vuln-if-reachable
FULL := $(CHECK) e2e slow-tests clients-all chart rehearsal soak-race vuln-if-reachable windows fuzz mutants

export GO
# scripts/prometheus.sh installs its programs here.
export PATH := $(PATH):$(CURDIR)/bin/prometheus

.PHONY: help axe build install run demo quick check ci full needs format vet windows lint quick-tests test race e2e slow-tests mutants schema chart chart-docs chart-package \
	chart-schema condenser-docs rehearsal cluster vuln vuln-if-reachable clients clients-run clients-all clients-sample dist dist-check package-check sbom replay captures recorded matrix forwarded store-size retention statements real grounding cost economics frontier soak soak-short soak-race fuzz bench microbench \
	image clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1|/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

build: ## bin/dewpoint
	$(GO) build -trimpath -o bin/dewpoint ./cmd/dewpoint

install: build ## dewpoint in the bin folder of GOPATH
	@bin="$$($(GO) env GOPATH)/bin" && mkdir -p "$$bin" && cp bin/dewpoint "$$bin/" && echo "dewpoint is now in $$bin" && \
	case ":$$PATH:" in *":$$bin:"*) ;; *) echo "That folder is not on your PATH. Start $$bin/dewpoint, or: export PATH=\"\$$PATH:$$bin\"" ;; esac

run: build ## serve on 127.0.0.1:8080, state in your state folder (~/.local/state/dewpoint)
	./bin/dewpoint

demo: build ## a sample run, condensed, without a network
	./bin/dewpoint demo

quick: bin/tools/gotestsum ## the loop while you work: format, vet, and the short tests that take no seconds, but internal/test/e2e and lab, cached
	@sh scripts/needs.sh check && sh scripts/gate.sh $(QUICK)

check: bin/tools/gotestsum bin/tools/golangci-lint ## the gate for every change: format, linters, short tests, the race detector, the schema of the chart's values
	@sh scripts/needs.sh check && sh scripts/gate.sh $(CHECK)

# The fixed strides of 'make ci': through recorded runs, combinations of settings, and slow tests.
ci: needs ## check, and a fixed sample of what full does; RUNS and CAPTURES are recorded material, if there is any
	@GATE_LIMIT=2700 STRIDE=4 RUNS_STRIDE=7 sh scripts/gate.sh $(CHECK) $(SAMPLED) replay recorded captures

full: needs ## everything, before an issue is closed: slow tests, real clients, every recorded run, fuzzing. Interrupted or failed, it resumes with the first stage that has not passed
	@RESUME=1 sh scripts/gate.sh $(FULL) replay recorded matrix captures

needs: bin/tools/gotestsum bin/tools/golangci-lint ## install what all tests use besides Go, or name what is missing
	@sh scripts/needs.sh full && sh scripts/prometheus.sh

# Tools of tools/go.mod are built once, not with each call.
bin/tools/golangci-lint: tools/go.mod tools/go.sum
	@$(GO) build -modfile=tools/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

axe: bin/tools/axe.min.js ## install axe-core from npm, with which the tests of the inspector's pages check their accessibility

bin/tools/axe.min.js:
	@mkdir -p $(@D) && cd $(@D) && npm pack --silent axe-core@4.14.1 >/dev/null && tar -xzf axe-core-4.14.1.tgz package/axe.min.js && \
		echo "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c  package/axe.min.js" | sha256sum -c --quiet && mv package/axe.min.js . && rm -r package axe-core-4.14.1.tgz

bin/tools/gotestsum: tools/go.mod tools/go.sum
	@$(GO) build -modfile=tools/go.mod -o $@ gotest.tools/gotestsum

format: ## fail if a file is not gofmt-ed
	@out=$$(gofmt -l .); test -z "$$out" || { echo "not gofmt-ed:"; echo "$$out"; exit 1; }

windows: ## whether the program builds for Windows
	GOOS=windows $(GO) build -o /dev/null ./cmd/dewpoint

vet: ## go vet of the packages that differ from the last commit, of all if none does; lint vets all
	@sh scripts/vet.sh

lint: bin/tools/golangci-lint ## golangci-lint, pinned in tools/go.mod, with all that go vet checks; and go vet of what is written for Windows
	bin/tools/golangci-lint run ./...
	GOOS=windows $(GO) vet ./internal/serve/platform

# SEED seeds the property tests and the soak; 0 draws new property cases each time. STRIDE samples slow tests: 4 runs every fourth.
SEED ?= 20
export SEED

quick-tests: bin/tools/gotestsum
	@sh scripts/test.sh quick

test: bin/tools/gotestsum ## the short tests of all packages but internal/test/e2e, with fuzz seeds and import rules
	@sh scripts/test.sh short

race: bin/tools/gotestsum ## the same tests of the packages with goroutines, with the race detector, but for those that start none
	@sh scripts/test.sh race

e2e: bin/tools/gotestsum ## the short tests that start the built program
	@sh scripts/test.sh e2e

slow-tests: bin/tools/gotestsum ## the tests that -short skips; STRIDE=4 runs every fourth
	@sh scripts/test.sh slow

# ONLY is a regular expression on packages and files, as ONLY=session. Interrupting it changes nothing.
mutants: ## break the rules of lab/mutants/mutants.txt one by one: tests must notice each
	@$(GO) run ./lab/mutants -only "$(ONLY)"

vuln: ## known vulnerabilities in the code that the program calls; fails without their database. VULNDB is a copy of it
	@sh scripts/vuln.sh

vuln-if-reachable: ## the same, but only a notice if the database cannot be reached
	@sh scripts/vuln.sh --if-reachable

# VERSION is that of the chart and of a section of CHANGELOG.md.
dist: ## bin/dist: a release, as VERSION=0.1.0: archives, packages, formula, checksums, components, provenance
	@sh scripts/dist.sh "$(VERSION)"

dist-check: ## build a release of the last commit twice, and compare them byte by byte
	@sh scripts/dist-check.sh "$(VERSION)"

package-check: ## install the Debian package of bin/dist into a clean Debian, start it, and purge it; needs root and a Debian mirror
	@sh scripts/package-check.sh

sbom: build ## bin/dewpoint.cdx.json: the program's components, in CycloneDX format
	$(AUDIT) cyclonedx-gomod bin -json -std -output bin/dewpoint.cdx.json bin/dewpoint

schema: ## the schema of the chart's values is that of the configuration
	cd deploy/charttest && $(GO) test -count=1 ./schema

chart: bin/tools/golangci-lint bin/tools/gotestsum ## lint the Helm chart, render it with every set of values, and check the result
	@sh scripts/prometheus.sh && sh scripts/chart.sh

rehearsal: ## run what the chart renders for production over a real Redis Cluster, and roll it under load
	@sh scripts/rehearsal.sh

cluster: bin/tools/golangci-lint ## install the chart with helm into a real API server; not part of check, since it builds Kubernetes first
	@sh scripts/cluster.sh

condenser-docs: ## regenerate the tables of docs/condensers.md, after the catalogue of condensers has changed
	$(GO) test ./condense/catalogue -run TestDocumentationAgreesWithTheCatalogue -update

chart-schema: ## regenerate deploy/helm/values.schema.json, after the configuration gained a key
	cd deploy/charttest && $(GO) test ./schema -run TestTheChartHasTheSchemaOfThisConfiguration -update

chart-docs: ## regenerate the table of values in deploy/helm/README.md
	@sh scripts/chart-docs.sh

chart-package: ## bin/chart: the chart as an archive and as an OCI layout
	@mkdir -p bin/chart && cd deploy/charttest && $(GO) run ./package ../helm ../../bin/chart

# LITELLM is the program of litellm[proxy], PORTKEY is start-server.js of @portkey-ai/gateway: install them where you like.
.PHONY: plugs clients-together
plugs: build ## RUNS through LiteLLM and Portkey's gateway, which ask Dewpoint, and through Dewpoint as a proxy: both must forward the same; and how long a plug takes
	$(GO) build -o bin/plugs ./lab/plugs
	bin/plugs -runs "$(RUNS)" -litellm "$(LITELLM)" -portkey "$(PORTKEY)"
	bin/plugs -runs "$(RUNS)" -latency

# RUNS is a folder of recorded runs; docs/replay.md describes their format. RUNS_STRIDE samples them: 7 plays every seventh.
replay: ## play RUNS through the proxy, against a strict upstream, and judge every request
	$(GO) build -o bin/measure ./lab/measure
	sh scripts/replay.sh "$(RUNS)"

# CAPTURES is a folder of captured client traffic.
captures: bin/tools/gotestsum ## check to which conversation each request of CAPTURES belongs
	@sh scripts/test.sh captures

recorded: bin/tools/gotestsum ## RUNS under kills, over two replicas, with failing summarisers, and under every condenser, seal and protocol; and recall from them
	@sh scripts/test.sh recorded

# In full it plays every MATRIX_STRIDE-th run: all of them would take hours.
MATRIX_STRIDE ?= 9
export MATRIX_STRIDE
matrix: bin/tools/gotestsum ## RUNS in the protocols other than Chat Completions under every condenser and seal, with kills and two replicas; minutes per run
	@sh scripts/test.sh matrix

# CLIENTS is a regular expression on names. Interrupting it changes nothing; installed clients stay in the user's cache folder.
clients: build ## run real agents and SDKs from npm and PyPI, and write the tables of docs/clients.md
	@mkdir -p bin && $(GO) build -o bin/clients ./lab/clients && bin/clients -only "$(CLIENTS)" -doc docs/clients.md

clients-run: build ## the same agents, started by 'dewpoint run'
	@mkdir -p bin && $(GO) build -o bin/clients ./lab/clients && bin/clients -run -only "$(CLIENTS)"

clients-together: build ## Claude Code, Codex and an OpenAI SDK at the same time, through one process
	@mkdir -p bin && $(GO) build -o bin/clients ./lab/clients && bin/clients -together -only '(Claude Code|Codex|OpenAI Python, chat)$$'

# In full: the page stays as it is, so that the check leaves the work tree alone.
clients-all: build
	@mkdir -p bin && $(GO) build -o bin/clients ./lab/clients && bin/clients && bin/clients -run && $(MAKE) clients-together

clients-sample: build ## one client from each of npm and PyPI, and one by 'dewpoint run'
	@mkdir -p bin && $(GO) build -o bin/clients ./lab/clients && bin/clients -only "pi|OpenAI Python, chat" && bin/clients -run -only "pi"

forwarded: build ## a SHA-256 of the bytes sent upstream for each of RUNS (folders) and CAPTURES, under five configurations
	@$(GO) run ./lab/measure forwarded -captures "$(CAPTURES)" $(RUNS)

store-size: build ## what the stores hold of RUNS and of small chats, by kind of record; needs redis-server
	@$(GO) run ./lab/measure store-size $(RUNS)

retention: ## regenerate lab/retention.md
	$(GO) run ./lab/measure retention -doc lab/retention.md "$(RUNS)"

statements: ## regenerate the table in lab/retention.md of what agents said that they rely on later
	$(GO) run ./lab/measure statements -doc lab/retention.md "$(RUNS)"

real: ## summaries by real MODELS on three of RUNS: what passes the checks, is grounded and kept. OPENAI_BASE_URL and OPENAI_API_KEY name the server
	@$(GO) run ./lab/measure real -models "$(MODELS)" $(if $(PROMPT),-prompt "$(PROMPT)") "$(RUNS)"

grounding: ## regenerate lab/grounding.md
	$(GO) run ./lab/measure grounding -doc lab/grounding.md "$(RUNS)"

cost: ## regenerate lab/cost.md
	$(GO) run ./lab/measure cost -doc lab/cost.md "$(RUNS)"

economics: ## regenerate lab/economics.md
	$(GO) run ./lab/measure economics -doc lab/economics.md "$(RUNS)"

frontier: ## regenerate lab/frontier.md
	$(GO) run ./lab/measure frontier -doc lab/frontier.md "$(RUNS)"

soak-short: build ## a minute of the soak over each store
	$(GO) run ./lab/measure soak -store redis,embedded -seed $(SEED) -duration 40s -sessions 60 -steps 14

soak-race: ## the same with the race detector in the program: it finds races under kills and faults
	$(GO) build -race -trimpath -o bin/dewpoint-race ./cmd/dewpoint
	$(GO) run ./lab/measure soak -dewpoint bin/dewpoint-race -store redis,embedded -seed $(SEED) -duration 40s -sessions 60 -steps 14

soak: build ## regenerate lab/reliability.md; takes a quarter of an hour
	$(GO) run ./lab/measure soak -store redis,embedded -seed $(SEED) -doc lab/reliability.md

FUZZTIME ?= 30s
fuzz: ## run every fuzz target for FUZZTIME; FUZZCORPUS keeps findings. Random, so part of make full only
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
