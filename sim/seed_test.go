package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"flexd/client"
	"flexd/internal/flex"
	"flexd/sim"
)

// happening is what a random street is made of: a car's stay, or a time in which the endpoint is down.
// It is taken out of a history whole.
type happening struct {
	home     string // empty: the endpoint
	kw       float64
	from, to time.Time
	need     float64 // kWh by seven, wall time
	skipped  bool    // a planted fault: the client counts the plug-in as acknowledged and never sent it
	dead     bool    // a planted fault: the charger gives nothing all night
}

// streetDay is the first day of random streets; the clocks go back in its second night.
var streetDay = flex.Day{Year: 2026, Month: 10, Dom: 23}

// randomStreet draws what happens to some homes for some days. The same seed gives the same street.
func randomStreet(seed uint64, homes, days int) (out []happening) {
	r := rand.New(rand.NewPCG(seed, 13))
	for n := range days {
		evening := streetDay.Add(n).Start().Add(17 * time.Hour)
		for h := range homes {
			stay := happening{home: fmt.Sprint("car", h), kw: []float64{3.7, 7.4}[h%2], need: float64(2 + r.IntN(30))}
			stay.from = evening.Add(time.Duration(r.IntN(60)) * 5 * time.Minute)
			stay.to = time.Date(evening.Year(), evening.Month(), streetDay.Dom+n+1, 8, 0, 0, 0, flex.London).UTC()

			if r.IntN(5) > 0 {
				out = append(out, stay)
			}
		}

		down := evening.Add(time.Duration(r.IntN(120)) * 5 * time.Minute)
		if r.IntN(3) == 0 {
			out = append(out, happening{from: down, to: down.Add(time.Duration(1+r.IntN(12)) * 10 * time.Minute)})
		}
	}

	return out
}

// moment is an instant of a history and what is done then.
type moment struct {
	at time.Time
	do func()
}

// street plays a history and keeps what broke a law. The laws share no code with flexd's.
type street struct {
	*player
	history []happening
	broken  []string
	stays   map[string]int // by home, the plug-ins that were acknowledged
}

func playStreet(t *testing.T, history []happening) (broken []string) {
	noon := streetDay.Start().Add(12 * time.Hour)
	synctest.Test(t, func(t *testing.T) {
		playWith(t, streetHomes(history, noon), func(p *player) {
			s := street{player: p, history: history, stays: map[string]int{}}
			s.live()
			broken = s.broken
		})
	})

	return broken
}

func streetHomes(history []happening, noon time.Time) []sim.Line {
	lines := []sim.Line{{At: noon, Verb: "endpoint", Args: []string{"up"}}}
	known := map[string]bool{}
	for _, h := range history {
		if h.home == "" || known[h.home] {
			continue
		}

		known[h.home] = true
		lines = append(lines,
			sim.Line{At: noon, Verb: "site", Args: []string{h.home, ""}},
			sim.Line{At: noon, Verb: "charger", Args: []string{h.home, h.home, fmt.Sprint(h.kw)}})
	}

	return lines
}

func (s *street) live() {
	s.step = flex.HalfHour
	end := s.now
	var moments []moment
	for _, h := range s.history {
		moments = append(moments, s.moments(h)...)
		if h.to.After(end) {
			end = h.to
		}
	}

	slices.SortStableFunc(moments, func(a, b moment) int { return a.at.Compare(b.at) })
	for _, m := range moments {
		s.until(m.at)
		m.do()
		s.settle()
	}

	s.until(end.Add(36 * time.Hour))
	s.checkBooks()
}

func (s *street) moments(h happening) []moment {
	if h.home == "" {
		return []moment{{h.from, func() { s.down.Store(true) }}, {h.to, func() { s.down.Store(false) }}}
	}

	ready := h.to.Add(-time.Hour)
	return []moment{
		{h.from, func() { s.arrive(h) }},
		{ready, func() { s.checkNeed(h, ready) }},
		{h.to, func() { s.leave(h) }},
	}
}

func (s *street) arrive(h happening) {
	c := s.chargers[h.home]
	c.Outage = flex.Span{}
	if h.dead {
		c.Outage = flex.Span{From: h.from, To: h.to}
	}

	c.Plug(&sim.Car{Rate: c.Power, Room: 60_000}, s.now)
	s.stays[h.home]++
	if h.skipped {
		return
	}

	words := fmt.Sprintf("need %gkWh by 07:00 tariff 00:30-05:30 Europe/London peak allowed", h.need)
	s.must(s.client.PlugIn(s.Context(), s.assets[h.home], s.wish(words)))
}

func (s *street) leave(h happening) {
	s.chargers[h.home].Plug(nil, s.now)
	if h.skipped {
		return
	}

	s.must(s.client.PlugOut(s.Context(), s.assets[h.home]))
}

// checkNeed holds the law of needs: what the hours of the stay could give is there at ready-by.
func (s *street) checkNeed(h happening, ready time.Time) {
	possible := h.kw * (ready.Sub(h.from).Hours() - 0.5)
	got := s.chargers[h.home].Car().Got / 1000
	if want := min(h.need, possible); got < want-0.13 {
		s.broken = append(s.broken, fmt.Sprintf("need: %s of %s has %.2f kWh of %.2f", h.home, ready.Format(time.RFC3339), got, want))
	}
}

// checkBooks holds two laws at the end: each stay that was acknowledged is credited, and a
// balance is the sum of its transactions.
func (s *street) checkBooks() {
	for home, site := range s.sites {
		got, err := s.client.Transactions(s.Context(), site, client.Page{Limit: 1000})
		s.must(err)
		balance, err := s.client.Balance(s.Context(), site)
		s.must(err)

		s.broken = append(s.broken, booksBroken(home, s.stays[home], got.Transactions, balance.CurrentBalancePence)...)
	}
}

func booksBroken(home string, stays int, booked []client.TransactionDatumResponse, balance client.Pence) (broken []string) {
	var sum client.Pence
	credited := map[client.SessionID]bool{}
	for _, x := range booked {
		sum += x.CreditPence
		if !x.PlugSessionID.IsZero() {
			credited[x.PlugSessionID] = true
		}
	}

	if len(credited) != stays {
		broken = append(broken, fmt.Sprintf("stays: %d of %s were acknowledged and %d credited", stays, home, len(credited)))
	}

	if sum != balance {
		broken = append(broken, fmt.Sprintf("sum: transactions of %s are %v and the balance %v", home, sum, balance))
	}

	return broken
}

// shrink takes out of a history what it fails without, until nothing more can go.
func shrink(history []happening, fails func([]happening) bool) []happening {
	for size := (len(history) + 1) / 2; size > 0; {
		smaller := false
		for i := 0; i+size <= len(history); i++ {
			less := slices.Delete(slices.Clone(history), i, i+size)
			if len(less) > 0 && fails(less) {
				history, smaller = less, true
				break
			}
		}

		if !smaller {
			size /= 2
		}
	}

	return history
}

// Streets drawn from seeds, over the night in which the clocks go back.
func TestRandomStreets(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for _, b := range playStreet(t, randomStreet(seed, 3, 2)) {
				t.Error(b)
			}
		})
	}
}

// Each law finds its planted fault, and a history that fails shrinks to the stay with the fault.
func TestRandomStreets_PlantedFault(t *testing.T) {
	history := randomStreet(1, 2, 1)
	plant := slices.IndexFunc(history, func(h happening) bool { return h.home != "" })
	for law, fault := range map[string]happening{"need": {dead: true}, "stays": {skipped: true}} {
		planted := slices.Clone(history)
		planted[plant].dead, planted[plant].skipped = fault.dead, fault.skipped

		finds := func(h []happening) bool {
			return slices.ContainsFunc(playStreet(t, h), func(b string) bool { return strings.HasPrefix(b, law+":") })
		}

		if !finds(planted) {
			t.Errorf("%s: the planted fault was not found", law)
		}

		if least := shrink(planted, finds); len(least) != 1 {
			t.Errorf("%s: shrunk to %d stays", law, len(least))
		}
	}

	booked := []client.TransactionDatumResponse{{CreditPence: 3}, {CreditPence: 4}}
	if got := booksBroken("car0", 0, booked, 8); len(got) != 1 {
		t.Errorf("a balance of 8 for 3 and 4: %q", got)
	}
}
