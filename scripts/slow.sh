#!/bin/sh
# Runs the tests that 'go test -short' skips, those whose function calls testing.Short, with the race detector. The simulation of holdouts runs
# without it: it has no concurrency, would take ten times as long, and runs with it in its short form.
set -eu
cd "$(dirname "$0")/.."
files=$(git grep -l 'testing\.Short()' -- '*_test.go' ':!deploy' ':!lab/rehearsal')
# shellcheck disable=SC2086 # names of files are words
tests=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /testing\.Short\(\)/ { print name }' $files | paste -sd'|' -)
# shellcheck disable=SC2086
packages=$(dirname $files | sort -u | sed 's,^,./,' | grep -vx ./internal/holdout)
failed=0
run() { "${GO:-go}" tool -modfile=tools/go.mod gotestsum --format pkgname -- -count=1 -timeout 30m -run "^($tests)\$" "$@" || failed=1; }
run ./internal/holdout
# shellcheck disable=SC2086
run -race $packages
exit $failed
