#!/bin/sh
# Runs what make test leaves out, part by part, the most telling ones first. The results of this commit are
# in results/nightly, so after an interruption it continues with the next part. MINUTES: it starts no part
# after that time. PARTS: it runs only these. It ends with a table, whose last column is the number of seconds,
# and fails if a part did.
set -u
cd "$(dirname "$0")/.."

# The parts, and what each adds to make test:
#   tests       every case of every test, with the race detector: all strategies in the conformance suite and
#               the outages, the course and all pages in every language and size
#   mutations   the search finds fourteen bugs in strategies
#   break       every strategy by every hazard
#   scenarios   the scenarios with each guard, ten and fifty times
#   topologies  Galera, Sentinel, Redis Cluster and ensembles
#   grades      every wrong lock of the exercises
#   adapted     our own locks on trial as adapters
#   chaos       sales under random faults, of fenced locks and of strategies without a lock
#   interop     locks shared with Java, and the load generator against vegeta
#   incidents   public bug reports
#   databases   other versions of MySQL and MariaDB
#   commands    every command of the documents
#   libraries   locks of other libraries on trial
#   caught      make test finds thirty bugs
#   falsify     the experiments contradict each claim of a card that a patch makes false
parts=${PARTS:-tests mutations break scenarios topologies grades adapted chaos interop incidents databases commands libraries caught falsify}

part() {
	case $1 in
	tests) OVERSELL_NIGHTLY=1 sh tools/test.sh nightly ;;
	break) make break SEEDS=1 ;;
	adapted | incidents | libraries) make "$1" SEEDS=1 ;;
	databases) make databases SEEDS=1 && git checkout -q docs/databases.json ;;
	commands) make commands ALL=1 ;;
	falsify) rm -rf results/falsify && make falsify && git checkout -q tools/mutations/claims.tsv ;;
	*) make "$1" ;;
	esac
}

# Without regard to changed files: some parts write documents.
version=$(git rev-parse --short=12 HEAD)
state=results/nightly/$version
mkdir -p "$state"
began=$(date +%s) failed=0
for name in $parts; do
	if [ -e "$state/$name.ok" ]; then continue; fi
	if [ -n "${MINUTES:-}" ] && [ $(($(date +%s) - began)) -ge $((MINUTES * 60)) ]; then
		echo "nightly: $MINUTES minutes are over: $name and the parts after it did not run. Run make nightly again to continue."
		break
	fi
	echo "nightly: $name, log in $state/$name.log"
	at=$(date +%s)
	# A test that skips itself has checked nothing.
	if part "$name" >"$state/$name.log" 2>&1 && ! grep '^--- SKIP' "$state/$name.log"; then
		echo $(($(date +%s) - at)) >"$state/$name.ok"
	else
		failed=1
		tail -n 30 "$state/$name.log"
		echo "nightly: $name failed"
	fi
done

echo "make nightly of $version:"
for name in $parts; do
	if [ -e "$state/$name.ok" ]; then
		printf '  %-12s passed  %6d s\n' "$name" "$(cat "$state/$name.ok")"
	elif [ -e "$state/$name.log" ]; then
		printf '  %-12s FAILED\n' "$name"
	else
		printf '  %-12s did not run\n' "$name"
	fi
done
exit "$failed"
