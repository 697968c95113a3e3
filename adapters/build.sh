#!/bin/sh
# Builds the adapters in Java, Python, JavaScript and Rust in bin/, with the pinned versions of the
# libraries. With arguments, it builds only these: java, python, node, rust.
set -eu
cd "$(dirname "$0")/.."

need() { # need TOOL PACKAGE: fails if the tool is missing
	command -v "$1" >/dev/null && return
	echo "adapters: $1 is missing. Install $2, or build only some adapters: adapters/build.sh java python node rust" >&2
	exit 1
}

java() {
	need java 'a JDK 17 or newer (apt-get install openjdk-17-jdk-headless)'
	need mvn 'Maven (apt-get install maven)'
	mvn -q -B -ntp -Dstyle.color=never -f adapters/java clean package
}

python() {
	need python3 'Python 3.9 or newer (apt-get install python3 python3-venv)'
	environment bin/adapters-python adapters/python/requirements.txt
	environment bin/adapters-sherlock adapters/python/sherlock.txt # it needs an older client of Redis
}

environment() { # environment FOLDER REQUIREMENTS: makes a virtual environment of Python
	python3 -m venv "$1"
	"$1/bin/python" -m pip install -q --disable-pip-version-check -r "$2"
}

node() {
	need node 'Node.js 18 or newer (apt-get install nodejs)'
	need npm 'npm (apt-get install npm)'
	mkdir -p bin/adapters-node
	cp adapters/node/* bin/adapters-node
	npm install --prefix bin/adapters-node --no-package-lock --no-audit --no-fund --loglevel=error
}

rust() {
	need cargo 'Rust 1.85 or newer (apt-get install cargo-web on Debian 12, https://rustup.rs elsewhere)'
	cargo build --quiet --release --locked --manifest-path adapters/rust/Cargo.toml --target-dir bin/adapters-rust
}

mkdir -p bin
[ $# -gt 0 ] || set -- java python node rust
for language; do
	case $language in
	java | python | node | rust) "$language" ;;
	*)
		echo "adapters: there is no language $language; there are java, python, node and rust" >&2
		exit 1
		;;
	esac
done
