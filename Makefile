# The targets for people. `make` lists them.
# It must work with GNU make 3.81, the version of macOS.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# Without this tag, half of the program would be a codec of gin that is not used.
TAGS    := -tags nomsgpack
TOOL    := $(GO) tool -modfile=tools/go.mod
# The program that writes the generated parts of the documents.
GENERATE := $(GO) run $(TAGS) ./docs/generate

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: servers
servers: ## install the servers that this machine lacks: MySQL or MariaDB, Redis, ZooKeeper, etcd, nginx
	@sh lab/rig/servers.sh

# The tests of the page need a browser, those of the terminal tmux, and some locks PostgreSQL.
.PHONY: browser
browser:
	@sh lab/rig/servers.sh browser

.PHONY: build
build: ## build bin/oversell
	@command -v $(GO) >/dev/null || { echo "go is missing: install Go 1.26 or newer from https://go.dev/dl" >&2; exit 1; }
	@mkdir -p bin
	@# Rename in one step: a lab may be running the old program.
	@new=$$(mktemp bin/oversell.XXXXXX) && trap 'rm -f "$$new"' EXIT && \
	CGO_ENABLED=0 $(GO) build $(TAGS) -trimpath -buildvcs=false -ldflags '-s -w -X oversell/cli.version=$(VERSION)' -o "$$new" . && \
	chmod 755 "$$new" && mv -f "$$new" bin/oversell

# With a wait of 10 s, requests would give up on a slow machine.
.PHONY: demo
demo: servers build ## compare the main strategies in a new lab; writes results/demo.html, .json and .csv
	@mkdir -p results
	bin/oversell run --wait 60s --json results/demo.json --csv results/demo.csv --html results/demo.html

.PHONY: lab
lab: servers build ## start the servers, the replicas and the page on this machine, until Ctrl-C
	bin/oversell lab

.PHONY: observe
observe: build ## start a lab with Prometheus, whose page shows waits, renewals and lost locks; writes results/traces.jsonl
	@sh lab/rig/servers.sh prometheus
	@mkdir -p results
	bin/oversell lab --metrics --traces results/traces.jsonl

.PHONY: test
test: servers browser compiler build ## the tests that every change must pass; takes twelve minutes
	GO="$(GO)" sh tools/test.sh

.PHONY: check
check: test lint vet ## test, lint, and vet all modules; takes minutes more

# deploy, deploy/docker and adapters are modules of their own, with few dependencies of this one.
.PHONY: vet
vet:
	for module in . adapters bench deploy deploy/docker interop; do (cd $$module && $(GO) vet $(TAGS) ./...) || exit 1; done
	for module in deploy deploy/docker; do (cd $$module && $(GO) test -count=1 .) || exit 1; done
	cd adapters && $(GO) build $(TAGS) ./...

# After an interruption, it continues with the next part. PARTS="break grades" runs only these.
.PHONY: nightly
nightly: servers browser compiler build ## all other tests, for a release: every case, with the race detector; takes hours, MINUTES=60 starts no part after an hour
	GO="$(GO)" MINUTES="$(MINUTES)" PARTS="$(PARTS)" sh tools/nightly.sh

# Debian has MariaDB in place of MySQL.
.PHONY: test-mysql test-current-mysql test-current-mariadb
test-mysql: test-current-mysql test-current-mariadb ## the tests of MySQL, on a current MySQL and MariaDB, which it unpacks into a cache folder
test-current-mysql test-current-mariadb: test-current-%: servers build
	GO=$(GO) sh tools/test-mysql.sh $*

.PHONY: up
up: ## start the lab in Docker instead; docker compose down --volumes ends it
	@deploy/docker/up.sh

.PHONY: docker-test
docker-test: ## test docker-compose.yml on a Docker engine; takes minutes
	@deploy/docker/test.sh

# Their tests skip what make test has no time for, unless this is set.
scenarios chaos adapted grades mutations topologies: export OVERSELL_NIGHTLY = 1

# A wrong guard must fail in each of 10 runs, a correct guard in none of 50.
.PHONY: scenarios
scenarios: servers ## all scenarios with each guard, many times: coupon, tickets, flash, recharge, grain
	OVERSELL_SCENARIOS=1 $(GO) test $(TAGS) -count=1 -timeout 60m -v -run '^TestScenarios$$' ./lab/scenario

# Random pauses beyond the lease, kills and restarts. The sold items and the row are compared every 20 s.
FOR ?= 20m
.PHONY: chaos
chaos: servers ## sales under random faults, with fencing tokens and without a lock, FOR 20m
	OVERSELL_CHAOS=$(FOR) $(GO) test $(TAGS) -count=1 -timeout 3h -v -run '^TestUnderChaos$$' ./lab/experiment

# The race detector needs a C compiler.
.PHONY: compiler
compiler:
	@sh tools/compiler.sh

.PHONY: lint
lint: ## golangci-lint and gofumpt; compiling them the first time takes minutes
	$(TOOL) golangci-lint run
	@badly=$$($(TOOL) gofumpt -l .) && { test -z "$$badly" || { echo "make fmt would change:"; echo "$$badly"; exit 1; }; }

.PHONY: fmt
fmt: ## format all Go files
	$(TOOL) gofumpt -l -w .

# The properties of make jmeter, for example: make jmeter strategy=zk plan=check-lock.jmx
JMETER := plan strategy strategies threads loops stock product wait strict backend hold guard share
.PHONY: jmeter
jmeter: servers build ## all JMeter plans, without a window, in a new lab (strategy=redis threads=100 loops=50 ...)
	jmeter/run.sh $(foreach p,$(JMETER),$(if $(filter command,$(origin $(p))),'-D$(p)=$($(p))'))

# After an interruption, it continues. make clean deletes what was done.
SEEDS ?= 3
.PHONY: break
break: servers build ## run every hazard on every lock, SEEDS times (3); writes results/matrix.html and .json
	@mkdir -p results
	bin/oversell break --all --seeds $(SEEDS) --keep results/break --json results/matrix.json --markdown results/matrix.md --html results/matrix.html

.PHONY: matrix
matrix: ## copy the verdicts of make break into docs/matrix.json and docs/faults.md
	cp results/matrix.json docs/matrix.json
	$(GENERATE)

# It unpacks the other databases into a cache folder, takes half an hour, and continues after an interruption.
.PHONY: databases
databases: servers build ## run the hazards of the database on other versions of MySQL and MariaDB, SEEDS times (3); docs/databases.json
	GO="$(GO)" SEEDS=$(SEEDS) sh tools/databases.sh

# For a new or changed strategy.
.PHONY: claims
claims: servers build ## run every hazard on one strategy, SEEDS times: make claims strategy=redis; writes docs/matrix.json
	@mkdir -p results
	bin/oversell break --all $(strategy) --seeds $(SEEDS) --json results/claims.json
	$(GENERATE) claims results/claims.json

.PHONY: explored
explored: build ## run every schedule of two clients with each fault: make explored strategy=redis; writes docs/explored.json
	@mkdir -p results
	bin/oversell explore --all $(strategy) --limit 120s --json results/explored.json
	$(GENERATE) searches results/explored.json

.PHONY: bench
bench: servers build ## compare our locks with other libraries, and the service with its strategies alone: bench/RESULTS.md
	@sh adapters/build.sh java
	cd bench && $(GO) run .

.PHONY: durability waiters
durability: servers build ## measure the basic strategies in memory, with fsync, a slow disk and a network: bench/DURABILITY.md
	@sh lab/rig/servers.sh strace
	cd bench && $(GO) run . -only durability -rounds 6 -o DURABILITY.md

waiters: servers build ## measure the basic strategies with 10 to 1,000 waiting clients: bench/WAITERS.md
	cd bench && $(GO) run . -only waiters -rounds 6 -o WAITERS.md

# It needs a quiet machine, and takes half an hour. TIMES=10 makes fewer comparisons.
.PHONY: compared
compared: servers build ## check oversell compare: 100 comparisons of a strategy with itself, and 100 with a slower one
	OVERSELL_COMPARE=$(or $(TIMES),100) $(GO) test $(TAGS) -count=1 -timeout 2h -v -run '^TestCompareWithItself$$' ./cli

.PHONY: adapters
adapters: ## build the adapters of other libraries in bin/, for `oversell judge`
	@mkdir -p bin
	cd adapters && for main in */main.go; do $(GO) build $(TAGS) -o ../bin/adapter-$${main%/main.go} ./$${main%/main.go} || exit 1; done
	@sh adapters/build.sh

# Each verdict must be the one that the lock has as a strategy.
.PHONY: adapted
adapted: servers ## put our own locks on trial as adapters, SEEDS times (3), and compare with docs/matrix.json
	OVERSELL_ADAPTED=$(SEEDS) $(GO) test $(TAGS) -count=1 -timeout 3h -v -run '^TestJudgeOurs$$' ./cli

# After an interruption, it continues. make clean deletes what was done.
.PHONY: libraries
libraries: SEEDS = 5
libraries: servers browser build adapters ## put other libraries on trial, SEEDS times (5); make libraries library=redsync judges one
	$(GENERATE) libraries --seeds $(SEEDS) $(library)
	$(GENERATE)

# About 40 wrong locks and right ones, and twenty repeats of two of them.
.PHONY: grades
grades: servers ## grade every wrong lock of the tests: oversell grade must name its mistake; takes an hour
	OVERSELL_GRADES=1 $(GO) test $(TAGS) -count=1 -timeout 3h -v -run '^TestGrade' ./cli

# Each of the bugs needs a program of its own.
.PHONY: mutations
mutations: ## seed fourteen bugs in the strategies: oversell explore must find each one but one; takes minutes
	OVERSELL_MUTATIONS=1 $(GO) test $(TAGS) -count=1 -timeout 1h -v -run '^TestMutations$$' ./trial/explore

.PHONY: caught
caught: servers browser build ## put thirty bugs into copies of the checkout: make test must find 24; takes half an hour
	GO="$(GO)" sh tools/caught.sh

# After an interruption, it continues. make clean deletes what was done. PATCHES="late-writes herd" takes only these.
.PHONY: falsify
falsify: servers build ## make each claim of a card false by a patch: its experiment must contradict it; takes an hour
	GO="$(GO)" PATCHES="$(PATCHES)" sh tools/falsify.sh

# The comparison and the contract on Sentinel, a cluster of Redis, and ensembles; fail-overs by the servers.
.PHONY: topologies
topologies: servers build ## all strategies on Galera, Sentinel, a Redis cluster and ensembles, and their fail-overs; takes 25 minutes
	OVERSELL_TOPOLOGIES=1 $(GO) test $(TAGS) -count=1 -timeout 2h -p 1 -v -run '^Test(Topologies|RunOnTopologies|FailoverUnderLoad|SentinelFaults)$$' ./locks/catalog ./lab/fault ./cli
	for h in failover-sentinel split-brain; do bin/oversell break $$h --seeds 12 -q || exit 1; done
	for h in min-replicas split-renewal min-replicas-renewal quorum-loss; do \
	  bin/oversell break $$h --seeds 2 -q || exit 1; done
	bin/oversell break resharding --seeds 10 -q
	bin/oversell break failover-cluster redis --seeds 12 -q
	bin/oversell break failover-cluster redis --fenced --seeds 12 -q

.PHONY: incidents
incidents: servers build ## repeat public bug reports about locks: docs/incidents.md; make incidents incident=ID repeats one
	@sh adapters/incidents/build.sh
	$(GENERATE) incidents $(incident)
	$(GENERATE)

.PHONY: interop
interop: servers build ## test locks shared with Java: Redisson and Curator, current and the tutorial's versions; a Spring shop; and the load against vegeta
	@sh interop/java.sh
	cd interop && for versions in current tutorial; do mvn -q -B -ntp -Dstyle.color=never -P$$versions clean compile || exit 1; done
	cd interop && mvn -q -B -ntp -Dstyle.color=never -f spring clean package
	cd interop && $(GO) test $(TAGS) -count=1 -timeout 20m -v .

.PHONY: docs
docs: ## write the generated parts of README.md and docs/: tables, the matrix, recorded runs
	$(GENERATE)

# A measurement is discarded if other processes used the machine.
.PHONY: record
record: servers build ## measure the comparison and the scenarios on a quiet machine, and write them into the documents
	@mkdir -p results
	COLUMNS=100 $(GENERATE) alone -- bin/oversell run --jmeter >results/verdicts.txt
	sed -n '/^┌/,$$p' results/verdicts.txt >results/comparison.txt # the README has no room for the verdicts
	@: >results/scenarios.txt
	for s in coupon tickets flash recharge grain; do \
	  $(GENERATE) alone -- bin/oversell run $$s --runs 3 --quiet >results/scenario.txt || exit 1; \
	  { echo $$s; grep '[│┌├└]' results/scenario.txt; } >>results/scenarios.txt; done
	cp results/comparison.txt results/scenarios.txt docs/recorded
	$(GENERATE)

.PHONY: course
course: servers build ## run the commands of all lessons, or of lesson=04-versions, and write their results into docs/course
	$(GENERATE) course $(lesson)

# Record again after a strategy has changed. With strategy=redis, the others keep their recordings.
.PHONY: steps
steps: servers build ## record every order of two clients' steps, 10 minutes; make steps strategy=redis records one
	$(GENERATE) steps $(strategy)

.PHONY: timelines
timelines: ## keep one run of make break for each timeline of make site, in docs/recorded
	$(GENERATE) runs results/break

.PHONY: site
site: build ## write pages that need no servers to results/site; open its index.html
	rm -rf results/site
	bin/oversell site results/site
	$(GENERATE) pages results/site/libraries

.PHONY: commands
commands: servers build $(if $(ALL),adapters) ## run the commands of the documents; with ALL=1 also the slow ones
	OVERSELL_COMMANDS=$(if $(ALL),all,quick) $(GO) test $(TAGS) -count=1 -timeout 5h -v -run '^TestCommands$$' ./docs

.PHONY: pictures
pictures: servers browser ## take the pictures of README.md and docs/lab.md: a run, a timeline and Step, light and dark
	OVERSELL_PICTURES=$(CURDIR)/docs/pictures $(GO) test $(TAGS) -count=1 -run '^TestPictures$$' ./dash

.PHONY: clean
clean: ## remove bin/, results/ and jmeter/results/
	rm -rf bin results jmeter/results

.PHONY: uninstall
uninstall: ## remove the packages that these commands have installed, and no other ones
	@sh lab/rig/uninstall.sh
