#!/bin/sh
# Tests docker-compose.yml on a Docker engine, in a separate project and on free ports. It needs
# Docker 25 with Compose, curl, and the images or a registry. It takes 3 to 10 minutes.
set -eu
cd "$(dirname "$0")/../.."

say() { echo "docker-test: $*"; }
give_up() {
	say "$*" >&2
	exit 1
}
command -v docker >/dev/null || give_up "docker is missing: install Docker 25 or newer"
command -v curl >/dev/null || give_up "curl is missing: install it"
curl() { command curl --noproxy '*' "$@"; } # the lab is on this machine
docker info >/dev/null 2>&1 || give_up "no Docker engine answers: start one, or set DOCKER_HOST; docker info says why"
docker compose version >/dev/null 2>&1 || give_up "docker compose is missing: install the Compose plugin, 2.20.2 or newer"

# A running lab is not affected. Port 0 means any free port.
COMPOSE_PROJECT_NAME=oversell-test COMPOSE_PROFILES='' LAB_TOKEN=first
NGINX_PORT=0 REPLICA_1_PORT=0 REPLICA_2_PORT=0 REPLICA_3_PORT=0
export COMPOSE_PROJECT_NAME COMPOSE_PROFILES LAB_TOKEN NGINX_PORT REPLICA_1_PORT REPLICA_2_PORT REPLICA_3_PORT

missing=
for image in $(docker compose config --images | grep -v '^oversell' | sort -u) $(sed -n 's/^FROM \(.*:[^ ]*\) AS .*/\1/p' Dockerfile); do
	docker image inspect "$image" >/dev/null 2>&1 || docker pull -q "$image" >/dev/null 2>&1 || missing="$missing $image"
done
[ -z "$missing" ] || give_up "these images are not here, and could not be pulled:$missing; docker pull says why"

tmp=$(mktemp -d)
results=jmeter/results/docker-test
finish() {
	status=$?
	trap - EXIT HUP INT TERM
	if [ "$status" -ne 0 ]; then
		docker compose ps -a --format 'table {{.Service}}\t{{.Status}}' || true
		docker compose logs --no-color --tail 15 nginx replica-1 replica-2 replica-3 lab || true
	fi
	docker rm -fv oversell-test-port >/dev/null 2>&1 || true
	docker compose --profile jmeter down --volumes --remove-orphans --timeout 5 >"$tmp/log" 2>&1 || cat "$tmp/log"
	rm -rf "$tmp" "$results"
	rmdir jmeter/results 2>/dev/null || true
	exit "$status"
}
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

# quiet runs a command, and prints its output only if it fails.
quiet() {
	"$@" >"$tmp/log" 2>&1 || {
		cat "$tmp/log"
		give_up "failed: $*"
	}
}

up() { quiet docker compose up --wait --wait-timeout 600 "$@"; }

# await repeats a command until it succeeds, for five minutes at most.
await() {
	what=$1
	shift
	end=$(($(date +%s) + 300))
	until "$@"; do
		[ "$(date +%s)" -lt "$end" ] || give_up "after five minutes: $what"
		sleep 1
	done
}

at() { echo "http://$(docker compose port "$1" "$2")"; }
healthy() { [ -z "$(docker compose ps -a --format '{{.Service}} {{.Health}}' | grep -v ' healthy$')" ]; }

# nine sells nine times through nginx. Each request must be answered, and each replica must get some.
nine() {
	target=$(at nginx 8080)
	: >"$tmp/replicas"
	for i in 1 2 3 4 5 6 7 8 9; do
		code=$(curl -s -m 30 -o "$tmp/answer" -w '%{http_code}' "$target/check/lock?strategy=for-update") || true
		[ "$code" = 200 ] || give_up "$1: request $i of 9 was answered $code: $(cat "$tmp/answer")"
		grep -o '"replica":"[^"]*"' "$tmp/answer" >>"$tmp/replicas"
	done
	[ "$(sort -u "$tmp/replicas" | wc -l)" -eq 3 ] || give_up "$1: nine requests reached $(sort -u "$tmp/replicas" | tr '\n' ' '), not three replicas"
	say "ok: $1"
}

# reset sets the stock, including stock that a strategy keeps outside of the row.
reset() { quiet curl -sf -m 30 -X PUT -H "X-Lab-Token: $LAB_TOKEN" "$target/stock/1?count=1000000"; }

quiet docker compose build
up
target=$(at nginx 8080)
reset
nine "up"

strategies=$(curl -sf "$target/strategies" | grep -o '"id":"[^"]*"' | cut -d '"' -f 4)
[ "$(echo "$strategies" | wc -l)" -gt 20 ] || give_up "GET /strategies names too few: $strategies"
for strategy in $strategies; do
	reset
	code=$(curl -s -m 60 -o "$tmp/answer" -w '%{http_code}' "$target/check/lock?strategy=$strategy&wait=30s") || true
	[ "$code" = 200 ] || give_up "strategy $strategy was answered $code: $(cat "$tmp/answer")"
done
reset
say "ok: every strategy once, $(echo "$strategies" | wc -l)"

# The page is also behind nginx, and is recreated with the replicas.
for trial in 1 2 3; do
	LAB_TOKEN=token-$trial up
	nine "up with another token, trial $trial"
	up --force-recreate
	nine "up --force-recreate, trial $trial"
	quiet curl -sf -m 30 "$(at nginx 8080)/"
done

for trial in 1 2 3; do
	quiet docker compose restart
	await "not all containers are healthy after docker compose restart" healthy
	nine "docker compose restart, trial $trial"
done

# Start nginx before the names exist that it looks up, and the replicas before their servers.
quiet docker compose kill
for service in nginx replica-3 replica-2 lab replica-1 etcd zookeeper redis-5 redis-4 redis-3 redis-2 redis-1 mysql; do
	quiet docker start "$(docker compose ps -aq "$service")"
done
await "not all containers are healthy after a start in another order" healthy
nine "killed, and started in another order"

restarts() { docker inspect -f '{{.RestartCount}}' "$(docker compose ps -aq replica-1)"; }
came_back() { [ "$(restarts)" -gt 0 ]; }
quiet curl -sf -m 30 -H "X-Lab-Token: $LAB_TOKEN" -d '{"strategy":"none","product":1,"step":"writing","do":"die"}' "$(at replica-1 8000)/lab/failpoints"
! curl -s -m 30 -o "$tmp/answer" "$(at replica-1 8000)/check/lock?strategy=none" || give_up "the failpoint die: the replica answered $(cat "$tmp/answer")"
await "the replica did not come back after the failpoint die" came_back
await "the replica is not healthy after the failpoint die" healthy
nine "the failpoint die"

quiet docker compose exec -T lab /oversell run --target http://nginx:8080 --clients 10 --loops 5 --stock 50 redis
say "ok: oversell run in the container lab"
! docker compose exec -T lab /oversell break pause redis >"$tmp/log" 2>&1 || give_up "break found servers in an image that has none"
grep -q 'make lab' "$tmp/log" || give_up "break does not say where it works: $(cat "$tmp/log")"

quiet docker compose --profile jmeter run --rm -T jmeter -Dplan=check-lock.jmx -Dthreads=10 -Dloops=5 -Dstock=50 "-Dresults=/$results"
[ -s "$results/check-lock.csv" ] || give_up "JMeter left no $results/check-lock.csv: $(ls -l "$results")"
[ "$(ls -dn "$results" | awk '{print $3}')" = "$(ls -dn jmeter | awk '{print $3}')" ] || give_up "JMeter's results do not belong to the owner of jmeter"
say "ok: JMeter, and its results are kept"

# The clients that docs/docker.md names.
quiet docker compose exec -T mysql sh -c 'MYSQL_PWD=$MYSQL_PASSWORD mysql -u oversell oversell -e "SELECT count FROM db_stock"'
quiet docker compose exec -T redis-1 redis-cli PING
quiet docker compose exec -T zookeeper zkCli.sh ls /
quiet docker compose exec -T etcd etcdctl get --prefix /
say "ok: the servers' clients"

# A container outside of the project uses the port, so that no service of the project frees it.
quiet docker run -d --rm --name oversell-test-port -p 127.0.0.1::6379 redis:7-alpine
port=$(docker port oversell-test-port 6379)
! NGINX_PORT=${port##*:} deploy/docker/up.sh --wait-timeout 600 >"$tmp/log" 2>&1 || give_up "nginx started on a port that is taken"
grep -q 'NGINX_PORT=' "$tmp/log" || {
	cat "$tmp/log"
	give_up "make up does not say which port is taken"
}
say "ok: a port that is taken"

# The other topologies of Redis. After a kill, sales fail until the servers have replaced the master.
sells() { [ "$(curl -s -m 30 -o "$tmp/answer" -w '%{http_code}' "$(at nginx 8080)/check/lock?strategy=redis&wait=10s")" = 200 ]; }
topology() {
	quiet docker compose up --wait --wait-timeout 600
	target=$(at nginx 8080)
	reset
	sells || give_up "$1: redis was answered: $(cat "$tmp/answer")"
	quiet docker compose kill "$2"
	await "$1: no sale after $2 was killed: $(cat "$tmp/answer")" sells
	# A restart also starts the killed server, and gives each container a new, empty tmpfs.
	quiet docker compose restart
	await "$1: not all containers are healthy after docker compose restart" healthy
	await "$1: no sale after docker compose restart: $(cat "$tmp/answer")" sells
	quiet docker compose down --volumes --timeout 30
	say "ok: $1, the fail-over of $2, and a restart"
}
quiet docker compose --profile jmeter down --volumes --timeout 30
export COMPOSE_FILE=docker-compose.yml:deploy/docker/sentinel.yml
topology Sentinel redis-master
export COMPOSE_FILE=docker-compose.yml:deploy/docker/cluster.yml
topology 'a cluster' redis-node-1

# The servers, published: MySQL's root creates the database test, and a program of this machine reaches Redis.
export COMPOSE_FILE=docker-compose.yml:deploy/docker/ports.yml
export MYSQL_PORT=0 REDIS_1_PORT=0 REDIS_2_PORT=0 REDIS_3_PORT=0 REDIS_4_PORT=0 REDIS_5_PORT=0 ZK_PORT=0 ETCD_PORT=0
quiet docker compose up --wait --wait-timeout 600
quiet docker compose exec -T mysql sh -c 'MYSQL_PWD=$MYSQL_PASSWORD mysql -u root -e "create database test"'
for server in mysql:3306 redis-1:6379 redis-5:6379 zookeeper:2181 etcd:2379; do
	docker compose port "${server%:*}" "${server#*:}" | grep -q '^127\.0\.0\.1:[1-9]' || give_up "$server is not published on loopback"
done
quiet curl -sf -m 30 "$(at etcd 2379)/health"
quiet docker compose down --volumes --timeout 30
say "ok: published servers"
unset COMPOSE_FILE

quiet docker compose --profile jmeter down --volumes --timeout 30
for kind in 'container ls -a' volume\ ls network\ ls; do
	left=$(docker $kind -q --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME")
	[ -z "$left" ] || give_up "docker compose down --volumes left: docker $kind: $left"
done
say "all passed"
