#!/bin/sh
# Prints every STRIDE-th recorded run of a folder, or all with a stride of 1: scripts/sample.sh STRIDE FOLDER
set -eu
for run in "$2"/*.json; do echo "$run"; done | awk -v stride="$1" '(NR - 1) % stride == 0'
