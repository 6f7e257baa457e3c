#!/bin/sh
# Copies the licences and notices of a program and of all its modules: scripts/licences.sh FOLDER PACKAGE.
set -eu
cd "$(dirname "$0")/.."
to=$1
mkdir -p "$to/go"
cp LICENSE "$to/"
cp "$(${GO:-go} env GOROOT)/LICENSE" "$to/go/"
${GO:-go} list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Dir}}{{end}}{{end}}' "$2" | sort -u | while read -r module dir; do
	found=""
	for file in "$dir"/LICEN[CS]E* "$dir"/COPYING* "$dir"/NOTICE*; do
		[ -f "$file" ] || continue
		mkdir -p "$to/$module" && cp "$file" "$to/$module/" && found=1
	done
	[ -n "$found" ] || { echo "licences: $module has none" >&2; exit 1; }
done
