#!/bin/sh
# Installs the programs that the tests need besides Go, with the system's package manager, as root or with sudo: scripts/needs.sh check
# those of 'make check', scripts/needs.sh full those of 'make full' as well. If that is not possible, it lists each missing program with
# its purpose and fails.
set -u
[ "${1:-}" != check ] || { DEWPOINT_TEST_NO_CLIENTS=1 && DEWPOINT_TEST_NO_BROWSER=1; }

have() { command -v "$1" >/dev/null 2>&1; }

compiles() { # a C compiler with the headers of the C library
	have "${CC:-gcc}" || have cc || return 1
	echo '#include <stdlib.h>' | "$(command -v "${CC:-gcc}" || command -v cc)" -E - >/dev/null 2>&1
}

# missing prints the missing programs, one a line: name, packages of apt, apk, dnf and brew, purpose, separated by "|".
missing() {
	compiles || echo "gcc|gcc libc6-dev|gcc musl-dev|gcc glibc-devel|gcc|a C compiler and headers, for Go's race detector"
	if [ "${DEWPOINT_TEST_NO_REDIS:-}" != 1 ]; then
		have redis-server || echo "redis-server|redis-server|redis|redis|redis|a real Redis, for the tests of the store (DEWPOINT_TEST_NO_REDIS=1 skips them)"
	fi
	if [ "${DEWPOINT_TEST_NO_BROWSER:-}" != 1 ]; then
		have chromium || echo "chromium|chromium|chromium|chromium|chromium|a browser, for the tests of the inspector's pages (DEWPOINT_TEST_NO_BROWSER=1 skips them)"
	fi
	if [ "${DEWPOINT_TEST_NO_CLIENTS:-}" != 1 ]; then
		have node || echo "node|nodejs|nodejs|nodejs|node|Node.js, for the tests with the openai package of npm ($clients)"
		have npm || echo "npm|npm|npm|npm|node|installs the openai package of npm ($clients)"
		have python3 || echo "python3|python3|python3|python3|python|Python, for the tests with the openai package of PyPI ($clients)"
		python3 -c 'import ensurepip, venv' 2>/dev/null ||
			echo "python3-venv|python3-venv|py3-pip|python3-pip|python|Python's venv and ensurepip, which install that package ($clients)"
	fi
}
clients="DEWPOINT_TEST_NO_CLIENTS=1 skips them"

manager() { # prints the field of a need that has this system's packages, nothing if there is no known manager
	if have apt-get; then echo 2; elif have apk; then echo 3; elif have dnf; then echo 4; elif have brew; then echo 5; fi
}

install() { # install PACKAGE...
	case $field in
	2) $root apt-get update -qq && $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" ;;
	3) $root apk add -q "$@" ;;
	4) $root dnf install -y -q "$@" ;;
	5) brew install -q "$@" ;;
	esac >"$log" 2>&1
}

refuse() {
	echo "needs: MISSING, and $1:" >&2
	missing | while IFS='|' read -r name _ _ _ _ purpose; do echo "  $name: $purpose" >&2; done
	[ -z "$packages" ] || echo "As root: $command $packages" >&2
	exit 1
}

${GO:-go} version >/dev/null 2>&1 || { echo "needs: MISSING: go: Go 1.26 or newer, from https://go.dev/dl" >&2; exit 1; }
if [ -z "$(missing)" ]; then exit 0; fi

field=$(manager)
packages=""
[ -z "$field" ] || packages=$(missing | cut -d'|' -f"$field" | tr '\n' ' ' | sed 's/ $//')
command=$(echo "|apt-get install|apk add|dnf install|brew install" | cut -d'|' -f"${field:-1}")
root=""
if [ -z "$field" ]; then refuse "no package manager known here can install it"; fi
if [ "$(id -u)" != 0 ] && [ "$field" != 5 ]; then
	have sudo && sudo -n true 2>/dev/null || refuse "neither root nor sudo without a password is there to install it"
	root="sudo -n"
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "needs: installing $packages"
# shellcheck disable=SC2086 # packages are words
install $packages || tail -n 5 "$log" >&2
[ -z "$(missing)" ] || refuse "the package manager did not install it"
