package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"flexd/internal/lab/bench"
)

func TestBenchPush(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"bench", "push", "--rate", "20", "--seconds", "1", "--json"}, console{strings.NewReader(""), &out, &errs}); code != exitDone {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	var rows []bench.Row
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil || len(rows) != 2 || !strings.Contains(rows[0].What, "20 cars") {
		t.Errorf("%v: %s", err, &out)
	}
	if code := run(t.Context(), []string{"bench", "push", "--rate", "0"}, console{strings.NewReader(""), &out, &errs}); code != exitUsage {
		t.Errorf("a rate of 0: exit %d", code)
	}
}
