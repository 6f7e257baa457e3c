#!/bin/sh
# Runs stages of the gate, each a target of the Makefile: scripts/gate.sh STAGE...
#
# The output of a stage goes to bin/gate/STAGE.log. At the end the script prints the tails of failed stages, the skipped tests with their
# count, and the verdict. GATE_LIMIT limits the total time in seconds; unset, there is no limit. With RESUME=1, a stage that has passed
# with the same files, flags and recorded material is not run again.
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

# state identifies the files of the checkout, committed or not, and what the stages are given.
state() {
	{
		git rev-parse HEAD
		git diff HEAD
		git ls-files --others --exclude-standard -z | xargs -0 cat
		echo "${RUNS:-} ${CAPTURES:-} ${SEED:-} ${FUZZTIME:-} ${STRIDE:-}"
	} | git hash-object --stdin
}

# skipped prints the tests that the given logs report as skipped, one a line, except slow tests, which 'make full' runs.
skipped() {
	awk '/^=== SKIP: / { test = $3 " " $4; next }
		test != "" { sub(/^ *[^ ]*\.go:[0-9]+: */, ""); if (!/^SLOW: /) print "  " test ": " $0; test = ""; next }
		/NOT (CHECKED|TESTED): / && !/_test\.go/ { print "  " $0 }' "$@" | sort -u
}

passed=$logs/passed/$(state)
[ "${RESUME:-}" = 1 ] || rm -rf "$logs/passed"
mkdir -p "$passed"
for name in "$@"; do
	printf '== %-16s ' "$name"
	from=$(date +%s)
	if [ -e "$passed/$name" ]; then echo "passed before, $(cat "$passed/$name") s"; continue; fi
	if stage "$name" >"$logs/$name.log" 2>&1; then
		verdict=ok
		echo $(($(date +%s) - from)) >"$passed/$name"
	else verdict=FAILED failed="$failed $name"; fi
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
