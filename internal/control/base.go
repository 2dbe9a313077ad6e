package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/forecast"
	"flexd/internal/store"
)

const (
	// BaseShare is the fraction of days on which the home drew no more than the power that is
	// reserved for it under its main fuse.
	BaseShare = 0.9
	// BaseDays is the least number of days of a kind on which a half-hour must be known.
	BaseDays = 3
	// BaseStep is the step of the reserved power. A finer one would cut schedules into many
	// steps.
	BaseStep flex.Watts = 500
)

// baseLoad is what a home itself usually draws, without its cars, batteries and heaters, by
// half-hour of the day, for working days and for weekends. It is a cautious value: on
// BaseShare of the days the home drew no more.
type baseLoad struct {
	known bool
	watts store.DayLoad
}

// kindOf returns the kind of a half-hour's day (0 for working days, 1 for weekends), and its
// index in the day by London time.
func kindOf(p flex.Period) (kind, place int) {
	at := p.Start().In(flex.London)
	if day := at.Weekday(); day == time.Saturday || day == time.Sunday {
		kind = 1
	}

	return kind, 2*at.Hour() + at.Minute()/30
}

// powerAt returns the power that is reserved in a half-hour.
func (b *baseLoad) powerAt(p flex.Period) flex.Watts {
	kind, place := kindOf(p)
	return b.watts[kind][place]
}

// max returns the most power that is reserved in any half-hour.
func (b *baseLoad) max() flex.Watts {
	var w flex.Watts
	for _, kind := range b.watts {
		for _, at := range kind {
			w = max(w, at)
		}
	}

	return w
}

// learnBase learns the base load from what a home drew. Estimated values are used for a
// half-hour that is known on too few days of a kind; the result is then at least the lowest
// value of any half-hour that is known well. If there are still too few values, working days
// and weekends are combined, and at last the highest value of the day is used. Nothing is
// learned if no half-hour is known on enough days.
func learnBase(
	drawn forecast.Series,
	estimated func(flex.Period) bool,
) baseLoad {
	var by, estimates loadSamples
	for p, e := range drawn {
		kind, place := kindOf(p)
		list := &by[kind][place]
		if estimated(p) {
			list = &estimates[kind][place]
		}

		*list = append(*list, max(0, e))
	}

	var b baseLoad
	least := minLoad(by)
	for kind := range by {
		for place := range by[kind] {
			own, isGuess := samplesOf(
				by,
				estimates,
				kind,
				place,
			)
			if len(own) < BaseDays {
				continue
			}

			b.known = true
			b.watts[kind][place] = max(1, reservedPower(own))
			if isGuess {
				b.watts[kind][place] = max(least, b.watts[kind][place])
			}
		}
	}

	most := b.max()
	for kind := range b.watts {
		for place, w := range b.watts[kind] {
			if w == 0 {
				b.watts[kind][place] = most
			}
		}
	}

	return b
}

// loadSamples has what a home drew in half-hours, by kind of day and half-hour of the day.
type loadSamples [2][50][]flex.WattHours

// samplesOf returns the values from which a half-hour of the day is learned, and whether some
// of them are estimates.
func samplesOf(
	by loadSamples,
	estimates loadSamples,
	kind int,
	place int,
) ([]flex.WattHours, bool) {
	own := by[kind][place]
	if len(own) >= BaseDays {
		return own, false
	}

	estimated := estimates[kind][place]
	own = slices.Concat(own, estimated)
	if len(own) < BaseDays {
		estimated = slices.Concat(estimated, estimates[1-kind][place])
		own = slices.Concat(own, by[1-kind][place], estimates[1-kind][place])
	}

	return own, len(estimated) > 0
}

// minLoad returns the lowest value of any half-hour that is known on enough days.
func minLoad(by loadSamples) flex.Watts {
	least := flex.Watts(0)
	for kind := range by {
		for _, own := range by[kind] {
			if len(own) < BaseDays {
				continue
			}
			if w := reservedPower(own); least == 0 || w < least {
				least = w
			}
		}
	}

	return least
}

// reservedPower returns the power that a fraction BaseShare of some half-hours do not exceed,
// rounded up to BaseStep.
func reservedPower(own []flex.WattHours) flex.Watts {
	slices.Sort(own)
	rank := int(math.Ceil(BaseShare*float64(len(own)))) - 1
	w := flex.Watts(2 * own[rank])
	return (w + BaseStep - 1) / BaseStep * BaseStep
}

// baseAt returns the base load of a site whose main fuse was set. It is learned when it is
// first needed on a day, and again when the site's assets change, when others of them send
// readings or are planned, or when its consent changes. Without consent to the use of the
// boundary meter, and before the first reading, nothing is known.
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

	basis, err := basisAt(
		ctx,
		tx,
		site,
		consent[site],
	)
	if err != nil || basis == "" {
		return baseLoad{}, err
	}

	today := flex.DayAt(tx.Now())
	stored, err := tx.BaseLoad(ctx, site)
	if err != nil {
		return baseLoad{}, err
	}

	var b baseLoad
	if stored.Day == today && stored.Basis == basis {
		b.watts = stored.Load
		b.known = b.max() > 0
		return b, nil
	}

	b, err = readBase(ctx, tx, site, today)
	if err != nil {
		return b, err
	}

	return b, tx.PutBaseLoad(ctx, site, &store.BaseLoad{
		Day:   today,
		Basis: basis,
		Load:  b.watts,
	})
}

// basisAt returns the present basis of a site's base load; empty before the first reading.
func basisAt(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	consent []flex.Span,
) (string, error) {
	assets, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return "", err
	}

	steady, err := tx.Steady(ctx, site)
	if err != nil || len(steady) == 0 {
		return "", err
	}

	steered, err := tx.Steered(ctx, site)

	return basisOf(assets, steady, steered, consent), err
}

// basisOf returns a short hash that changes with the site's assets, with those of them that
// send readings, with the batteries and heaters that are planned, and with the consent.
func basisOf(
	assets []flex.Asset,
	steady map[flex.AssetID]bool,
	steered map[flex.AssetID]bool,
	consent []flex.Span,
) string {
	h := sha256.New()
	for _, a := range assets {
		fmt.Fprintln(h, a.ID, a.Type, steady[a.ID])
		if steered[a.ID] {
			fmt.Fprintln(h, "planned")
		}
	}
	for _, s := range consent {
		fmt.Fprintln(h, s.From.UnixMicro(), s.To.UnixMicro())
	}

	return hex.EncodeToString(h.Sum(nil)[:8])
}

// readBase learns the base load from the days before: the energy at the boundary meter, less
// that of cars, batteries and heaters, plus solar generation.
func readBase(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	today flex.Day,
) (baseLoad, error) {
	a, err := readSiteAccount(
		ctx,
		tx,
		site,
		today,
	)
	if err != nil {
		return baseLoad{}, err
	}

	drawn := a.loadWithout(
		chargerDevice,
		batteryDevice,
		roofDevice,
		heaterDevice,
		plannedDevice,
	)

	return learnBase(drawn, a.isEstimated), nil
}
