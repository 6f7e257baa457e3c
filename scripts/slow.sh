#!/bin/sh
# Runs the tests that 'go test -short' skips: those whose function calls testing.Short. They run with the race detector, except computations
# without concurrency, which it makes ten times slower and which run with it in their short form.
set -eu
cd "$(dirname "$0")/.."
alone='^(condense|internal/holdout|lab/bench|lab/measure)$'
files=$(git grep -l 'testing\.Short()' -- '*_test.go' ':!deploy' ':!lab/rehearsal')
# shellcheck disable=SC2086 # names of files are words
tests=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /testing\.Short\(\)/ { print name }' $files | paste -sd'|' -)
# shellcheck disable=SC2086
folders=$(dirname $files | sort -u)
failed=0
run() { "${GO:-go}" tool -modfile=tools/go.mod gotestsum --format pkgname -- -count=1 -timeout 30m -run "^($tests)\$" "$@" || failed=1; }
# shellcheck disable=SC2046
run $(echo "$folders" | grep -E "$alone" | sed 's,^,./,')
# shellcheck disable=SC2046
run -race $(echo "$folders" | grep -vE "$alone" | sed 's,^,./,')
exit $failed
