#!/bin/sh
# Generates deploy/helm/README.md from README.md.gotmpl and the comments in values.yaml; with --check, fails if the page is out of date.
set -eu
cd "$(dirname "$0")/.."
page=deploy/helm/README.md
made=$(mktemp)
trap 'rm -f "$made"' EXIT
${GO:-go} tool -modfile=tools/helmdocs/go.mod helm-docs --chart-search-root deploy/helm --ignore-non-descriptions --dry-run --log-level error >"$made"
if [ "${1:-}" != --check ]; then cp "$made" "$page"; chmod 644 "$page"
elif ! cmp -s "$made" "$page"; then echo "$page is out of date: run 'make chart-docs'"; exit 1; fi
