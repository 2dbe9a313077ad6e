#!/usr/bin/env bash
# release-check.sh: builds a release twice, the second time with an empty cache in another
# folder, and wants the same bytes; then tries what this machine can: the program answers, the
# package installs into a root of its own, the unit is sound, the image holds the program.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

deploy/release.sh "$work/one" >/dev/null
GOCACHE="$work/cache" TMPDIR="$work" deploy/release.sh "$work/two" >/dev/null
cmp "$work/one/SHA256SUMS" "$work/two/SHA256SUMS"
echo "two builds, the same bytes: $(wc -l <"$work/one/SHA256SUMS") files"

# A byte more is found out.
printf x >>"$work/two/SHA256SUMS"
if cmp -s "$work/one/SHA256SUMS" "$work/two/SHA256SUMS"; then
	echo "a changed file passed for the same" && exit 1
fi

arch=$(go env GOARCH)
program=$(ls "$work"/one/flexd-*-linux-"$arch")
"$program" --version
if ldd "$program" >/dev/null 2>&1; then
	echo "$program is linked dynamically" && exit 1
fi

if command -v dpkg >/dev/null && [ "$(id -u)" = 0 ]; then
	root=$work/root
	mkdir -p "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/info"
	touch "$root/var/lib/dpkg/status" "$root/var/lib/dpkg/available"
	# The scripts make a user and speak with systemd: they are for a machine, not for a folder.
	dpkg --root="$root" --force-script-chrootless --path-exclude=/nothing --unpack "$work"/one/flexd_*_"$arch".deb >/dev/null
	"$root/usr/bin/flexd" --version
	cmp "$program" "$root/usr/bin/flexd"
	sh -n deploy/debian/postinst.sh
	sh -n deploy/debian/prerm.sh
	echo "the package unpacks, and its program runs"
fi

if command -v systemd-analyze >/dev/null; then
	sed "s#/usr/bin/flexd#$program#" deploy/systemd/flexd.service >"$work/flexd.service"
	systemd-analyze verify "$work/flexd.service"
	systemd-analyze security --offline=true --threshold=20 "$work/flexd.service" >"$work/security" || { tail -3 "$work/security"; exit 1; }
	tail -1 "$work/security"
fi

mkdir "$work/image"
tar -C "$work/image" -xf "$work"/one/flexd-*-oci.tar
(cd "$work/image/blobs/sha256" && for blob in *; do echo "$blob  $blob"; done | sha256sum --check --quiet)
echo "the image's $(ls "$work/image/blobs/sha256" | wc -l) blobs are what their names say"

# Programs that read an archive refuse one with several images, so all architectures are in one.
images=$(grep -o '"digest"' "$work/image/index.json" | wc -l)
if [ "$images" != 1 ]; then
	echo "the archive has $images images, and not one for all architectures" && exit 1
fi
