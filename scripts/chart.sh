#!/bin/sh
# Tests the Helm chart with helm and with deploy/charttest, which is a separate module.
set -eu
cd "$(dirname "$0")/../deploy/charttest"
go=${GO:-go}
$go vet ./...
../../bin/tools/golangci-lint run ./...
sh ../../scripts/chart-docs.sh --check
for values in ../helm/ci/*.yaml; do
	$go tool helm lint --strict --quiet --values "$values" ../helm
	$go tool helm template try ../helm --values "$values" >/dev/null
done
../../bin/tools/gotestsum --format pkgname -- -count=1 ./... # Go's cache does not see changes of the chart, which is outside this module
if command -v promtool >/dev/null 2>&1; then
	promtool check rules ../helm/files/alerts.yaml
	promtool test rules testdata/alerts.yaml
else
	echo "alerts: NOT TESTED: promtool is not installed (it is in Debian's package prometheus)"
fi
