#!/bin/sh
# Starts the lab in containers, and explains what to do if a port is in use.
set -eu
cd "$(dirname "$0")/../.."

docker info >/dev/null 2>&1 || {
	echo "up: no Docker engine answers: install Docker 25 or newer, or start it; without Docker: make lab" >&2
	exit 1
}
log=$(mktemp)
trap 'rm -f "$log" "$log.failed"' EXIT
{ docker compose up --build --wait "$@" 2>&1 || : >"$log.failed"; } | tee "$log"
[ -e "$log.failed" ] || {
	token=${LAB_TOKEN:-classroom}
	case $token in
	*[!A-Za-z0-9._~-]*) token=$(printf %s "$token" | od -An -v -tx1 | tr -d '\n' | tr ' ' %) ;; # a + would be a blank
	esac
	echo "the page: http://$(docker compose port nginx 8080)/#token=$token"
	exit 0
}
# The messages of Docker Engine, of its proxy, and of Docker Desktop.
if grep -Eiq 'port is already allocated|address already in use|ports are not available' "$log"; then
	cat >&2 <<-'END'

		up: a port is taken on this machine. `make lab` takes the same ones: end it with Ctrl-C,
		or choose other ports:
		  NGINX_PORT=9080 REPLICA_1_PORT=9000 REPLICA_2_PORT=9100 REPLICA_3_PORT=9200 make up
	END
fi
exit 1
