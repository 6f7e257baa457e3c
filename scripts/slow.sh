#!/bin/sh
# Runs the tests that 'go test -short' skips, those whose function calls testing.Short, with the race detector. Replays and
# measurements run without it, see scripts/test.sh, and so does the simulation of holdouts, which has no concurrency.
set -eu
cd "$(dirname "$0")/.."
files=$(git grep -l 'testing\.Short()' -- '*_test.go' ':!deploy' ':!lab/rehearsal')
# shellcheck disable=SC2086 # names of files are words
tests=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /testing\.Short\(\)/ { print name }' $files | paste -sd'|' -)
# shellcheck disable=SC2086
packages=$(dirname $files | sort -u | sed 's,^,./,')
plain='./internal/holdout|./internal/replay|./lab/measure'
failed=0
run() { "${GO:-go}" tool -modfile=tools/go.mod gotestsum --format pkgname -- -count=1 -timeout 30m -run "^($tests)\$" "$@" || failed=1; }
# shellcheck disable=SC2046 # lists of packages
run $(echo "$packages" | grep -xE "$plain")
# shellcheck disable=SC2046
run -race $(echo "$packages" | grep -vxE "$plain")
exit $failed
