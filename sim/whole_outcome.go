package sim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"flexd/client"
	"flexd/internal/flex"
)

// startLoss is how long a car may wait for its first profile, and meterSlack what a meter may differ by.
const (
	startLoss  = 30 * time.Minute
	meterSlack = 0.13 // kWh
)

// fuseSlack is what a main fuse carries beyond its figure, in W: profiles are in whole tenths of an ampere.
const fuseSlack flex.Watts = 50

// othersLoad is what is kept free of a main fuse for the rest of a home, in kW, when it is asked whether
// the needs of all its cars could be met.
const othersLoad = 1.0

// checkNeed holds the law of needs: what the hours of the stay could give is there at ready-by. Where the
// main fuse may not carry what all the cars of the home need, and of a stay in which there was a cap,
// nothing is said.
func (w *whole) checkNeed(h Happening, place *household) {
	stay := flex.Span{From: h.From, To: h.To}
	capped := slices.ContainsFunc(w.caps, func(c flex.Span) bool {
		return !c.Meet(stay).Empty()
	})
	if capped || !possible(place, h.ready()) {
		return
	}

	c := place.chargers[h.Charger]
	if got := c.Car().Got / 1000; got < c.need-meterSlack {
		w.broke(
			fmt.Sprintf(
				"need: %s at %s has %.2f kWh of %.2f",
				c.ExternalID,
				c.ready.Format(time.RFC3339),
				got,
				c.need,
			),
		)
	}
}

// possible reports whether all cars that are to be ready with this one can be, whatever else the home
// draws, and if none had drawn anything when the last need was given.
func possible(place *household, ready time.Time) bool {
	if place.fuse == 0 {
		return true
	}

	needed, last := 0.0, time.Time{}
	for _, c := range place.chargers {
		if c.Car() == nil || !c.ready.Equal(ready) {
			continue
		}

		needed += c.need
		if c.since.After(last) {
			last = c.since
		}
	}

	hours := (ready.Sub(last) - startLoss).Hours()

	return needed <= (place.fuse.KW()-place.heating()-othersLoad)*hours
}

// checkCap holds the law of the cap: what all cars and batteries draw together. It is asked some minutes after the last
// thing that happened, and an hour after the endpoint was last out of reach: until then a car may follow
// what it was sent before. It is not asked while a car is plugged in that no cap holds back.
func (w *whole) checkCap(drawn flex.Watts, at time.Time) {
	c := &w.cap
	late := w.down.Load() || at.Before(w.reached.Add(time.Hour))
	if c.power == 0 || late || at.Before(w.happened.Add(soon)) {
		return
	}

	if drawn <= c.power+fuseSlack || c.over {
		return
	}

	c.over = true
	w.broke(fmt.Sprintf(
		"cap: the cars and batteries at %s draw %.2f kW of %.2f",
		at.Format(time.RFC3339),
		drawn.KW(),
		c.power.KW(),
	))
}

// checkFuse holds the law of the fuse: what all devices of a home draw together. It is asked only while
// every car that is plugged in has had a profile, as before that a charger does what it likes.
func (w *whole) checkFuse(
	name string,
	h *household,
	at time.Time,
) {
	if h.fuse == 0 || !h.steered() {
		return
	}

	drawn := h.drawing(at, w.weather)
	if drawn <= h.fuse+fuseSlack || !h.over.Before(at.Add(-time.Hour)) {
		return
	}

	h.over = at
	w.broke(
		fmt.Sprintf(
			"fuse: %s at %s draws %.2f kW of %.2f",
			name,
			at.Format(time.RFC3339),
			drawn.KW(),
			h.fuse.KW(),
		),
	)
}

// checkDay holds, at noon of each day, the laws that hold at any time: those of the store, and that a
// balance is the sum of its transactions. A flexd that is killed before noon may be back after it.
func (w *whole) checkDay(ctx context.Context) error {
	noon := w.time().Truncate(24 * time.Hour).Add(12 * time.Hour)
	if w.time().Before(noon) || !w.noonHeld.Before(noon) {
		return nil
	}

	w.noonHeld = noon

	if w.noon != nil {
		w.noon()
	}

	for _, name := range w.names() {
		_, broken, err := w.books(ctx, name)
		if err != nil {
			return err
		}
		w.broke(broken...)
	}

	w.checkWear()
	w.broke(w.pushes.found()...)

	return w.checkStore(ctx)
}

// broke notes what was found to break a law, once.
func (w *whole) broke(found ...string) {
	for _, f := range found {
		if !slices.Contains(w.broken, f) {
			w.broken = append(w.broken, f)
		}
	}
}

// checkStore holds every law of the store.
func (w *whole) checkStore(ctx context.Context) error {
	findings, err := w.app.DB.Verify(ctx)
	if err != nil {
		return err
	}

	for _, f := range findings {
		w.broke("store: " + f)
	}

	return nil
}

// books returns what a home was credited, and what of it breaks the law of sums.
func (w *whole) books(
	ctx context.Context,
	name string,
) ([]client.TransactionDatumResponse, []string, error) {
	h := w.homes[name]
	answer, err := w.client.Transactions(ctx, h.site, client.Page{Limit: 1000})
	if err != nil {
		return nil, nil, err
	}

	balance, err := w.client.Balance(ctx, h.site)
	if err != nil {
		return nil, nil, err
	}

	booked := answer.Transactions

	return booked, sumBroken(name, booked, balance.CurrentBalancePence), nil
}

// outcome holds the laws of the books and of the store, and sums up.
func (w *whole) outcome(ctx context.Context) (Outcome, error) {
	w.checkComfort()
	lines := w.drew

	var o Outcome
	for _, name := range w.names() {
		booked, broken, err := w.books(ctx, name)
		if err != nil {
			return o, err
		}

		w.broke(broken...)
		w.broke(sessionsBroken(name, w.homes[name].sessions, booked)...)
		read, halfHours := w.read(w.homes[name])
		w.broke(energyBroken(name, read, halfHours, booked)...)
		lines = append(
			lines,
			fmt.Sprintf("%s has %v of %d", name, sumOf(booked), len(booked)),
		)
	}

	if err := w.checkInstructions(ctx); err != nil {
		return o, err
	}

	w.broke(w.pushes.found()...)
	if err := w.checkStore(ctx); err != nil {
		return o, err
	}

	sum := sha256.Sum256([]byte(strings.Join(append(lines, w.broken...), "\n")))

	return Outcome{
		Broken: w.broken,
		Hash:   hex.EncodeToString(sum[:8]),
		Heat:   w.heat,
	}, nil
}

func sumOf(booked []client.TransactionDatumResponse) client.Pence {
	var sum client.Pence
	for _, x := range booked {
		sum += x.CreditPence
	}

	return sum
}

// sumBroken holds the law that a balance is the sum of its transactions.
func sumBroken(
	home string,
	booked []client.TransactionDatumResponse,
	balance client.Pence,
) []string {
	sum := sumOf(booked)
	if sum == balance {
		return nil
	}

	return []string{fmt.Sprintf(
		"sum: transactions of %s are %v and the balance %v",
		home,
		sum,
		balance,
	)}
}

// sessionsBroken holds the law that each stay that was acknowledged is credited.
func sessionsBroken(
	home string,
	sessions int,
	booked []client.TransactionDatumResponse,
) []string {
	credited := map[client.SessionID]bool{}
	for _, x := range booked {
		if !x.PlugSessionID.IsZero() {
			credited[x.PlugSessionID] = true
		}
	}

	if len(credited) == sessions {
		return nil
	}

	return []string{fmt.Sprintf(
		"sessions: %d of %s were acknowledged and %d credited",
		sessions,
		home,
		len(credited),
	)}
}

// read is what the meters of a home's chargers showed, in kWh, and in how many half-hours.
func (w *whole) read(h *household) (float64, int) {
	kWh, halfHours := 0.0, 0
	for _, c := range h.chargers {
		for _, e := range w.metered[c.asset] {
			kWh += e
			halfHours++
		}
	}

	return kWh, halfHours
}

// energyBroken holds the law that a home's sessions are credited with no more than its chargers' meters read, each
// half-hour in whole watt-hours. Less may be credited: a meter's reading that cannot be is held back.
func energyBroken(
	home string,
	read float64,
	halfHours int,
	booked []client.TransactionDatumResponse,
) []string {
	credited := 0.0
	for _, x := range booked {
		if x.CreditableKWh != nil {
			credited += *x.CreditableKWh
		}
	}

	if credited <= read+float64(halfHours+1)/1000 {
		return nil
	}

	return []string{fmt.Sprintf(
		"energy: sessions of %s are credited with %.3f kWh, and its chargers drew %.3f",
		home,
		credited,
		read,
	)}
}

// MPANOf returns a valid MPAN of a serial number.
func MPANOf(serial int) string {
	core := fmt.Sprintf("10%010d", serial)
	sum := 0
	for i, weight := range []int{3, 5, 7, 13, 17, 19, 23, 29, 31, 37, 41, 43} {
		sum += weight * int(core[i]-'0')
	}

	return core + string(rune('0'+sum%11%10))
}
