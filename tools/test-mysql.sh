#!/bin/sh
# Runs the tests of MySQL on MySQL 9 or newer, or on a current MariaDB: test-mysql.sh mysql | mariadb.
# Debian has MariaDB, but Ubuntu, Homebrew and most cloud services have MySQL. It unpacks the server if
# this machine lacks it. If it cannot be downloaded, it prints a warning, which is not a failure.
set -eu

newest() { mysqld --no-defaults --version 2>/dev/null | grep -v MariaDB | grep -qE 'Ver (9|[1-9][0-9])\.'; }

# bring puts a server first in PATH: mysql or mariadb.
bring() {
	status=0
	bin=$(tools/real-mysql.sh "$1") || status=$?
	case $status in
	0) PATH=$bin:$PATH ;;
	75)
		echo "WARNING: NOTHING WAS TESTED ON A CURRENT $1: it could not be downloaded (see above)." >&2
		return 75
		;;
	*) exit "$status" ;;
	esac
}

go=${GO:-go}
tested() {
	echo "$*"
	"$@"
}

# The tests of MySQL in packages whose other tests need no MySQL.
chosen='^TestMySQL|^TestExercises$/^mysql$|^Test(CachingSHA2|MySQLProxy)$'
chosen=$chosen'|^TestEveryHazard$/^(race|replica-race|early-release|crash|write-behind|stale-read)$'

mysql() (
	newest || bring mysql || return 0
	newest # a lab takes the server of PATH
	export OVERSELL_MYSQL=9 # for the tests that need it
	mysqld --no-defaults --version
	tested "$go" test -tags nomsgpack -count=1 -timeout 15m -p 4 ./migrations ./stock ./locks/local ./locks/mysqllock ./lab/scenario
	tested "$go" test -tags nomsgpack -count=1 -timeout 15m -p 4 -run "$chosen" ./lab/exercise ./lab/experiment ./cli
	tested bin/oversell run --quiet --loops 10 --json "$results" none mutex-in-tx for-update version get-lock db-row
	grep -qE '"mysql": "(9|[1-9][0-9])\.[^M]*"' "$results" || {
		echo "the comparison ran on another server: $(grep -m 1 '"mysql":' "$results")" >&2
		exit 1
	}
)

# The defaults of current MariaDB differ from those of Debian's stable release.
mariadb() (
	bring mariadb || return 0
	mariadbd --no-defaults --version
	tested "$go" test -tags nomsgpack -count=1 -timeout 15m ./migrations ./locks/local
	tested "$go" test -tags nomsgpack -count=1 -timeout 15m -run '^TestDifferences$' ./stock
	tested "$go" test -tags nomsgpack -count=1 -timeout 15m -run '^TestExercises$/^mysql$' ./lab/exercise
	tested bin/oversell break --quiet early-release mutex-in-tx
)

case ${1:-} in
mysql)
	results=$(mktemp)
	trap 'rm -f "$results"' EXIT
	mysql
	;;
mariadb) mariadb ;;
*)
	echo "usage: tools/test-mysql.sh mysql|mariadb" >&2
	exit 2
	;;
esac
