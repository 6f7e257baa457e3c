#!/bin/sh
# Runs each fuzz target of the module for TIME: scripts/fuzz.sh [TIME]. Interesting inputs are kept in Go's cache and, if FUZZCORPUS is
# set, in that folder, from which the next run continues. Use it on machines that keep no cache.
#
# Minimising every input would take most of the time, so it is cut short. Failing inputs are still minimised enough to be readable.
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
