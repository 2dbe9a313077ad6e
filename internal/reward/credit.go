package reward

import (
	"context"
	"fmt"
	"slices"

	"flexd/internal/flex"
	"flexd/internal/ledger"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// eventTarget returns what the event earned. All revenue is posted, whatever the user's share
// is. A user without a share does not see the transaction.
func eventTarget(
	ctx context.Context,
	tx *store.Tx,
	e *store.FlexEvent,
	r *settle.Result,
	h history,
) (*bookingTarget, error) {
	posted, err := tx.PostingsAbout(ctx, ledger.Cause{FlexEvent: e.ID})
	if err != nil {
		return nil, err
	}

	credit, netting, err := creditOf(
		ctx,
		tx,
		e,
		r,
		h,
		h.forDay(e.Day).settle.Share > 0 || ofUser(posted),
	)
	if err != nil {
		return nil, err
	}

	// so that a sum over transactions counts no energy twice
	more := r.Flex - e.PostedWh
	about := ledger.Transaction{
		SiteID:  e.SiteID,
		Time:    e.Span,
		Settled: e.Day,
		Cause:   ledger.Cause{FlexEvent: e.ID, Session: e.SessionID},
	}

	return &bookingTarget{
		Booked: ledger.Booked{
			Transaction: about,
			Flex:        &more,
			Netting:     netting.others,
		},

		subject: fmt.Sprintf("flex event:%s", e.ID),
		posted:  posted,
		target:  earnedOf(credit, r),
		energy:  r.Flex,
		more:    -more,
		visible: credit.Listed,
		changed: more != 0 || netting.changed,
	}, nil
}

// earnedOf returns the postings of an event's revenue. What of the user's share is neither
// credited nor accrued goes to the organisation, so that the postings add up however each is
// rounded.
func earnedOf(credit store.EventCredit, r *settle.Result) []ledger.Posting {
	margin := r.Kept + r.Owed - credit.Credited - credit.Accrued
	return ledger.EarnedInPart(credit.Gross, credit.Credited, credit.Accrued, margin)
}

// ofUser reports whether any of the postings is on a user's account.
func ofUser(postings []ledger.Posting) bool {
	return slices.ContainsFunc(postings, func(p ledger.Posting) bool {
		return p.Account.PerSite()
	})
}

// netting has the other events of an event's month, with which it is netted.
type netting struct {
	others *settle.Netting // nil if the month is not netted
	// whether the event's own share, or its error, differs from what was posted
	changed bool
}

// creditOf computes what an event is worth to its user, and stores it. Under netting, an event
// is credited the difference that it makes to all of its site's months. So the sum is the same
// in whatever order the events are settled, and a correction posts at once what it changes in
// later months, into which its month's sum is carried.
func creditOf(
	ctx context.Context,
	tx *store.Tx,
	e *store.FlexEvent,
	r *settle.Result,
	h history,
	visible bool,
) (store.EventCredit, netting, error) {
	t := h.forDay(e.Day)
	c := store.EventCredit{
		Event:    e.ID,
		Site:     e.SiteID,
		Day:      e.Day,
		Listed:   visible,
		Netted:   t.settle.ByMonth && !t.settle.ClawBack,
		Gross:    r.Owed + r.Kept, // rounded as they are: over the events settled together
		Share:    r.Owed,
		Early:    r.Credit,
		Credited: r.Credit,
		Accrued:  r.Owed - r.Credit,
	}

	var n netting
	if c.Netted {
		c.Error, c.Certainty = r.StandardError(), h.certaintyOf(ledger.MonthOf(e.Day))
		others, err := tx.NettedCredits(ctx, e.SiteID, e.ID)
		if err != nil {
			return c, n, err
		}

		n = netMonths(&c, &others)
	}

	return c, n, tx.PutEventCredit(ctx, c)
}

// netMonths credits an event the difference that it makes to its site's months.
func netMonths(c *store.EventCredit, others *store.NettedCredits) netting {
	month := ledger.MonthOf(c.Day).First()
	_, otherMonths := creditsOfMonths(monthsWith(others.Days, others.Own), month)
	months := monthsWith(others.Days, c)
	own, later := creditsOfMonths(months, month)

	ownCredit := own.Credited + later
	c.Credited = ownCredit - others.Credited
	c.Accrued = sumOwed(months) - ownCredit - others.Accrued

	before := store.EventCredit{}
	if others.Own != nil {
		before = *others.Own
	}

	certainty := own.Certainty.Errors
	n := netting{changed: before.Early != c.Early ||
		certainty > 0 && before.Error != c.Error}
	n.others = &settle.Netting{
		Share:     own.Early - c.Early,
		Credited:  others.Credited - otherMonths,
		Carried:   own.CarriedIn - own.Lapsed,
		Error:     own.Error,
		Certainty: certainty,
		Later:     later - otherMonths,
	}

	return n
}

// creditsOfMonths returns the month that begins on the day, and the sum credited in the other
// months.
func creditsOfMonths(
	months []settle.MonthNetted,
	first flex.Day,
) (settle.MonthNetted, flex.Pence) {
	var own settle.MonthNetted
	var otherMonths flex.Pence
	for _, m := range months {
		if m.First == first {
			own = m
		} else {
			otherMonths += m.Credited
		}
	}

	return own, otherMonths
}

func sumOwed(months []settle.MonthNetted) flex.Pence {
	var sum flex.Pence
	for _, m := range months {
		sum += m.Owed
	}
	return sum
}

// monthsWith nets the days of a site's other events and an event's own, if there is one.
func monthsWith(
	days []settle.DayNetted,
	c *store.EventCredit,
) []settle.MonthNetted {
	if c == nil {
		return settle.NetMonths(days, flex.Day{})
	}

	i, found := slices.BinarySearchFunc(
		days,
		c.Day,
		func(d settle.DayNetted, day flex.Day) int {
			return compareDays(d.Day, day)
		},
	)

	days = slices.Clone(days)
	if !found {
		days = slices.Insert(days, i, settle.DayNetted{
			Day:       c.Day,
			Certainty: c.Certainty,
		})
	}

	d := &days[i]
	d.Add(c.Share, c.Early, c.Error)

	return settle.NetMonths(days, flex.Day{})
}
