package api

import (
	"bytes"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"testing"

	"flexd/internal/flex"
	"flexd/internal/wire"
)

// What is read of a body to tell its request from others is not held in memory when it is
// long, can be read again whole, and leaves no file behind.
func TestHash_LongBody(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	seen := map[[32]byte]int{}

	for _, size := range []int{0, spoolMax - 1, spoolMax, spoolMax + 1, 3 * spoolMax} {
		body := bytes.Repeat([]byte("x"), size)
		hr := httptest.NewRequest("POST", "/data/readings", bytes.NewReader(body))
		r := &request{Request: hr, route: Route{Limit: wire.MaxReadingsBody}}
		sum, drop, err := (&Server{}).hash(r)
		if err != nil {
			t.Fatal(err)
		}
		seen[sum]++
		if _, file := r.Body.(*os.File); file != (size >= spoolMax) {
			t.Errorf("a body of %d bytes is in a file: %t", size, file)
		}

		if again, err := io.ReadAll(r.Body); err != nil || !bytes.Equal(again, body) {
			t.Errorf("of %d bytes %d come again, %v", size, len(again), err)
		}
		drop()
		if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
			t.Errorf("a body of %d bytes leaves %v, %v", size, left, err)
		}
	}
	if len(seen) != 5 {
		t.Errorf("5 bodies have %d hashes", len(seen))
	}

	for _, limit := range []int64{10, spoolMax, 2 * spoolMax} {
		for more := range int64(2) {
			hr := httptest.NewRequest("POST", "/data/readings", bytes.NewReader(make([]byte, limit+more)))
			r := &request{Request: hr, route: Route{Limit: limit}}
			_, drop, err := (&Server{}).hash(r)

			if tooLarge := flex.KindOf(err) == flex.TooLarge; tooLarge != (more > 0) || errors.Is(err, io.EOF) {
				t.Errorf("%d bytes where %d may be: %v", limit+more, limit, err)
			}
			if err == nil {
				drop()
			}
		}
	}

	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("refused bodies leave %v, %v", left, err)
	}
}
