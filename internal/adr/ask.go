package adr

import (
	"cmp"
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// dueUpstreams claims the servers that are due.
func (s *Service) dueUpstreams(ctx context.Context) ([]store.ADRUpstream, error) {
	var busy []flex.ADRObjectID
	s.polling.Range(func(program, _ any) bool {
		busy = append(busy, program.(flex.ADRObjectID))
		return true
	})

	var due []store.ADRUpstream
	err := s.DB.WriteAll(ctx, func(all *store.All) error {
		var err error
		due, err = all.TakeADRUpstreams(ctx, busy...)
		return err
	})

	return due, err
}

// askAndNote polls a server and stores the result. An error is flexd's own. A panic becomes
// one, because this runs in a goroutine.
func (s *Service) askAndNote(
	ctx context.Context,
	u *store.ADRUpstream,
) (err error) {
	defer flex.Recover(&err)
	defer s.polling.Delete(u.Program)

	heard := u.HeardAt
	u.Error = ""
	askErr := s.askInTime(ctx, u)
	if askErr != nil && flex.KindOf(askErr) != flex.Internal {
		u.Error, askErr = askErr.Error(), nil
	}
	if askErr != nil && u.HeardAt.Equal(heard) {
		return askErr
	}

	// It answered, whatever flexd failed at afterwards: else it would be silent, and
	// subscribed to each time.
	noteErr := s.DB.WriteAll(ctx, func(all *store.All) error {
		return all.ADRUpstreamAsked(ctx, u)
	})

	return cmp.Or(askErr, noteErr)
}

// askInTime is askUpstream within the server's time: a result after the server's next turn
// would not be stored. Too little time is Unavailable.
func (s *Service) askInTime(ctx context.Context, u *store.ADRUpstream) error {
	most := min(upstreamTime, u.Poll)
	timeoutCtx, cancel := context.WithTimeout(ctx, most)
	defer cancel()

	err := s.pollUpstream(timeoutCtx, u)
	late := timeoutCtx.Err() != nil && ctx.Err() == nil
	if err != nil && late && flex.KindOf(err) == flex.Internal {
		return flex.Fail(
			flex.Unavailable,
			"it took longer than %s to read its events and to report to it",
			flex.Lasting(most),
		)
	}

	return err
}
