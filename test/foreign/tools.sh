#!/usr/bin/env bash
# Installs what `make foreign` needs beside Go, Node and test/tools.sh: Java, in which openapi-generator is written, and the four
# modules of Python that the client it makes imports.
set -euo pipefail
missing=()
command -v java >/dev/null || missing+=(default-jre-headless)
for module in six dateutil urllib3 certifi; do
	/usr/bin/python3 -c "import $module" 2>/dev/null || missing+=("python3-$module")
done
[ ${#missing[@]} -gt 0 ] || exit 0
apt-get update -q
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
