#!/bin/sh
# Runs tests, most of them with the race detector: scripts/test.sh [FLAG...]. Property tests draw their cases from a fixed seed, so that a run can be
# repeated; SEED=0 uses a new seed each time, to explore. Failures and skipped tests are listed again at the end, and slow
# tests in bin/slowest.txt.
set -u
cd "$(dirname "$0")/.."
go=${GO:-go}
if [ "${1:-}" = --json ]; then
	shift
	drawing=$($go list -test -f '{{.ImportPath}} {{.Deps}}' ./... | sed -n 's/^\([^ ]*\)\.test .*pgregory\.net\/rapid.*/\1/p')
	# Replays and measurements of time run without the race detector, which makes them up to ten times slower. A few replays run with it
	# as well, and so do those of scripts/slow.sh and the tests of other packages. 'make lint' vets the tests, so they are not vetted here.
	plain=$($go list ./internal/replay ./internal/overflow ./lab/measure)
	raced='TestSample TestIdentity'
	configurations='^TestReplayOfAnyConfiguration$'
	others=$($go list ./... | grep -vxF "$drawing" | grep -vxF "$plain")
	# What takes longest comes first, so that no processor waits for it at the end.
	first() { printf '%s\n' "$2" | grep "$1"; printf '%s\n' "$2" | grep -v "$1"; }
	drawing=$(first '/\(e2e\|proxy\|admin\|engine\|redisstore\|condense\|app\)$' "$drawing")
	others=$(first '/\(holdout\|demo\)$' "$others")
	# Tests wait for timers and for other processes a fifth of their time, so that one package more than there are processors fits. A
	# container may use fewer than it sees.
	processors=$(getconf _NPROCESSORS_ONLN)
	[ "$processors" -lt 8 ] || processors=7
	set -- -vet=off -p $((processors + 1)) "$@"
	failed=0
	for name in $raced; do
		grep -q "^func $name(" internal/replay/*_test.go || { echo "scripts/test.sh: there is no $name in internal/replay" >&2; failed=1; }
	done
	# shellcheck disable=SC2086 # lists of packages
	{
		$go test -json "$@" $plain || failed=1
		$go test -json "$@" -run "$configurations" ./cmd/proxy || failed=1
		$go test -json -race "$@" -run "^($(echo "$raced" | tr ' ' '|'))\$" ./internal/replay || failed=1
		$go test -json -race "$@" -skip "$configurations" $others || failed=1
		$go test -json -race "$@" $drawing "-rapid.seed=${SEED:-20}" || failed=1
		# Its pointer checks end the process on a damaged page, so these run without it.
		$go test -json -count=1 -run 'TestZeroedPages|TestFlippedBytes' ./session/boltstore || failed=1
	}
	exit $failed
fi
gotestsum="$go tool -modfile=tools/go.mod gotestsum"
mkdir -p bin
$gotestsum --format pkgname --jsonfile bin/test.json --raw-command -- sh scripts/test.sh --json "$@"
code=$?
# In bin, since the gate shows the end of the output.
$gotestsum tool slowest --jsonfile bin/test.json --threshold 5s >bin/slowest.txt
exit $code
