#!/bin/sh
# Builds the adapters in Java, Python and JavaScript in bin/, with the pinned versions of the
# libraries. With arguments, it builds only these: java, python, node.
set -eu
cd "$(dirname "$0")/.."

need() { # need TOOL PACKAGE: fails if the tool is missing
	command -v "$1" >/dev/null && return
	echo "adapters: $1 is missing. Install $2, or build only some adapters: adapters/build.sh java python node" >&2
	exit 1
}

java() {
	need java 'a JDK 17 or newer (apt-get install openjdk-17-jdk-headless)'
	need mvn 'Maven (apt-get install maven)'
	mvn -q -B -ntp -Dstyle.color=never -f adapters/java clean package
}

python() {
	need python3 'Python 3.9 or newer (apt-get install python3 python3-venv)'
	python3 -m venv bin/adapters-python
	bin/adapters-python/bin/python -m pip install -q --disable-pip-version-check -r adapters/python/requirements.txt
}

node() {
	need node 'Node.js 18 or newer (apt-get install nodejs)'
	need npm 'npm (apt-get install npm)'
	mkdir -p bin/adapters-node
	cp adapters/node/* bin/adapters-node
	npm install --prefix bin/adapters-node --no-package-lock --no-audit --no-fund --loglevel=error
}

mkdir -p bin
[ $# -gt 0 ] || set -- java python node
for language; do
	case $language in
	java | python | node) "$language" ;;
	*)
		echo "adapters: there is no language $language; there are java, python and node" >&2
		exit 1
		;;
	esac
done
