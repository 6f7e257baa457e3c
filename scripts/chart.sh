#!/bin/sh
# The Helm chart, by helm itself and by the tests in deploy/charttest, a module of its own.
set -eu
cd "$(dirname "$0")/../deploy/charttest"
go=${GO:-go}
$go vet ./...
$go tool -modfile=../../tools/go.mod golangci-lint run ./...
for values in ../helm/ci/*.yaml; do
	$go tool helm lint --strict --quiet --values "$values" ../helm
	$go tool helm template try ../helm --values "$values" >/dev/null
done
$go test -skip '^TestRehearsal$' ./...   # scripts/rehearsal.sh runs that one
