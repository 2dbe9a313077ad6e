package control

import (
	"context"
	"fmt"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// OutturnDays is how many days back a forecast is checked against what came.
const OutturnDays = 60

// OutturnHalfHour is what was expected of a home in a half-hour, and what was metered.
type OutturnHalfHour struct {
	flex.Period
	Load, Roof flex.WattHours // expected
	DrewKnown  bool
	Drew       flex.WattHours
	GaveKnown  bool
	Gave       flex.WattHours
	RoofFrom   string // SolarGiven, SolarMetered or SolarNone
}

// Outturn holds the forecast of a home's load and roof, as its battery was planned on it at
// the start of a London day, against what was metered since. Today is taken for a zero day.
// A day that is too far back, or after tomorrow, is Malformed, another organisation's site
// NotFound.
func (s *Service) Outturn(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	day flex.Day,
) (flex.Day, []OutturnHalfHour, error) {
	var hs []OutturnHalfHour
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		today := flex.DayAt(tx.Now())
		if day == (flex.Day{}) {
			day = today
		}

		if day.Start().Before(today.Add(-OutturnDays).Start()) ||
			day.Start().After(today.Add(1).Start()) {
			return flex.Fail(
				flex.Malformed,
				"day %s: ask for a day from %s to tomorrow, %s",
				day,
				today.Add(-OutturnDays),
				today.Add(1),
			)
		}

		past, err := readSiteAccount(ctx, tx, site, day.Add(1))
		if err != nil {
			return fmt.Errorf("read what was metered: %w", err)
		}

		said, err := tx.Solar(ctx, site)
		if err != nil {
			return err
		}

		hs = outturn(past, said, day, tx.Now())
		return nil
	})

	return day, hs, err
}

// outturn forecasts a day from what was metered before it.
func outturn(
	past *siteAccount,
	said store.Solar,
	day flex.Day,
	now time.Time,
) []OutturnHalfHour {
	periods := periodsTo(flex.PeriodAt(day.Start()), day.Add(1).Start())
	load, roof := past.load(), past.roof()
	draws, _ := forecast.Load(load, periods, settle.Working)
	generated, origins := expectedSolar(said, past.roofAhead(day.Start()), periods)
	hs := make([]OutturnHalfHour, len(periods))

	for i, p := range periods {
		hs[i] = OutturnHalfHour{
			Period:   p,
			Load:     draws[i],
			Roof:     generated[i],
			RoofFrom: origins[i],
		}

		if !p.End().After(now) {
			hs[i].Drew, hs[i].DrewKnown = load.At(p)
			hs[i].Gave, hs[i].GaveKnown = roof.At(p)
		}
	}

	return hs
}
