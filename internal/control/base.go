package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/settle"
	"flexd/internal/store"
)

const (
	// BaseShare is the share of the days on which a home drew no more in a half-hour than is
	// kept free for it under its main fuse.
	BaseShare = 0.9
	// BaseDays is the least number of days of a kind that a half-hour must be known of.
	BaseDays = 3
	// BaseStep is what is kept free in: a finer one would cut schedules into many steps.
	BaseStep flex.Watts = 500
	// HeatRead is how long a heater must have been metered for what was drawn before then, with its heat, to be left out.
	HeatRead = 7 * 24 * time.Hour
)

// baseLoad is what a home itself usually draws, its cars, batteries and heaters apart, by half-hour of the day:
// on working days and on weekends. A cautious figure: BaseShare of the days were at or below it.
type baseLoad struct {
	known bool
	watts store.DayLoad
}

// kindOf is the kind of a half-hour's day, and its place in it by the clock of London.
func kindOf(p flex.Period) (kind, place int) {
	at := p.Start().In(flex.London)
	if day := at.Weekday(); day == time.Saturday || day == time.Sunday {
		kind = 1
	}

	return kind, 2*at.Hour() + at.Minute()/30
}

// at is what is kept free in a half-hour.
func (b *baseLoad) at(p flex.Period) flex.Watts {
	kind, place := kindOf(p)
	return b.watts[kind][place]
}

// most is the most that is kept free in any half-hour.
func (b *baseLoad) most() flex.Watts {
	var w flex.Watts
	for _, kind := range b.watts {
		for _, at := range kind {
			w = max(w, at)
		}
	}

	return w
}

// learnBase learns it from what a home drew. Where too little is known of a half-hour on a kind of
// day, both kinds are taken, and where that is too little as well, the most of the day. Of a home of
// which no half-hour is known well enough nothing is.
func learnBase(drawn forecast.Series) baseLoad {
	var by [2][50][]flex.WattHours
	for p, e := range drawn {
		kind, place := kindOf(p)
		by[kind][place] = append(by[kind][place], max(0, e))
	}

	var b baseLoad
	for kind := range by {
		for place, own := range by[kind] {
			if len(own) < BaseDays {
				own = slices.Concat(own, by[1-kind][place])
			}
			if len(own) >= BaseDays {
				b.known = true
				b.watts[kind][place] = max(1, cautious(own))
			}
		}
	}

	most := b.most()
	for kind := range b.watts {
		for place, w := range b.watts[kind] {
			if w == 0 {
				b.watts[kind][place] = most
			}
		}
	}

	return b
}

// cautious is the mean power that BaseShare of some half-hours do not pass, in whole steps.
func cautious(own []flex.WattHours) flex.Watts {
	slices.Sort(own)
	rank := int(math.Ceil(BaseShare*float64(len(own)))) - 1
	w := flex.Watts(2 * own[rank])
	return (w + BaseStep - 1) / BaseStep * BaseStep
}

// baseAt returns what the home at a site usually draws by itself, where its fuse was set. It is learned
// once a day, when it is first asked for, and again when the site's assets, those of them that send
// readings, or its consent change. Without consent to the use of the boundary meter, and before the first
// reading, nothing is known.
func baseAt(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
) (baseLoad, error) {
	consent, err := tx.ConsentSpans(
		ctx,
		[]flex.SiteID{site},
		time.Time{},
	)
	if err != nil || len(consent[site]) == 0 {
		return baseLoad{}, err
	}

	assets, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return baseLoad{}, err
	}

	steady, err := tx.Steady(ctx, site)
	if err != nil || len(steady) == 0 {
		return baseLoad{}, err
	}

	today := flex.DayAt(tx.Now())
	basis := basisOf(assets, steady, consent[site])
	kept, err := tx.BaseLoad(ctx, site)
	if err != nil {
		return baseLoad{}, err
	}

	var b baseLoad
	if kept.Day == today && kept.Basis == basis {
		b.watts = kept.Load
		b.known = b.most() > 0
		return b, nil
	}

	b, err = readBase(ctx, tx, site, assets, today)
	if err != nil {
		return b, err
	}

	return b, tx.PutBaseLoad(ctx, site, &store.BaseLoad{
		Day:   today,
		Basis: basis,
		Load:  b.watts,
	})
}

// basisOf is a short text that is another one for other assets, for others that send readings, and for
// another consent.
func basisOf(
	assets []flex.Asset,
	steady map[flex.AssetID]bool,
	consent []flex.Span,
) string {
	h := sha256.New()
	for _, a := range assets {
		fmt.Fprintln(h, a.ID, a.Type, steady[a.ID])
	}
	for _, s := range consent {
		fmt.Fprintln(h, s.From.UnixMicro(), s.To.UnixMicro())
	}

	return hex.EncodeToString(h.Sum(nil)[:8])
}

// readBase learns what the home usually draws by itself: what passed the boundary in the days before,
// less what batteries, cars and heaters took and with what the roof gave. A half-hour in which a car was plugged
// in and its charger read nothing is left out. The heat of a heater that reports no power stays in it.
func readBase(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	assets []flex.Asset,
	today flex.Day,
) (baseLoad, error) {
	drawn, _, err := metered(ctx, tx, site, today)
	if err != nil || len(drawn) == 0 {
		return baseLoad{}, err
	}

	for i := 0; i < len(assets) && err == nil; i++ {
		if assets[i].Type.Charges() {
			err = lessCar(ctx, tx, drawn, assets[i].ID, today)
		}
		if assets[i].Type.Heats() {
			err = subtractHeat(ctx, tx, drawn, assets[i].ID, today)
		}
	}

	return learnBase(drawn), err
}

// pastReadings is a query for readings of an asset in the days before one, as many as a forecast is made from.
func pastReadings(
	asset flex.AssetID,
	today flex.Day,
	labels ...flex.Label,
) store.ReadingQuery {
	q := store.ReadingQuery{
		Assets: []flex.AssetID{asset},
		Labels: labels,
	}

	for k := 1; k <= forecast.Days; k++ {
		q.Days = append(q.Days, today.Add(-k))
	}

	return q
}

// subtractHeat subtracts what a heat pump or a hot-water tank took from what was drawn. From its first reading on, a half-hour of
// which it reports nothing is left out; what was drawn before that is too, once it has been metered for HeatRead.
func subtractHeat(
	ctx context.Context,
	tx *store.Tx,
	drawn forecast.Series,
	heater flex.AssetID,
	today flex.Day,
) error {
	rs, err := tx.Readings(ctx, pastReadings(heater, today, flex.HeatPower))
	if err != nil {
		return fmt.Errorf("read what a heater took: %w", err)
	}

	took := energies(rs, flex.HeatPower)
	if len(took) == 0 {
		return nil
	}

	first := slices.MinFunc(slices.Collect(maps.Keys(took)), func(a, b flex.Period) int {
		return a.Start().Compare(b.Start())
	}).Start()
	longAgo := !first.After(today.Start().Add(-HeatRead))

	for p, e := range drawn {
		if t, known := took[p]; known {
			drawn[p] = e - t
		} else if longAgo || p.Start().After(first) {
			delete(drawn, p)
		}
	}

	return nil
}

// sessionsBack is the number of plug sessions of a charger that are looked back at.
const sessionsBack = 100

// lessCar takes off what was drawn what a charger took.
func lessCar(
	ctx context.Context,
	tx *store.Tx,
	drawn forecast.Series,
	charger flex.AssetID,
	today flex.Day,
) error {
	rs, err := tx.Readings(ctx, pastReadings(charger, today, settle.Labels(settle.Asset)...))
	if err != nil {
		return fmt.Errorf("read what a charger took: %w", err)
	}

	sessions, _, err := tx.Sessions(ctx, charger, sessionsBack, 0)
	if err != nil {
		return fmt.Errorf("read when a car was plugged in: %w", err)
	}

	took := seriesOf(settle.HalfHours(settle.Asset, rs))
	for p, e := range drawn {
		if t, known := took[p]; known {
			drawn[p] = e - t
		} else if pluggedInAt(sessions, p) {
			delete(drawn, p)
		}
	}

	return nil
}

// pluggedInAt reports whether a car was plugged in at any time of a half-hour.
func pluggedInAt(sessions []store.Session, p flex.Period) bool {
	return slices.ContainsFunc(sessions, func(s store.Session) bool {
		out := s.PluggedOutAt
		if out.IsZero() {
			out = p.End()
		}
		return s.PluggedInAt.Before(p.End()) && out.After(p.Start())
	})
}
