package api

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"

	"flexd/internal/flex"
)

// spoolMax is the size of a body that is held in memory; a larger one, which only readings
// have, waits in a temporary file while it is checked and then kept batch by batch.
const spoolMax = 1 << 20

// spoolTotal bounds the bytes of all bodies that wait in temporary files at once.
const spoolTotal = 1 << 30

// spoolShare is the part of them, a half, that one organisation's bodies may hold: few bytes that inflate to many, sent
// slowly, keep no other organisation's readings out.
const spoolShare = 2

// spools keeps long bodies in temporary files.
type spools struct {
	most int64 // bytes of all files; spoolTotal if 0

	mu   sync.Mutex
	used int64
	of   map[flex.OrgID]int64 // bytes of an organisation's files
}

// take counts bytes of an organisation, or reports that there is no room for them.
func (s *spools) take(org flex.OrgID, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	most := cmp.Or(s.most, spoolTotal)
	if s.used+n > most || s.of[org]+n > most/spoolShare {
		return false
	}

	if s.of == nil {
		s.of = map[flex.OrgID]int64{}
	}

	s.used += n
	s.of[org] += n

	return true
}

// free gives bytes of an organisation back.
func (s *spools) free(org flex.OrgID, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.used -= n
	s.of[org] -= n
	if s.of[org] == 0 {
		delete(s.of, org)
	}
}

// keep writes what comes in from an organisation to a temporary file, which drop closes and removes.
func (s *spools) keep(
	org flex.OrgID,
	in io.Reader,
) (file *os.File, drop func(), err error) {
	file, err = os.CreateTemp("", "flexd-body-")
	if err != nil {
		return nil, nil, fmt.Errorf("make room for a long body: %w", err)
	}

	// A process that is killed leaves no readings behind. Where an open file keeps its name, drop removes it.
	os.Remove(file.Name())

	w := &spoolWriter{file: file, spools: s, org: org}
	drop = func() {
		file.Close()
		os.Remove(file.Name())
		s.free(org, w.taken)
		w.taken = 0
	}

	if _, err := io.Copy(w, in); err != nil {
		drop()
		return nil, nil, err
	}

	return file, drop, nil
}

// spoolWriter takes from what all files may hold before it writes.
type spoolWriter struct {
	file   *os.File
	spools *spools
	org    flex.OrgID
	taken  int64
}

// Write writes on, unless all files together, or the organisation's, would hold too much.
func (w *spoolWriter) Write(p []byte) (int, error) {
	n := int64(len(p))
	if !w.spools.take(w.org, n) {
		return 0, flex.Fail(
			flex.Unavailable,
			"too many long bodies are being sent at once: try again soon",
		)
	}

	w.taken += n

	return w.file.Write(p)
}
