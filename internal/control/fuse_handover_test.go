package control_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
)

// handedCar is a car of the random sites of the handover, as it really is.
type handedCar struct {
	id     flex.AssetID
	wired  flex.Wiring
	power  flex.Watts
	needs  float64 // watt-hours, by ready, since its plug-in
	had    float64
	asked  float64 // kWh, by its last intent
	ready  time.Time
	may    []store.Schedule // what its charger follows, and what was sent since
	failed int64            // the last generation that its charger could not take up
}

// lacks is what a schedule leaves of a car's need from an instant on.
func (c *handedCar) lacks(s *store.Schedule, now time.Time) float64 {
	gets := 0.0
	for _, step := range s.Steps {
		if in := step.Meet(flex.Span{From: now, To: c.ready}); !in.Empty() {
			gets += float64(min(step.Limit, c.power)) * in.Len().Hours()
		}
	}

	return c.needs - c.had - gets
}

func (c *handedCar) newest() *store.Schedule { return &c.may[len(c.may)-1] }

// handedSite is a site of cars behind a fuse of one or three phases.
type handedSite struct {
	*fixture
	r      *rand.Rand
	fuse   flex.Watts // all phases together
	phases int
	cars   []*handedCar
}

// drawn is what a car takes of each phase of the fuse at most, by any schedule that its charger may be following.
func (s *handedSite) drawn(c *handedCar, at time.Time) (on [3]float64) {
	most := flex.Watts(0)
	for i := range c.may {
		takes := c.power
		for _, step := range c.may[i].Steps {
			if step.Contains(at) {
				takes = min(step.Limit, c.power)
			}
		}
		most = max(most, takes)
	}

	for i := range on {
		switch {
		case s.phases == 1, c.wired.Phases == 1 && (c.wired.Phase == 0 || c.wired.Phase == i+1):
			on[i] = float64(most)
		case c.wired.Phases == 3:
			on[i] = float64(most) / 3
		}
	}

	return on
}

// carries is what one phase of the fuse does.
func (s *handedSite) carries() float64 {
	if s.phases == 1 {
		return float64(s.fuse)
	}
	return float64(s.fuse) / 3
}

// keepsFuse holds what chargers may draw against each phase, at every later instant at which anything changes.
func (s *handedSite) keepsFuse(did string) {
	s.Helper()
	now := time.UnixMicro(s.micro.Load()).UTC()
	instants := []time.Time{now}
	for _, c := range s.cars {
		for i := range c.may {
			for _, step := range c.may[i].Steps {
				instants = append(instants, step.From)
			}
		}
	}

	for _, at := range instants {
		var sum [3]float64
		for _, c := range s.cars {
			for i, w := range s.drawn(c, at) {
				sum[i] += w
			}
		}

		if most := slices.Max(sum[:]); !at.Before(now) && at.Before(now.Add(control.TailTime)) && most > s.carries()+1 {
			s.Fatalf("%v: after %s %.0f W are drawn at %v on a phase that carries %.0f", now, did, most, at, s.carries())
		}
	}
}

// possible reports whether the cars could be charged one after the other, each as fast as the fuse carries it alone, those first that
// are ready first. That is enough on any phases; a tenth of the time is left for whole minutes.
func (s *handedSite) possible() bool {
	now := maxTime(time.UnixMicro(s.micro.Load()).UTC(), at("2026-01-10T23:30:00Z"))
	cars := slices.Clone(s.cars)
	slices.SortFunc(cars, func(a, b *handedCar) int { return a.ready.Compare(b.ready) })
	hours := 0.0

	for _, c := range cars {
		alone := min(float64(c.power), s.carries())
		if s.phases == 3 && c.wired.Phases == 3 {
			alone = min(float64(c.power), float64(s.fuse))
		}

		hours += max(0, c.needs-c.had) / alone
		until := c.ready
		if end := at("2026-01-11T05:30:00Z"); until.After(end) {
			until = end
		}

		if hours > 0.9*until.Sub(now).Hours() {
			return false
		}
	}

	return true
}

// step has something be done, and then holds the laws: the fuse is kept, and what the newest schedules of the cars met before they still
// meet, but for a car that asked for something else.
func (s *handedSite) step(did string, asks *handedCar, do func()) {
	s.Helper()
	now := time.UnixMicro(s.micro.Load()).UTC()
	met := map[*handedCar]bool{}
	for _, c := range s.cars {
		met[c] = c != asks && c.lacks(c.newest(), now) < 100
	}

	do()

	for _, c := range s.cars {
		if newest := s.at(c.id).look().Current; newest.Generation > c.newest().Generation {
			c.may = append(c.may, newest)
		}
	}

	s.keepsFuse(did)
	for i, c := range s.cars {
		// Schedules are cut to whole minutes, and a share of the need is no reason to send another one.
		slack := float64(c.power)/60*2 + c.needs*float64(control.SlackPercent)/100 + 100
		if lacks := c.lacks(c.newest(), now); met[c] && lacks > slack && s.possible() {
			s.Fatalf("%v: after %s car %d of %d lacks %.0f of %.0f Wh, which it did not before", now, did, i, len(s.cars), lacks, c.needs)
		}
	}
}

// answer has a car's charger answer what it was sent, or not: in time, late, twice, not at all, or with a failure.
func (s *handedSite) answer(c *handedCar, how int) {
	s.at(c.id)
	newest := len(c.may) - 1
	took := newest
	if newest == 0 { // all was answered
		return
	}

	switch how {
	case 0: // no answer
		return
	case 1: // the answer to one that another has taken the place of meanwhile
		took = s.r.IntN(newest + 1)
	case 2:
		s.state(&c.may[newest], "rejected")

		return
	case 3: // the client takes it, and the charger does not
		s.state(&c.may[newest], "accepted")
		s.Exec(`INSERT INTO callback (org_id, event_id, asset_id, status, reported_at, received_at) VALUES ($1, $2, $3, 'FAILED', 0, 0)
			ON CONFLICT DO NOTHING`, s.Org.Bytes(), c.may[newest].EventID.Bytes(), c.id.Bytes())
		c.failed = c.may[newest].Generation
		return
	}

	if took > 0 && c.may[took].Generation > c.failed {
		s.state(&c.may[took], "accepted")
		if how == 4 {
			s.state(&c.may[took], "accepted")
		}
		c.may = c.may[took:]
	}
}

// state keeps what came of sending a schedule.
func (h *fixture) state(sent *store.Schedule, state string) {
	h.Helper()
	h.Exec(`INSERT INTO delivery (org_id, event_id, endpoint, kind, asset_id, generation, queued_at, state, tries, at, took, status, error, answer)
		VALUES ($1, $2, 'schedule', 'schedule', $3, $4, $5, $6, 1, $7, 0, CASE WHEN $6 = 'accepted' THEN 200 ELSE 422 END, '', '')
		ON CONFLICT (org_id, event_id) DO UPDATE SET state = excluded.state, tries = delivery.tries + 1, at = excluded.at, status = excluded.status`,
		h.Org.Bytes(), sent.EventID.Bytes(), h.asset.Bytes(), sent.Generation, sent.MadeAt.UnixMicro(), state, h.micro.Load())
	if state == "accepted" {
		h.Exec(`UPDATE outbox SET accepted = $2 WHERE subject = $1 AND accepted < $2`, h.asset.Bytes(), sent.Generation)
	}
}

// pass lets so many minutes pass, in which the cars do what their chargers follow.
func (s *handedSite) pass(minutes int) {
	for range minutes {
		now := time.UnixMicro(s.micro.Load()).UTC()
		for _, c := range s.cars {
			if now.Before(c.ready) {
				c.had += float64(min(limitAt(c.may[0].Steps, now), c.power)) / 60
			}
		}
		s.wait(time.Minute)
	}
}

// TestFuse_Handover plays random sites of two or three cars behind a fuse that they nearly need all of, on one phase or three. Their
// chargers answer in time, late, twice, with a failure or not at all, and the process dies between any two steps. See handedSite.step
// for the laws; and once all answer again each need that is possible is met.
func TestFuse_Handover(t *testing.T) {
	one(t, "2026-01-10T18:00:00Z", func(h *fixture) {
		t := h.TB.(*testing.T)
		for seed := range uint64(handovers) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				h.TB = t
				h.handover(rand.New(rand.NewPCG(seed, 47)))
			})
		}
		h.TB = t
		h.clean()
	})
}

// handovers is how many random sites are played.
const handovers = 16

func (h *fixture) handover(r *rand.Rand) {
	h.goTo("2026-01-10T18:00:00Z")
	h.site = h.Site(flex.FullScheduleMethod)
	s := &handedSite{fixture: h, r: r, phases: 1 + 2*r.IntN(2)}
	s.fuse = []flex.Watts{4600, 6000, 8000, 11000}[r.IntN(4)]
	h.Exec(`UPDATE site SET supply_set = TRUE, import_w = $1 WHERE id = $2`, int64(s.fuse), h.site.Bytes())
	if s.phases == 3 {
		amperes := []float64{16, 20, 25, 32}[r.IntN(4)]
		s.fuse = flex.Fuse{Amperes: amperes, Phases: 3}.Carries()
		h.mainFuse(amperes)
	}

	prices := make([]float64, 48)
	for i := range prices {
		prices[i] = float64(r.IntN(200))
	}
	h.publish("2026-01-10T18:00:00Z", prices...)

	defer func() {
		for _, c := range s.cars {
			h.at(c.id).event(control.Event{Kind: control.PlugOut})
		}
	}()

	for range 2 + r.IntN(2) {
		s.plugIn()
	}

	for range 10 + r.IntN(10) {
		s.pass(r.IntN(45))
		s.happens()
		if r.IntN(4) == 0 {
			h.service = &control.Service{DB: h.db} // the process died, and begins anew
		}

		for _, c := range s.cars {
			s.answer(c, r.IntN(6))
		}
		if r.IntN(2) == 0 {
			s.step("a round", nil, func() { h.replan() })
		}
	}

	s.settle()
}

// plugIn has one more car begin with a need of its own.
func (s *handedSite) plugIn() {
	c := &handedCar{power: []flex.Watts{3680, 7400}[s.r.IntN(2)], wired: flex.Wiring{Phases: 1}}
	if s.phases == 3 {
		c.wired.Phase = s.r.IntN(4)
		if s.r.IntN(4) == 0 {
			c.power, c.wired = 11000, flex.Wiring{Phases: 3}
		}
	}

	c.id = s.Asset(s.site, flex.Charger, c.power)
	s.wire(c.id, c.wired)
	wish := s.wish()
	s.at(c.id).event(control.Event{Kind: control.PlugIn, Tariff: nightTariff("Europe/London"), Intent: wish.intent()})
	first := s.look().Current
	s.state(&first, "accepted")
	c.asked = wish.kwh
	c.needs, c.ready, c.may = wish.kwh*1000, first.From.ReadyBy, []store.Schedule{first}
	s.cars = append(s.cars, c)
	s.step("a plug-in", c, func() {})
}

// wish is what a car needs: not more than a fair part of the night, mostly.
func (s *handedSite) wish() wanted {
	return wanted{kwh: 1 + float64(s.r.IntN(int(s.carries()*2/1000))), hour: 3 + s.r.IntN(5)}
}

// happens lets something happen at a car.
func (s *handedSite) happens() {
	c := s.cars[s.r.IntN(len(s.cars))]
	switch s.r.IntN(3) {
	case 0:
		wish := s.wish()
		if wish.kwh == c.asked { // the same again asks for nothing more
			return
		}

		s.step("an intent", c, func() {
			s.at(c.id).event(control.Event{Kind: control.IntentUpdate, Intent: wish.intent()})
		})
		c.asked = wish.kwh
		c.needs, c.ready = c.had+wish.kwh*1000, s.at(c.id).look().Current.From.ReadyBy
	case 1:
		s.step("a look at a car", nil, func() { s.at(c.id).refresh() })
	default:
		s.step("a round", nil, func() { s.replan() })
	}
}

// settle has all accept what they are sent until nothing changes, and holds what they then come to.
func (s *handedSite) settle() {
	for range 12 {
		for _, c := range s.cars {
			s.answer(c, 5)
		}
		s.pass(1)
		s.step("a round in the end", nil, func() { s.replan() })
	}

	now := time.UnixMicro(s.micro.Load()).UTC()
	for i, c := range s.cars {
		slack := float64(c.power)/60*4 + c.needs*float64(control.SlackPercent)/100 + 100
		failed := c.newest().Generation == c.failed // nobody has sent it another one
		if lacks := c.lacks(c.newest(), now); lacks > slack && s.possible() && !failed {
			s.Errorf("%v: in the end car %d of %d lacks %.0f of %.0f Wh", now, i, len(s.cars), lacks, c.needs)
		}
	}
}
