#!/bin/sh
# Purging removes the state, which holds conversations, and the user.
set -e
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "$1" = purge ] || exit 0
rm -rf /var/lib/dewpoint
if getent passwd dewpoint >/dev/null; then userdel dewpoint; fi
