#!/usr/bin/env bash
# Runs every test: on SQLite and, where test/withpg has started it, on PostgreSQL.
#
# The race detector makes a test cost four times as much. So most packages are tested once,
# with it or without:
# - packages in which goroutines of flexd share memory, with it;
# - the others without it, and with it only those of their tests in which something happens at
#   once: their names say so.
# `test/suite.sh race` runs everything with the race detector; `make race` does.
set -euo pipefail

# The race detector watches our code and its libraries but for SQLite's, C made into Go: its
# every access to its own pages would be checked, at four times the cost.
race=(-race "-gcflags=modernc.org/...=-race=false -d=checkptr=0")

# Collecting garbage a quarter as often takes a fifth off the whole; memory stays below a limit.
export GOGC=400 GOMEMLIMIT=2GiB

# A package may take an hour: busy machines are several times slower than quiet ones. `go vet` has run before.
options=(-timeout 60m -vet=off)

if [ "${1:-}" = race ]; then
	exec go test "${race[@]}" -timeout 4h -vet=off ./...
fi

raced=(./client
	./internal/access ./internal/adr ./internal/delivery ./internal/directory ./internal/egress ./internal/grid
	./internal/homeassistant ./internal/keyring ./internal/market ./internal/mcp ./internal/ocppserver
	./internal/operations ./internal/portal ./internal/signin ./internal/store ./internal/tariff ./internal/trace
	./internal/web ./internal/wire ./internal/worker)

# With it these draw fewer random problems, so that they are run without it too.
both=(./internal/engine/fleet ./internal/lab/bench)

partly_raced=(./cmd/flexd ./internal/api ./internal/app ./internal/books ./internal/console ./internal/control ./internal/openadr
	./internal/product ./internal/reading ./internal/registry ./internal/reward ./internal/settle ./sim)

# What happens at once in them is other processes' work.
processes=(./test/crash)

# A test that starts goroutines bears one of these in its name: TestSuite of the root holds it.
at_once='AtOnce|Beside|Concurren|Processes|Together|While|Once$|Many|Meets|Locks|Serve|Hang|Listen|Traces|^TestLine_|^TestLive|Spool|RateLimit'

plain=($(go list ./... | grep -vxFf <(go list "${raced[@]}")))

status=0
go test "${race[@]}" "${options[@]}" "${raced[@]}" "${both[@]}" || status=1
go test "${race[@]}" "${options[@]}" -run "$at_once" "${partly_raced[@]}" || status=1
go test "${options[@]}" "${plain[@]}" || status=1
exit $status
