package main

import (
	"strings"
	"testing"
)

// A benchmark refuses a store with an organisation in it.
func TestBench_NotEmpty(t *testing.T) {
	database := freshDatabase(t)
	flexd := commandLineOf(t, database)
	if code, said := flexd("org add Acme --username acme --environment sandbox"); code != exitDone {
		t.Fatalf("%d %s", code, said)
	}

	code, said := flexd("bench push --rate 20 --seconds 1 --database " + database)
	if code != exitFailed || !strings.Contains(said, "is not empty") {
		t.Errorf("%d %s", code, said)
	}
}
