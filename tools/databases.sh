#!/bin/sh
# Runs the hazards that concern the database, and the comparison, on several databases: the installed
# one, a current MariaDB, MySQL 8.0 and MySQL 9. It stores the results in results/databases, where an
# interrupted run continues, and writes docs/databases.json. A database that cannot be downloaded is
# left out, with a warning.
set -eu

results=results/databases
seeds=${SEEDS:-3}
mysql=none,mutex,mutex-in-tx,for-update,share-mode,version-naive,version,version-admitted
mysql=$mysql,db-row-naive,db-row-recursive,db-row-cleaned,db-row,db-row-fair,get-lock
mysql=$mysql,atomic,skip-locked,buckets,reservation,combining
# The lock of these is elsewhere, and they write their sales to MySQL.
others=redis,redis-stock,zk
hazards=race,replica-race,early-release,deadlock,nesting,cas-storm,polling,crash,overrun,foreign-unlock
hazards=$hazards,pause,pause-at-read,starved,lost-reply,dead-waiter,renewal-reply,operator
hazards=$hazards,operator-at-write,write-behind,restart,database-down
fenced=pause,pause-at-read,starved,operator,operator-at-write

words() { echo "$1" | tr , ' '; }

# completed runs a command of oversell. Status 1 may be a verdict that contradicts a card, and status 2
# an inconclusive run: oversell docs reports both in the end.
completed() {
	status=0
	echo "$*" >&2
	"$@" || status=$?
	[ "$status" -le 2 ] || exit "$status"
}

# recorded runs everything on the database that is first in PATH, and stores it in a folder.
recorded() {
	to=$results/$1 all=$hazards
	mkdir -p "$to"
	# The follower of this hazard is always a MariaDB.
	case $1 in mysql*) ;; *) all=$all,stale-read ;; esac
	# shellcheck disable=SC2046 # words
	completed bin/oversell break "$all" $(words "$mysql,$others") --seeds "$seeds" --keep "$to" >"$to/break.txt"
	completed bin/oversell break "$fenced" db-row db-row-fair redis --fenced --seeds "$seeds" --keep "$to" >"$to/fenced.txt"
	for run in 1 2 3; do
		[ -e "$to/speed-$run.json" ] && continue
		# shellcheck disable=SC2046 # words
		completed bin/oversell run $(words "$mysql") --quiet --loops 10 --wait 60s --json "$to/speed-$run.json" >"$to/speed.txt"
	done
}

for server in installed mariadb mysql8 mysql; do
	(
		if [ "$server" != installed ]; then
			status=0
			bin=$(tools/real-mysql.sh "$server") || status=$?
			[ "$status" != 75 ] || { echo "WARNING: $server was left out: it could not be downloaded (see above)." >&2 && exit 0; }
			[ "$status" = 0 ] || exit "$status"
			PATH=$bin:$PATH
		fi
		recorded "$server"
	)
done
bin/oversell docs --databases "$results"
