#!/usr/bin/env bash
# Searches every commit of this branch for secrets, by gitleaks with .gitleaks.toml. First it searches
# a folder in which secrets were planted, one in each file, and fails if one is not found.
set -euo pipefail
cd "$(dirname "$0")/.."

gitleaks() {
	go run github.com/zricethezav/gitleaks/v8@v8.28.0 "$@" --no-banner --redact --log-level warn --config .gitleaks.toml
}

random() {
	LC_ALL=C tr -dc 'A-Za-z0-9' </dev/urandom | head -c "$1" || true
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/planted"
openssl genrsa -out "$folder/planted/server.pem" 2048 2>/dev/null
printf 'token: ghp_%s\n' "$(random 36)" >"$folder/planted/ci.yaml"
printf 'secret := "whsec_%s"\n' "$(random 32)" >"$folder/planted/push.go"
printf '%s=\n' "$(random 43)" >"$folder/planted/flexd.db.key"

gitleaks dir "$folder/planted" --report-path "$folder/found.json" 2>/dev/null || true
for file in "$folder"/planted/*; do
	grep -q "$file" "$folder/found.json" || {
		echo "the planted secret in ${file##*/} is not found: the search shows nothing"
		exit 1
	}
done

gitleaks git --log-opts HEAD .
echo "no secret in $(git rev-list --count HEAD) commits; planted ones are found"
