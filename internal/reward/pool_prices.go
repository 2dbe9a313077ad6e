package reward

import (
	"context"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// addPrices gives a case the prices of its half-hours. A posted amount is not taken back
// leftOutText prices are missing. A flexd that took the organisation in may lack them: such a case
// waits, and is not final.
func (b *basis) addPrices(c *settle.Case, e *store.FlexEvent) {
	for n := e.First; n <= e.Last; n++ {
		price, read := b.prices[e.Day.Period(n)]
		if read {
			c.Prices = append(c.Prices, price.PricedPeriod)
		}
	}

	if b.waitsForPrices(e) {
		c.Final = false
	}
}

// priced reports whether the price of a half-hour of an event is known.
func (b *basis) priced(e *store.FlexEvent, n int) bool {
	price := b.prices[e.Day.Period(n)]
	_, known := settle.InstructedPrice(price.Price, price.Known, n, e.Instructed)

	return known
}

// waitsForPrices reports whether an event was posted, and prices of it are missing.
func (b *basis) waitsForPrices(e *store.FlexEvent) bool {
	if e.Posted == 0 || !b.knownAt.IsZero() {
		return false
	}

	for n := e.First; n <= e.Last; n++ {
		if !b.priced(e, n) {
			return true
		}
	}

	return false
}

// lacksPricesOf reports whether a half-hour counted in a result whose price is missing now.
func (b *basis) lacksPricesOf(r *settle.Result, e *store.FlexEvent) bool {
	for _, p := range r.Periods {
		if p.Known && !b.priced(e, p.Period) {
			return true
		}
	}

	return false
}

// stayFinal has events stay final that became so without the prices that are missing. What was
// posted does not rest on these, and a reading that comes or is corrected counts.
func (s *settling) stayFinal(ctx context.Context, tx *store.Tx) error {
	waiting := map[flex.FlexEventID]*claim{}
	var ids []flex.FlexEventID
	for _, c := range s.claims {
		e := &c.FlexEvent
		if e.Final != nil && s.basis.waitsForPrices(e) {
			waiting[e.ID] = c
			ids = append(ids, e.ID)
		}
	}

	settled, err := tx.PostedSettlements(ctx, ids)
	if err != nil {
		return err
	}

	final := map[flex.FlexEventID]*settle.Result{}
	for _, p := range settled { // an event's versions in their order
		if p.Result.Final {
			final[p.Event] = p.Result
		}
	}

	for id, r := range final {
		c := waiting[id]
		c.Case.Final = !s.basis.lacksPricesOf(r, &c.FlexEvent)
	}

	return nil
}
