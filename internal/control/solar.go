package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

// Limits of a solar forecast that a client may set.
const (
	SolarAhead = 14 * 24 * time.Hour // how far ahead a half-hour may end
	SolarBack  = 24 * time.Hour      // how far back it may begin
	SolarMost  = flex.WattHours(100_000)
)

// The origins of a solar forecast.
const (
	SolarGiven   = "given"   // a client set it
	SolarMetered = "metered" // estimated from past generation
	SolarNone    = "none"    // no solar panels are known
)

// SolarHalfHour is the expected solar generation of a half-hour, with its origin.
type SolarHalfHour struct {
	flex.Period
	Energy flex.WattHours
	Origin string
}

// SolarOutlook is the solar forecast that a site's batteries are planned with, from the
// running half-hour to the end of tomorrow in London.
type SolarOutlook struct {
	Source    string    // the source of a forecast that a client set; empty for none
	GivenAt   time.Time // when it was set; zero for none
	HalfHours []SolarHalfHour
}

// SetSolar stores a solar forecast for a site, which replaces an earlier one and the one that
// is made from readings. Without half-hours it removes the forecast. Half-hours that are
// impossible, repeated or out of range are Malformed; a site of another organisation is
// NotFound.
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

// Solar returns the solar forecast of a site. A site of another organisation is NotFound.
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
		past, err := readSiteAccount(ctx, tx, site, today)
		if err != nil {
			return fmt.Errorf("read what was metered: %w", err)
		}

		if len(said.Energies) > 0 {
			o.Source, o.GivenAt = said.Source, said.GivenAt
		}

		all := periodsTo(flex.PeriodAt(today.Start()), today.Add(2).Start())
		generated, origins := expectedSolar(said, past.roofAhead(tx.Now()), all)

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

// expectedSolar returns the expected solar generation of some periods, with the origins: as a
// client has set it, or else estimated from past generation.
func expectedSolar(
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
