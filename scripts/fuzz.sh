#!/bin/sh
# Runs every fuzz target of the module for a while: scripts/fuzz.sh [TIME]. What is found interesting is kept in Go's cache, and in the
# folder FUZZCORPUS if that is set, from which the next run goes on: for machines that keep no cache.
#
# Minimising each find would take most of the time, so that is cut short: a failing input is minimised enough to be read.
set -eu
time=${1:-30s}
cache=$(go env GOCACHE)/fuzz
kept=${FUZZCORPUS:-}
module=$(go list -m)
if [ -n "$kept" ]; then
	mkdir -p "$kept" "$cache/$module"
	cp -R "$kept/." "$cache/$module/"
	trap 'cp -R "$cache/$module/." "$kept/"' EXIT
fi
for package in $(go list ./...); do
	for target in $(go test -list '^Fuzz' "$package" | grep '^Fuzz' || true); do
		echo "== $package $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10x "$package"
	done
done
