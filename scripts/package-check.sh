#!/bin/sh
# Installs the Debian package of bin/dist into a clean Debian, starts the service as its unit does, asks whether it is healthy, and purges the
# package: scripts/package-check.sh. It needs root, a Debian mirror and debootstrap, which it installs with apt if that is missing. No systemd runs
# in the root, so the unit's sandbox is not tried; package deploy lets systemd-analyze read the unit.
#
#   SUITE, MIRROR   Debian's release and mirror (default: those of this machine)
set -eu
cd "$(dirname "$0")/.."
suite=${SUITE:-$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")}
mirror=${MIRROR:-}
deb=$(ls bin/dist/dewpoint_*_"$(dpkg --print-architecture)".deb)
command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends debootstrap; } >/dev/null
root=$(mktemp -d)
pid=""
end() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
	rm -rf "$root"
}
trap end EXIT

debootstrap --variant=minbase "$suite" "$root/debian" $mirror >"$root/log" 2>&1 || { tail "$root/log" >&2; exit 1; }
cp "$deb" "$root/debian/dewpoint.deb"
path=PATH=/usr/sbin:/usr/bin:/sbin:/bin
inside() { chroot "$root/debian" /usr/bin/env -i "$path" "$@"; }

inside dpkg -i dewpoint.deb >/dev/null
inside dewpoint version
inside dewpoint check-config /etc/dewpoint/dewpoint.yaml
[ "$(inside stat -c '%U:%G %a' /var/lib/dewpoint)" = "dewpoint:dewpoint 700" ]
[ "$(inside stat -c '%U:%G %a' /etc/dewpoint/dewpoint.yaml)" = "root:dewpoint 640" ]

# The unit's own command, as its user, on ports that are free.
start=$(sed -n 's/^ExecStart=//p' "$root/debian/usr/lib/systemd/system/dewpoint.service")
# shellcheck disable=SC2086 # a command line
(exec chroot "$root/debian" /usr/bin/env -i "$path" setpriv --reuid=dewpoint --regid=dewpoint --clear-groups \
	$start --listen 127.0.0.1:0 --admin 127.0.0.1:0 2>"$root/serving") &
pid=$!
tries=0
until grep -q '"msg":"serving"' "$root/serving"; do
	tries=$((tries + 1))
	if [ $tries -gt 600 ] || ! kill -0 "$pid" 2>/dev/null; then cat "$root/serving" >&2; exit 1; fi
	sleep 0.1
done
admin=$(sed -n 's/.*"msg":"serving".*"admin":"\([^"]*\)".*/\1/p' "$root/serving")
inside dewpoint health --admin "$admin"
kill "$pid" && wait "$pid"
pid=""
[ -f "$root/debian/var/lib/dewpoint/state.db" ]

inside dpkg -i dewpoint.deb >/dev/null # an upgrade keeps the state and the configuration
[ -f "$root/debian/var/lib/dewpoint/state.db" ]
inside dpkg --purge dewpoint >/dev/null
[ ! -e "$root/debian/var/lib/dewpoint" ] && [ ! -e "$root/debian/etc/dewpoint" ]
if inside getent passwd dewpoint >/dev/null; then echo "package-check: the user is still there" >&2; exit 1; fi
echo "the package installs, serves, and leaves nothing behind"
