#!/bin/sh
# Runs go vet on the packages with files that differ from the last commit, or on all packages if none does. A change in one package makes
# go vet check all that import it again, which takes a minute; 'make lint' does that.
set -u
cd "$(dirname "$0")/.."
others=':!deploy/charttest :!lab/cluster :!tools' # modules of their own
# shellcheck disable=SC2086 # patterns without spaces
changed=$({
	git diff --name-only --diff-filter=d HEAD -- '*.go' $others
	git ls-files --others --exclude-standard -- '*.go' $others
} | xargs -r -n 1 dirname | sort -u | sed 's,^,./,')
# shellcheck disable=SC2086 # names of packages are words
exec "${GO:-go}" vet ${changed:-./...}
