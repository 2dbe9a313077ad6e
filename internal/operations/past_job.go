package operations

import (
	"context"
	"slices"
	"time"

	"flexd/internal/flex"
	"flexd/internal/pricing"
	"flexd/internal/store"
	"flexd/internal/worker"
)

// countAgain has the times after a half-hour's end at which it is counted: at once, and again
// for late readings and settlement.
var countAgain = []time.Duration{
	0,
	time.Hour,
	6 * time.Hour,
	26 * time.Hour,
	8 * 24 * time.Hour,
}

// Limits of the fleet's past.
const (
	// how far back uncounted half-hours are searched for
	countBack = 9 * 24 * time.Hour
	// PastKept is how long half-hours are kept.
	PastKept = 62 * 24 * time.Hour
	// assets whose readings are in memory at once
	countPart = 500
)

// CountPast counts what the fleets of organisations did in half-hours that are over. Two
// processes that count at the same time write the same.
func (s *Service) CountPast(ctx context.Context) (worker.Report, error) {
	return worker.EachOrg(ctx, s.DB.OrgsBy((*store.All).OrgIDs), func(ctx context.Context, org flex.OrgID) (worker.Report, error) {
		n, more, err := s.countNext(ctx, org)
		return worker.Report{Count: n, More: more}, err
	})
}

// countNext counts the first consecutive half-hours of an organisation that are due. It
// returns their number, and whether more are due.
func (s *Service) countNext(
	ctx context.Context,
	org flex.OrgID,
) (n int, more bool, err error) {
	var due []flex.Period
	var fleetCap *flex.Watts
	var now time.Time

	err = s.DB.Read(ctx, org, func(tx *store.Tx) error {
		now = tx.Now()
		due, err = dueToCount(ctx, tx)
		if err != nil || len(due) == 0 {
			return err
		}

		caps, _, err := tx.Caps(ctx)
		fleetCap = caps.Fleet.Power
		return err
	})
	if err != nil || len(due) == 0 {
		return 0, false, err
	}

	n = consecutive(due)
	span := flex.Span{From: due[0].Start(), To: due[n-1].End()}
	f := newFleetCounter(span, fleetCap)
	if err := s.gatherPast(ctx, org, f); err != nil {
		return 0, false, err
	}

	return n, n < len(due), s.DB.Write(ctx, org, func(tx *store.Tx) error {
		err := tx.DropFleetHalfHours(ctx, now.Add(-PastKept))
		if err != nil {
			return err
		}

		return tx.PutFleetHalfHours(ctx, span, f.halfHours())
	})
}

// consecutive returns how many of the half-hours follow each other on one London day.
func consecutive(due []flex.Period) int {
	day, _ := due[0].SettlementPeriod()
	var n int
	for n = 1; n < len(due); n++ {
		on, _ := due[n].SettlementPeriod()
		if due[n].Sub(due[n-1]) != 1 || on != day {
			break
		}
	}

	return n
}

// dueToCount lists the half-hours that are to be counted, in their order.
func dueToCount(ctx context.Context, tx *store.Tx) ([]flex.Period, error) {
	now := tx.Now()
	back := flex.Span{From: now.Add(-countBack), To: now}
	counted, err := tx.FleetCounted(ctx, back)
	if err != nil {
		return nil, err
	}

	var first time.Time
	if len(counted) > 0 {
		first = counted[0].At
	} else {
		first, err = tx.FirstAsset(ctx)
		if err != nil || first.IsZero() {
			return nil, err
		}
	}

	at := map[flex.Period]time.Time{}
	for _, h := range counted {
		at[flex.PeriodAt(h.At)] = h.CountedAt
	}

	return dueAmong(slices.MaxFunc([]time.Time{first, back.From}, time.Time.Compare), now, at), nil
}

// dueAmong lists the half-hours from an instant on that are over and were not counted since
// the latest of their times in countAgain.
func dueAmong(
	from, now time.Time,
	counted map[flex.Period]time.Time,
) []flex.Period {
	var due []flex.Period
	for p := flex.PeriodAt(from); !p.End().After(now); p = p.Add(1) {
		at, known := counted[p]
		var last time.Time
		for _, after := range countAgain {
			if m := p.End().Add(after); !m.After(now) {
				last = m
			}
		}

		if !known || at.Before(last) {
			due = append(due, p)
		}
	}

	return due
}

// gatherPast reads what the counter adds up: assets, prices, plans, dispatches, earnings, heat
// and readings.
func (s *Service) gatherPast(ctx context.Context, org flex.OrgID, f *fleetCounter) error {
	if err := s.gatherAssets(ctx, org, f); err != nil {
		return err
	}

	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		f.reset() // a read may be run again
		return f.readPlans(ctx, tx)
	})
	if err != nil {
		return err
	}

	assets := [...][]flex.AssetID{
		ofChargers:  f.chargers,
		ofBatteries: f.batteries,
		ofHeaters:   f.heaters,
	}

	for of, ids := range assets {
		if err := s.gatherReadings(ctx, org, f, ids, metersOf(of)); err != nil {
			return err
		}
	}

	return nil
}

// readPlans reads prices, plans, dispatches, earnings, and what tanks and heat pumps were to draw.
func (f *fleetCounter) readPlans(ctx context.Context, tx *store.Tx) error {
	if err := f.readPrices(ctx, tx); err != nil {
		return err
	}

	if err := tx.EachSessionPlan(ctx, f.span, f.addPlan); err != nil {
		return err
	}
	f.endSession()

	orders, err := tx.BatteryOrders(ctx, f.span)
	if err != nil {
		return err
	}
	for i := range orders {
		f.addDispatch(&orders[i])
	}

	earnings, err := tx.Earnings(ctx, f.span)
	if err != nil {
		return err
	}
	for i := range earnings {
		f.addEarning(&earnings[i])
	}

	day := flex.DayAt(f.span.From).Span() // the span is within it

	return tx.EachHeaterHalfHour(ctx, flex.Scope{}, day, f.addHeatPlan)
}

// pricedAfter is how long after its plug-in a session's energy is priced.
const pricedAfter = 72 * time.Hour

// readPrices reads the prices that plans were made on, as they are known now.
func (f *fleetCounter) readPrices(ctx context.Context, tx *store.Tx) error {
	found, err := tx.Quotes(ctx, pricing.Planning, flex.Span{
		From: f.span.From,
		To:   f.span.To.Add(pricedAfter),
	})

	f.prices = map[flex.Period]flex.Price{}
	for _, q := range found {
		if q.Known {
			f.prices[q.Period] = q.Price
		}
	}

	return err
}

// gatherAssets reads which groups the assets are in.
func (s *Service) gatherAssets(
	ctx context.Context,
	org flex.OrgID,
	f *fleetCounter,
) error {
	var after flex.AssetID
	for {
		var part []store.GroupedAsset
		err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
			var err error
			part, err = tx.GroupedAssets(ctx, after, 10*countPart)
			return err
		})
		if err != nil || len(part) == 0 {
			return err
		}

		for i := range part {
			f.addAsset(&part[i])
		}
		after = part[len(part)-1].ID
	}
}

// gatherReadings reads the readings of assets, countPart assets at a time.
func (s *Service) gatherReadings(
	ctx context.Context,
	org flex.OrgID,
	f *fleetCounter,
	assets []flex.AssetID,
	of metersOf,
) error {
	for ids := range slices.Chunk(assets, countPart) {
		var rs []flex.Reading
		err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
			var err error
			rs, err = tx.Readings(ctx, store.ReadingQuery{
				Assets: ids,
				Labels: of.labels(),
				Days:   []flex.Day{flex.DayAt(f.span.From)},
				Within: f.span,
			})
			return err
		})
		if err != nil {
			return err
		}

		f.addReadings(rs, of)
	}

	return nil
}
