package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// The limits of what may be said of a roof.
const (
	SolarAhead = 14 * 24 * time.Hour // how far ahead a half-hour may end
	SolarBack  = 24 * time.Hour      // how far back it may begin
	SolarMost  = flex.WattHours(100_000)
)

// The origins of what a roof is expected to give.
const (
	SolarGiven   = "given"   // somebody said so
	SolarMetered = "metered" // guessed from what it gave before
	SolarNone    = "none"    // no roof is known of
)

// SolarHalfHour is what a roof is expected to give in a half-hour, and why that is expected.
type SolarHalfHour struct {
	flex.Period
	Energy flex.WattHours
	Origin string
}

// SolarOutlook is what a site's batteries are planned on, from the running half-hour to the
// end of tomorrow in London.
type SolarOutlook struct {
	Source    string    // of what was given; "" if nothing was
	GivenAt   time.Time // zero if nothing was
	HalfHours []SolarHalfHour
}

// SetSolar keeps what a source says that the roof of a site will give, in the place of what
// was said before and of the forecast that is made from readings. Nothing said of any
// half-hour takes it back. What cannot be is Malformed, another organisation's site NotFound.
func (s *Service) SetSolar(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	source string,
	said []flex.Solar,
) error {
	return s.DB.Write(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		forecast := store.Solar{
			Source:   source,
			Energies: map[flex.Period]flex.WattHours{},
		}

		for i, h := range said {
			_, twice := forecast.Energies[h.Period]
			switch start := h.Period.Start().Format(time.RFC3339); {
			case twice:
				return flex.Fail(
					flex.Malformed,
					"half_hours[%d] starts at %s, as one before it: say each half-hour once",
					i,
					start,
				)

			case h.Energy < 0 || h.Energy > SolarMost:
				return flex.Fail(
					flex.Malformed,
					"half_hours[%d] is %g kWh: a half-hour gives 0 to %g",
					i,
					h.Energy.KWh(),
					SolarMost.KWh(),
				)

			case h.Period.End().After(tx.Now().Add(SolarAhead)) || h.Period.Start().Before(tx.Now().Add(-SolarBack)):
				return flex.Fail(
					flex.Malformed,
					"half_hours[%d] starts at %s: say what lies between a day ago and %d days from now",
					i,
					start,
					SolarAhead/(24*time.Hour),
				)
			}

			forecast.Energies[h.Period] = h.Energy
		}

		return tx.PutSolar(ctx, site, forecast)
	})
}

// Solar returns what the roof of a site is expected to give, or flex.NotFound.
func (s *Service) Solar(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
) (SolarOutlook, error) {
	var o SolarOutlook
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		said, err := tx.Solar(ctx, site)
		if err != nil {
			return err
		}

		today := flex.DayAt(tx.Now())
		past, err := readAccount(ctx, tx, site, today)
		if err != nil {
			return fmt.Errorf("read what was metered: %w", err)
		}

		if len(said.Energies) > 0 {
			o.Source, o.GivenAt = said.Source, said.GivenAt
		}

		all := periodsTo(flex.PeriodAt(today.Start()), today.Add(2).Start())
		generated, origins := solar(said, past.roofAhead(tx.Now()), all)

		for i, p := range all {
			if p.End().After(tx.Now()) {
				o.HalfHours = append(
					o.HalfHours,
					SolarHalfHour{p, generated[i], origins[i]},
				)
			}
		}

		return nil
	})

	return o, err
}

// solar is what a roof is expected to give in periods: what was said, else the guess from
// what it gave.
func solar(
	said store.Solar,
	roof forecast.Series,
	periods []flex.Period,
) ([]flex.WattHours, []string) {
	generated, known := forecast.Solar(roof, periods)
	origins := make([]string, len(periods))

	for i, p := range periods {
		origins[i] = SolarNone
		if known {
			origins[i] = SolarMetered
		}

		if e, given := said.Energies[p]; given {
			generated[i], origins[i] = e, SolarGiven
		}
	}

	return generated, origins
}
