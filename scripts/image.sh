#!/bin/sh
# Builds the image twice, without a container engine or a registry, and tests the result.
#
# The base image is built from Debian's minbase and this machine's Go toolchain; modules come from this machine's module cache. The script
# needs root, a Debian mirror, buildah and debootstrap; it installs the last two with apt if they are missing.
#
#   SUITE, MIRROR   Debian's release and mirror (default: those of this machine)
#   WORK            folder for the base image and the builds (default: in the user's cache)
#   VERSION         for 'dewpoint version' and the labels (default: dev)
set -eu
cd "$(dirname "$0")/.."

GO=${GO:-go}
VERSION=${VERSION:-dev}
SUITE=${SUITE:-$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")}
WORK=${WORK:-${XDG_CACHE_HOME:-$HOME/.cache}/dewpoint-image}
EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
REVISION=$(git rev-parse HEAD 2>/dev/null || true)
BASE=localhost/dewpoint-base
IMAGE=localhost/dewpoint

give_up() { echo "image: $*" >&2; exit 1; }
say() { echo "== $*"; }
have() { command -v "$1" >/dev/null 2>&1; }

# store separates images and containers from other users of buildah.
store() { buildah --storage-driver vfs --root "$WORK/storage" --runroot "$WORK/run" "$@"; }

tools() {
	[ "$(id -u)" = 0 ] || give_up "needs root: debootstrap and chroot do"
	have "$GO" || give_up "Go is absent; install Go 1.26 or newer"
	if have buildah && have debootstrap; then return; fi
	have apt-get || give_up "buildah and debootstrap are absent, and there is no apt to install them by"
	say "installing buildah and debootstrap"
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends buildah debootstrap ||
		give_up "buildah and debootstrap cannot be installed by apt"
}

# base builds the image with the toolchain, once for each Go version.
base() {
	tag=$BASE:$SUITE-$($GO env GOVERSION)
	if store inspect --type image "$tag" >/dev/null 2>&1; then return; fi
	say "making $tag"
	root=$WORK/rootfs
	rm -rf "$root" && mkdir -p "$root"
	# shellcheck disable=SC2086 # without a mirror there is no word
	debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$root" ${MIRROR:-} >"$WORK/debootstrap.log" 2>&1 ||
		give_up "debootstrap failed: see $WORK/debootstrap.log"
	rm -rf "$root/var/cache/apt" "$root/var/lib/apt/lists"
	mkdir -p "$root/usr/local/go" && cp -a "$($GO env GOROOT)/." "$root/usr/local/go/"
	box=$(store from scratch)
	store add -q "$box" "$root" / >/dev/null
	store config --env PATH=/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin --env GOTOOLCHAIN=local "$box"
	store commit -q "$box" "$tag" >/dev/null
	store rm "$box" >/dev/null
	rm -rf "$root"
}

# build builds the image for an architecture: build TAG ARCH. It sets the variables that --platform would set: with --platform, older
# versions of buildah look for the base image of that platform too, regardless of FROM.
build() {
	say "building $1 for linux/$2"
	store bud --isolation chroot --format docker --no-cache --timestamp "$EPOCH" -t "$1" \
		--build-arg TARGETOS=linux --build-arg TARGETARCH="$2" \
		--volume "$($GO env GOMODCACHE)/cache/download:/modules:ro" --build-arg GOPROXY=file:///modules \
		--build-arg GO_IMAGE="$tag" --build-arg VERSION="$VERSION" --build-arg REVISION="$REVISION" \
		--build-arg SOURCE_DATE_EPOCH="$EPOCH" --build-arg CREATED="$(date -u -d "@$EPOCH" +%Y-%m-%dT%H:%M:%SZ)" \
		"$WORK/source" >"$WORK/build.log" 2>&1 || { tail -n 20 "$WORK/build.log" >&2; give_up "the build failed"; }
}

image() { store inspect --type image --format "$2" "$1"; } # image TAG TEMPLATE

# settings prints the digest of an image's configuration, without the names of its build containers: buildah records those in Docker's
# format, which is required to keep the health check.
settings() {
	image "$1" '{{.Config}}' | sed -E 's/"(container|Hostname)":"[0-9a-f]*"//g' | sha256sum
}

# mounted prints the path of an image's files: mounted TAG. Its containers are removed when the script ends.
mounted() {
	box=$(store from --pull-never "$1")
	echo "$box" >>"$WORK/boxes"
	store mount "$box"
}

clean() {
	[ ! -f "$WORK/boxes" ] || while read -r box; do store rm "$box" >/dev/null 2>&1 || true; done <"$WORK/boxes"
	rm -rf "$WORK/boxes" "$WORK/volume" "$WORK/launch"
}

same() { # same WHAT A B
	[ "$2" = "$3" ] || give_up "two builds of the same source differ in the $1: $2, $3"
	echo "$1: $2, twice"
}

# launcher writes a program that runs the image's entry point with its environment and user, on its files mounted read-only, with one of
# our folders as its volume.
launcher() {
	mkdir -p "$WORK/volume" && chown 65532:65532 "$WORK/volume" && chmod 0700 "$WORK/volume"
	user=$(image "$IMAGE" '{{.OCIv1.Config.User}}')
	entry=$(image "$IMAGE" '{{index .OCIv1.Config.Entrypoint 0}}')
	[ "$user" = 65532:65532 ] || give_up "the image's user is $user"
	{
		echo '#!/bin/sh'
		echo 'exec unshare --mount -- /bin/sh -c '"'"
		echo "mount --bind '$2' '$2' && mount -o remount,bind,ro '$2' && mount --bind '$WORK/volume' '$2/var/lib/dewpoint' || exit 70" | tr -d "'"
		echo 'exec "$@"'"' sh \\"
		image "$IMAGE" '{{range .OCIv1.Config.Env}}{{println .}}{{end}}' | while read -r pair; do
			[ -z "$pair" ] || printf 'env "%s" ' "$pair"
		done
		echo "env \$IMAGE_ENV chroot --userspec=$user '$2' $entry \"\$@\""
	} >"$1"
	chmod 0755 "$1"
}

# snapshot copies the source, so that both builds use the same files even if some are edited meanwhile.
snapshot() {
	rm -rf "$WORK/source" && mkdir -p "$WORK/source"
	git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --ignore-failed-read -cf - | tar -xf - -C "$WORK/source"
}

tools
mkdir -p "$WORK"
snapshot
trap clean EXIT
$GO mod download
base
build "$IMAGE" "$($GO env GOARCH)"
build "$IMAGE:again" "$($GO env GOARCH)"
one=$(mounted "$IMAGE") two=$(mounted "$IMAGE:again")
same "binary" "$(sha256sum <"$one/dewpoint")" "$(sha256sum <"$two/dewpoint")"
same "layers" "$(image "$IMAGE" '{{.OCIv1.RootFS.DiffIDs}}')" "$(image "$IMAGE:again" '{{.OCIv1.RootFS.DiffIDs}}')"
same "configuration" "$(settings "$IMAGE")" "$(settings "$IMAGE:again")"
check=$(image "$IMAGE" '{{.Docker.Config.Healthcheck.Test}}')
[ "$check" = "[CMD /dewpoint health]" ] || give_up "the image's health check is $check"
say "what is in it"
(cd "$one" && find . -type f -exec ls -ln {} +)
echo "bytes of files: $(cd "$one" && find . -type f -printf '%s\n' | awk '{n += $1} END {print n}')"
say "running it: user 65532, read-only root"
launcher "$WORK/launch" "$one"
DEWPOINT_TEST_IMAGE="$WORK/launch" $GO test -count=1 -run '^TestImage$' -v ./internal/test/e2e
other=arm64
[ "$($GO env GOARCH)" != arm64 ] || other=amd64
build "$IMAGE:$other" "$other"
three=$(mounted "$IMAGE:$other")
echo "$other: $(od -An -tx1 -j18 -N2 "$three/dewpoint") (ELF machine: b7 00 is arm64, 3e 00 is amd64)"
say "fine"
