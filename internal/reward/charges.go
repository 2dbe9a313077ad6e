package reward

import (
	"context"
	"slices"

	"flexd/internal/engine/charge"
	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// ChargesPage is how many sessions one page of a site's charges has.
const ChargesPage = 20

// Charges is a page of a site's plug sessions that ended, newest first, with the months of
// their statements.
type Charges struct {
	Sessions []Charge // of the page
	Total    int      // sessions on all pages
	Months   []MonthOfCharges
}

// Charge is a plug session that ended, with its energy, its cost and what it earned.
type Charge struct {
	flex.Span
	Asset flex.Asset
	// counted by its meter in the half-hours that were read
	Energy flex.WattHours
	Whole  bool       // every half-hour was read
	Earned flex.Pence // for its energy and for the flexibility in it, so far

	// Cost is of the energy at the settlement prices; AtOnce is of the same energy if it had
	// been charged at full power from the plug-in on. They are comparable where every price
	// and reading is known.
	Cost   flex.MicroPounds
	AtOnce flex.MicroPounds
	Priced bool
}

// MonthOfCharges has the sums of the statement of a London month.
type MonthOfCharges struct {
	ledger.Month
	Totals
}

// Charges returns a page, from 0, of what a site's cars charged, and its months.
func (s *Service) Charges(
	ctx context.Context,
	org flex.OrgID,
	site flex.SiteID,
	page int,
) (Charges, error) {
	var c Charges
	err := s.DB.Read(ctx, org, func(tx *store.Tx) error {
		c = Charges{}

		all, err := tx.SiteTransactions(
			ctx,
			site,
			flex.DayAt(tx.Now()).Add(1).Start(),
		)
		if err != nil {
			return err
		}

		c.Months = monthsOf(all)
		return c.addSessions(ctx, tx, site, page, all)
	})

	return c, err
}

// monthsOf adds transactions up by month, as the statements of the months do, newest first.
func monthsOf(all []ledger.Booked) []MonthOfCharges {
	var months []MonthOfCharges
	for _, t := range slices.Backward(all) {
		m := ledger.MonthOf(flex.DayAt(t.At))
		if n := len(months); n == 0 || months[n-1].Month != m {
			months = append(months, MonthOfCharges{Month: m})
		}

		months[len(months)-1].add(t)
	}

	return months
}

// addSessions reads the page's sessions.
func (c *Charges) addSessions(
	ctx context.Context,
	tx *store.Tx,
	site flex.SiteID,
	page int,
	all []ledger.Booked,
) error {
	sessions, total, err := tx.SiteSessions(
		ctx,
		site,
		ChargesPage,
		page*ChargesPage,
	)
	if err != nil {
		return err
	}

	c.Total = total
	assets, err := tx.AssetsOf(ctx, site)
	if err != nil {
		return err
	}

	for _, s := range sessions {
		i := slices.IndexFunc(assets, func(a flex.Asset) bool {
			return a.ID == s.AssetID
		})
		one := Charge{
			Span:  flex.Span{From: s.PluggedInAt, To: s.PluggedOutAt},
			Asset: assets[i],
		}

		one.Earned, err = sessionEarned(ctx, tx, s, all)
		if err != nil {
			return err
		}
		if err := one.meter(ctx, tx, s.ID); err != nil {
			return err
		}

		c.Sessions = append(c.Sessions, one)
	}

	return nil
}

// sessionEarned adds up what a session and the flex events in it were credited.
func sessionEarned(
	ctx context.Context,
	tx *store.Tx,
	session store.Session,
	all []ledger.Booked,
) (flex.Pence, error) {
	events, err := tx.EventsOfSession(ctx, session)
	var sum flex.Pence
	for _, t := range all {
		own := t.Cause.Session == session.ID
		if own || slices.Contains(events, t.Cause.FlexEvent) {
			sum += t.Amount
		}
	}

	return sum, err
}

// meter reads what a session charged, in the same way as its settlement does, and what that
// cost.
func (c *Charge) meter(
	ctx context.Context,
	tx *store.Tx,
	session flex.SessionID,
) error {
	r, err := tx.SessionSettlement(ctx, session)
	if flex.KindOf(err) == flex.NotFound {
		return nil
	}
	if err != nil {
		return err
	}

	half, days, err := sessionReadings(ctx, tx, r, tx.Now())
	if err != nil || len(half) == 0 {
		return err
	}

	prices, err := tx.SettlementPrices(
		ctx,
		flex.Span{
			From: half[0].Start(),
			To:   half[len(half)-1].End(),
		},
		tx.Now(),
	)
	if err != nil {
		return err
	}

	c.count(half, days, prices, r.Power)

	return nil
}

// count adds up the half-hours of a session, and what they cost.
func (c *Charge) count(
	half []flex.Period,
	days []settle.MeteredDay,
	prices []flex.PricedPeriod,
	power flex.Watts,
) {
	c.Whole = true
	var periods []charge.Period

	for _, p := range half {
		energy, read := energyIn(days, p)
		c.Whole = c.Whole && read
		c.Energy += energy
		part := charge.Period{Span: p.Span().Meet(c.Span), Energy: energy}
		at := slices.IndexFunc(prices, func(q flex.PricedPeriod) bool {
			return q.Period == p
		})

		if at >= 0 {
			part.Price, part.Known = prices[at].Price, prices[at].Known
		}

		periods = append(periods, part)
	}

	c.Cost, c.AtOnce, c.Priced = charge.AtOnce(periods, power)
	c.Priced = c.Priced && c.Whole
}
