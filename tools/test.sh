#!/bin/sh
# Runs the tests of all packages. At the end it lists the tests that were skipped because MariaDB is
# not installed. With CI in the environment, no test is skipped.
set -eu
cd "$(dirname "$0")/.."
GO=${GO:-go}

OVERSELL_LEFT_OUT=$(mktemp)
export OVERSELL_LEFT_OUT
trap 'rm -f "$OVERSELL_LEFT_OUT"' EXIT
status=0
# The failures of one part do not hide those of the next.
run() { "$GO" test -tags nomsgpack -count=1 -timeout 40m "$@" || status=1; }

# A search runs thousands of schedules, which takes six times as long with the race detector. So only
# tests of what runs at the same time have it.
run ./locks/explore
run -race -run '^Test(Tree|SameAgain|Steps|ReplayOn|MySQLCount)$|^TestReduction$/^(redlock|redis-multi|zk|etcd.*crash)' ./locks/explore
# These start many labs. Beside other packages, their tests ran into time limits.
many='oversell/cli oversell/dash oversell/lab/experiment'
# shellcheck disable=SC2086
run -race -p 1 $many
# shellcheck disable=SC2046
run -race -p 2 $("$GO" list -tags nomsgpack ./... | grep -vxE "oversell/locks/explore|$(echo "$many" | tr ' ' '|')")

if [ -s "$OVERSELL_LEFT_OUT" ]; then
	echo "$(wc -l <"$OVERSELL_LEFT_OUT") tests were left out, as MariaDB or its Galera is not installed (make servers says why):"
	sort "$OVERSELL_LEFT_OUT" | sed 's/^/  /'
fi
exit "$status"
