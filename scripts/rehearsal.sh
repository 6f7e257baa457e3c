#!/bin/sh
# The install rehearsal: what the chart renders of its production set, run as processes over a real Redis Cluster and rolled
# under load. It takes most of a minute, since probes, delays and pauses are those that were rendered.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
if ! ${GO:-go} test -count=1 -parallel 3 -timeout 10m -v -run '^TestRehearsal$' ./lab/rehearsal >"$out" 2>&1; then
	cat "$out"
	echo "what failed:"
	grep -E '^ *(rehearsal_test\.go:[0-9]+: |--- FAIL|panic:)' "$out" | tail -40 || true
	exit 1
fi
sed -n 's/^ *rehearsal_test.go:[0-9]*: /rehearsal: /p; /^ok/p' "$out"
