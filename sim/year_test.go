package sim_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/sim"
)

// yearDays is the length of the year in make test, with a clock change in it.
var yearDays = 7

// A household's year: the car comes home every evening, prices are published every
// afternoon, readings come in, every stay is credited, and at the end every law holds.
func TestYear(t *testing.T) {
	days := yearDays
	if os.Getenv("FLEXD_LONG") != "" {
		days = 365
	}
	synctest.Test(t, func(t *testing.T) {
		first := flex.Day{Year: 2026, Month: 3, Dom: 26}
		lines := []sim.Line{
			{At: first.Start().Add(12 * time.Hour), Verb: "site", Args: []string{"home", ""}},
			{At: first.Start().Add(12 * time.Hour), Verb: "charger", Args: []string{"leaf", "home", "7.4"}},
		}
		playWith(t, lines, func(p *player) { p.live(first, days) })
	})
}

func (p *player) live(first flex.Day, days int) {
	p.step = flex.HalfHour
	for n := range days {
		d := first.Add(n)
		prices, err := sim.PricesAround(d, d.Add(1))
		p.must(err)
		p.until(d.Start().Add(14 * time.Hour))
		p.must(p.app.Publish(p.Context(), "year", time.Time{}, prices))
		p.until(d.Start().Add(18 * time.Hour))

		p.chargers["leaf"].Plug(&sim.Car{Rate: 7400, Room: 60_000}, p.now)
		p.must(p.client.PlugIn(p.Context(), p.assets["leaf"], p.wish("need 15kWh by 07:00 tariff 00:30-05:30 Europe/London")))
		p.runUntilIdle()
		p.until(d.Add(1).Start().Add(8 * time.Hour))
		p.chargers["leaf"].Plug(nil, p.now)
		p.must(p.client.PlugOut(p.Context(), p.assets["leaf"]))
		p.runUntilIdle()
	}

	p.until(first.Add(days).Start().Add(18 * time.Hour))
	got, err := p.client.Transactions(p.Context(), p.sites["home"], client.Page{Limit: 1000})
	p.must(err)
	sessions := map[client.SessionID]bool{}
	for _, x := range got.Transactions {
		if !x.PlugSessionID.IsZero() {
			sessions[x.PlugSessionID] = true
		}
	}

	if len(sessions) != days {
		p.Errorf("%d sessions of %d were credited", len(sessions), days)
	}
	p.Logf("%d days, %d transactions", days, got.TotalCount)
}
