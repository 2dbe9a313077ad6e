package sums_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/registry"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// play is an evening, or a night in which the clocks change, at a home whose devices are dispatched and called.
type play struct {
	*fleet
	r     *rand.Rand
	begin time.Time
	asked []asked
	sent  map[flex.EventID]int // the last part of each dispatch
	calls []called
	ids   []flex.InstructionID // of each call
	held  map[string]int       // what happened, and how often
}

// drawDispatched draws a home with a battery, a charger and mostly a car at it, as they are read on a day and before.
func drawDispatched(r *rand.Rand, day date, t terms) (h *drawn, first int) {
	h = &drawn{gone: -1}
	h.terms, h.supply, h.sessions, h.prices, h.restarts = t, 23_000, map[int][][2]int64{}, map[int64]int64{}, map[keptKey][]int64{}
	if first = 1 + r.IntN(5); day.halves() == 48 {
		first = 10 + r.IntN(20)
	}
	h.devices = []device{{power: 5000, battery: true, capacity: 10_000}, {power: []int64{7400, 0}[r.IntN(2)], capacity: 40_000}}
	if r.IntN(3) > 0 {
		h.devices = append(h.devices, device{power: 7400, car: true, capacity: 40_000})
	}

	boundary := r.IntN(4) > 0
	for d := range h.devices {
		h.devices[d].qualified = r.IntN(5) == 0
		if d == 0 && boundary {
			h.read(r, d, boundaryKinds[r.IntN(3)], day, first)
		}
		if !boundary || r.IntN(2) == 0 {
			h.read(r, d, ownKinds[r.IntN(3)], day, first)
		}
	}

	for n := 1; n <= day.halves(); n++ {
		h.prices[day.at(n)] = price(day.at(n))
	}
	return h, first
}

// act has one thing happen at an instant.
func (p *play) act(t *testing.T, now time.Time) {
	t.Helper()
	switch p.r.IntN(11) {
	case 0, 1, 2, 3, 4:
		p.dispatch(t, now)
	case 5, 6:
		p.call(t, now)

	case 7, 8:
		p.stop(t, now)
	case 9:
		p.replace(t, now)
	default:
		p.release(t, now)
	}
}

// dispatch asks one device, or several at once, for a power.
func (p *play) dispatch(t *testing.T, now time.Time) {
	from := now.Add(time.Duration(p.r.IntN(2400)) * time.Second)
	if p.r.IntN(3) == 0 {
		from = flex.PeriodAt(now).End()
	}
	from = flex.Later(from, p.begin)
	to := from.Add(time.Duration(1+p.r.IntN(8000)) * time.Second)
	if end := p.begin.Add(8 * flex.HalfHour); to.After(end) {
		to = end
	}

	if !to.After(from) {
		return
	}
	order := store.Dispatch{Market: "wholesale", Span: flex.Span{From: from, To: to}, Batch: true}
	halves := flex.PeriodAt(to.Add(-1)).Sub(flex.PeriodAt(from)) + 1

	for d, id := range p.assets[0] {
		if p.homes[0].devices[d].gone > 0 {
			continue
		}

		if p.r.IntN(2) == 0 || d == len(p.assets[0])-1 && len(order.Assets) == 0 {
			part := store.DispatchedAsset{ID: id, Power: flex.Watts(100 * (p.r.IntN(160) - 80))}
			if !p.homes[0].devices[d].battery { // a battery alone may give
				part.Power = max(part.Power, -part.Power)
			}
			for range halves - p.r.IntN(2) {
				part.Without = append(part.Without, flex.Watts(p.r.IntN(3)*p.r.IntN(3000)-500))
			}
			order.Assets = append(order.Assets, part)
		}
	}

	err := p.db.Write(t.Context(), p.seed.Org, func(tx *store.Tx) (err error) {
		if err = control.CheckDispatch(t.Context(), tx, &order); err != nil {
			return err
		}
		if order, err = tx.AddDispatch(t.Context(), order); err == nil {
			err = control.NoteDispatch(t.Context(), tx, &order)
		}

		return err
	})
	if flex.KindOf(err) == flex.Conflict {
		p.held["dispatches of who is called"]++
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	p.keep(t, now, &order)
	p.held["dispatches"]++
}

// keep notes a dispatch that was sent, and has the client take it over at once, later, never, or refuse it for a device.
func (p *play) keep(t *testing.T, now time.Time, order *store.Dispatch) {
	t.Helper()
	taken := now.Add(time.Duration(p.r.IntN(2)*p.r.IntN(1500)) * time.Second)
	if never := p.r.IntN(8) == 0; never || taken.After(order.To) {
		taken = time.Time{}
	} else {
		p.seed.Exec(`INSERT INTO delivery (org_id, event_id, endpoint, kind, generation, queued_at, state, tries, at, took, status, error, answer)
			VALUES ($1, $2, 'dispatch', 'dispatch', 1, $3, 'accepted', 1, $4, 0, 200, '', '')`,
			p.seed.Org.Bytes(), order.ID.Bytes(), now.UnixMicro(), taken.UnixMicro())
		p.seed.Exec(`UPDATE outbox SET accepted = generation, tries = 1, turn_at = NULL WHERE subject = $1`, order.ID.Bytes())
	}

	for _, part := range order.Assets {
		a := asked{device: slices.Index(p.assets[0], part.ID), from: order.From.Unix(), to: order.To.Unix(), power: int64(part.Power)}
		for _, w := range part.Without {
			a.idle = append(a.idle, int64(w))
		}
		refused := p.r.IntN(8) == 0
		if refused {
			p.write(t, func(ctx context.Context, tx *store.Tx) error {
				return tx.AddCallback(ctx, flex.Callback{EventID: order.ID, AssetID: part.ID, Status: flex.Failed})
			})
		}

		if !taken.IsZero() && !refused {
			a.taken = taken.Unix()
		}
		p.asked = append(p.asked, a)
	}
	p.sent[order.ID]++
}

// call has an instruction with a price call all devices of the home that no other one holds.
func (p *play) call(t *testing.T, now time.Time) {
	from := flex.Later(now, p.begin).Add(time.Duration(p.r.IntN(1800)) * time.Second)
	in := flex.Instruction{
		Span:   flex.Span{From: from, To: from.Add(time.Duration(1+p.r.IntN(5400)) * time.Second)},
		Change: flex.Watts(p.r.IntN(2)*20_000 - 10_000), Service: "dno", Price: flex.Price(1 + p.r.IntN(900_000_000)), Who: "Ann", Target: []int64{1},
	}
	p.write(t, func(ctx context.Context, tx *store.Tx) error {
		held, err := tx.CalledIn(ctx, in.Span)
		if err != nil {
			return err
		}
		if err := tx.AddInstruction(ctx, &in); err != nil {
			return err
		}

		var all []store.Called
		for d, id := range p.assets[0] {
			if !held[id] && p.homes[0].devices[d].gone == 0 {
				steps := []flex.Step{{Span: in.Span}}
				all = append(all, store.Called{AssetID: id, SiteID: p.sites[0], Baseline: steps, Expected: steps, Battery: p.homes[0].devices[d].battery})
				p.calls = append(p.calls, called{d, in.Change < 0, paid{in.From.Unix(), in.To.Unix(), int64(in.Price)}})
				p.ids = append(p.ids, in.ID)
			}
		}
		return tx.AddCalled(ctx, in.ID, all)
	})
	p.held["instructions"]++
}

// stop stops all that is called and dispatched, as an emergency does; what is sent for it takes the dispatches' place.
func (p *play) stop(t *testing.T, now time.Time) {
	t.Helper()
	if _, err := (&control.Service{DB: p.db}).StopInstructions(t.Context(), p.seed.Org, "Bob"); err != nil {
		t.Fatal(err)
	}

	for k := range p.calls {
		p.calls[k].to = min(p.calls[k].to, now.Unix())
	}
	p.takenBack(t, now, false)
}

// takenBack notes the dispatches of no power that the service sent by itself, to take back what devices were asked for. None
// of them reaches a client that is out of reach.
func (p *play) takenBack(t *testing.T, now time.Time, outOfReach bool) {
	t.Helper()
	var orders []store.Dispatch
	err := p.db.Read(t.Context(), p.seed.Org, func(tx *store.Tx) (err error) {
		orders, err = tx.Dispatches(t.Context(), 1000)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	slices.Reverse(orders)
	for k := range orders {
		if o := &orders[k]; p.sent[o.ID] == 0 {
			if o.Assets[0].Power != 0 || o.From.After(now.Add(8*flex.HalfHour)) || o.From.Before(now.Truncate(time.Minute)) {
				t.Errorf("at %s the service sends %+v", now, o)
			}
			if outOfReach {
				p.sent[o.ID]++
				continue
			}
			p.keep(t, now, o)
			p.held["taken back"]++
		}
	}
}

// replace has a device deleted, and another of its kind added, whose own meter tells nothing.
func (p *play) replace(t *testing.T, now time.Time) {
	t.Helper()
	h := p.homes[0]
	d := p.r.IntN(len(h.devices))
	if h.devices[d].gone > 0 || p.r.IntN(2) == 0 {
		return
	}

	if err := (&registry.Service{DB: p.db}).DeleteAsset(t.Context(), p.seed.Org, p.assets[0][d]); err != nil {
		t.Fatal(err)
	}
	p.takenBack(t, now, p.r.IntN(2) == 0)
	next := h.devices[d]
	h.devices[d].gone = now.Unix()
	h.devices = append(h.devices, next)
	p.assets[0] = append(p.assets[0], p.device(p.sites[0], next))
	p.held["devices replaced"]++
}

// release has an instruction let one device go.
func (p *play) release(t *testing.T, now time.Time) {
	if len(p.calls) == 0 {
		return
	}
	k := p.r.IntN(len(p.calls))
	p.write(t, func(ctx context.Context, tx *store.Tx) error {
		return tx.ReleaseCalled(ctx, p.ids[k], []flex.AssetID{p.assets[0][p.calls[k].device]})
	})
	p.calls[k].to = min(p.calls[k].to, now.Unix())
}

// found has the oracle find the events, and holds them against those of the service.
func (p *play) found(t *testing.T, fault string) bool {
	t.Helper()
	h := p.homes[0]
	h.fault = fault
	h.events = h.dispatched(p.day, p.asked, p.calls)
	h.fault = ""
	var got, want []string
	err := p.db.Read(t.Context(), p.seed.Org, func(tx *store.Tx) error {
		events, err := tx.FlexEvents(t.Context(), p.sites[0])
		got = nil

		for _, e := range events {
			d := slices.Index(p.assets[0], e.AssetID)
			got = append(got, fmt.Sprint(d, " ", e.First, "-", e.Last, " ", e.Meant, e.Nominated))
			for _, o := range h.events {
				if o.device == d && o.first == e.First {
					p.fleet.ids[o] = e.ID
				}
			}
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range h.events {
		want = append(want, fmt.Sprint(e.device, " ", e.first, "-", e.last, " ", energies(e.meant), energies(e.plan)))
	}
	slices.Sort(got)
	slices.Sort(want)
	if fault == "" && !slices.Equal(got, want) {
		t.Errorf("%s, %s: the service finds\n%v, the oracle\n%v", p.name, dayOf(p.day), got, want)
	}
	p.number(h)
	return slices.Equal(got, want)
}

// evening has things happen, one after the other, and the background jobs run now and then.
func (p *play) evening(t *testing.T, now *time.Time) {
	t.Helper()
	*now = p.begin.Add(-20 * time.Minute)
	for range 8 + p.r.IntN(9) {
		*now = now.Add(time.Duration(1+p.r.IntN(1000)) * time.Second)
		p.act(t, *now)
		if p.r.IntN(4) == 0 {
			untilIdle(t, p.service)
		}
	}
}

// Homes whose batteries, chargers and cars are dispatched and called through the whole service, on both days of a clock
// change and on one without: dispatches that meet, are replaced, come late, are refused or are stopped in an emergency,
// of one device or several, beside instructions with a price. Every event, half-hour and penny is what a calculation
// that shares no code with the service comes to.
func TestSums_Dispatches(t *testing.T) {
	homes := 1
	if os.Getenv("FLEXD_LONG") != "" {
		homes = 60
	}

	names := []string{"mean", "mean in_day capped", "nominated", "nominated by event"}
	storetest.EachURL(t, func(t *testing.T, url string) {
		now := instant(dateOf(2025, 3, 30).begin())
		db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
		seed := storetest.NewSeed(t, db, url)
		seed.Exec(`INSERT INTO model (key, name, type, cop11) VALUES ('m', 'm', 'charger', TRUE)`)
		held, figures, differ := map[string]int{}, 0, map[string]int{}
		var all []*fleet

		for _, day := range []date{dateOf(2025, 3, 30), dateOf(2025, 6, 11), dateOf(2025, 10, 26)} {
			now = instant(day.begin())
			publish(t, db, day)
			var fleets []*fleet
			var plays []*play
			for n := range homes * len(names) {
				now = instant(day.begin())
				p := newPlay(t, db, url, names[n%len(names)], day, n, seed, held)
				p.evening(t, &now)
				fleets, plays = append(fleets, p.fleet), append(plays, p)
			}

			now = instant((day + 1).at(20))
			untilIdle(t, fleets[0].service)
			for _, p := range plays {
				if !p.found(t, "a dispatch is replaced whole") {
					differ["a dispatch is replaced whole"]++
				}
				p.found(t, "")
			}

			for _, f := range fleets {
				f.compare(t, "at first", false)
				h := f.homes[0]
				h.late = slices.DeleteFunc(h.late, func(x sent) bool { return h.devices[x.device].gone > 0 }) // it is refused
				f.late(t)
			}

			now = now.Add(time.Hour)
			untilIdle(t, fleets[0].service)
			for _, f := range fleets {
				f.repair(t)
				figures += f.compare(t, "when all had come", false)
				f.again(t)
			}

			now = now.Add(time.Hour)
			revise(t, db, day, fleets, now)
			untilIdle(t, fleets[0].service)
			for _, f := range fleets {
				f.compare(t, "when prices were revised", false)
			}
			all = append(all, fleets...)
		}

		now = now.AddDate(0, 0, 70)
		untilIdle(t, all[0].service)
		for _, f := range all {
			f.compare(t, "in the end", true)
		}

		for _, fault := range []string{"the market pays for all", "each event has all of it", "a car counts beside its charger", "what left counts to the end"} {
			planted(all, fault, differ)
		}
		fmt.Fprintf(t.Output(), "%d homes, %d figures, %v; mistakes, by the homes in which they are found: %v\n", len(all), figures, held, differ)
		for _, fault := range []string{"a dispatch is replaced whole", "the market pays for all", "each event has all of it", "what left counts to the end"} {
			if differ[fault] == 0 {
				t.Errorf("%s: the comparison does not find it", fault)
			}
		}

		if held["taken back"] == 0 {
			t.Error("no stop took a dispatch back")
		}
		seed.QueueEnded()
		resets(seed)
	})
}

// revise publishes other prices of the first half of a day.
func revise(t *testing.T, db *store.DB, day date, fleets []*fleet, now time.Time) {
	t.Helper()
	span := flex.Span{From: instant(day.begin()), To: instant(day.at(24))}
	var ps []flex.PricedPeriod
	for n := 1; n < 24; n++ {
		at := day.at(n)
		ps = append(ps, flex.PricedPeriod{Period: flex.PeriodAt(instant(at)), Price: flex.Price(price(at + 1800*77)), Known: true})
		for _, f := range fleets {
			f.homes[0].prices[at] = price(at + 1800*77)
		}
	}

	err := db.WriteAll(t.Context(), func(all *store.All) error {
		_, err := all.AddPublication(t.Context(), store.Publication{Source: "test", PublishedAt: now, Span: span}, ps)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// newPlay makes the n-th home, of an organisation of its own, whose client takes dispatches over.
func newPlay(t *testing.T, db *store.DB, url, name string, day date, n int, seed *storetest.Seed, held map[string]int) *play {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(n), uint64(day)*53))
	h, first := drawDispatched(r, day, termsDrawn()[name])
	f := fleetOf(t, db, url, name, fmt.Sprint("dispatched ", int(day), " ", n), day, []*drawn{h}, seed)
	f.write(t, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.PutEndpoint(ctx, flex.Endpoint{Name: flex.DispatchEndpoint, URL: "https://client.example/dispatch", Enabled: true, Batch: true})
		return err
	})
	return &play{fleet: f, r: r, begin: instant(day.at(first)), sent: map[flex.EventID]int{}, held: held}
}
