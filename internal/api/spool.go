package api

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"

	"flexd/internal/flex"
)

// spoolMax is the largest body in bytes that stays in memory. A larger one, which only readings
// have, is written to a temporary file, checked there, and then stored batch by batch.
const spoolMax = 1 << 20

// spoolTotal limits the bytes of all bodies in temporary files at once.
const spoolTotal = 1 << 30

// spoolShare divides spoolTotal: one organisation's bodies may use half of it. A small
// compressed body that inflates to many bytes and is sent slowly then blocks no other
// organisation's readings.
const spoolShare = 2

// spools has the long bodies that are in temporary files.
type spools struct {
	most int64 // bytes of all files; spoolTotal if 0

	mu    sync.Mutex
	used  int64
	byOrg map[flex.OrgID]int64 // bytes of each organisation's files
}

// reserve counts n bytes for an organisation and returns true, or returns false if they exceed
// a limit.
func (s *spools) reserve(org flex.OrgID, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	most := cmp.Or(s.most, spoolTotal)
	if s.used+n > most || s.byOrg[org]+n > most/spoolShare {
		return false
	}

	if s.byOrg == nil {
		s.byOrg = map[flex.OrgID]int64{}
	}

	s.used += n
	s.byOrg[org] += n

	return true
}

// release returns n reserved bytes of an organisation.
func (s *spools) release(org flex.OrgID, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.used -= n
	s.byOrg[org] -= n
	if s.byOrg[org] == 0 {
		delete(s.byOrg, org)
	}
}

// spool copies an organisation's body to a temporary file, which drop closes and removes.
func (s *spools) spool(
	org flex.OrgID,
	in io.Reader,
) (file *os.File, drop func(), err error) {
	file, err = os.CreateTemp("", "flexd-body-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a temporary file for a long body: %w", err)
	}

	// The name is removed at once, so that a killed process leaves no readings behind. Where
	// the system cannot remove the name of an open file, drop removes it.
	os.Remove(file.Name())

	w := &spoolWriter{file: file, spools: s, org: org}
	drop = func() {
		file.Close()
		os.Remove(file.Name())
		s.release(org, w.reserved)
		w.reserved = 0
	}

	if _, err := io.Copy(w, in); err != nil {
		drop()
		return nil, nil, err
	}

	return file, drop, nil
}

// spoolWriter reserves bytes before it writes them to the file.
type spoolWriter struct {
	file     *os.File
	spools   *spools
	org      flex.OrgID
	reserved int64
}

// Write fails with Unavailable if all files together, or the organisation's, would exceed
// their limit.
func (w *spoolWriter) Write(p []byte) (int, error) {
	n := int64(len(p))
	if !w.spools.reserve(w.org, n) {
		return 0, flex.Fail(
			flex.Unavailable,
			"too many long bodies are being sent at once: try again soon",
		)
	}

	w.reserved += n

	return w.file.Write(p)
}
