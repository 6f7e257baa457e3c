#!/bin/sh
# Prints the absolute paths of the recorded runs in a folder, of every STRIDE-th one: scripts/sample.sh STRIDE FOLDER. If there are none, it
# fails, since nothing would be tested.
set -eu
folder=""
[ -z "$2" ] || folder=$(cd "$2" && pwd)
stride=$1
set -- "$folder"/*.json
if [ -z "$folder" ] || [ ! -e "$1" ]; then
	echo "RUNS must be a folder of recorded runs, with files *.json in it (see docs/replay.md), but is '$folder'" >&2
	exit 1
fi
printf '%s\n' "$@" | awk -v stride="$stride" '(NR - 1) % stride == 0'
