package app

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"flexd/internal/cell"
	"flexd/internal/flex"
	"flexd/internal/store/storetest"
	"flexd/internal/worker"
)

// TestCellMoves_Stopped: a move between cells that lasts for too long is a background job that
// fails, of which operators are alerted.
func TestCellMoves_Stopped(t *testing.T) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
		h, err := Open(t.Context(), Settings{Database: url, Keys: storetest.Keys(t), Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()

		var watch *worker.Worker
		for _, w := range h.Jobs() {
			if w.Name == "cell moves" {
				watch = w
			}
		}
		if watch == nil {
			t.Fatal("nothing watches moves")
		}

		seed, org := storetest.At(t, h.DB, url), flex.OrgID{1}
		for lasts, fails := range map[time.Duration]bool{cell.Late - 5*time.Minute: false, cell.Late + 5*time.Minute: true} {
			seed.Exec(`DELETE FROM cell_move`)
			seed.Exec(
				`INSERT INTO cell_move (org_id, state, other, number, at) VALUES ($1, 'leaving', 'north', 1, $2)`,
				org.Bytes(), h.DB.Now().Add(-lasts).UnixMicro(),
			)
			if _, err := watch.Job(t.Context()); (err != nil) != fails {
				t.Errorf("a move that lasts for %s: %v", lasts, err)
			}
		}
	})
}
