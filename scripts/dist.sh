#!/bin/sh
# Builds a release into bin/dist: scripts/dist.sh VERSION. It has
#
#   dewpoint_VERSION_SYSTEM_ARCH.tar.gz   for each platform: one static binary, the licences, and the documentation
#   dewpoint_VERSION_ARCH.deb, .rpm       packages for Linux, see deploy/packages
#   install.sh                            installs an archive, see docs/install.md
#   dewpoint.cdx.json                     the components, in CycloneDX format
#   SHA256SUMS                            of all of these
#   dewpoint.rb                           a Homebrew formula, with the checksums of the archives
#   provenance.intoto.json                what was built from which source, as an in-toto statement with SLSA's predicate. It is not signed: signing
#                                         needs a key or an identity, which a release workflow has and this script has not
#
# The same source and toolchain give the same files, which 'make dist-check' tests. Needs GNU tar.
#
#   PLATFORMS   the platforms (default: all six)
#   BASE        where releases are published, for the formula
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
version=${1#v}
go=${GO:-go}
command=github.com/dewpoint-proxy/dewpoint/internal/command
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}
base=${BASE:-https://github.com/dewpoint-proxy/dewpoint/releases}
out=$PWD/bin/dist

# A release without its own section of the changelog, or with a chart that pulls another image, is a mistake.
appVersion=$(sed -n 's/^appVersion: "\(.*\)"$/\1/p' deploy/helm/Chart.yaml)
[ "$version" = "$appVersion" ] || { echo "dist: the version is $version, but deploy/helm/Chart.yaml has appVersion $appVersion" >&2; exit 1; }
grep -q "^## $version\( \|\$\)" CHANGELOG.md || { echo "dist: CHANGELOG.md has no section '## $version'" >&2; exit 1; }

commit=$(git rev-parse HEAD)
time=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH="$time"

build() { # build SYSTEM ARCH: makes the folder of an archive
	folder=$out/dewpoint_${version}_${1}_$2
	file=dewpoint
	[ "$1" != windows ] || file=dewpoint.exe
	mkdir "$folder"
	CGO_ENABLED=0 GOOS=$1 GOARCH=$2 $go build -trimpath -buildvcs=false \
		-ldflags "-s -w -buildid= -X $command.version=$version -X $command.revision=$commit" -o "$folder/$file" ./cmd/dewpoint
	GOOS=$1 GOARCH=$2 GO=$go sh scripts/licences.sh "$folder/licences" ./cmd/dewpoint
	cp README.md CHANGELOG.md LICENSE "$folder/"
}

archive() { # archive NAME: packs a folder
	tar -C "$out" --sort=name --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u+w,go-w -cf - "$1" | gzip -n >"$out/$1.tar.gz"
}

packages() { # packages ARCH: deb and rpm
	config=$(mktemp)
	sed "s,@VERSION@,$version,; s,@ARCH@,$1,; s,@FILES@,$out/dewpoint_${version}_linux_$1,g" deploy/packages/nfpm.yaml.in >"$config"
	for format in deb rpm; do
		$go tool -modfile=tools/package/go.mod nfpm package --config "$config" --packager $format --target "$out/dewpoint_${version}_$1.$format"
	done
	rm "$config"
}

formula() { # prints the Homebrew formula
	script="s,@VERSION@,$version,g; s,@BASE@,$base,g"
	for platform in darwin_arm64 darwin_amd64 linux_arm64 linux_amd64; do
		script="$script; s,@$platform@,$(sum "dewpoint_${version}_$platform.tar.gz"),"
	done
	sed "$script" deploy/packages/dewpoint.rb.in
}

sum() { awk -v name="$1" '$2 == name { print $1 }' "$out/SHA256SUMS"; }

provenance() { # prints the statement
	awk 'BEGIN { printf "{\n  \"_type\": \"https://in-toto.io/Statement/v1\",\n  \"subject\": [" }
		{ printf "%s\n    {\"name\": \"%s\", \"digest\": {\"sha256\": \"%s\"}}", separator, $2, $1; separator = "," }' "$out/SHA256SUMS"
	cat <<-END

		  ],
		  "predicateType": "https://slsa.dev/provenance/v1",
		  "predicate": {
		    "buildDefinition": {
		      "buildType": "https://github.com/dewpoint-proxy/dewpoint/blob/v$version/scripts/dist.sh",
		      "externalParameters": {"version": "$version"},
		      "internalParameters": {"go": "$($go env GOVERSION)"},
		      "resolvedDependencies": [{"uri": "git+https://github.com/dewpoint-proxy/dewpoint", "digest": {"gitCommit": "$commit"}}]
		    },
		    "runDetails": {"builder": {"id": "https://github.com/dewpoint-proxy/dewpoint/blob/v$version/Makefile"}}
		  }
		}
	END
}

rm -rf "$out" && mkdir -p "$out"
for platform in $platforms; do
	system=${platform%/*} arch=${platform#*/}
	build "$system" "$arch"
	archive "dewpoint_${version}_${system}_$arch"
	[ "$system" != linux ] || packages "$arch"
done
for folder in "$out"/dewpoint_*_linux_*/ "$out"/dewpoint_*/; do # the components are the same on each platform
	file=$folder/dewpoint
	[ -f "$file" ] || file=$file.exe
	$go tool -modfile=tools/audit/go.mod cyclonedx-gomod bin -json -std -noserial -notimestamp -version "v$version" -output "$out/dewpoint.cdx.json" "$file" 2>/dev/null
	break
done
rm -rf "$out"/dewpoint_*/
sed "s,^base=.*,base=\${DEWPOINT_BASE_URL:-$base}," scripts/install.sh >"$out/install.sh"
chmod 0755 "$out/install.sh"
(cd "$out" && for file in *; do sha256sum -- "$file"; done >../SHA256SUMS && mv ../SHA256SUMS .)
case " $platforms " in
*darwin/amd64*) formula >"$out/dewpoint.rb" ;; # it names the archives of four platforms
esac
provenance >"$out/provenance.intoto.json"
cat "$out/SHA256SUMS"
