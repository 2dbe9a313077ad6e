#!/usr/bin/env bash
# Installs what the suite needs beside Go and is missing: PostgreSQL for its half of the
# suite, a C compiler for the race detector, Chromium for the console's tests, curl and Python
# for the examples of the guides, xmllint for the schema of payment files, mosquitto for what is
# shown to Home Assistant, PgBouncer for what works behind it. Where it
# cannot (no apt-get, or not root) it says what will be skipped; the tests themselves fail
# in place of skipping when FLEXD_TEST_STRICT is set.
set -euo pipefail
missing=()
command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing+=(postgresql)
command -v gcc >/dev/null || missing+=(gcc libc6-dev)
command -v chromium-headless-shell >/dev/null || missing+=(chromium-headless-shell)
command -v curl >/dev/null || missing+=(curl)
command -v python3 >/dev/null || missing+=(python3)
command -v xmllint >/dev/null || missing+=(libxml2-utils)
command -v mosquitto >/dev/null || [ -x /usr/sbin/mosquitto ] || missing+=(mosquitto)
command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || missing+=(pgbouncer)
[ ${#missing[@]} -gt 0 ] || exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	echo "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get update -q && apt-get install -y -q --no-install-recommends "${missing[@]}"; } >/tmp/flexd-tools.log 2>&1 ||
		{ tail -5 /tmp/flexd-tools.log; echo "could not install ${missing[*]}: what needs it will be SKIPPED"; }
else
	echo "not installed: ${missing[*]}. What needs it will be SKIPPED (as root on Debian: apt-get install ${missing[*]})"
fi
