#!/bin/sh
# Runs the plans in JMeter 5.6.3, without a window, against a new lab.
#
#   jmeter/run.sh                                      all plans
#   jmeter/run.sh -Dstrategy=zk -Dplan=check-lock.jmx  any property of jmeter/pom.xml
#   jmeter/run.sh -Dbackend=zk -Dhold=1s -Dplan=rwlock.jmx
#   OVERSELL=path/to/oversell jmeter/run.sh            instead of bin/oversell
#
# The lab always ends with this script. Exit code 0 means that no sample failed, and that only
# strategies whose card says so lost updates. The results are in results/jmeter/*.csv, and the
# output of Maven and JMeter is in maven.log.
set -eu
cd "$(dirname "$0")/.."
oversell=${OVERSELL:-bin/oversell}
results=results/jmeter

for program in java mvn; do
	command -v "$program" >/dev/null || {
		echo "jmeter: $program is missing: apt-get install maven default-jdk-headless, or brew install maven" >&2
		exit 1
	}
done
[ -x "$oversell" ] || {
	echo "jmeter: $oversell is missing: make build" >&2
	exit 1
}

tmp=$(mktemp -d "${TMPDIR:-/tmp}/oversell-jmeter.XXXXXX")
lab='' mvn=''
finish() {
	status=$?
	trap - EXIT
	trap '' HUP INT TERM # only one clean-up
	for pid in $mvn $lab; do
		kill -TERM "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	wait # for the filter
	rm -rf "$tmp"
	exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# Commands run in the background, because sh handles a signal only between its commands.
"$oversell" lab --json "$tmp/lab.json" >"$tmp/lab.log" 2>&1 &
lab=$!
until [ -f "$tmp/lab.json" ]; do
	kill -0 "$lab" 2>/dev/null || {
		echo "jmeter: the lab did not start:" >&2
		cat "$tmp/lab.log" >&2
		lab=''
		exit 1
	}
	sleep 0.2
done

member() { sed -n 's/.*"'"$1"'" *: *"\([^"]*\)".*/\1/p' "$tmp/lab.json"; }
address=$(member target)
address=${address#*://}
address=${address%%/*}

mkdir -p "$results"
mkfifo "$tmp/out"
tee "$results/maven.log" <"$tmp/out" | awk '
	{ sub(/^\[INFO\] /, "") }
	/^Executing test: / { print; fflush() }
	/^(strategy|semaphore|rwlock|latch|coupon|recharge|stopped|warning|summary =)/ { print "  " $0; fflush() }
	/^\[ERROR\]/ && !told { print; fflush(); told = 1 }' &
# strict=false comes first, so that an argument of the user overrides it.
LAB_TOKEN="$(member token)" mvn -B -ntp -f jmeter/pom.xml verify -Dstrict=false "$@" \
	-Dhost="${address%:*}" -Dport="${address##*:}" >"$tmp/out" 2>&1 &
mvn=$!
failed=0
wait "$mvn" || failed=$?
mvn=''
if [ "$failed" -ne 0 ]; then
	echo "jmeter: failed, see $results/maven.log" >&2
	exit 1
fi
for csv in "$results"/*.csv; do
	# If JMeter ran nothing, there are no errors either.
	grep -Eq ',"?(remaining|semaphore|rwlock|latch|coupon|recharge)[ :]' "$csv" || {
		echo "jmeter: $csv has no result, see $results/maven.log" >&2
		exit 1
	}
done
