#!/bin/sh
# Installs a C compiler if there is none: `go test -race` links with it.
# It prints nothing if nothing is missing.
set -eu
. "$(dirname "$0")/../lab/rig/packages.sh"

main=$(mktemp "${TMPDIR:-/tmp}/oversell-cc.XXXXXX")
trap 'rm -f "$main" "$main.c"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
# The headers of the C library are needed, too.
printf '#include <stdlib.h>\nint main(void) { return 0; }\n' >"$main.c"
works() { "$(go env CC)" -o "$main" "$main.c" >/dev/null 2>&1; }
works && exit 0

if command -v apt-get >/dev/null; then
	sudo=
	[ "$(id -u)" -eq 0 ] || sudo=sudo
	echo 'installing: gcc libc6-dev'
	$sudo apt-get -qq update
	before_install
	trap 'after_install; rm -f "$main" "$main.c"' EXIT
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install gcc libc6-dev
	works && exit 0
fi
echo 'go test -race needs a C compiler: apt-get install gcc libc6-dev, or xcode-select --install' >&2
exit 1
