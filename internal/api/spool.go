package api

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"flexd/internal/flex"
)

// spoolMax is the size of a body that is held in memory; a larger one, which only readings
// have, waits in a temporary file while it is checked and then kept batch by batch.
const spoolMax = 1 << 20

// spoolTotal bounds the bytes of all bodies that wait in temporary files at once.
const spoolTotal = 1 << 30

// spools keeps long bodies in temporary files.
type spools struct {
	most int64 // bytes of all files; spoolTotal if 0
	used atomic.Int64
}

// keep writes what comes in to a temporary file, which drop closes and removes.
func (s *spools) keep(in io.Reader) (file *os.File, drop func(), err error) {
	file, err = os.CreateTemp("", "flexd-body-")
	if err != nil {
		return nil, nil, fmt.Errorf("make room for a long body: %w", err)
	}

	// A process that is killed leaves no readings behind. Where an open file keeps its name, drop removes it.
	os.Remove(file.Name())

	w := &spoolWriter{file: file, spools: s}
	drop = func() {
		file.Close()
		os.Remove(file.Name())
		s.used.Add(-w.taken)
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
	taken  int64
}

// Write writes on, unless all files together would hold too much.
func (w *spoolWriter) Write(p []byte) (int, error) {
	most := w.spools.most
	if most == 0 {
		most = spoolTotal
	}

	n := int64(len(p))
	if w.spools.used.Add(n) > most {
		w.spools.used.Add(-n)
		return 0, flex.Fail(
			flex.Unavailable,
			"too many long bodies are being sent at once: try again soon",
		)
	}

	w.taken += n

	return w.file.Write(p)
}
