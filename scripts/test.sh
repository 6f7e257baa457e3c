#!/bin/sh
# Runs tests: scripts/test.sh SET [FLAG...], where SET is one of
#
#   quick  the short tests of all packages but internal/test/e2e and the laboratory, without those that call quick.Skip. Results come from Go's
#          cache where nothing has changed. GOGC=400 saves a tenth of the time, most of which is compiling.
#   short  the short tests of all packages but internal/test/e2e, cached too
#   race   the same tests of the packages with goroutines, with the race detector, but for those that call quick.Alone
#   e2e    the short tests of internal/test/e2e, which start the built program
#   slow   the tests that -short skips, those whose function calls testing.Short. STRIDE=4 runs every fourth of them.
#   recorded, matrix   the tests that play the recorded runs in the folder RUNS. RUNS_STRIDE samples them, MATRIX_STRIDE the runs of a matrix.
#   captures           the test of the client traffic in the folder CAPTURES
#
# Property tests draw their cases from SEED, see package internal/test/property. Failures and skipped tests are listed again at the end, and
# slow tests in bin/slowest-SET.txt, in two files for slow. 'make lint' and 'make vet' vet the tests, so they are not vetted here.
set -u
cd "$(dirname "$0")/.."
go=${GO:-go}
set=$1
shift

# Tests wait for timers and for other processes, so that one package more than there are processors fits, and in short tests some of a package
# at a time. A container may use fewer processors than it sees.
processors=$(getconf _NPROCESSORS_ONLN)
[ "$processors" -lt 8 ] || processors=7

# packages lists packages by the import path, what takes longest first, so that no processor waits for it at the end.
packages() {
	all=$($go list ./... | grep -v '/internal/test/e2e$')
	long='/\(proxy\|redisstore\|judge\|replay\|admin\|engine\|condense\|app\)$'
	printf '%s\n' "$all" | grep "$long"
	printf '%s\n' "$all" | grep -v "$long"
}

# concurrent lists the packages of the program that start goroutines or share memory between them, but for internal/replay, which plays whole
# runs through the others.
concurrent() {
	git grep -lE '^\s*go [a-zA-Z(]|^\s*"sync(/atomic)?"$' -- '*.go' ':!*_test.go' ':!lab' ':!deploy' ':!session/sessiontest' ':!internal/test/fakeupstream' \
		':!internal/test/judge' ':!internal/replay' ':!internal/test/process' ':!internal/test/property' | xargs -n 1 dirname | sort -u | sed 's,^,./,'
}

# sampled prints every STRIDE-th line.
sampled() { awk -v stride="${STRIDE:-1}" '(NR - 1) % stride == 0'; }

run() { # run FLAG...
	mkdir -p bin
	gotestsum=bin/tools/gotestsum
	# Results of other cases are no results of these.
	[ "${SEED:-}" != 0 ] || set -- -count=1 "$@"
	$gotestsum --format "${format:-pkgname}" --jsonfile "bin/test-$set.json" -- -vet=off -p $((processors + 1)) "$@"
	code=$?
	# In bin, since the gate shows the end of the output.
	$gotestsum tool slowest --jsonfile "bin/test-$set.json" --threshold 3s >"bin/slowest-$set.txt"
	return $code
}

# slow runs the long tests of the files whose path grep selects: slow OPTION PATTERN FLAG...
slow() {
	files=$(git grep -l 'testing\.Short()' -- '*_test.go' ':!deploy' ':!lab/rehearsal' | grep "$1" "$2")
	shift 2
	# shellcheck disable=SC2086 # names of files are words
	tests=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /testing\.Short\(\)/ { print name }' $files | sort -u | sampled | paste -sd'|' -)
	# shellcheck disable=SC2046,SC2086
	run -count=1 -timeout 30m -run "^($tests)\$" "$@" $(dirname $files | sort -u | sed 's,^,./,')
}

# shellcheck disable=SC2046 # lists of packages
case $set in
quick)
	# Files in memory save a twentieth. The folder has one name, since it is part of the key of cached results.
	memory=/dev/shm
	if [ -z "${TMPDIR:-}" ] && [ "$(df -Pk $memory 2>/dev/null | awk 'NR == 2 { print int($4 / 2097152) }')" -gt 0 ] 2>/dev/null; then
		TMPDIR=$memory/dewpoint-$(id -u)
		mkdir -p "$TMPDIR" && export TMPDIR
	fi
	GOGC=400 QUICK=1 run -short -parallel $((4 * processors)) "$@" $(packages | grep -v '/lab/')
	;;
short) run -short -parallel $((4 * processors)) "$@" $(packages) ;;
race) run -short -race -parallel $((2 * processors)) "$@" $(concurrent) ;;
e2e) run -short "$@" ./internal/test/e2e ;;
slow) # replays and measurements have their concurrency in the program, which other tests watch; e2e runs a program built without the detector
	failed=0
	set=slow-plain
	plain='^\(internal/test/\(e2e\|judge\)\|internal/serve/holdout\|lab\)/'
	slow -e "$plain" "$@" || failed=1
	set=slow-raced
	slow -ve "$plain" -race "$@" || failed=1
	exit $failed
	;;
recorded)
	DEWPOINT_RUNS=$(sh scripts/sample.sh 1 "${RUNS:-}") || exit 1
	export DEWPOINT_RUNS
	run -count=1 -timeout 45m -run TestRecorded "$@" ./internal/test/e2e ./internal/test/judge ./lab/retention
	;;
matrix)
	DEWPOINT_MATRIX=$(sh scripts/sample.sh "${MATRIX_STRIDE:-1}" "${RUNS:-}") || exit 1
	export DEWPOINT_MATRIX
	format=testname # it takes hours, so that it shows what it has done
	run -count=1 -timeout 0 -run TestMatrix "$@" ./internal/test/e2e
	;;
captures)
	if [ -z "$(find -L "${CAPTURES:-}" -name '*.json' 2>/dev/null | head -n 1)" ]; then
		echo "CAPTURES must be a folder of captured client traffic, with files *.json in it, but is '${CAPTURES:-}'" >&2
		exit 1
	fi
	DEWPOINT_CAPTURES=$(cd "$CAPTURES" && pwd) # the test runs in the folder of its package
	export DEWPOINT_CAPTURES
	run -count=1 -run TestCaptures "$@" ./internal/test/judge
	;;
*)
	echo "usage: scripts/test.sh quick|short|race|e2e|slow|recorded|matrix|captures [FLAG...]" >&2
	exit 2
	;;
esac
