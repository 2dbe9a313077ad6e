#!/usr/bin/env bash
# Runs every test: on SQLite and, where test/withpg has started it, on PostgreSQL.
#
# The race detector makes a test cost four times as much. So most packages are tested once,
# with it or without:
# - packages in which goroutines of flexd share memory, with it;
# - of the others those tests in which something happens at once, with it: their names say so;
# - all else without it.
# `test/suite.sh race` runs everything with the race detector; `make race` does.
set -euo pipefail

# The race detector watches our code and its libraries but for SQLite's, C made into Go: its
# every access to its own pages would be checked, at four times the cost. These flags take the place of those for all
# packages that continuous integration gives (.ci/run), so that its -dwarf=false is repeated here.
race=(-race "-gcflags=modernc.org/...=-race=false -d=checkptr=0 -dwarf=false")

# Collecting garbage a quarter as often takes a fifth off the whole; memory stays below a limit.
export GOGC=400 GOMEMLIMIT=2GiB

# What was compiled for a checkout in one folder serves one in another, if no path is kept in it: programs that tests build,
# too. `make` has `go vet` and test/withpg compile with the same flags.
export GOFLAGS="${GOFLAGS:-$(go env GOFLAGS)} -trimpath"

# A package may take an hour: busy machines are several times slower than quiet ones. `go vet` has run before. No result
# comes from a cache.
options=(-timeout 60m -vet=off -count=1)

if [ "${1:-}" = race ]; then
	exec go test "${race[@]}" -timeout 4h -vet=off ./...
fi

# As many packages as there are processors are tested at a time, in the order in which they stand: each list begins with
# those that take longest, so that none of them is left to the end, alone.
raced=(./internal/store ./internal/ocppserver ./internal/delivery ./client ./internal/adr ./internal/directory ./internal/egress
	./internal/grid ./internal/homeassistant ./internal/operations ./internal/web ./internal/worker)

# With it these draw fewer random problems, so that they are run without it too.
both=(./internal/engine/fleet ./internal/lab/bench)

partly_raced=(./internal/app ./internal/console ./cmd/flexd ./internal/control ./internal/reward ./internal/registry
	./internal/api ./internal/books ./internal/openadr ./internal/product ./internal/reading ./internal/settle ./sim
	./internal/market ./internal/mcp ./internal/access)

# What happens at once in them is other processes' work.
processes=(./test/crash)

# A test that starts goroutines bears one of these in its name: TestSuite of the root holds it.
at_once='AtOnce|Beside|Concurren|Processes|Together|While|Once$|Many|Meets|Locks|Serve|Hang|Listen|Traces|^TestLine_|^TestLive|Spool|RateLimit'

# Of those the rest, and all others: each list begins with those that take longest.
rest_of=(./internal/control ./internal/console ./cmd/flexd ./internal/app ./internal/reward ./sim ./internal/openadr ./internal/api)
longest=(./test/pairs ./test/crash ./test/probe ./test/sums)

rest_of=($(go list "${rest_of[@]}") $(go list "${partly_raced[@]}" | grep -vxFf <(go list "${rest_of[@]}")))
plain=($(go list "${longest[@]}") $(go list ./... | grep -vxFf <(go list "${raced[@]}" "${partly_raced[@]}" "${longest[@]}")))

status=0
go test "${race[@]}" "${options[@]}" "${raced[@]}" "${both[@]}" || status=1
go test "${race[@]}" "${options[@]}" -run "$at_once" "${partly_raced[@]}" || status=1
go test "${options[@]}" -skip "$at_once" "${rest_of[@]}" || status=1
go test "${options[@]}" "${plain[@]}" || status=1
exit $status
