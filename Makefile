# make test   the whole suite, on SQLite and on a PostgreSQL of its own; the race detector watches what happens at once
# make race   the whole suite under the race detector: an hour
# make long   the long campaigns, hours; their figures stand in docs/
# make ha     the deployment of docs/high-availability.md on this machine, broken part by part: minutes, needs root
# make build  the program, static
# make release        programs for each system, image, packages, checksums: into dist/
# make release-check  builds them twice, compares the bytes and tries them
# make check  linters, secrets in any commit, and known vulnerabilities of what is linked
# make clients the TypeScript client: generated, built, tested against a sandbox, packed; needs Node and its registry
# make foreign what others wrote against flexd: two linters of the document, a proxy and contract tests that check answers, the Postman collection, a generated Go client, OAuth 2.0 clients, verifiers of webhooks, charge points and a platform through the OCPP bridge, axe-core on every screen
# make highs  flexd's plans of random homes beside those of HiGHS (npm, WebAssembly): minutes
# make bench  the README's table of figures, measured here: an hour and a half

test: export TMPDIR := $(shell test/tmp.sh)

# One set of flags for all that `make test` compiles: what differs in one of them is compiled anew, the standard library
# too. Garbage is collected as in test/suite.sh.
test race: export GOFLAGS := $(shell go env GOFLAGS) -trimpath
test race: export GOGC := 400
test race: export GOMEMLIMIT := 2GiB

.PHONY: test check long race ha fuzz build bench highs fmt clients foreign release release-check
test:
	@test/tools.sh
	go vet ./...
	go run ./test/withpg test/suite.sh

# The tools are pinned. .golangci.yml says what is looked for, staticcheck among it; govulncheck
# asks the public list of vulnerabilities, last: where that list cannot be reached, all else was done.
check:
	go vet ./...
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.2 run ./...
	test/secrets.sh
	go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...

# The long campaigns: 100 kills and restarts, 2,000 power cuts, a simulated year, a
# night in full, a million random problems.
long:
	FLEXD_LONG=1 FLEXD_CRASHES=100 FLEXD_TEST_STRICT=1 go run ./test/withpg go test -timeout 4h -count=1 ./test/crash ./sim ./internal/engine/... ./internal/lab/... ./internal/delivery ./test/sums ./test/pairs ./test/probe
	FLEXD_LONG=1 FLEXD_TEST_STRICT=1 go run ./test/withpg go test -timeout 4h -count=1 ./internal/app ./internal/control ./internal/market ./internal/reward ./internal/settle # every case and history on both engines
	FLEXD_TEST_POOLER=transaction FLEXD_TEST_STRICT=1 go run ./test/withpg go test -timeout 4h -count=1 -skip /sqlite ./internal/store ./internal/delivery ./internal/control ./internal/settle ./internal/reward # through PgBouncer
	FLEXD_LONG=1 go test -timeout 4h -count=1 ./internal/mcp -run TestRandomCalls # 100,000 calls of an agent
	FLEXD_LONG=1 FLEXD_TEST_STRICT=1 go test -timeout 4h -count=1 ./cmd/flexd -run 'TestGuides|TestEveryHour' # every guide at 48 times of three days
	FLEXD_LONG=1 go test -count=1 ./cmd/flexd -run TestDeploy # promtool reads rules and dashboard; Debian's package, unpacked

	FLEXD_LONG=1 FLEXD_TEST_STRICT=1 go test -timeout 4h -count=1 ./test/ha -v # 50 faults of the deployment with a failover

# Network namespaces are its machines, so it needs root. It installs Patroni, etcd and HAProxy where they are missing.
ha:
	FLEXD_HA=1 FLEXD_TEST_STRICT=1 go test -timeout 1h -count=1 ./test/ha -v

race: export TMPDIR := $(shell test/tmp.sh)
race:
	@test/tools.sh
	go run ./test/withpg test/suite.sh race

# Every fuzz target for three minutes, two hours of processor in all.
fuzz:
	go run ./test/fuzz -each 3m

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/flexd ./cmd/flexd

bench:
	go run ./test/withpg go run ./test/figures

# Everything is on the loopback and on free ports. The programs of others are pinned by lock files.
clients: build
	cd clients/typescript && npm ci --ignore-scripts --no-audit --no-fund
	cd clients/typescript && npm run generate && npm run build
	cd clients/typescript && FLEXD=$(CURDIR)/bin/flexd npm test && npm pack --pack-destination $(CURDIR)/bin

foreign: build
	test/foreign/tools.sh
	cd test/foreign && npm ci --ignore-scripts --no-audit --no-fund
	cd test/foreign && FLEXD=$(CURDIR)/bin/flexd npm test
	FLEXD_FOREIGN=$(CURDIR)/test/foreign go test -count=1 -timeout 60m -run 'TestForeign|TestDischarge' ./internal/ocppserver
	FLEXD_FOREIGN=$(CURDIR)/test/foreign go test -count=1 -timeout 60m -run TestForeign ./internal/mcp
	cd test/foreign/go && go generate ./... && FLEXD=$(CURDIR)/bin/flexd go test -count=1 -timeout 60m ./...
	cd test/foreign/python && node generate.mjs && FLEXD=$(CURDIR)/bin/flexd /usr/bin/python3 story_test.py
	FLEXD_TEST_STRICT=1 FLEXD_AXE=$(CURDIR)/test/foreign/node_modules/axe-core/axe.min.js go run ./test/withpg go test -count=1 -timeout 60m -run 'Browser|Phone' ./internal/console ./internal/portal
	cd test/foreign && npm run lint:redocly && npm run lint:spectral

# HiGHS is pinned by a lock file. Its seconds for each programme: make highs SECONDS=10
HOMES ?= 32
SECONDS ?= 3
highs:
	cd test/highs && npm ci --ignore-scripts --no-audit --no-fund
	rm -rf bin/highs && mkdir -p bin/highs
	go test -count=1 ./internal/lab/problem -run TestHome_Figures -args -figures $(HOMES) -programs $(CURDIR)/bin/highs
	node test/highs/compare.mjs bin/highs $(SECONDS)

fmt:
	gofmt -w .

# What is shipped, into dist/, and the same built twice and tried.
release:
	deploy/release.sh dist

release-check:
	deploy/release-check.sh
