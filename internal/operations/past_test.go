package operations

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// stay is a session as the test made it, with what its schedules allowed second by second.
type stay struct {
	asset    int
	from, to int64 // 0: open
	versions []version
	total    int64   // watt-seconds of the whole stay
	saved    float64 // millionths of a pound
}

type version struct {
	from  int64
	steps [][2]int64 // seconds, watts
}

// at is the power that the session was planned to draw at a second.
func (s *stay) at(second int64) (w int64) {
	if second < s.from || s.to != 0 && second >= s.to {
		return 0
	}

	for _, v := range s.versions {
		if second < v.from {
			continue
		}
		w = 0
		end := v.from

		for _, step := range v.steps {
			if second >= end && second < end+step[0] {
				w = min(step[1], 7400)
			}
			end += step[0]
		}
	}
	return w
}

// priceAt is the price of the half-hour of a second, in millionths of a pound per MWh.
func priceAt(second int64) flex.Price { return flex.Price((second/1800*7919%200 - 20) * 1e6) }

// past is a fleet of two models whose sessions are drawn at random.
type past struct {
	*storetest.Seed
	t      *testing.T
	db     *store.DB
	now    time.Time
	assets []flex.AssetID
	stays  []stay
	read   map[[2]int64]int64 // Wh by asset and half-hour's start
}

func (p *past) event(n int) []byte {
	id := flex.EventID{15: byte(n), 14: byte(n >> 8), 0: 1}
	return id[:]
}

// put writes the sessions, their schedules and what was metered.
func (p *past) put() {
	n := 0
	numbers, generations := map[int]int{}, map[int]int{}

	for i, s := range p.stays {
		id := flex.SessionID{15: byte(i), 14: byte(i >> 8), 0: 2}
		var newest, before any

		for _, v := range s.versions {
			generations[s.asset]++
			steps, end := "", v.from
			for k, step := range v.steps {
				if k > 0 {
					steps += " "
				}
				steps += fmt.Sprintf("%dx%d", step[0], step[1])
				end += step[0]
			}

			n++
			newest = p.event(n)
			p.Exec(`INSERT INTO schedule (event_id, org_id, asset_id, session_id, generation, cause, made_at, from_at, to_at, steps,
					ready_by, need_wh, delivered_wh, power_w, may_charge_peak, mode, off_peak, zone, tariff_type, origins, count_from, running, value, before_id)
				VALUES ($1, $2, $3, $4, $5, 'plug-in', $6, $6, $7, $8, $7, 20000, 0, 7400, FALSE, 'minimise_charging_time', '', 'Europe/London', '', 'event asset event', $6, FALSE, 0, $9)`,
				newest, p.Org.Bytes(), p.assets[s.asset].Bytes(), id.Bytes(), generations[s.asset], v.from*1e6, end*1e6, steps, before)
			before = newest
		}

		var out any
		if s.to != 0 {
			out = s.to * 1e6
		} else if newest != nil {
			p.Exec(`INSERT INTO outbox (subject, org_id, endpoint, kind, asset_id, event_id, generation, queued_at, expires_at, accepted)
				VALUES ($1, $2, 'schedule', 'schedule', $1, $3, $4, $5, $6, $4)`,
				p.assets[s.asset].Bytes(), p.Org.Bytes(), newest, generations[s.asset], s.from*1e6, s.from*1e6+1)
		}
		numbers[s.asset]++
		p.Exec(`INSERT INTO session (id, org_id, asset_id, site_id, number, plugged_in_at, plugged_out_at, generation, event_id, swept)
			SELECT $1, $2, $3, site_id, $4, $5, $6, $7, $8, TRUE FROM asset WHERE id = $3`,
			id.Bytes(), p.Org.Bytes(), p.assets[s.asset].Bytes(), numbers[s.asset], s.from*1e6, out, generations[s.asset], newest)
	}

	p.QueueEnded()
	span := flex.Span{From: flex.DayAt(p.now).Add(-4).Start(), To: flex.DayAt(p.now).Add(5).Start()}
	var prices []flex.PricedPeriod
	for h := flex.PeriodAt(span.From); h.Start().Before(span.To); h = h.Add(1) {
		prices = append(prices, flex.PricedPeriod{Period: h, Known: true, Price: priceAt(h.Start().Unix())})
	}

	err := p.db.WriteAll(p.t.Context(), func(all *store.All) error {
		_, err := all.AddPublication(p.t.Context(), store.Publication{Source: "market-index", PublishedAt: span.From, Span: span}, prices)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.meter(p.read)
}

// meter writes what was metered.
func (p *past) meter(read map[[2]int64]int64) {
	var rs []flex.Reading
	for key, wh := range read {
		at := flex.PeriodAt(time.Unix(key[1], 0))
		rs = append(rs, flex.Reading{AssetID: p.assets[key[0]], Span: at.Span(), Label: flex.ChargerEnergy, Value: flex.Micro(wh * 1000)})
	}
	if err := p.db.Write(p.t.Context(), p.Org, func(tx *store.Tx) error { return tx.PutReadings(p.t.Context(), rs) }); err != nil {
		p.t.Fatal(err)
	}
}

// draw makes sessions at random over the days before now: replaced schedules, short and open sessions.
func (p *past) draw(r *rand.Rand) {
	begin := p.now.Add(-60 * time.Hour).Unix()
	for asset := range p.assets {
		at := begin + r.Int64N(20*3600)

		for at < p.now.Unix()-600 {
			s := stay{asset: asset, from: at, to: at + 60 + r.Int64N(14*3600)}
			from := at
			for range r.IntN(4) {
				v := version{from: from}
				for range 1 + r.IntN(4) {
					v.steps = append(v.steps, [2]int64{60 + r.Int64N(9000), []int64{0, 3000, 99999}[r.IntN(3)]})
				}
				s.versions = append(s.versions, v)
				from += 1 + r.Int64N(7200)
			}

			if s.to > p.now.Unix() {
				s.to = 0
			}

			for second := s.from; second < s.from+60*3600; second++ {
				s.total += s.at(second)
			}

			for second := s.from; second < s.from+60*3600; second++ {
				more := -s.at(second)
				if second < s.from+s.total/7400 {
					more += 7400
				}
				s.saved += float64(more) / 3600 * float64(priceAt(second)) / 1e6
			}

			p.stays = append(p.stays, s)
			if s.to == 0 {
				break
			}
			at = s.to + 1 + r.Int64N(9*3600)
		}

		for h := flex.PeriodAt(time.Unix(begin, 0)); h.End().Before(p.now); h = h.Add(1) {
			if r.IntN(3) > 0 {
				p.read[[2]int64{int64(asset), h.Start().Unix()}] = r.Int64N(3700)
			}
		}
	}
}

// expect is a half-hour counted second by second.
func (p *past) expect(h flex.Period, in func(asset int) bool) (planned, unmoved, metered int64, plugged, wanted, known int, saved float64) {
	from, to := h.Start().Unix(), h.End().Unix()
	throughout := map[int]bool{}
	for i := range p.stays {
		s := &p.stays[i]
		out := s.to
		if out == 0 {
			out = 1 << 40
		}

		if !in(s.asset) || s.from >= to || out <= from {
			continue
		}
		plugged++
		if s.from <= from && out >= to {
			wanted++
			throughout[s.asset] = true
		}
		if s.from >= from && s.from < to {
			saved += s.saved
		}

		for second := from; second < to; second++ {
			planned += s.at(second)
			if second >= s.from && second < s.from+s.total/7400 {
				unmoved += 7400
			}
		}
	}

	for key, wh := range p.read {
		if asset := int(key[0]); key[1] == from && in(asset) {
			metered += wh
			if throughout[asset] {
				known++
			}
		}
	}
	return planned / 3600, unmoved / 3600, metered, plugged, wanted, known, saved
}

// compare holds every half-hour of the last two days against a count by seconds.
func (p *past) compare() error {
	return p.db.Read(p.t.Context(), p.Org, func(tx *store.Tx) error {
		for attribute, names := range map[string][]string{"": {""}, "model": {"A", "B"}} {
			hs, err := tx.FleetHalfHours(p.t.Context(), attribute, flex.Span{From: p.now.Add(-48 * time.Hour), To: p.now})
			if err != nil {
				return err
			}

			found := 0
			for _, h := range hs {
				in := func(asset int) bool { return attribute == "" || names[asset%2] == h.Name }
				planned, unmoved, metered, plugged, wanted, known, saved := p.expect(flex.PeriodAt(h.At), in)
				got := [...]int64{int64(h.Planned), int64(h.Unmoved), int64(h.Metered), int64(h.Plugged), int64(h.Wanted), int64(h.Known)}
				if want := [...]int64{planned, unmoved, metered, int64(plugged), int64(wanted), int64(known)}; got != want {
					return fmt.Errorf("%s %q at %v: %v, want %v", attribute, h.Name, h.At, got, want)
				}

				if math.Abs(float64(h.Saved)-saved) > 10 || h.Unpriced != 0 {
					return fmt.Errorf("%s %q at %v: saved %d, want %f; %d without a price", attribute, h.Name, h.At, h.Saved, saved, h.Unpriced)
				}
				if plugged > 0 {
					found++
				}
			}

			if found < 48 {
				return fmt.Errorf("%s: only %d half-hours with a car", attribute, found)
			}
		}

		return nil
	})
}

// eachPast runs the test over each engine, at instants that lie after each clock change and between.
func eachPast(t *testing.T, test func(t *testing.T, p *past)) {
	for _, now := range []string{"2026-01-14T21:40:00Z", "2026-03-29T22:10:00Z", "2026-10-25T23:50:00Z"} {
		t.Run(now, func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				at, err := time.Parse(time.RFC3339, now)
				if err != nil {
					t.Fatal(err)
				}

				p := &past{t: t, now: at, read: map[[2]int64]int64{}}
				db := storetest.Open(t, url, store.Options{Now: func() time.Time { return p.now }})
				p.Seed, p.db = storetest.NewSeed(t, db, url), db
				for i := range 6 {
					p.assets = append(p.assets, p.Asset(p.Site(flex.FullScheduleMethod), flex.Charger, 7400))
					p.Exec(`UPDATE asset SET model = $2, created_at = 0 WHERE id = $1`, p.assets[i].Bytes(), []string{"A", "B"}[i%2])
				}
				test(t, p)
			})
		})
	}
}

// TestCountPast counts fleets that are drawn at random, and once more after readings came late.
func TestCountPast(t *testing.T) {
	eachPast(t, func(t *testing.T, p *past) {
		s := &Service{DB: p.db}
		p.draw(rand.New(rand.NewPCG(1, uint64(p.now.Unix()))))
		late := map[[2]int64]int64{}
		for key, wh := range p.read {
			if key[1] > p.now.Add(-20*time.Hour).Unix() && key[0] > 2 {
				late[key] = wh
				delete(p.read, key)
			}
		}

		p.put()
		did, err := s.CountPast(t.Context())
		if err != nil || did.Count < 8*48 {
			t.Fatalf("counted %d: %v", did.Count, err)
		}
		if err := p.compare(); err != nil {
			t.Fatal(err)
		}
		if again, err := s.CountPast(t.Context()); err != nil || again.Count != 0 {
			t.Errorf("counted %d at once again: %v", again.Count, err)
		}

		// What came late is counted once 26 hours are over.
		until := p.now
		p.meter(late)
		maps.Copy(p.read, late)
		p.now = p.now.Add(27 * time.Hour)
		if _, err := s.CountPast(t.Context()); err != nil {
			t.Fatal(err)
		}

		p.now = until
		if err := p.compare(); err != nil {
			t.Fatal(err)
		}
		p.Exec(`UPDATE fleet_half_hour SET unmoved_wh = unmoved_wh + 1 WHERE attribute = 'model' AND name = 'B' AND at = $1`, flex.PeriodAt(p.now).Add(-3).Start().UnixMicro())
		if p.compare() == nil {
			t.Error("a planted fault is not found")
		}
	})
}

// TestCountPast_Heat has a tank whose plan was to draw 1.2 kWh in a half-hour, and that drew 1 kWh: both are in the fleet's past, and
// in no number of chargers or batteries, also after they are counted again.
func TestCountPast_Heat(t *testing.T) {
	eachPast(t, func(t *testing.T, p *past) {
		tank := p.Asset(p.Site(flex.FullScheduleMethod), flex.HotWaterTank, 3000)
		at := flex.PeriodAt(p.now).Add(-4)
		err := p.db.Write(t.Context(), p.Org, func(tx *store.Tx) error {
			err := tx.AddHeatHalfHour(t.Context(), tank, at, store.HeatHalfHour{Expected: 1200, Most: 1500})
			if err != nil {
				return err
			}

			return tx.PutReadings(t.Context(), []flex.Reading{{AssetID: tank, Span: at.Span(), Label: flex.HeatPower, Value: 2_000_000}})
		})
		if err != nil {
			t.Fatal(err)
		}

		s := &Service{DB: p.db}
		now := p.now
		for _, later := range []time.Duration{0, 27 * time.Hour} {
			p.now = now.Add(later)
			if _, err := s.CountPast(t.Context()); err != nil {
				t.Fatal(err)
			}

			v, err := s.Past(t.Context(), PastQuery{Day: flex.DayAt(at.Start())})
			if err != nil {
				t.Fatal(err)
			}

			want := PastEnergy{HeatPlanned: 1200, HeatMetered: 1000}
			if v.Days[0].Energy != want {
				t.Errorf("after %v the day has %+v, want %+v", later, v.Days[0].Energy, want)
			}
		}
	})
}

// TestDueAmong has half-hours that were counted at several times.
func TestDueAmong(t *testing.T) {
	now := time.Date(2026, 3, 29, 12, 10, 0, 0, time.UTC)
	last := flex.PeriodAt(now).Add(-1)
	counted := map[flex.Period]time.Time{
		last:          now,                                    // just now
		last.Add(-2):  last.Add(-2).End().Add(time.Minute),    // an hour ago: due again
		last.Add(-3):  last.Add(-3).End().Add(time.Hour),      // that was done
		last.Add(-20): last.Add(-20).End().Add(2 * time.Hour), // six hours are over
	}

	for p := last.Add(-30); p.Before(last); p = p.Add(1) {
		if _, ok := counted[p]; !ok && p != last.Add(-1) {
			counted[p] = now
		}
	}
	due := dueAmong(last.Add(-30).Start(), now, counted)
	want := []flex.Period{last.Add(-20), last.Add(-2), last.Add(-1)}
	if fmt.Sprint(due) != fmt.Sprint(want) {
		t.Errorf("due are %v, want %v", due, want)
	}
}

// TestBeside lays days over each other by the clock: one of 46 half-hours and one of 50 beside one of 48.
func TestBeside(t *testing.T) {
	day := func(text string) (hs []PastHalfHour) {
		d, err := flex.ParseDay(text)
		if err != nil {
			t.Fatal(err)
		}
		for n := range d.Periods() {
			at := d.Period(n + 1).Start()
			hs = append(hs, PastHalfHour{At: at, Counted: true, Energy: PastEnergy{Planned: flex.WattHours(n + 1)}})
		}
		return hs
	}

	for _, c := range []struct {
		of, other string
		want      map[int]flex.WattHours // the other's number by the day's; 0 for none
	}{
		{"2026-03-30", "2026-03-29", map[int]flex.WattHours{1: 1, 2: 2, 3: 0, 4: 0, 5: 3, 48: 46}},
		{"2026-03-29", "2026-03-28", map[int]flex.WattHours{1: 1, 2: 2, 3: 5, 46: 48}},
		{"2026-10-26", "2026-10-25", map[int]flex.WattHours{2: 2, 3: 3, 4: 4, 5: 7, 48: 50}},
		{"2026-10-25", "2026-10-24", map[int]flex.WattHours{2: 2, 3: 3, 4: 4, 5: 3, 6: 4, 7: 5, 50: 48}},
	} {
		of := day(c.of)
		beside(of, day(c.other), func(h *PastHalfHour, e *PastEnergy) { h.Before = e })

		for n, want := range c.want {
			var got flex.WattHours
			if b := of[n-1].Before; b != nil {
				got = b.Planned
			}
			if got != want {
				t.Errorf("beside period %d of %s lies %d of %s, want %d", n, c.of, got, c.other, want)
			}
		}
	}
}
