#!/bin/sh
# Checks the code that the program calls for known vulnerabilities. VULNDB is a folder with an unpacked copy of the database (vulndb.zip
# from https://vuln.go.dev), for machines without a network. If the database cannot be reached, the script reports it and fails; with
# --if-reachable it reports it and succeeds.
set -u
db=${GOVULNDB:-https://vuln.go.dev}
if [ -n "${VULNDB:-}" ]; then
	copy=$(cd "$VULNDB" && pwd) && [ -f "$copy/index/modules.json" ] || {
		echo "vuln: VULNDB=$VULNDB is not a copy of the database: index/modules.json is missing" >&2
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
