#!/bin/sh
# Builds a release of the last commit twice, in folders of different names and from an empty cache the second time, and fails unless both are the
# same, byte for byte: scripts/dist-check.sh VERSION. PLATFORMS is that of scripts/dist.sh.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -z "$(git status --porcelain)" ] || echo "dist-check: what is not committed is not built" >&2
for folder in one a-second-folder; do
	git clone -q . "$work/$folder"
	echo "== building in $folder"
	(cd "$work/$folder" && sh scripts/dist.sh "$1" >"$work/$folder.log" 2>&1) || { cat "$work/$folder.log" >&2; exit 1; }
	GOCACHE=$work/cache
	export GOCACHE
done
diff -r "$work/one/bin/dist" "$work/a-second-folder/bin/dist"
(cd "$work/one/bin/dist" && sha256sum --check --quiet SHA256SUMS)
echo "the two builds are the same: $(ls "$work/one/bin/dist" | wc -l) files"
