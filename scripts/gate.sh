#!/bin/sh
# Runs stages of the gate, each a target of the Makefile: scripts/gate.sh STAGE...
#
# The output of a stage goes to bin/gate/STAGE.log. At the end the script prints the tails of failed stages, the skipped tests with their
# count, and the verdict. GATE_LIMIT limits the total time in seconds; unset, there is no limit. With RESUME=1, a stage that has passed
# with the same files, settings and recorded material is not run again: bin/gate/STAGE.passed says so.
set -u
cd "$(dirname "$0")/.."
logs=bin/gate
go=${GO:-go}
mkdir -p "$logs"
began=$(date +%s)
failed="" tested=0

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

# state identifies what the results of stages depend on: the files of the checkout, committed or not, the toolchain, what the stages are
# given, and the recorded material.
state() {
	{
		git rev-parse HEAD
		git diff HEAD
		git ls-files --others --exclude-standard -z | xargs -0 cksum
		$go version
		env | grep -E '^(RUNS|CAPTURES|ONLY|SEED|STRIDE|RUNS_STRIDE|MATRIX_STRIDE|FUZZTIME|VULNDB|CC|GO[A-Z0-9_]*|DEWPOINT_[A-Z0-9_]*)=' | sort
		for folder in "${RUNS:-}" "${CAPTURES:-}"; do
			[ -z "$folder" ] || find -L "$folder" -type f -exec cksum {} + | sort
		done
	} | git hash-object --stdin
}

# lacks prints the variable with the recorded material that a stage needs, if it is not set.
lacks() {
	case $1 in
	replay | recorded | matrix) [ -n "${RUNS:-}" ] || echo RUNS ;;
	captures) [ -n "${CAPTURES:-}" ] || echo CAPTURES ;;
	esac
}

# skipped prints the tests that the given logs report as skipped, one a line, except slow tests, which 'make full' runs.
skipped() {
	awk '/^=== SKIP: / { test = $3 " " $4; next }
		test != "" { sub(/^ *[^ ]*\.go:[0-9]+: */, ""); if (!/^SLOW: /) print "  " test ": " $0; test = ""; next }
		/NOT (CHECKED|TESTED): / && !/_test\.go/ { print "  " $0 }' "$@" | sort -u
}

for name in "$@"; do
	printf '== %-16s ' "$name"
	from=$(date +%s)
	log=$logs/$name.log
	passed=$logs/$name.passed
	lacking=$(lacks "$name")
	if [ -n "$lacking" ]; then
		echo "$name: NOT TESTED: $lacking is not set" >"$log"
		echo "NOT TESTED: $lacking is not set"
		continue
	fi
	tested=$((tested + 1))
	before=$(state)
	if [ "${RESUME:-}" = 1 ] && read -r mark seconds 2>/dev/null <"$passed" && [ "$mark" = "$before" ]; then
		echo "passed before, $seconds s"
		continue
	fi
	rm -f "$passed"
	if stage "$name" >"$log" 2>&1; then
		verdict=ok
		# What this machine cannot test is tried again, as is a stage during which a file has changed.
		if ! grep -q 'NOT \(CHECKED\|TESTED\): ' "$log" && [ "$(state)" = "$before" ]; then echo "$before $(($(date +%s) - from))" >"$passed"; fi
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
echo "PASSED: $tested stages, $(($(date +%s) - began)) s"
