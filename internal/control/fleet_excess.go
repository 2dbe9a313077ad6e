package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/engine/headroom"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// noteExcesses stores which limits of groups the plan exceeds. That happens because loads that
// do not yield to a limit still count under it.
func (f *fleet) noteExcesses(ctx context.Context, tx *store.Tx) error {
	limits, err := tx.CapExcesses(ctx, f.now.Add(headroom.Hours*time.Hour))
	if err != nil {
		return fmt.Errorf("read limits: %w", err)
	}

	for i := range limits {
		l := &limits[i]
		before, most := l.Over, l.Most
		l.Over, l.Most = flex.Span{}, 0
		if at, ok := f.orderedCaps.place[l.Group]; ok { // the group may have been removed
			l.Over, l.Most = f.Excess(at, l.Span, l.Power)
		}

		joinExcess(l, before, most, tx.Now())
		same := l.Over.From.Equal(before.From) && l.Over.To.Equal(before.To)
		if same && l.Most == most {
			continue
		}

		if err := tx.SetCapExcess(ctx, l); err != nil {
			return fmt.Errorf("store that a limit is exceeded: %w", err)
		}
	}

	return nil
}

// joinExcess extends the time in which a limit is exceeded by the earlier time that was
// stored, as far as that had begun: a new plan cannot undo it.
func joinExcess(
	l *store.CapExcess,
	before flex.Span,
	most flex.Watts,
	now time.Time,
) {
	if most == 0 || !before.From.Before(now) {
		return
	}

	if l.Most == 0 {
		l.Over.To = flex.Earlier(before.To, now)
	}

	l.Over.From = before.From
	l.Most = max(l.Most, most)
}
