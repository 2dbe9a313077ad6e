package reading

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// Gap is a day on which half-hours of an asset have no reading.
type Gap struct {
	AssetID flex.AssetID
	Label   flex.Label
	Day     flex.Day
	// half-hours that are over, and began after the asset was registered
	Expected int
	Missing  int
	// of those missing, the ones with a reading that is held back
	HeldBack int
	First    time.Time // the first half-hour that is missing
	// Beyond are the missing half-hours whose readings are beyond Limits, the most that the
	// device or the connection can carry. Settlement leaves them out.
	Beyond []settle.Beyond
	Limits settle.Limits
}

// Limit returns the limit that a half-hour of the gap exceeds: that of import or, for exported
// energy, that of export.
func (g *Gap) Limit(b settle.Beyond) flex.WattHours {
	if b.Energy < 0 {
		return g.Limits.Export
	}
	return g.Limits.Import
}

// Days of a report.
const (
	GapDaysMax = 62 // that one report covers
	gapDays    = 7  // before the last one, if no first day is asked for
)

// Gaps reports which half-hours of a site have no readings, from one London day to another,
// both included; the zero days mean the week before the last day, and today. For an asset that
// charges it reports its own consumption, which settlement needs; for other assets and the
// site's boundary, what they sent in these days. Half-hours that follow only from several
// readings, such as registers, count under their label.
func (s *Service) Gaps(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	from, to flex.Day,
) ([]Gap, error) {
	var gaps []Gap
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		gaps = nil

		days, err := daysOf(from, to, flex.DayAt(tx.Now()))
		if err != nil {
			return err
		}
		if _, err := tx.Site(ctx, site); err != nil {
			return err
		}

		assets, err := tx.AssetsOf(ctx, site)
		if err != nil {
			return err
		}

		rating, err := ratingsOf(ctx, tx, site, assets)
		if err != nil {
			return err
		}

		for _, a := range assets {
			for _, m := range []settle.Metering{settle.Asset, settle.Boundary} {
				found, err := gapsOf(ctx, tx, a, m, rating(a, m), days)
				if err != nil {
					return err
				}
				gaps = append(gaps, found...)
			}
		}

		return nil
	})

	return gaps, err
}

// ratingsOf returns the limits of the meters of a site's assets, and of the connection. An
// asset without a history of its power always had the present one.
func ratingsOf(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	assets []flex.Asset,
) (func(flex.Asset, settle.Metering) settle.Rating, error) {
	connection, err := tx.SupplyOf(ctx, []flex.SiteID{site}, time.Time{})
	if err != nil {
		return nil, err
	}

	ids := make([]flex.AssetID, len(assets))
	for i, a := range assets {
		ids[i] = a.ID
	}

	powers, err := tx.PowersOf(ctx, ids, time.Time{})
	for _, a := range assets {
		if powers[a.ID] == nil && a.Power != nil {
			powers[a.ID] = flex.Always(*a.Power)
		}
	}

	return func(a flex.Asset, m settle.Metering) settle.Rating {
		r := settle.Rating{Supply: connection[site]}
		if m == settle.Asset {
			r.Power = powers[a.ID]
		}
		return r
	}, err
}

func daysOf(from, to, today flex.Day) ([]flex.Day, error) {
	if to == (flex.Day{}) {
		to = today
	}

	if from == (flex.Day{}) {
		from = to.Add(-gapDays)
	}

	var days []flex.Day
	for at := from; !to.Start().Before(at.Start()); at = at.Add(1) {
		days = append(days, at)
		if len(days) > GapDaysMax {
			return nil, flex.Fail(
				flex.Malformed,
				"from %s to %s are more than %d days",
				from,
				to,
				GapDaysMax,
			)
		}
	}

	if len(days) == 0 {
		return nil, flex.Fail(
			flex.Malformed,
			"the last day, %s, is before the first, %s",
			to,
			from,
		)
	}

	return days, nil
}

// gapsOf returns the days on which readings of one meter of an asset are missing.
func gapsOf(
	ctx context.Context,
	tx *store.Tx,
	a flex.Asset,
	m settle.Metering,
	rating settle.Rating,
	days []flex.Day,
) ([]Gap, error) {
	labels := settle.Labels(m)
	rs, err := tx.Readings(ctx, store.ReadingQuery{
		Assets: []flex.AssetID{a.ID},
		Labels: labels,
		Days:   days,
	})
	if err != nil {
		return nil, err
	}

	label := expectedLabel(a, m, rs)
	if label == "" {
		return nil, nil
	}

	held, err := tx.HeldTimes(ctx, a.ID, labels, spanOf(days))
	if err != nil {
		return nil, err
	}

	metered, beyond := settle.HalfHoursWithin(m, rs, rating)
	known := byDay(metered)

	var gaps []Gap
	for _, day := range days {
		g := Gap{
			AssetID: a.ID,
			Label:   label,
			Day:     day,
			Limits:  rating.At(day.Period(1)),
		}

		g.count(expectedPeriods(day, a.CreatedAt, tx.Now()), known[day], held, beyond)
		if g.Missing > 0 {
			gaps = append(gaps, g)
		}
	}

	return gaps, nil
}

// spanOf returns the time from the first of the days to the end of the last. The end is
// included, since a register read there completes the last half-hour.
func spanOf(days []flex.Day) flex.Span {
	after := days[len(days)-1].Add(1)
	return flex.Span{
		From: days[0].Start(),
		To:   after.Start().Add(time.Second),
	}
}

// byDay returns the metered days by their date.
func byDay(days []settle.MeteredDay) map[flex.Day]settle.MeteredDay {
	by := map[flex.Day]settle.MeteredDay{}
	for _, day := range days {
		by[day.Day] = day
	}

	return by
}

// expectedPeriods returns the settlement periods of a day that are over and began after the
// asset was registered.
func expectedPeriods(day flex.Day, registered, now time.Time) []int {
	var numbers []int
	for n := 1; n <= day.Periods(); n++ {
		p := day.Period(n)
		if !p.End().After(now) && !p.Start().Before(registered) {
			numbers = append(numbers, n)
		}
	}

	return numbers
}

// expectedLabel returns the label under which readings are expected: the first of the meter's
// labels that has any, or else that of a charger's own meter. It is empty if none are
// expected.
func expectedLabel(
	a flex.Asset,
	m settle.Metering,
	rs []flex.Reading,
) flex.Label {
	for _, label := range settle.Labels(m) {
		if slices.ContainsFunc(rs, func(r flex.Reading) bool {
			return r.Label == label
		}) {
			return label
		}
	}

	if m == settle.Asset && a.Type.Charges() {
		return flex.ChargerEnergy
	}

	return ""
}

// count counts the expected half-hours that are not metered.
func (g *Gap) count(
	expected []int,
	metered settle.MeteredDay,
	held []flex.Span,
	beyond []settle.Beyond,
) {
	for _, n := range expected {
		g.Expected++
		if _, ok := metered.At(n); !ok {
			g.addMissing(g.Day.Period(n), held, beyond)
		}
	}
}

// addMissing counts a half-hour without a reading, and the reason if it is known.
func (g *Gap) addMissing(p flex.Period, held []flex.Span, beyond []settle.Beyond) {
	if g.Missing == 0 {
		g.First = p.Start()
	}
	g.Missing++

	if overlapsHeld(p, held) {
		g.HeldBack++
	}

	at := slices.IndexFunc(beyond, func(b settle.Beyond) bool {
		return b.Period == p
	})
	if at >= 0 {
		g.Beyond = append(g.Beyond, beyond[at])
	}
}

// overlapsHeld reports whether any of the readings covers the half-hour. A register, which is
// read at an instant, covers the half-hours that end and begin there.
func overlapsHeld(p flex.Period, readings []flex.Span) bool {
	return slices.ContainsFunc(readings, func(r flex.Span) bool {
		if r.Empty() {
			return !r.To.Before(p.Start()) && !r.To.After(p.End())
		}
		return !r.Meet(p.Span()).Empty()
	})
}
