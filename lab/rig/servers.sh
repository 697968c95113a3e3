#!/bin/sh
# Installs the servers of the lab that this machine does not have: MariaDB, Redis, nginx,
# etcd, ZooKeeper and its Java. With apt as root or through sudo, on macOS with Homebrew.
# Elsewhere it says what is missing. It is silent when nothing is.
#
# Where MySQL is installed and MariaDB is not, it says so and leaves it at that: the packages
# of MariaDB conflict with those of MySQL, and apt would remove the MySQL of this machine.
#
# With the argument browser it also installs what only tests need: Chromium and a Chinese font for
# those of the page, tmux for those of the terminal, Python for the lock in Python, and PostgreSQL
# and pgbouncer, which a lab starts only for a lock on trial that uses them. With the argument browser
# or prometheus it installs Prometheus, which a lab starts only on request. With the argument browser or
# strace it installs strace, with which a lab has a slow disk.
#
# With apt it also installs what makes the clock of a Redis jump, and what makes a cluster
# of MariaDB, with a proxy in front of it. Only experiments need that, so it asks no password for it, and its lack
# is no failure.
#
# Nothing that it installs runs afterwards, or starts with the machine: the lab starts
# servers of its own. A service that was there before is left as it is. `make uninstall` removes
# what it has installed.
set -eu
. "$(dirname "$0")/packages.sh"

# Where daemons are that a user's PATH may leave out; package rig looks there as well.
PATH="$PATH:/usr/sbin:/sbin:/usr/local/sbin:/usr/libexec:/opt/homebrew/bin:/opt/homebrew/sbin"
export PATH
jars=/usr/share/java

have() { command -v "$1" >/dev/null 2>&1; }

have_mysql() {
	have mysqld || return 1
	mysqld --no-defaults --version 2>/dev/null | grep -v MariaDB | grep -qE 'Ver ([89]|[1-9][0-9])\.'
}

have_mariadb() { have mariadbd && have mariadb-install-db && have my_print_defaults; }

have_java() { have java || [ -x "${JAVA_HOME:-/nowhere}/bin/java" ]; }

# See clock.go.
have_clock() { ls /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/*/libtcmalloc_minimal.so.4 >/dev/null 2>&1; }

have_chinese() { fc-list :lang=zh 2>/dev/null | grep -q .; }

# See cluster.go.
have_galera() { ls /usr/lib/galera/libgalera_smm.so >/dev/null 2>&1 || ls /usr/lib*/galera-4/libgalera_smm.so >/dev/null 2>&1; }

# Debian keeps the programs of each version outside of PATH.
have_postgres() { have initdb || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }

# On Debian, the Chromium without windows, as the tests run faster with it.
browser=chromium
! grep -q '^ID=debian' /etc/os-release 2>/dev/null || browser=chromium-headless-shell
have_browser() { have $browser || have chromium-browser || have google-chrome || [ -d "/Applications/Google Chrome.app" ]; }

have_jars() { [ -e "$jars/zookeeper.jar" ] && [ -e "$jars/slf4j-log4j12.jar" ] && [ -e "$jars/log4j-1.2.jar" ]; }

# What is missing, by the names of Debian's packages; and services, by their units.
missing=
services=
need() { missing="$missing $1"; }

have_mysql || have_mariadb || need "mariadb-server-core mariadb-client-core"
have redis-server || have valkey-server || {
	need redis-server
	services="$services redis-server"
}
have nginx || {
	need nginx-light
	services="$services nginx"
}
have etcd || {
	need etcd-server
	services="$services etcd"
}
if [ -n "${ZOOKEEPER_JARS:-}" ]; then
	have_java || need default-jre-headless
elif ! have_jars && ! have zkServer && ! have zkServer.sh; then
	[ -e "$jars/zookeeper.jar" ] || need libzookeeper-java
	[ -e "$jars/slf4j-log4j12.jar" ] || need libslf4j-java
	[ -e "$jars/log4j-1.2.jar" ] || need liblog4j1.2-java
	have_java || need default-jre-headless
elif have_jars; then
	have_java || need default-jre-headless
fi

have_mariadb || ! have_mysql || [ "${1:-}" = browser ] || cat >&2 <<-'END'
	MariaDB is missing, and is not installed: Debian's packages mariadb-server-core and
	mariadb-client-core conflict with those of the MySQL on this machine, which apt would remove.
	Only `oversell break galera`, `two-masters` and `stale-read` need it; `make test` leaves
	their tests out. tools/real-mysql.sh mariadb unpacks one beside MySQL, on Debian:
	    PATH="$(tools/real-mysql.sh mariadb):$PATH" make test
END

[ "${1:-}" != browser ] || have_browser || need $browser
[ "${1:-}" != browser ] || have tmux || need tmux
[ "${1:-}" != browser ] || have python3 || need python3
[ "${1:-}" != browser ] || have_postgres || {
	need postgresql
	services="$services postgresql"
}
[ "${1:-}" != browser ] || have pgbouncer || {
	need pgbouncer
	services="$services pgbouncer"
}
case ${1:-} in browser | prometheus)
	have prometheus || {
		need prometheus
		services="$services prometheus"
	}
	;;
esac

extra=
is_root() { [ "$(id -u)" -eq 0 ] || sudo -n true 2>/dev/null; }
if have apt-get && { [ -n "$missing" ] || is_root; }; then
	have_clock || extra=" libfaketime libtcmalloc-minimal4"
	have_galera || extra="$extra galera-4"
	have haproxy || {
		extra="$extra haproxy"
		services="$services haproxy"
	}
	case ${1:-} in browser | strace) have strace || extra="$extra strace" ;; esac
	[ "${1:-}" != browser ] || have_chinese || extra="$extra fonts-wqy-zenhei"
fi

[ -n "$missing$extra" ] || exit 0

give_up() {
	echo "$1" >&2
	echo "missing, by the names of Debian's packages:$missing$extra" >&2
	[ -z "$missing" ] || exit 1
	exit 0 # the lab runs without the extra
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# apt runs apt-get, and shows its many words only when it fails.
apt() {
	as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 apt-get -q \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
		-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold \
		"$@" >"$log" 2>&1 || {
		cat "$log" >&2
		give_up "apt-get $1 failed"
	}
}

# While policy-rc.d says 101, packages do not start their services. Where there is one
# already, its owner has decided.
policy=/usr/sbin/policy-rc.d
forbidden=
forbid_starts() {
	[ ! -e "$policy" ] || return 0
	forbidden=yes
	printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
	as_root chmod 755 "$policy"
}

# Packages enable their services for the next boot, whatever policy-rc.d says.
disable_new() {
	for service in $services; do
		if have systemctl; then
			as_root systemctl --quiet disable --now "$service" >/dev/null 2>&1 ||
				as_root systemctl --quiet disable "$service" >/dev/null 2>&1 || true
		fi
		if have update-rc.d; then
			as_root update-rc.d "$service" disable >/dev/null 2>&1 || true
		fi
	done
}

# finish also runs after a failure or a signal.
finish() {
	[ -z "$forbidden" ] || as_root rm -f "$policy" || true
	rm -f "$log"
	[ -z "$packages_before" ] || after_install
}

with_apt() {
	as_root true || give_up "installing the lab's servers needs root or sudo"
	echo "installing:$missing$extra"
	log=$(mktemp)
	packages_before=
	trap finish EXIT
	trap 'exit 130' INT
	trap 'exit 143' HUP TERM
	forbid_starts
	apt update
	before_install
	# shellcheck disable=SC2086 # words
	apt install -y --no-install-recommends $missing $extra
	disable_new
}

with_brew() {
	formulas=
	for package in $missing; do
		case $package in
		mariadb-server-core) formulas="$formulas mariadb" ;;
		redis-server) formulas="$formulas redis" ;;
		nginx-light) formulas="$formulas nginx" ;;
		chromium) give_up "install Chrome: the tests of the page need it" ;;
		etcd-server) formulas="$formulas etcd" ;;
		tmux) formulas="$formulas tmux" ;;
		postgresql) formulas="$formulas postgresql" ;;
		pgbouncer) formulas="$formulas pgbouncer" ;;
		prometheus) formulas="$formulas prometheus" ;;
		python3) formulas="$formulas python" ;;
		libzookeeper-java) formulas="$formulas zookeeper" ;;
		default-jre-headless) formulas="$formulas openjdk" ;;
		esac
	done
	echo "installing:$formulas"
	before_install
	trap after_install EXIT
	trap 'exit 130' INT
	trap 'exit 143' HUP TERM
	# shellcheck disable=SC2086 # words
	brew install $formulas
}

if have apt-get; then
	with_apt
elif [ "$(uname)" = Darwin ] && have brew; then
	with_brew
else
	give_up "install the lab's servers with your package manager"
fi
