#!/bin/sh
# Runs the tests that 'go test -short' skips, those whose function calls testing.Short, with the race detector. Replays and
# measurements run without it, see scripts/test.sh, and so does the simulation of holdouts, which has no concurrency. The short replays
# in every protocol and seal, which 'make test' runs without the race detector, run with it here.
set -eu
cd "$(dirname "$0")/.."
files=$(git grep -l 'testing\.Short()' -- '*_test.go' ':!deploy' ':!lab/rehearsal')
# shellcheck disable=SC2086 # names of files are words
tests=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /testing\.Short\(\)/ { print name }' $files | paste -sd'|' -)
# shellcheck disable=SC2086
packages=$(dirname $files | sort -u | sed 's,^,./,')
plain='./internal/holdout|./internal/replay|./lab/measure'
raced='TestProtocols TestProtocolOverflows TestSealedReasoning'
failed=0
for name in $raced; do
	grep -q "^func $name(" internal/replay/*_test.go || { echo "scripts/slow.sh: there is no $name in internal/replay" >&2; failed=1; }
done
run() { # run TESTS FLAG... PACKAGE...
	names=$1
	shift
	"${GO:-go}" tool -modfile=tools/go.mod gotestsum --format pkgname -- -count=1 -vet=off -timeout 30m -run "^($names)\$" "$@" || failed=1
}
# shellcheck disable=SC2046 # lists of packages
run "$tests" $(echo "$packages" | grep -xE "$plain")
# shellcheck disable=SC2046
run "$tests" -race $(echo "$packages" | grep -vxE "$plain")
run "$(echo "$raced" | tr ' ' '|')" -race -short ./internal/replay
exit $failed
