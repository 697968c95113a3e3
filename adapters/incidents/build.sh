#!/bin/sh
# Builds the programs of the incidents in bin/incidents, with pinned versions of the libraries.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p bin/incidents

jar() { # jar GROUP ARTIFACT VERSION: copies a Java library and what it needs
	[ -e "bin/incidents/$2-$3/$2-$3.jar" ] && return
	mvn -q -B -ntp -Dstyle.color=never -f adapters/incidents/library.xml -Dlibrary.group="$1" \
		-Dlibrary.artifact="$2" -Dlibrary.version="$3" dependency:copy-dependencies
}

package() { # package NAME VERSION OTHER...: installs a JavaScript library and other packages
	folder=bin/incidents/$1-$2
	[ -e "$folder/node_modules/$1" ] && return
	name=$1@$2
	shift 2
	mkdir -p "$folder"
	npm install --prefix "$folder" --no-package-lock --no-audit --no-fund --loglevel=error "$name" "$@"
}

python() { # python NAME VERSION OTHER...: installs a Python library and other packages
	folder=bin/incidents/$1-$2
	[ -e "$folder" ] && return
	name=$1==$2
	shift 2
	python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder" "$name" "$@"
}

etcd() { # etcd VERSION: builds the programs on etcd with another version of its client than go.mod
	cp adapters/go.mod "bin/incidents/etcd-$1.mod"
	cp adapters/go.sum "bin/incidents/etcd-$1.sum"
	(
		cd adapters
		go get -modfile="../bin/incidents/etcd-$1.mod" "go.etcd.io/etcd/client/v3@v$1" 2>/dev/null
		for program in etcd-19597 etcd-22082; do
			go build -modfile="../bin/incidents/etcd-$1.mod" -tags nomsgpack -o "../bin/incidents/$program-$1" "./incidents/$program"
		done
	)
}

for program in etcd-19597 etcd-22082 go-zookeeper-229; do
	(cd adapters && go build -tags nomsgpack -o "../bin/incidents/$program" "./incidents/$program")
done
jar org.apache.curator curator-recipes 4.0.1
jar org.apache.curator curator-recipes 4.1.0
jar org.apache.curator curator-recipes 4.2.0
jar org.apache.curator curator-recipes 5.4.0
jar org.apache.curator curator-recipes 5.9.0
jar org.springframework.integration spring-integration-redis 7.1.0
jar org.springframework.integration spring-integration-redis 7.1.2
jar io.lettuce lettuce-core 7.5.2.RELEASE
jar org.redisson redisson 4.3.1
jar org.redisson redisson 4.7.0
package redlock 4.2.0 ioredis@5.11.1
package redlock 5.0.0-beta.2 ioredis@5.11.1
for version in 2.9.1 2.10.6 8.1.0; do python redis "$version"; done
python sherlock 0.4.1 redis==4.6.0 async-timeout==4.0.3
etcd 3.7.3
