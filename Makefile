# make test   the whole suite, race detector on, on SQLite and on a PostgreSQL of its own
# make build  the program, static
# make bench  the benchmarks behind the README's figures
GOFLAGS_TEST = -race -timeout 8m

.PHONY: test build bench fmt
test:
	go vet ./...
	go run ./test/withpg go test $(GOFLAGS_TEST) ./...

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/flexd ./cmd/flexd

bench:
	go run ./test/withpg go test -run '^$$' -bench . -benchmem ./...

fmt:
	gofmt -w .
