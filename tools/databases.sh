#!/bin/sh
# Runs the hazards that concern the database on several databases: the installed
# one, a current MariaDB, MySQL 8.0 and MySQL 9. It stores the results in results/databases, where an
# interrupted run continues, and writes docs/databases.json. A database that cannot be downloaded is
# left out, with a warning.
set -eu

results=results/databases
seeds=${SEEDS:-3}
mysql='none mutex mutex-in-tx for-update share-mode version version-admitted version-naive
db-row-naive db-row-cleaned db-row db-row-fair db-row-recursive get-lock
atomic skip-locked buckets reservation combining'
# The lock of these is elsewhere, and they write their sales to MySQL.
others='redis redis-stock zk'
hazards=race,replica-race,early-release,deadlock,nesting,cas-storm,crash,overrun,foreign-unlock
hazards=$hazards,pause,pause-at-read,starved,lost-reply,dead-waiter,renewal-reply,operator
hazards=$hazards,operator-at-write,write-behind,restart,database-down
# polling is left out: on a busy machine its sixty waiters ask so rarely that they seem not to poll.
fenced=pause,pause-at-read,starved,operator,operator-at-write

# on NAME COMMAND... runs a command with this database first in PATH. Status 1 of oversell may be a
# verdict that contradicts a card, and status 2 an inconclusive run: docs/generate reports both in the end.
on() (
	[ "$1" = installed ] || PATH=$(tools/real-mysql.sh "$1"):$PATH
	shift
	status=0
	"$@" || status=$?
	[ "$status" -le 2 ] || exit "$status"
)

# break_on runs the hazards on one database.
break_on() {
	to=$results/$1
	# shellcheck disable=SC2086 # words
	on "$1" bin/oversell break "$hazards" $mysql $others --seeds "$seeds" --keep "$to" >"$to/matrix.txt"
	on "$1" bin/oversell break "$fenced" db-row db-row-fair redis --fenced --seeds "$seeds" --keep "$to" >"$to/matrix.txt"
}

# stale_read runs on MariaDB: its follower is always one. It starts a second server.
stale_read() {
	case $1 in mysql*) return ;; esac
	# shellcheck disable=SC2086 # words
	on "$1" bin/oversell break stale-read $mysql $others --seeds "$seeds" --keep "$results/$1" >"$results/$1/matrix.txt" 2>>"$results/$1/progress.txt"
}

there=''
for name in installed mariadb mysql8 mysql; do
	status=0
	[ "$name" = installed ] || tools/real-mysql.sh "$name" >/dev/null || status=$?
	case $status in
	0) there="$there $name" && mkdir -p "$results/$name" ;;
	75) echo "WARNING: $name was left out: it could not be downloaded (see above)." >&2 ;;
	*) exit "$status" ;;
	esac
done

# The experiments mostly wait for leases, so all databases run at the same time.
running=''
trap 'wait; exit 130' INT
for name in $there; do
	echo "hazards on $name: see $results/$name/progress.txt"
	break_on "$name" 2>>"$results/$name/progress.txt" &
	running="$running $!"
done
for job in $running; do wait "$job"; done
for name in $there; do stale_read "$name"; done
${GO:-go} run -tags nomsgpack ./docs/generate databases "$results"
