package api

import (
	"bytes"
	"os"
	"testing"

	"flexd/internal/flex"
)

// All temporary files together hold so many bytes, and what one held is free when it is gone.
func TestSpool_Total(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := spools{most: 100}
	body := func(n int) *bytes.Reader { return bytes.NewReader(make([]byte, n)) }

	_, dropFirst, err := s.keep(body(60))
	if err != nil {
		t.Fatal(err)
	}
	_, dropSecond, err := s.keep(body(40))
	if err != nil {
		t.Fatalf("up to the limit: %v", err)
	}
	if _, _, err := s.keep(body(1)); flex.KindOf(err) != flex.Unavailable {
		t.Errorf("beyond it: %v", err)
	}
	dropSecond()
	_, dropThird, err := s.keep(body(40))
	if err != nil {
		t.Fatalf("in the place that was left: %v", err)
	}
	dropFirst()
	dropThird()
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 || s.used.Load() != 0 {
		t.Errorf("%d files and %d bytes are left", len(left), s.used.Load())
	}
}

// A long body leaves nothing behind in a process that is killed: its file has no name while it is read.
func TestSpool_NoName(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var s spools
	file, drop, err := s.keep(bytes.NewReader([]byte("readings")))
	if err != nil {
		t.Fatal(err)
	}
	defer drop()

	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("%v would be left", left)
	}

	kept := make([]byte, 8)
	if _, err := file.ReadAt(kept, 0); err != nil || string(kept) != "readings" {
		t.Errorf("%q, %v", kept, err)
	}
}
