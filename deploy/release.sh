#!/usr/bin/env bash
# release.sh [DIST]: builds what is shipped of the last commit into a folder: static programs,
# an image from nothing, Debian packages, the list of what is linked, checksums. The same commit gives
# the same bytes, in whatever folder and by whatever cache it is built. PLATFORMS names fewer of them.
# The folder is replaced: one that has files and is no earlier release is refused.
set -euo pipefail
cd "$(dirname "$0")/.."
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/arm64 darwin/amd64 windows/amd64}
dist=$(realpath -m "${1:-dist}")
if [ -n "$(ls -A "$dist" 2>/dev/null)" ] && [ ! -f "$dist/SHA256SUMS" ]; then
	echo "$dist has files and is no earlier release: name another folder" >&2
	exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A clone: nothing of the folder that is not in the commit gets in, and the commit is named in
# the program.
git clone -q . "$work/flexd"
cd "$work/flexd"
export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=true -mod=readonly"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
GOBIN="$work/bin" go install -ldflags "-s -w" ./cmd/flexd
version=$("$work/bin/flexd" --version | sed 's/^flexd v\{0,1\}\([^,]*\),.*/\1/')
rm -rf "$dist"
mkdir -p "$dist"

for p in $platforms; do
	os=${p%/*} arch=${p#*/} suffix=
	[ "$os" = windows ] && suffix=.exe
	GOOS=$os GOARCH=$arch go build -ldflags "-s -w" -o "$dist/flexd-$version-$os-$arch$suffix" ./cmd/flexd
done

(cd deploy/release && CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -o "$work/bin/release" .)
"$work/bin/release" -dist "$dist" -version "$version" -platforms "$platforms"

cd "$dist"
LC_ALL=C sha256sum -- * >"$work/sums"
mv "$work/sums" SHA256SUMS
cat SHA256SUMS
