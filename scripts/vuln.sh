#!/bin/sh
# Looks for known vulnerabilities in what the program calls. Where their database cannot be reached, it says so and fails; with
# --if-reachable it says so and succeeds.
set -u
out=$(${GO:-go} tool -modfile=tools/audit/go.mod govulncheck ./... 2>&1)
code=$?
echo "$out"
case $out in
*"fetching vulnerabilities"* | *"dial tcp"* | *"module lookup disabled"*)
	echo "vuln: NOT CHECKED: the vulnerability database (${GOVULNDB:-https://vuln.go.dev}) cannot be reached; set GOVULNDB to a copy of it" >&2
	[ "${1:-}" = --if-reachable ] && exit 0
	;;
esac
exit $code
