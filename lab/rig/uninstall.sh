#!/bin/sh
# Removes the packages that the project's commands installed, as packages.sh has recorded them. It keeps those
# that another package needs by now. Their configuration and data remain, as a service of yours may have used them.
set -eu
. "$(dirname "$0")/packages.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

# both prints the lines that two files without duplicates have in common.
both() { LC_ALL=C sort "$1" "$2" | LC_ALL=C uniq -d; }
# without prints the lines of the first file that the second one lacks.
without() { LC_ALL=C sort "$1" "$2" "$2" | LC_ALL=C uniq -u; }

# forget leaves only the kept packages in the record.
forget() {
	if [ -s "$work/kept" ]; then
		cp "$work/kept" "$recorded"
	else
		rm -f "$recorded"
		rmdir "$(dirname "$recorded")" 2>/dev/null || true
	fi
}

: >"$work/recorded"
[ ! -e "$recorded" ] || LC_ALL=C sort -u "$recorded" >"$work/recorded"
all_packages | LC_ALL=C sort -u >"$work/all"
both "$work/recorded" "$work/all" >"$work/ours"
[ -s "$work/ours" ] || {
	forget
	echo "Nothing to remove: no installed package is recorded in $recorded."
	exit 0
}

# simulate writes to the file changed what apt-get would remove or install.
simulate() {
	# shellcheck disable=SC2046 # words
	LC_ALL=C apt-get -s -o APT::Get::AutomaticRemove=false remove $(cat "$work/removed") >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		exit 1
	}
	awk '$1 ~ /^(Remv|Purg|Inst)$/ { print $2 }' "$work/log" | LC_ALL=C sort -u >"$work/changed"
	without "$work/changed" "$work/removed" >"$work/others"
}

with_apt() {
	cp "$work/ours" "$work/removed"
	simulate
	if [ -s "$work/others" ]; then
		# All that the other packages need, directly or not, stays.
		# shellcheck disable=SC2046 # words
		apt-cache depends --recurse --installed --no-recommends --no-suggests --no-enhances \
			--no-conflicts --no-breaks --no-replaces $(cat "$work/others") |
			grep -v '^[ |<]' | LC_ALL=C sort -u >"$work/needed"
		both "$work/ours" "$work/needed" >"$work/kept"
		echo "kept, as these packages need them: $(paste -s -d ' ' "$work/others")"
		sed 's/^/  /' "$work/kept"
		without "$work/ours" "$work/kept" >"$work/removed"
		[ -s "$work/removed" ] || exit 0
		simulate
	fi
	[ ! -s "$work/others" ] || {
		echo "Nothing is removed: apt-get would also change $(paste -s -d ' ' "$work/others")." >&2
		echo "The packages are listed in $recorded." >&2
		exit 1
	}
	echo "removing:"
	sed 's/^/  /' "$work/removed"
	sudo=
	[ "$(id -u)" -eq 0 ] || sudo=sudo
	# shellcheck disable=SC2046 # words
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		-o APT::Get::AutomaticRemove=false remove $(cat "$work/removed") >"$work/log" 2>&1 || {
		cat "$work/log" >&2
		exit 1
	}
	forget
}

# brew itself refuses to remove what another formula needs.
with_brew() {
	echo "removing:"
	sed 's/^/  /' "$work/ours"
	# shellcheck disable=SC2046 # words
	brew uninstall --formula $(cat "$work/ours")
	forget
}

if command -v apt-get >/dev/null 2>&1; then
	with_apt
else
	with_brew
fi
