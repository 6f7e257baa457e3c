#!/bin/sh
# Puts Debian's prometheus and promtool into bin/prometheus, where they are not installed: alerts and dashboard are tested with them.
# It unpacks the package instead of installing it, which would start a server. Without it those tests are skipped and say so.
set -u
cd "$(dirname "$0")/.."
if command -v prometheus >/dev/null && command -v promtool >/dev/null || [ -x bin/prometheus/promtool ]; then exit 0; fi
command -v apt-get >/dev/null || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
get() { (cd "$work" && apt-get download -q prometheus >/dev/null 2>&1); }
get || { [ "$(id -u)" = 0 ] && apt-get update -qq >/dev/null 2>&1 && get; } || exit 0
dpkg-deb -x "$work"/prometheus_*.deb "$work/root" && mkdir -p bin/prometheus && mv "$work"/root/usr/bin/prometheus "$work"/root/usr/bin/promtool bin/prometheus/
