#!/bin/sh
# Builds a release into bin/dist: an archive for each platform and SHA256SUMS: scripts/dist.sh VERSION. The same source and toolchain give
# the same archives. Needs GNU tar.
set -eu
cd "$(dirname "$0")/.."
version=${1#v}
go=${GO:-go}
command=github.com/dewpoint-proxy/dewpoint/internal/command

# A release without its own section of the changelog, or with a chart that pulls another image, is a mistake.
appVersion=$(sed -n 's/^appVersion: "\(.*\)"$/\1/p' deploy/helm/Chart.yaml)
[ "$version" = "$appVersion" ] || { echo "dist: the version is $version, but deploy/helm/Chart.yaml has appVersion $appVersion" >&2; exit 1; }
grep -q "^## $version\( \|\$\)" CHANGELOG.md || { echo "dist: CHANGELOG.md has no section '## $version'" >&2; exit 1; }

commit=$(git rev-parse HEAD)
time=$(git log -1 --format=%ct)
rm -rf bin/dist && mkdir -p bin/dist
for platform in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
	os=${platform%/*} arch=${platform#*/}
	name=dewpoint_${version}_${os}_$arch
	mkdir "bin/dist/$name"
	file=dewpoint
	[ "$os" != windows ] || file=dewpoint.exe
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch $go build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X $command.version=$version -X $command.revision=$commit" -o "bin/dist/$name/$file" ./cmd/dewpoint
	GOOS=$os GOARCH=$arch GO=$go sh scripts/licences.sh "bin/dist/$name/licences" ./cmd/dewpoint
	cp README.md CHANGELOG.md LICENSE "bin/dist/$name/"
	tar -C bin/dist --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u+w,go-w -cf - "$name" |
		gzip -n >"bin/dist/$name.tar.gz"
	rm -rf "bin/dist/${name:?}"
done
(cd bin/dist && sha256sum -- *.tar.gz >SHA256SUMS)
cat bin/dist/SHA256SUMS
