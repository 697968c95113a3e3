#!/bin/sh
# Installs Maven and a JDK if they are missing, to build the Java side of the shared locks.
# It prints nothing if nothing is missing.
set -eu
. "$(dirname "$0")/../lab/rig/packages.sh"

have() { command -v "$1" >/dev/null 2>&1; }

works() { have mvn && { have javac || [ -x "${JAVA_HOME:-/nowhere}/bin/javac" ]; }; }
works && exit 0

trap 'exit 130' INT
trap 'exit 143' HUP TERM
if have apt-get; then
	missing=
	have mvn || missing="$missing maven"
	have javac || missing="$missing default-jdk-headless"
	sudo=
	[ "$(id -u)" -eq 0 ] || sudo=sudo
	echo "installing:$missing"
	$sudo apt-get -qq update
	before_install
	trap after_install EXIT
	# shellcheck disable=SC2086 # words
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $missing
	works && exit 0
elif [ "$(uname)" = Darwin ] && have brew; then
	echo 'installing: maven openjdk'
	before_install
	trap after_install EXIT
	brew install maven openjdk
	works && exit 0
fi
echo 'interop needs Maven and a JDK 17 or newer: apt-get install maven default-jdk-headless, or brew install maven' >&2
exit 1
