#!/bin/sh
# Runs the tests that 'go test -short' skips, with the race detector: those whose function calls testing.Short.
set -eu
cd "$(dirname "$0")/.."
files=$(git grep -l 'testing\.Short()' -- '*_test.go' ':!deploy' ':!lab/rehearsal')
# shellcheck disable=SC2086 # names of files are words
tests=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /testing\.Short\(\)/ { print name }' $files | paste -sd'|' -)
# shellcheck disable=SC2086
packages=$(dirname $files | sort -u | sed 's,^,./,')
# shellcheck disable=SC2086
exec "${GO:-go}" tool -modfile=tools/go.mod gotestsum --format pkgname -- -race -count=1 -timeout 30m -run "^($tests)\$" $packages
