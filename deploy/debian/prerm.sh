#!/bin/sh
# The records in /var/lib/flexd stay.
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	systemctl disable --now flexd.service
fi
