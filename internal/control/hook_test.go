package control

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/store"
)

// Due weighs the market again for what was marked, as a run does that began before caps were set.
func (s *Service) Due(ctx context.Context, org flex.OrgID) error {
	return s.replanMarketDue(ctx, flex.Org{ID: org}, &runCounts{})
}

// StayAfter removes the marks of sessions whose schedule stays, and calls change between the look at them and that.
func (s *Service) StayAfter(ctx context.Context, org flex.OrgID, change func()) error {
	l, err := s.compareMarked(
		ctx,
		org,
		&failedAssets{assets: map[flex.AssetID]bool{}},
	)
	if err != nil {
		return err
	}
	change()

	return s.unmarkUnchanged(ctx, org, &l)
}

// LookAtOnce sets how many marked sessions are looked at in one transaction, so that a few cars are more than that.
func (s *Service) LookAtOnce(n int) { s.dueAtOnce = n }

// HomeLoad is what is kept free for a home itself on a working day, in kW by half-hour of the day.
func (s *Service) HomeLoad(ctx context.Context, org flex.OrgID, site flex.SiteID) ([]float64, error) {
	var kw []float64
	err := s.DB.Write(ctx, org, func(tx *store.Tx) error {
		b, err := baseAt(ctx, tx, site)
		for _, w := range b.watts[0] {
			kw = append(kw, w.KW())
		}

		return err
	})

	return kw, err
}
