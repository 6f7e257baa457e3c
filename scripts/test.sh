#!/bin/sh
# Runs all tests with the race detector. Tests of properties draw their cases from one seed, so that a run can be repeated; with
# SEED=0 from another one each time, which explores.
set -u
go=${GO:-go}
drawing=$($go list -test -f '{{.ImportPath}} {{.Deps}}' ./... | sed -n 's/^\([^ ]*\)\.test .*pgregory\.net\/rapid.*/\1/p')
others=$($go list ./... | grep -vxF "$drawing")
failed=0
# shellcheck disable=SC2086 # lists of packages
{
	$go test -race $others || failed=1
	$go test -race $drawing "-rapid.seed=${SEED:-20}" || failed=1
}
exit $failed
