#!/bin/sh
# Runs stages of the gate, each a target of the Makefile: scripts/gate.sh STAGE...
#
# The output of a stage goes to bin/gate/STAGE.log. At the end the script prints the tails of failed stages, the skipped tests with their
# count, and the verdict. GATE_LIMIT limits the total time in seconds; unset, there is no limit.
set -u
cd "$(dirname "$0")/.."
logs=bin/gate
mkdir -p "$logs"
began=$(date +%s)
failed=""

limited() { # limited COMMAND...
	left=$((GATE_LIMIT - $(date +%s) + began))
	if [ "$left" -lt 1 ]; then echo "the limit of ${GATE_LIMIT} s was reached before"; return 1; fi
	timeout -k 20 "$left" "$@" && return
	code=$?
	[ "$code" != 124 ] || echo "cut off: the limit of ${GATE_LIMIT} s for all stages was reached"
	return "$code"
}

stage() {
	if [ -n "${GATE_LIMIT:-}" ] && command -v timeout >/dev/null; then limited "${MAKE:-make}" --no-print-directory "$1"
	else "${MAKE:-make}" --no-print-directory "$1"; fi
}

# skipped prints the tests that the given logs report as skipped, one a line, except slow tests, which 'make slow' runs.
skipped() {
	awk '/^=== SKIP: / { test = $3 " " $4; next }
		test != "" { sub(/^ *[^ ]*\.go:[0-9]+: */, ""); if (!/^SLOW: /) print "  " test ": " $0; test = ""; next }
		/NOT (CHECKED|TESTED): / && !/_test\.go/ { print "  " $0 }' "$@" | sort -u
}

for name in "$@"; do
	printf '== %-16s ' "$name"
	from=$(date +%s)
	if stage "$name" >"$logs/$name.log" 2>&1; then verdict=ok; else verdict=FAILED failed="$failed $name"; fi
	echo "$verdict, $(($(date +%s) - from)) s"
done

for name in $failed; do
	echo
	echo "== $name FAILED, the end of $logs/$name.log:"
	tail -n 60 "$logs/$name.log"
done
echo
names=$(for name in "$@"; do echo "$logs/$name.log"; done)
# shellcheck disable=SC2086 # names of files are words
list=$(skipped $names)
if [ -z "$list" ]; then echo "SKIPPED: nothing"; else
	echo "SKIPPED, NOT TESTED: $(echo "$list" | wc -l | tr -d ' ')"
	echo "$list"
fi
if [ -n "$failed" ]; then echo "FAILED:$failed, after $(($(date +%s) - began)) s"; exit 1; fi
echo "PASSED: $# stages, $(($(date +%s) - began)) s"
