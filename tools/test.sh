#!/bin/sh
# Runs the tests of all packages: test.sh, or test.sh nightly for every case with the race detector. PACKAGES
# can select some. It prints each package with its time, and at the end the ten slowest tests. With CI in the environment,
# no test is skipped because MariaDB is missing.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}

work=$(mktemp -d "${TMPDIR:-/tmp}/oversell-test.XXXXXX")
lab=
# finish ends the lab, and keeps the status.
finish() {
	[ -z "$lab" ] || kill "$lab" 2>/dev/null || true
	[ -z "$lab" ] || wait "$lab" || true
	pkill -f "^tmux -f $work" || true            # after Ctrl-C, for no child of a test
	rm -rf "$work" || { sleep 5 && rm -rf "$work"; } # a test that ends may still write
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# One program for all replicas. In the MySQL and the ZooKeeper of one lab, each package has a database and a
# folder of its own. The lab has another folder for temporary files than the tests, which must not find it. A
# test that is killed leaves nothing behind but in its folder.
export OVERSELL_PROGRAM="$PWD/bin/oversell" OVERSELL_LAB="$work/lab.json"
mkdir "$work/lab" "$work/tmp"
chmod 711 "$work" "$work/lab" "$work/tmp" # PostgreSQL does not run as root
TMPDIR=$work/lab bin/oversell lab --open --json "$OVERSELL_LAB" >"$work/lab.log" 2>&1 &
lab=$!
until [ -e "$OVERSELL_LAB" ]; do
	kill -0 "$lab" 2>/dev/null || {
		lab=
		cat "$work/lab.log" >&2
		exit 1
	}
	sleep 0.1
done

# run FILE PACKAGES FLAG... runs tests, and writes their events to FILE.
run() {
	events=$work/$1.events packages=$2
	[ -n "$packages" ] || return 0
	shift 2
	# shellcheck disable=SC2086
	"$GO" tool -modfile=tools/go.mod gotestsum --format pkgname --format-icons text --hide-summary skipped \
		--jsonfile "$events" -- -tags nomsgpack -trimpath -vet=off -count=1 -timeout 40m "$@" $packages
}

# Goroutines of ours share memory in these packages. In the others, the clients of a lab would be
# slower with the race detector, and little else runs.
race='oversell/(handlers|stock|lab/load|dash/hub|locks|trial/adapter|locks/(local|[a-z]*lock))'
# shellcheck disable=SC2086
all=$("$GO" list -tags nomsgpack ${PACKAGES:-./...})

export TMPDIR="$work/tmp"
status=0
if [ "${1:-}" = nightly ]; then
	run all "$all" -race -p 2 || status=1
else
	# Four packages at a time: the tests mostly wait. Without cgo, they share the compiled packages of make build.
	run race "$(echo "$all" | grep -xE "$race")" -race -p 1 &
	CGO_ENABLED=0 run rest "$(echo "$all" | grep -vxE "$race")" -p 3 || status=1
	wait $! || status=1
fi

echo 'the slowest tests:'
cat "$work"/*.events | "$GO" tool -modfile=tools/go.mod gotestsum tool slowest --num 10

# The tests that rigtest.NeedsPair has skipped.
left=$(cat "$work"/*.events | sed -nE 's|.*"Package":"oversell/([^"]*)".*"Test":"([^"]*)".*"Output":" *[a-z_]*_test.go:[0-9]+: rig: .*not installed.*|  \1: \2|p' | sort -u)
if [ -n "$left" ]; then
	echo "$(echo "$left" | wc -l) tests were left out, as MariaDB or its Galera is not installed (make servers says why):"
	echo "$left"
fi
exit "$status"
