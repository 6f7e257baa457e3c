#!/bin/sh
# The install rehearsal: runs what the chart renders from its production values, as processes over a real Redis Cluster, and rolls them
# under load. It takes most of a minute, since it uses the rendered probes, delays and pauses.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp)
trap 'rm -f "$out"' EXIT
if ! ${GO:-go} test -count=1 -parallel 3 -timeout 10m -v -run '^TestRehearsal$' ./lab/rehearsal >"$out" 2>&1; then
	cat "$out"
	echo "failed:"
	grep -E '^ *(rehearsal_test\.go:[0-9]+: |--- FAIL|panic:)' "$out" | tail -40 || true
	exit 1
fi
sed -n 's/^ *rehearsal_test.go:[0-9]*: /rehearsal: /p; /^ok/p' "$out"
