#!/bin/sh
# Installs what the tests need beside Go where the system's package manager can, and says plainly what is absent.
set -u

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; elif have sudo; then sudo -n "$@"; else return 1; fi
}

install() { # name of the package for apt, apk, dnf, brew
	if have apt-get; then
		as_root apt-get update -qq >/dev/null 2>&1
		DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq "$1" >/dev/null 2>&1
	elif have apk; then as_root apk add -q "$2" >/dev/null 2>&1
	elif have dnf; then as_root dnf install -y -q "$3" >/dev/null 2>&1
	elif have brew; then brew install -q "$4" >/dev/null 2>&1
	fi
}

have go || { echo "needs: go is absent; install Go 1.26 or newer" >&2; exit 1; }
have redis-server || { echo "needs: installing redis-server"; install redis-server redis redis redis; }

absent=""
have redis-server || absent="$absent redis-server (or set DEWPOINT_TEST_NO_REDIS=1 to leave out what needs it)"
{ have node && have npm && have python3; } ||
	absent="$absent node, npm and python3 (or set DEWPOINT_TEST_NO_CLIENTS=1 to leave out the SDK tests)"
[ -z "$absent" ] || echo "needs: ABSENT:$absent" >&2
[ -n "${DEWPOINT_TEST_NO_REDIS:-}" ] && echo "needs: DEWPOINT_TEST_NO_REDIS is set: nothing is tested against a real Redis" >&2
[ -n "${DEWPOINT_TEST_NO_CLIENTS:-}" ] && echo "needs: DEWPOINT_TEST_NO_CLIENTS is set: nothing is tested with real SDKs" >&2
exit 0
