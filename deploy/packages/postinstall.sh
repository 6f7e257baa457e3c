#!/bin/sh
# Makes the service's user and folders. Where systemd runs, it starts the service, or restarts it after an upgrade.
set -e
if ! getent passwd dewpoint >/dev/null; then
	if command -v systemd-sysusers >/dev/null; then systemd-sysusers dewpoint.conf
	else
		shell=$(command -v nologin || echo /usr/sbin/nologin)
		getent group dewpoint >/dev/null || groupadd --system dewpoint
		useradd --system --gid dewpoint --home-dir /var/lib/dewpoint --no-create-home --shell "$shell" --comment Dewpoint dewpoint
	fi
fi
chgrp dewpoint /etc/dewpoint /etc/dewpoint/dewpoint.yaml
mkdir -p /var/lib/dewpoint
chown dewpoint:dewpoint /var/lib/dewpoint
chmod 0700 /var/lib/dewpoint
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
# $1: Debian: configure, and $2 the version before, if there was one; Red Hat: the number of installed versions.
if [ "$1" = configure ] && [ -z "$2" ] || [ "$1" = 1 ]; then systemctl enable --now dewpoint.service
else systemctl try-restart dewpoint.service; fi
