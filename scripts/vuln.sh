#!/bin/sh
# Looks for known vulnerabilities in what the program calls. VULNDB is a folder with a copy of their database (vulndb.zip of
# https://vuln.go.dev, unpacked), for machines without a network. Where the database cannot be reached, it says so and fails; with
# --if-reachable it says so and succeeds.
set -u
db=${GOVULNDB:-https://vuln.go.dev}
if [ -n "${VULNDB:-}" ]; then
	copy=$(cd "$VULNDB" && pwd) && [ -f "$copy/index/modules.json" ] || {
		echo "vuln: VULNDB=$VULNDB is no copy of the database: index/modules.json is missing" >&2
		exit 1
	}
	db=file://$copy
fi
out=$(${GO:-go} tool -modfile=tools/audit/go.mod govulncheck -db "$db" ./... 2>&1)
code=$?
echo "$out"
case $out in
*"fetching vulnerabilities"* | *"dial tcp"* | *"module lookup disabled"*)
	echo "vuln: NOT CHECKED: the vulnerability database ($db) cannot be reached; set VULNDB to a folder with a copy of it" >&2
	[ "${1:-}" = --if-reachable ] && exit 0
	;;
esac
exit $code
