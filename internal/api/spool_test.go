package api

import (
	"bytes"
	"os"
	"testing"

	"flexd/internal/flex"
)

// All temporary files together hold so many bytes, those of one organisation half as many, and what one held is free when it
// is gone.
func TestSpool_Total(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := spools{most: 120}
	body := func(n int) *bytes.Reader { return bytes.NewReader(make([]byte, n)) }
	one, two, three := flex.OrgID{1}, flex.OrgID{2}, flex.OrgID{3}

	_, dropFirst, err := s.spool(one, body(60))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.spool(one, body(1)); flex.KindOf(err) != flex.Unavailable {
		t.Errorf("beyond what one organisation may hold: %v", err)
	}
	_, dropSecond, err := s.spool(two, body(60))
	if err != nil {
		t.Fatalf("up to the limit: %v", err)
	}

	if _, _, err := s.spool(three, body(1)); flex.KindOf(err) != flex.Unavailable {
		t.Errorf("beyond it: %v", err)
	}
	dropSecond()
	_, dropThird, err := s.spool(three, body(60))
	if err != nil {
		t.Fatalf("in the place that was left: %v", err)
	}

	dropFirst()
	dropThird()
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 || s.used != 0 || len(s.byOrg) > 0 {
		t.Errorf("%d files and %d bytes are left, of %d organisations", len(left), s.used, len(s.byOrg))
	}
}

// A long body leaves nothing behind in a process that is killed: its file has no name while it is read.
func TestSpool_NoName(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var s spools
	file, drop, err := s.spool(flex.OrgID{1}, bytes.NewReader([]byte("readings")))
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
