package sums_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/reward"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// fleet is an organisation's homes, in the service and in the oracle.
type fleet struct {
	name    string
	service *reward.Service
	db      *store.DB
	url     string
	seed    *storetest.Seed
	day     date
	homes   []*drawn
	sites   []flex.SiteID
	assets  [][]flex.AssetID
	ids     map[*steered]flex.FlexEventID
}

// dayOf and the like are between the oracle's words and the service's.
func dayOf(d date) flex.Day {
	y, m, dom := d.civil()
	return flex.Day{Year: y, Month: m, Dom: dom}
}

func instant(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

func energies(es []int64) (all []flex.WattHours) {
	for _, e := range es {
		all = append(all, flex.WattHours(e))
	}
	return all
}

// words are the terms as an operator sets them.
func (t *terms) words() map[string]string {
	number := func(r interface{ FloatString(int) string }) string { return r.FloatString(6) }
	rounding, crediting := "half_away_from_zero", "month"
	if t.even {
		rounding = "half_even"
	}

	if t.byEvent {
		crediting = "event"
	}
	words := map[string]string{
		"baseline": t.method, "in_day": fmt.Sprint(t.inDay), "user_share": number(t.share), "paid_early": number(t.early),
		"loss_factor": number(t.loss), "rounding": rounding, "crediting": crediting, "claw_back": fmt.Sprint(t.claw),
		"certainty": "0", // which the statements' own calculation is for
	}
	if t.cap > 0 {
		words["in_day_cap_wh"] = fmt.Sprint(t.cap)
	}
	return words
}

// newFleet draws homes and makes them in the store, as far as they are told of at first.
func newFleet(t *testing.T, db *store.DB, url, name string, day date, homes int, seed *storetest.Seed) *fleet {
	t.Helper()
	var all []*drawn
	for i := range homes {
		all = append(all, draw(rand.New(rand.NewPCG(uint64(i), uint64(day)*37+uint64(len(name)))), day, termsDrawn()[name]))
	}
	f := fleetOf(t, db, url, name, name, day, all, seed)
	for i := range f.homes {
		f.events(t, i)
	}
	return f
}

// fleetOf makes homes of an organisation of their own, on terms by a name, without their events.
func fleetOf(t *testing.T, db *store.DB, url, name, org string, day date, homes []*drawn, seed *storetest.Seed) *fleet {
	t.Helper()
	made, err := db.AddOrg(t.Context(), org)
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{name: name, service: &reward.Service{DB: db}, db: db, url: url, seed: seed.As(made.ID), day: day, ids: map[*steered]flex.FlexEventID{}}
	of := termsDrawn()[name]
	if _, err := f.service.SetTerms(t.Context(), made.ID, of.words(), flex.Day{}, "test"); err != nil {
		t.Fatal(err)
	}

	for _, h := range homes {
		f.add(t, h)
	}
	return f
}

// add makes a home of the organisation.
func (f *fleet) add(t *testing.T, h *drawn) {
	t.Helper()
	site := f.seed.Site()
	f.seed.Exec(`UPDATE site SET consent_at = 1 WHERE id = $1`, site.Bytes())
	f.seed.Exec(`INSERT INTO consent_span (site_id, org_id, from_at, known_at) VALUES ($1, $2, 1, 1)`, site.Bytes(), f.seed.Org.Bytes())
	var assets []flex.AssetID
	for _, d := range h.devices {
		assets = append(assets, f.device(site, d))
	}
	f.homes, f.sites, f.assets = append(f.homes, h), append(f.sites, site), append(f.assets, assets)
	f.resets(h.restarts, assets)
	f.put(t, len(f.homes)-1, h.readings)
}

// device makes a device of a home.
func (f *fleet) device(site flex.SiteID, d device) flex.AssetID {
	kind := flex.Charger
	switch {
	case d.battery:
		kind = flex.Battery
	case d.car:
		kind = flex.ElectricVehicle
	}

	id := f.seed.Asset(site, kind, flex.Watts(d.power))
	if d.qualified {
		f.seed.Exec(`UPDATE asset SET model = 'm', installed_on = '2025-01-01' WHERE id = $1`, id.Bytes())
	}
	if d.capacity > 0 {
		f.seed.Exec(`UPDATE asset SET capacity_wh = $2 WHERE id = $1`, id.Bytes(), d.capacity)
	}
	return id
}

func (f *fleet) write(t *testing.T, fn func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	if err := f.db.Write(t.Context(), f.seed.Org, func(tx *store.Tx) error { return fn(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
}

// resets keeps where a home's registers began anew.
func (f *fleet) resets(restarts map[keptKey][]int64, assets []flex.AssetID) {
	labels := map[string]int{chargerRegister: 12, importRegister: 13, exportRegister: 14}
	for key, all := range restarts {
		for _, at := range all {
			f.seed.Exec(`INSERT INTO register_reset (asset_id, label, at, known_at) VALUES ($1, $2, $3, 1) ON CONFLICT DO NOTHING`,
				assets[key.device].Bytes(), labels[key.kind], instant(at).UnixMicro())
		}
	}
}

// put keeps readings of a home, each time, asset and label once: the last that came counts.
func (f *fleet) put(t *testing.T, i int, readings []sent) {
	t.Helper()
	for chunk := range slices.Chunk(readings, 4000) {
		last := map[flex.Reading]int{}
		var rs []flex.Reading

		for _, x := range chunk {
			r := flex.Reading{AssetID: f.assets[i][x.device], Label: flex.Label(x.kind), Span: flex.Span{From: instant(x.from), To: instant(x.to)}}
			if at, there := last[r]; there {
				rs[at].Value = flex.Micro(x.value)
				continue
			}
			last[r] = len(rs)
			r.Value = flex.Micro(x.value)
			rs = append(rs, r)
		}

		f.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.PutReadings(ctx, rs) })
	}
}

// events keeps a home's sessions and events, as they are found.
func (f *fleet) events(t *testing.T, i int) {
	t.Helper()
	h := f.homes[i]
	slices.SortFunc(h.events, func(a, b *steered) int { return int(a.day - b.day) })
	numbers := map[int]int{}

	for k, e := range h.events {
		x := store.FlexEvent{
			SiteID: f.sites[i], AssetID: f.assets[i][e.device], Day: dayOf(e.day), First: e.first, Last: e.last,
			Span:  flex.Span{From: instant(e.day.at(e.first)), To: instant(e.day.at(e.last + 1))},
			Meant: energies(e.meant), Nominated: energies(e.plan),
		}
		if e.stay != [2]int64{} {
			x.Stay, x.StayPlan = flex.Span{From: instant(e.stay[0]), To: instant(e.stay[1])}, energies(e.stayPlan)
		}
		if e.session {
			numbers[e.device]++
			x.SessionID = flex.SessionID(x.AssetID)
			x.SessionID[0], x.SessionID[1] = byte(k+1), 0xee
			f.seed.Exec(`INSERT INTO session (id, org_id, asset_id, site_id, number, plugged_in_at, plugged_out_at, generation) VALUES ($1, $2, $3, $4, $5, $6, $7, 0)`,
				x.SessionID.Bytes(), f.seed.Org.Bytes(), x.AssetID.Bytes(), x.SiteID.Bytes(), numbers[e.device], x.Stay.From.UnixMicro(), x.Stay.To.UnixMicro())
		}

		f.write(t, func(ctx context.Context, tx *store.Tx) error {
			kept, err := tx.AddFlexEvent(ctx, &x)
			if err == nil && !kept {
				err = fmt.Errorf("the event of %s is not kept", x.Day)
			}
			return err
		})
		f.ids[e] = x.ID
	}
	f.number(h)
}

// number has the oracle know the order of a home's events by their ids.
func (f *fleet) number(h *drawn) {
	ordered := slices.Clone(h.events)
	slices.SortFunc(ordered, func(a, b *steered) int {
		x, y := f.ids[a], f.ids[b]
		return slices.Compare(x[:], y[:])
	})
	for k, e := range ordered {
		e.id = k
	}
}

// late has what is late come, and devices go.
func (f *fleet) late(t *testing.T) {
	t.Helper()
	for i, h := range f.homes {
		f.put(t, i, h.late)
		h.readings = append(h.readings, h.late...)
		h.late = nil
		if h.gone >= 0 {
			f.write(t, func(ctx context.Context, tx *store.Tx) error { return tx.DropAsset(ctx, f.assets[i][h.gone]) })
		}
	}
}

// untilIdle runs the background jobs until nothing is due.
func untilIdle(t *testing.T, s *reward.Service) {
	t.Helper()
	for range 2_000 {
		r, err := s.SettleEvents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if r.Count == 0 {
			return
		}
	}
	t.Fatal("the background jobs never come to rest")
}

// figures is what a home comes to, as lines to be compared.
func (f *fleet) figures(t *testing.T, i int) (lines []string) {
	t.Helper()
	err := f.db.Read(t.Context(), f.seed.Org, func(tx *store.Tx) error {
		lines = nil
		events, err := tx.FlexEvents(t.Context(), f.sites[i])
		if err != nil {
			return err
		}

		waits := false
		for _, e := range events {
			flexed := "-"
			waits = waits || e.Missing > 0 && e.Final == nil
			if e.Flex != nil && (e.Missing == 0 || e.Final != nil) {
				flexed = fmt.Sprint(int64(*e.Flex))
			}
			lines = append(lines, fmt.Sprintf("event %s: %s Wh, %d missing", e.ID, flexed, e.Missing))
		}

		hs, err := tx.HalfHours(t.Context(), f.sites[i], flex.Span{From: instant((f.day - 40).begin()), To: instant((f.day + 2).begin())})
		if err != nil {
			return err
		}

		for _, h := range hs {
			meter := -1
			if !h.Meter.IsZero() {
				meter = slices.Index(f.assets[i], h.Meter)
			}
			for _, p := range h.Parts {
				lines = append(lines, fmt.Sprintf("half-hour %d of %s at meter %d by %s: %d of %d Wh, %d apart, %d deviate, %d nobody's, %d of it", h.Period.Start().Unix(), p.Event,
					meter, h.Label, h.Metered, h.Baseline, h.Apart, h.Deviation, h.Unassigned, p.Flex))
			}
		}

		balance, err := tx.Balance(t.Context(), f.sites[i])
		if err != nil {
			return err
		}
		ts, _, err := tx.Transactions(t.Context(), f.sites[i], 1000, 0)
		if err != nil {
			return err
		}

		moved := int64(0)
		for _, tr := range ts {
			if tr.Flex != nil {
				moved += int64(*tr.Flex)
			}
		}

		if !waits { // what waits for a reading keeps what it was credited before, until it is final
			lines = append(lines, fmt.Sprintf("balance %d p, transactions of %d Wh", int64(balance), moved))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	slices.Sort(lines)
	return lines
}

// expected is the same by the oracle.
func (f *fleet) expected(i int, final bool, fault string) (lines []string) {
	h := f.homes[i].home
	h.final, h.fault = final, fault
	sums := h.settled()
	moved, waits := int64(0), false

	for _, s := range sums {
		flexed := "-"
		if h.left(s.steered) {
			lines = append(lines, fmt.Sprintf("event %s: - Wh, 0 missing", f.ids[s.steered]))
			continue
		}
		waits = waits || s.missing > 0 && !final
		if s.missing == 0 || final {
			flexed = fmt.Sprint(s.flex)
			moved += s.flex
		}

		lines = append(lines, fmt.Sprintf("event %s: %s Wh, %d missing", f.ids[s.steered], flexed, s.missing))
		meter := -1
		if s.own {
			meter = s.device
		}
		for _, p := range s.parts {
			if p.known && p.compared {
				lines = append(lines, fmt.Sprintf("half-hour %d of %s at meter %d by %s: %d of %d Wh, %d apart, %d deviate, %d nobody's, %d of it", s.day.at(p.n), f.ids[s.steered],
					meter, s.kind, p.metered, p.baseline, p.rest, p.deviation, p.unassigned, p.flex))
			}
		}
	}

	if !waits {
		lines = append(lines, fmt.Sprintf("balance %d p, transactions of %d Wh", h.balance(sums), moved))
	}
	slices.Sort(lines)
	return lines
}

// compare has the oracle and the service say the same of each home, line by line.
func (f *fleet) compare(t *testing.T, when string, final bool) (halfHours int) {
	t.Helper()
	for i := range f.homes {
		got, want := f.figures(t, i), f.expected(i, final, "")
		halfHours += len(want)
		if slices.Equal(got, want) {
			continue
		}
		for _, line := range got {
			if !slices.Contains(want, line) {
				t.Errorf("%s, %s, home %d, %s: the service says  %s", f.name, dayOf(f.day), i, when, line)
			}
		}

		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("%s, %s, home %d, %s: the oracle says   %s", f.name, dayOf(f.day), i, when, line)
			}
		}
		if len(t.Name()) > 0 && os.Getenv("FLEXD_SUMS_ALL") == "" {
			return halfHours
		}
	}
	return halfHours
}

// repair has all events looked at, those too that wait for another reading than what came.
func (f *fleet) repair(t *testing.T) {
	t.Helper()
	if _, err := f.service.Repair(t.Context(), f.seed.Org, reward.Resettlement{From: dayOf(f.day - 40), To: dayOf(f.day)}); err != nil {
		t.Fatal(err)
	}
}

// again settles all homes at once, and finds the inputs of each event as they were.
func (f *fleet) again(t *testing.T) {
	t.Helper()
	run, err := f.service.Resettle(t.Context(), f.seed.Org, reward.Resettlement{From: dayOf(f.day - 40), To: dayOf(f.day)})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range f.seed.Strings(`SELECT CAST(e.day AS TEXT) FROM flex_event e JOIN settlement s ON s.flex_event_id = e.id AND s.run_id = $2
		WHERE e.org_id = $1 AND s.hash <> e.hash`, f.seed.Org.Bytes(), run.ID.Bytes()) {
		t.Errorf("%s: an event of %s has other inputs when all are settled together", f.name, id)
	}
}

// Random homes through the whole service, on a real database: by every baseline method that
// terms allow, on both days of a clock change and on one without, whatever comes late, doubled
// or corrected, every half-hour, every part and every penny is what a calculation that shares no
// code with the service comes to. FLEXD_LONG draws 45 times as many, and as many on PostgreSQL, which has a third else.
func TestSums(t *testing.T) {
	homes := 2
	if os.Getenv("FLEXD_LONG") != "" {
		homes = 90
	}
	found, tried := map[string]int{}, map[date]bool{}
	days := []date{dateOf(2025, 3, 30), dateOf(2025, 10, 26), dateOf(2025, 6, 11)}

	for _, day := range days {
		t.Run(dayOf(day).String(), func(t *testing.T) {
			storetest.EachURL(t, func(t *testing.T, url string) {
				now := instant((day + 1).begin())
				db := storetest.Open(t, url, store.Options{Now: func() time.Time { return now }})
				seed := storetest.NewSeed(t, db, url)
				seed.Exec(`INSERT INTO model (key, name, type, cop11) VALUES ('m', 'm', 'charger', TRUE)`)
				publish(t, db, day)
				var fleets []*fleet
				homes := storetest.OneOf(url, homes, 1)
				for _, name := range slices.Sorted(maps.Keys(termsDrawn())) {
					fleets = append(fleets, newFleet(t, db, url, name, day, homes, seed))
				}

				now = now.Add(48 * time.Hour)
				untilIdle(t, fleets[0].service)
				for _, f := range fleets {
					f.compare(t, "at first", false)
				}

				for _, f := range fleets {
					f.late(t)
				}
				now = now.Add(time.Hour)
				untilIdle(t, fleets[0].service)
				n := 0
				for _, f := range fleets {
					f.repair(t)
					n += f.compare(t, "when all had come", false)
					f.again(t)
				}

				now = now.AddDate(0, 0, 70)
				untilIdle(t, fleets[0].service)
				for _, f := range fleets {
					f.compare(t, "in the end", true)
				}

				for _, fault := range plants {
					planted(fleets, fault, found)
				}
				tried[day] = true
				seed.QueueEnded()
				resets(seed)
				fmt.Fprintf(t.Output(), "%d homes, %d figures\n", homes*len(fleets), n)
			})
		})
	}

	fmt.Fprintf(t.Output(), "mistakes, by the homes in which they are found: %v\n", found)
	for _, fault := range plants {
		if found[fault] == 0 && len(tried) == len(days) {
			t.Errorf("%s: the comparison does not find it", fault)
		}
	}
}

// resets notes where registers fell without a word, by a reading that was corrected or comes anew on another day.
func resets(seed *storetest.Seed) {
	seed.Exec(`INSERT INTO register_reset (asset_id, label, at, known_at) SELECT asset_id, label, at, at FROM (
		SELECT asset_id, label, at, value, LAG(value) OVER (PARTITION BY asset_id, label ORDER BY at) AS earlier
		FROM reading WHERE label IN (12, 13, 14)) AS marks WHERE value < earlier ON CONFLICT DO NOTHING`)
}

// plants are mistakes that the oracle makes on purpose.
var plants = []string{
	"a wrong share", "two registers are read as one", "the clocks never change", "days of events count", "each event has all of it",
	"registers never begin anew", "a device counts that measures something else", "a car counts beside its charger",
}

// planted counts in how many homes the comparison finds a mistake.
func planted(fleets []*fleet, fault string, found map[string]int) {
	for _, f := range fleets {
		for i := range f.homes {
			if !slices.Equal(f.expected(i, true, fault), f.expected(i, true, "")) {
				found[fault]++
			}
		}
	}
}

// publish publishes a price for each half-hour of the time.
func publish(t *testing.T, db *store.DB, day date) {
	t.Helper()
	span := flex.Span{From: instant((day - 40).begin()), To: instant((day + 2).begin())}
	var ps []flex.PricedPeriod
	for p := flex.PeriodAt(span.From); p.Start().Before(span.To); p = p.Add(1) {
		ps = append(ps, flex.PricedPeriod{Period: p, Price: flex.Price(price(p.Start().Unix())), Known: true})
	}
	err := db.WriteAll(t.Context(), func(all *store.All) error {
		_, err := all.AddPublication(t.Context(), store.Publication{Source: "test", PublishedAt: span.From, Span: span}, ps)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
