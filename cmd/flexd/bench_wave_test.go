package main

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"flexd/internal/lab/bench"
	"flexd/internal/store/storetest"
)

// Two processes on one PostgreSQL share a wave and its delivery, and nothing is pushed twice.
func TestBenchWave(t *testing.T) {
	t.Setenv(asProgram, "1") // what it starts is this binary
	storetest.EachURL(t, func(t *testing.T, url string) {
		args := []string{"bench", "wave", "--cars", "300", "--json", "--database", url}
		if strings.HasPrefix(url, "postgres") {
			args = append(args, "--processes", "2")
		}
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, console{strings.NewReader(""), &out, &errs}); code != exitDone {
			t.Fatalf("exit %d: %s", code, &errs)
		}

		var rows []bench.Row
		want := []string{"300 plugged-in cars planned again on sqlite by 1, 300 changed", "memory", "300 pushes delivered by 1", "twice", "an older"}
		if strings.HasPrefix(url, "postgres") {
			want = []string{"300 plugged-in cars planned again on postgres by 2, 300 changed", "memory", "300 pushes delivered by 2", "twice", "an older",
				"schedules changed", "pushes", "wave by one", "delivery by one"}
		}
		if err := json.Unmarshal(out.Bytes(), &rows); err != nil || len(rows) != len(want) {
			t.Fatalf("%v: %s", err, &out)
		}

		for i, r := range rows {
			if !strings.Contains(r.What, want[i]) || i >= 3 && !r.Met {
				t.Errorf("%+v, want %q", r, want[i])
			}
		}
	})

	var out, errs bytes.Buffer
	for _, wrong := range [][]string{{"--cars", "0"}, {"--processes", "2"}, {"--houses", "2"}} {
		if code := run(t.Context(), append([]string{"bench", "wave"}, wrong...), console{strings.NewReader(""), &out, &errs}); code != exitUsage {
			t.Errorf("%v: exit %d", wrong, code)
		}
	}
	if n := strings.Count(errs.String(), "several processes share a store"); n != 2 {
		t.Errorf("processes, and houses for them, were refused %d times: %s", n, &errs)
	}
}

// What the benchmark promises of pushes it can see broken.
func TestBenchWave_PlantedFaults(t *testing.T) {
	s := waveSink{received: map[string]struct{}{}, newest: map[string]int64{}}
	all := s.expect(3)
	for _, push := range [][2]string{{"a", "1"}, {"b", "3"}, {"b", "3"}, {"c", "2"}} {
		r := httptest.NewRequest("POST", "/car", nil)
		r.Header.Set("webhook-id", push[0])
		r.Header.Set("Flexd-Asset-Id", "car")
		r.Header.Set("Flexd-Generation", push[1])
		s.ServeHTTP(httptest.NewRecorder(), r)
	}

	<-all
	if s.duplicates != 1 || s.older != 1 {
		t.Errorf("%d came twice and %d too late, want one of each", s.duplicates, s.older)
	}
}
