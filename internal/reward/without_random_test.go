package reward

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/settle"
	"flexd/internal/store"
)

// Whatever the users of a random home do, what its cars would have drawn without the market
// keeps to the main fuse in each half-hour, does not depend on the order in which their stays
// were read, and is not changed by what comes later.
func TestPlanTogether_Random(t *testing.T) {
	for seed := range uint64(300) {
		h := randomHome(rand.New(rand.NewPCG(seed, 7)))
		shuffled, cut := h.copied(), h.copied()
		planTogether(h.stays, h.fuse, h.to)
		slices.Reverse(shuffled.stays)
		planTogether(shuffled.stays, h.fuse, h.to)

		until := h.from.Add(20 * time.Hour)
		cut.stays = slices.DeleteFunc(cut.stays, func(s *replannedSession) bool { return !s.From.Before(until) })
		for _, s := range cut.stays {
			s.To = flex.Earlier(s.To, until)
		}
		planTogether(cut.stays, h.fuse, until)

		for p := flex.PeriodAt(h.from); p.Start().Before(h.to); p = p.Add(1) {
			without, nominated := h.drawn(p)
			most := flex.WattHours(h.fuse.On(p.Start()).Import / 2)
			if without > most || nominated > most {
				t.Fatalf("seed %d: %d and %d Wh at %v through a fuse that carries %d", seed, without, nominated, p.Start(), most)
			}

			again, nominatedAgain := shuffled.drawn(p)
			if again != without || nominatedAgain != nominated {
				t.Fatalf("seed %d: another order of reading has other plans at %v", seed, p.Start())
			}

			before, nominatedBefore := cut.drawn(p)
			if !p.End().After(until) && (before != without || nominatedBefore != nominated) {
				t.Fatalf("seed %d: what came later changed the plans at %v", seed, p.Start())
			}
		}
	}
}

// plannedHome is a home whose cars share a main fuse.
type plannedHome struct {
	from, to time.Time
	fuse     flex.History[flex.Supply]
	stays    []*replannedSession
}

func (h *plannedHome) copied() *plannedHome {
	c := *h
	c.stays = nil
	for _, s := range h.stays {
		other := *s
		c.stays = append(c.stays, &other)
	}

	return &c
}

// drawn is what the home's cars would have drawn together in a half-hour.
func (h *plannedHome) drawn(p flex.Period) (without, nominated flex.WattHours) {
	for _, s := range h.stays {
		power := s.schedules[0].From.Power
		without += settle.Drawn(settle.InForce(s.without, s.To), power, p.Span())
		nominated += settle.Drawn(settle.InForce(s.nominated, s.To), power, p.Span())
	}

	return without, nominated
}

// randomHome has 2 to 5 cars for two days, at a fuse that cannot carry all of them and may be
// replaced at an hour.
func randomHome(r *rand.Rand) *plannedHome {
	h := &plannedHome{from: time.Date(2026, 1, 14, 12, 0, 0, 0, time.UTC)}
	h.to = h.from.Add(48 * time.Hour)
	powers := []flex.Watts{3680, 7400, 11_000}
	h.fuse = flex.Always(flex.Supply{Import: flex.Watts(3000 + r.IntN(60)*100), Set: true})
	if r.IntN(3) == 0 {
		later := flex.Supply{Import: flex.Watts(3000 + r.IntN(60)*100), Set: true}
		h.fuse = h.fuse.Then(h.from.Add(time.Duration(r.IntN(48))*time.Hour), later)
	}

	for car := range 2 + r.IntN(4) {
		power := powers[r.IntN(len(powers))]
		for at := h.from; ; {
			at = at.Add(time.Duration(r.IntN(12*3600)) * time.Second)
			s := &replannedSession{
				Span:    flex.Span{From: at, To: flex.Earlier(h.to, at.Add(time.Duration(1+r.IntN(16*3600))*time.Second))},
				asset:   flex.AssetID{byte(car)},
				session: flex.SessionID{byte(car), byte(len(h.stays))},
			}
			if s.Empty() {
				break
			}

			s.changeAtRandom(r, power)
			h.stays = append(h.stays, s)
			at = s.To
		}
	}

	return h
}

// changeAtRandom has the user, the market and others have schedules made at random.
func (s *replannedSession) changeAtRandom(r *rand.Rand, power flex.Watts) {
	causes := []store.Cause{store.CauseIntent, store.CauseChargeNow, store.CauseTariff, store.CauseMarket, store.CauseCaps}
	for at := s.From; at.Before(s.To); at = at.Add(time.Duration(1+r.IntN(6*3600)) * time.Second) {
		e := store.PlanInputs{
			ReadyBy: at.Add(time.Duration(r.IntN(14*3600)) * time.Second).Truncate(time.Second), CountFrom: s.From, Power: power,
			Need: flex.WattHours(r.IntN(40_000)), Mode: flex.Minimise, MayChargePeak: r.IntN(2) == 0,
			Tariff: flex.Tariff{OffPeak: "23:30-05:30", Zone: "Europe/London", Type: flex.DualRate},
		}

		if r.IntN(3) == 0 {
			e.Mode = flex.Maximise
		}
		if r.IntN(4) == 0 {
			e.Tariff = flex.Tariff{}
		}
		if r.IntN(4) == 0 {
			e.ChargeNow = flex.Span{From: at, To: at.Add(time.Duration(r.IntN(7200)) * time.Second)}
		}

		made := store.Schedule{Cause: causes[r.IntN(len(causes))], From: e}
		made.MadeAt = at
		made.Steps = []flex.Step{{Span: flex.Span{From: at, To: e.ReadyBy}}}
		s.schedules = append(s.schedules, made)
	}
}

// TestShareOf_Random: cars that are planned each within its share of the main fuse keep to it
// together in each half-hour, as far as a share is no less than what a charger takes.
func TestShareOf_Random(t *testing.T) {
	for seed := range uint64(100) {
		h := randomHome(rand.New(rand.NewPCG(seed, 11)))
		var sessions []store.Session
		for _, s := range h.stays {
			var session store.Session
			session.AssetID = s.asset
			sessions = append(sessions, session)
		}

		n := numAssets(sessions)
		for _, s := range h.stays {
			planTogether([]*replannedSession{s}, shareOf(h.fuse, n), h.to)
		}

		for p := flex.PeriodAt(h.from); p.Start().Before(h.to); p = p.Add(1) {
			without, nominated := h.drawn(p)
			whole := max(h.fuse.On(p.Start()).Import, flex.Watts(n)*flex.LeastPower(1))
			if most := flex.WattHours(whole / 2); without > most || nominated > most {
				t.Fatalf("seed %d: %d and %d Wh of %d cars at %v through a fuse that carries %d", seed, without, nominated, n, p.Start(), most)
			}
		}
	}
}
