package reading

import (
	"context"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// holdBack stores a reading as held back, unless the same value was released before.
func (in *intake) holdBack(ctx context.Context, at int, s suspicion) error {
	wasReleased, err := in.tx.WasReleased(ctx, in.parsed[at])
	if err != nil || wasReleased {
		return err
	}

	if in.waiting == nil {
		n, err := in.tx.CountHeld(ctx)
		if err != nil {
			return err
		}
		in.waiting = &n
	}

	if *in.waiting+len(in.held) >= HeldMax {
		in.verdicts[at] = refuse(
			"%s. It is not kept either, as %d readings wait to be released or discarded",
			s.detail,
			HeldMax,
		)

		return nil
	}

	in.verdicts[at] = s.verdict()
	in.held = append(in.held, flex.HeldReading{
		Reading: in.parsed[at],
		Reason:  s.reason,
		Detail:  cut(s.detail, exampleMax),
	})

	return nil
}

// checkPlausible holds back readings that are beyond the limits of their device or connection.
func (in *intake) checkPlausible(ctx context.Context) error {
	for _, i := range in.candidates {
		rating := in.ratings[in.parsed[i].AssetID]
		s := suspect(in.parsed[i], rating)
		if s.reason == "" {
			continue
		}

		if err := in.holdBack(ctx, i, s); err != nil {
			return err
		}

		if !in.verdicts[i].Accepted() {
			in.substitute(i, func(r flex.Reading) bool {
				return suspect(r, rating).reason == ""
			})
		}
	}

	return nil
}

// Held returns a page of an organisation's readings that are held back, and the total number.
func (s *Service) Held(
	ctx context.Context,
	q HeldQuery,
) ([]flex.HeldReading, int, error) {
	var (
		page  []flex.HeldReading
		total int
	)

	err := s.DB.Read(ctx, q.Org, func(tx *store.Tx) error {
		var err error
		page, total, err = tx.HeldReadings(ctx, q.filter())
		return err
	})

	return page, total, err
}

// Discard decides that a reading that is held back is never used.
func (s *Service) Discard(
	ctx context.Context,
	org flex.OrgID,
	id flex.HeldID,
) (flex.HeldReading, error) {
	return s.decide(ctx, org, id, flex.HeldDiscarded, nil)
}

// Release decides that a reading that is held back is used, as a correction if there is
// another for its time. For a register it may say that the meter was replaced or reset; for
// one that is lower than before that is implied. No difference is taken across such an
// instant.
func (s *Service) Release(
	ctx context.Context,
	org flex.OrgID,
	id flex.HeldID,
	meterReplaced bool,
) (flex.HeldReading, error) {
	decision := flex.HeldReleased
	if meterReplaced {
		decision = flex.HeldMeterReplaced
	}

	return s.decide(
		ctx,
		org,
		id,
		decision,
		func(tx *store.Tx, h flex.HeldReading) error {
			if meterReplaced && !h.Label.Register() {
				return flex.Fail(
					flex.Malformed,
					"%s is no register: only a register begins anew with a new meter",
					h.Label,
				)
			}

			return release(ctx, tx, h.Reading, meterReplaced)
		},
	)
}

func (s *Service) decide(
	ctx context.Context,
	org flex.OrgID,
	id flex.HeldID,
	decision string,
	do func(*store.Tx, flex.HeldReading) error,
) (flex.HeldReading, error) {
	var h flex.HeldReading
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		wasWaiting, err := tx.DecideHeld(ctx, id, decision)
		if err != nil {
			return err
		}

		// Read within the transaction: another process may have decided at the same time.
		h, err = tx.HeldReading(ctx, id)
		if err != nil {
			return err
		}

		if !wasWaiting {
			return flex.Fail(
				flex.Conflict,
				"the reading was decided on already: %s",
				h.Decision,
			)
		}

		if do != nil {
			if err := do(tx, h); err != nil {
				return err
			}
		}

		h, err = tx.HeldReading(ctx, id)
		tx.SetMadeRecord(h)

		return err
	})

	return h, err
}

// release stores a reading that was held back, and records where its register restarts.
func release(
	ctx context.Context,
	tx *store.Tx,
	r flex.Reading,
	meterReplaced bool,
) error {
	own, err := tx.OwnAssets(ctx, []flex.AssetID{r.AssetID})
	if err != nil {
		return err
	}
	if _, isOwn := own[r.AssetID]; !isOwn {
		return flex.Fail(flex.NotFound, flex.AssetMissing)
	}

	follow := []flex.Reading{}
	if r.Label.Register() {
		follow, err = releaseRegister(ctx, tx, r, own[r.AssetID], meterReplaced)
	}
	if err != nil {
		return err
	}

	follow = append(follow, r)
	if err := tx.PutReadings(ctx, follow); err != nil {
		return err
	}

	// Plans depend on a reading that is released as on a new one.
	in := intake{tx: tx}

	return in.notify(ctx, follow)
}

// releaseRegister records where a register restarts with a reading that is released, and
// returns the readings that are released with it.
func releaseRegister(
	ctx context.Context,
	tx *store.Tx,
	r flex.Reading,
	rating store.Rating,
	meterReplaced bool,
) ([]flex.Reading, error) {
	k := store.Register{AssetID: r.AssetID, Label: r.Label}
	before, after, err := tx.MarksAround(
		ctx,
		k,
		r.To,
		int(MaxAge/(24*time.Hour))+2,
	)
	if err != nil {
		return nil, err
	}

	if meterReplaced || before != nil && r.Value < before.Value {
		if err := tx.AddReset(ctx, k, r.To); err != nil {
			return nil, err
		}
	}

	if after != nil && after.Value < r.Value {
		if err := tx.AddReset(ctx, k, after.At); err != nil {
			return nil, err
		}
	}

	return releaseFollowing(ctx, tx, r, after, rating)
}

// releaseFollowing releases, and returns, the waiting readings that follow a register's
// reading consistently.
func releaseFollowing(
	ctx context.Context,
	tx *store.Tx,
	r flex.Reading,
	after *store.Mark,
	rating store.Rating,
) ([]flex.Reading, error) {
	k := store.Register{AssetID: r.AssetID, Label: r.Label}
	resets, err := tx.Resets(ctx, []flex.AssetID{r.AssetID})
	if err != nil {
		return nil, err
	}

	waiting, err := tx.WaitingAfter(ctx, k, r.To)
	if err != nil {
		return nil, err
	}

	var follow []flex.Reading
	for _, h := range releasableAfter(
		waiting,
		Mark{r.To, r.Value},
		after,
		rating,
		resets[k],
	) {
		_, err := tx.DecideHeld(ctx, h.ID, flex.HeldReleased)
		if err != nil {
			return nil, err
		}

		follow = append(follow, h.Reading)
	}

	return follow, nil
}

// releasableAfter returns the waiting readings after a register's mark that would not have been
// held back if the mark had been there, up to the next mark or reset. After a new meter these
// are all readings until an operator decided. A register has one value at an instant: of two
// readings that end then, and began at different times, the first consistent one is returned,
// and the other continues to wait.
func releasableAfter(
	waiting []flex.HeldReading,
	last Mark,
	until *store.Mark,
	rating store.Rating,
	resets []time.Time,
) []flex.HeldReading {
	var follow []flex.HeldReading
	for _, h := range waiting {
		before, _ := sameMeter(h.To, &last, nil, resets)
		if before == nil || comesAfter(h, until) {
			break
		}

		if !h.To.After(last.At) {
			continue
		}

		tooMuch := until != nil && h.Value > until.Value
		if tooMuch || h.Value < last.Value {
			continue
		}

		if suspectRise(h.Reading, rating, last).reason == "" {
			follow, last = append(follow, h), Mark{h.To, h.Value}
		}
	}

	return follow
}

// comesAfter reports whether a reading is no earlier than a mark, if there is one.
func comesAfter(h flex.HeldReading, m *store.Mark) bool {
	return m != nil && !h.To.Before(m.At)
}
