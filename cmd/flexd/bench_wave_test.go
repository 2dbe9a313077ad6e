package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"flexd/internal/store/storetest"
)

// Two houses on one PostgreSQL share a wave and its delivery, and nothing is pushed twice.
func TestBenchWave(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		args := []string{"bench", "wave", "--cars", "300", "--json", "--database", url}
		if strings.HasPrefix(url, "postgres") {
			args = append(args, "--houses", "2")
		}
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, console{strings.NewReader(""), &out, &errs}); code != exitDone {
			t.Fatalf("exit %d: %s", code, &errs)
		}
		var rows []benchRow
		if err := json.Unmarshal(out.Bytes(), &rows); err != nil || len(rows) != 4 {
			t.Fatalf("%v: %s", err, &out)
		}
		if !strings.Contains(rows[0].What, "300 plugged-in cars") || !strings.Contains(rows[0].What, "300 changed") {
			t.Errorf("a wave that turns the night around: %s", rows[0].What)
		}
		if !rows[3].Met || !strings.HasPrefix(rows[2].What, "300 pushes") {
			t.Errorf("%+v", rows[2:])
		}
	})
	var out, errs bytes.Buffer
	for _, wrong := range [][]string{{"--cars", "0"}, {"--houses", "2"}} {
		if code := run(t.Context(), append([]string{"bench", "wave"}, wrong...), console{strings.NewReader(""), &out, &errs}); code != exitUsage {
			t.Errorf("%v: exit %d", wrong, code)
		}
	}
}
