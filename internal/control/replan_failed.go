package control

import (
	"errors"
	"fmt"

	"flexd/internal/flex"
	"flexd/internal/worker"
)

// notPlanned is an asset that could not be planned, and why.
type notPlanned struct {
	asset flex.AssetID
	err   error
}

// failedAssets collects the assets that a run could not plan, and their errors.
type failedAssets struct {
	assets map[flex.AssetID]bool
	errs   []error
}

func (v *failedAssets) add(failed []notPlanned) {
	for _, f := range failed {
		v.assets[f.asset] = true
		v.errs = append(v.errs, fmt.Errorf("asset %v: %w", f.asset, f.err))
	}
}

func (v *failedAssets) err() error { return errors.Join(v.errs...) }

// runCounts counts what a run of a job did: assets that were planned, and schedules that
// changed.
type runCounts struct{ planned, changed int }

// add adds the counts of a part of the run.
func (t *runCounts) add(part runCounts) {
	t.planned += part.planned
	t.changed += part.changed
}

func (t runCounts) report() worker.Report {
	r := worker.Report{Count: t.changed}
	if t.planned > 0 {
		r.Note = fmt.Sprintf(
			"%d assets planned, %d schedules changed",
			t.planned,
			t.changed,
		)
	}

	return r
}
