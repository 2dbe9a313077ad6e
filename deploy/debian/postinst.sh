#!/bin/sh
# The service's own user, who alone reads the records. The service is started by the operator.
set -e
if [ "$1" = configure ]; then
	getent passwd flexd >/dev/null || useradd --system --home-dir /var/lib/flexd --no-create-home --shell /usr/sbin/nologin --user-group flexd
	install -d -o flexd -g flexd -m 0700 /var/lib/flexd
	chgrp flexd /etc/flexd/flexd.env
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		systemctl try-restart flexd.service
	fi
fi
