#!/bin/sh
# Installs Dewpoint for this user: finds the system's archive of a release, verifies its checksum, and puts the binary into ~/.local/bin.
#
#   sh install.sh
#
#   DEWPOINT_VERSION    as 0.1.0 (default: the newest release)
#   DEWPOINT_BIN        folder of the binary (default: ~/.local/bin)
#   DEWPOINT_BASE_URL   where releases are, with download/vVERSION/FILE and latest/download/FILE below it
set -eu
base=${DEWPOINT_BASE_URL:-https://github.com/dewpoint-proxy/dewpoint/releases}
bin=${DEWPOINT_BIN:-$HOME/.local/bin}
version=${DEWPOINT_VERSION:-}
version=${version#v}

fail() {
	echo "install: $*" >&2
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

system() {
	case $(uname -s) in
	Linux) echo linux ;;
	Darwin) echo darwin ;;
	*) fail "there is no archive for $(uname -s). On Windows, unpack the archive for windows by hand; elsewhere, build it with Go" ;;
	esac
}

arch() {
	case $(uname -m) in
	x86_64 | amd64) echo amd64 ;;
	aarch64 | arm64) echo arm64 ;;
	*) fail "there is no archive for the processor $(uname -m): build it with Go" ;;
	esac
}

fetch() { # fetch FILE: downloads a file of the release into the folder $work
	if [ -n "$version" ]; then url=$base/download/v$version/$1
	else url=$base/latest/download/$1; fi
	if have curl; then curl -fsSL --retry 2 -o "$work/$1" "$url"
	elif have wget; then wget -q -O "$work/$1" "$url"
	else fail "neither curl nor wget is installed"; fi || fail "cannot download $url"
}

checksum() { # prints the SHA-256 of a file
	if have sha256sum; then sha256sum "$1"
	elif have shasum; then shasum -a 256 "$1"
	else fail "neither sha256sum nor shasum is installed, and nothing is installed unverified"; fi | cut -d ' ' -f 1
}

main() { # the last line calls it, so that half a download of this script does nothing
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	system=$(system)
	arch=$(arch)
	platform=${system}_$arch
	fetch SHA256SUMS
	line=$(grep "  dewpoint_[^ ]*_$platform\.tar\.gz\$" "$work/SHA256SUMS") || fail "this release has no archive for $platform"
	archive=${line##* }
	fetch "$archive"
	[ "$(checksum "$work/$archive")" = "${line%% *}" ] || fail "$archive has another checksum than SHA256SUMS says. Nothing was installed"
	tar -xzf "$work/$archive" -C "$work"
	mkdir -p "$bin"
	# A running binary cannot be written to, but replaced.
	cp "$work/${archive%.tar.gz}/dewpoint" "$bin/.dewpoint.new" && chmod 0755 "$bin/.dewpoint.new" && mv -f "$bin/.dewpoint.new" "$bin/dewpoint"
	echo "Installed $("$bin/dewpoint" version), in $bin/dewpoint"
	case ":$PATH:" in
	*":$bin:"*) echo "Start it with: dewpoint" ;;
	*)
		echo "$bin is not on your PATH. Add it for this shell, and to your shell's profile for the next:"
		echo "  export PATH=\"$bin:\$PATH\""
		;;
	esac
}

main
