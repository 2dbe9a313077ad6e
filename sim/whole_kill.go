package sim

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"flexd/internal/flex"
)

// leased is longer than a push stays leased to a process that is no more.
const leased = 2 * time.Minute

// kill is a death of flexd that is to come: in the midst of what it writes next.
type kill struct {
	share   float64 // of what is written, that is on disk when it dies
	forgets bool
	since   int64 // bytes of the journal before the instant of the kill: what a forgetful disk keeps
}

// dying has flexd die when something is due next.
func (w *whole) dying(h Happening) moment {
	return moment{
		at: h.From,
		do: func(context.Context) error {
			w.kill = &kill{
				share:   h.Share,
				forgets: h.Forgets,
				since:   w.since,
			}

			return nil
		},
		looks: true,
	}
}

// die does what is due, leaves on disk a part of what was written meanwhile, as a process does that is
// killed there, and opens flexd on what is left. On PostgreSQL, whose files are its server's, it dies before it has
// written any of it. Nothing reaches the endpoint meanwhile: a push that
// was taken would be one that the killed process had written down before.
func (w *whole) die(ctx context.Context) error {
	k := w.kill
	w.kill = nil
	if !strings.HasPrefix(w.settings.Database, onFile) {
		return w.reopen(ctx)
	}

	begun, err := w.journal()
	if err != nil {
		return err
	}

	down := w.down.Swap(true)
	err = w.app.RunUntilIdle(ctx)
	w.down.Store(down)
	if err != nil {
		return err
	}

	ended, err := w.journal()
	if err != nil {
		return err
	}

	cut := begun + int64(k.share*float64(max(0, ended-begun)))
	if k.forgets {
		cut = k.since
	}

	left, err := w.copyCut(cut)
	if err != nil {
		return err
	}

	was := w.file()
	w.settings.Database = onFile + left

	if err := w.reopen(ctx); err != nil {
		return err
	}

	return os.Remove(was)
}

// reopen opens flexd after its death, with nothing of what was due done. What it was sending stays leased to it, and
// is sent by the next one when the lease is over.
func (w *whole) reopen(ctx context.Context) error {
	later := w.time().Add(leased)
	w.now.Store(&later)

	return w.restart(ctx)
}

// file is the path of the database.
func (w *whole) file() string {
	return strings.TrimPrefix(w.settings.Database, onFile)
}

// journal returns how long the database's journal is, in bytes.
func (w *whole) journal() (int64, error) {
	info, err := os.Stat(w.file() + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}

	return info.Size(), nil
}

// copyCut copies the database, with so many bytes of its journal, to a file beside it and returns the
// copy's path.
func (w *whole) copyCut(bytes int64) (string, error) {
	made, err := os.CreateTemp(filepath.Dir(w.file()), "killed-*.db")
	if err != nil {
		return "", err
	}

	to := made.Name()
	if err := made.Close(); err != nil {
		return "", err
	}

	records, err := os.ReadFile(w.file())
	if err != nil {
		return "", err
	}

	if err := os.WriteFile(to, records, 0o600); err != nil {
		return "", err
	}

	journal, err := os.ReadFile(w.file() + "-wal")
	if err != nil {
		return "", err
	}

	if int64(len(journal)) < bytes {
		return "", flex.Fail(
			flex.Internal,
			"the journal has %d bytes, less than %d",
			len(journal),
			bytes,
		)
	}

	return to, os.WriteFile(to+"-wal", journal[:bytes], 0o600)
}
