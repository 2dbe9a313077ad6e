package market

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// clock is the store's time, turned by hand.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) set(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at(s)
}

// each runs the test with a service on each engine.
func each(t *testing.T, now string, test func(t *testing.T, d *Service, c *clock, seed *storetest.Seed)) {
	storetest.EachURL(t, func(t *testing.T, url string) {
		c := &clock{}
		c.set(now)
		db := storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: c.now})
		test(t, &Service{DB: db, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}, c, storetest.NewSeed(t, db, url))
	})
}

// given is a source that has the prices it was given and nothing else.
type given struct {
	name   string
	prices map[string]float64 // by the start of the half-hour
	err    error
	asked  []string
	split  time.Duration
}

func (g *given) Name() string { return g.name }
func (g *given) Longest() time.Duration {
	if g.split > 0 {
		return g.split
	}
	return 24 * time.Hour
}

func (g *given) Fetch(_ context.Context, span flex.Span) (Fetched, error) {
	g.asked = append(g.asked, span.From.Format("02T15:04")+"-"+span.To.Format("02T15:04"))
	b := newBook(span)
	for start, price := range g.prices {
		b.add(flex.PeriodAt(at(start)), price, false)
	}
	return b.fetched(), g.err
}

// flat is a price for every half-hour of a span.
func flat(s flex.Span, price float64) map[string]float64 {
	m := map[string]float64{}
	for p := flex.PeriodAt(s.From); p.Start().Before(s.To); p = p.Add(1) {
		m[p.Start().Format(time.RFC3339)] = price
	}
	return m
}

// TestCurveHorizonVectors asks for the curve at each instant of the vectors, on a service
// that was given all prices long ago.
func TestCurveHorizonVectors(t *testing.T) {
	rows := recorded[[]struct {
		Now, Why string
		First    string `json:"first_start"`
		End      string `json:"end_exclusive"`
		Rows     int
	}](t, "price_curve_horizon.json")
	if len(rows) == 0 {
		t.Fatal("no vectors")
	}

	each(t, "2024-12-31T00:00:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		all := span("2025-01-01T00:00:00Z", "2025-12-31T00:00:00Z")
		var prices []flex.PricedPeriod
		for p := flex.PeriodAt(all.From); p.Start().Before(all.To); p = p.Add(1) {
			prices = append(prices, flex.PricedPeriod{Period: p, Price: flex.FromGBPPerMWh(50), Known: true})
		}
		err := d.DB.WriteAll(t.Context(), func(all_ *store.All) error {
			_, err := all_.AddPublication(t.Context(), store.Publication{Source: "file", PublishedAt: all_.Now(), Span: all}, prices)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}

		site := seed.Site()
		asset := seed.Asset(site, flex.Battery, 0)

		for _, v := range rows {
			c.set(v.Now)
			got, err := d.AssetCurve(t.Context(), seed.Org, asset)
			if err != nil || len(got) != v.Rows || got[0].Period.Start() != at(v.First) || got[len(got)-1].Period.End() != at(v.End) {
				t.Errorf("%s: %d rows, %v, want %d", v.Why, len(got), err, v.Rows)
			}
			same, err := d.SiteCurve(t.Context(), seed.Org, site)
			if err != nil || fmt.Sprint(same) != fmt.Sprint(got) {
				t.Errorf("%s: the site's curve is another: %v", v.Why, err)
			}
		}

		c.set("2025-01-15T13:59:59Z")
		if got, err := d.AssetCurve(t.Context(), seed.Org, asset); err != nil || len(got) != 19 {
			t.Errorf("a second before publication: %d rows, %v, want 19", len(got), err)
		}
		if _, err := d.AssetCurve(t.Context(), seed.Org, flex.AssetID{1}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("an asset that is not there: %v", err)
		}
		if _, err := d.SiteCurve(t.Context(), seed.Org, flex.SiteID{1}); flex.KindOf(err) != flex.NotFound {
			t.Errorf("a site that is not there: %v", err)
		}
	})
}

// curve writes the curve of the organisation as it stands.
func curve(t *testing.T, d *Service, org flex.OrgID) string {
	t.Helper()
	var f Fetched
	err := d.DB.Read(t.Context(), org, func(tx *store.Tx) (err error) {
		f.Prices, err = d.Curve(t.Context(), tx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.Prices); n > 4 { // both ends tell enough
		return listed(Fetched{Prices: f.Prices[:2]}) + fmt.Sprintf(" …%d… ", n-4) + listed(Fetched{Prices: f.Prices[n-2:]})
	}
	return listed(f)
}

func TestPublicationAndRevision(t *testing.T) {
	each(t, "2025-01-15T10:05:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		today, tomorrow := span("2025-01-14T23:00:00Z", "2025-01-15T23:00:00Z"), span("2025-01-15T23:00:00Z", "2025-01-16T23:00:00Z")
		s := &given{name: "exchange", prices: flat(today, 40)}
		d.Sources = []Source{s}
		round := func(did int) {
			t.Helper()
			if r, err := d.FetchPrices(t.Context()); err != nil || r.Count != did || r.Note != "" {
				t.Errorf("round: %+v, %v, want %d done", r, err, did)
			}
		}

		expect := func(want string) {
			t.Helper()
			if got := curve(t, d, seed.Org); got != want {
				t.Errorf("at %s: %s\nwant %s", c.now().Format("15:04"), got, want)
			}
		}

		expect("15T10:00=0? 15T10:30=0? …22… 15T22:00=0? 15T22:30=0?")
		round(1)
		expect("15T10:00=40 15T10:30=40 …22… 15T22:00=40 15T22:30=40")
		round(0) // asked a moment ago
		if len(s.asked) != 2 {
			t.Errorf("asked %v", s.asked)
		}

		// Tomorrow's prices come in before noon and are kept back until 14:00.
		c.set("2025-01-15T11:00:00Z")
		for start, price := range flat(tomorrow, 60) {
			s.prices[start] = price
		}
		round(1)
		expect("15T11:00=40 15T11:30=40 …20… 15T22:00=40 15T22:30=40")
		c.set("2025-01-15T14:00:00Z")
		expect("15T14:00=40 15T14:30=40 …62… 16T22:00=60 16T22:30=60")

		// A revision counts from when it comes in, and only what changed is published.
		c.set("2025-01-15T15:45:00Z")
		s.prices["2025-01-16T22:30:00Z"] = -5.5
		round(1)
		expect("15T15:30=40 15T16:00=40 …59… 16T22:00=60 16T22:30=-5.5")
		c.set("2025-01-15T15:50:00Z")
		round(0)

		// A price that the source no longer gives is not taken away by silence.
		c.set("2025-01-15T15:55:00Z")
		delete(s.prices, "2025-01-16T22:30:00Z")
		round(0)
		expect("15T15:30=40 15T16:00=40 …59… 16T22:00=60 16T22:30=-5.5")

		day, err := d.Day(t.Context(), seed.Org, flex.Day{Year: 2025, Month: 1, Dom: 16}, "")
		if err != nil || len(day.Publications) != 2 || len(day.Quotes) != 48 {
			t.Fatalf("%d quotes, %v, %v", len(day.Quotes), day.Publications, err)
		}
		if newest := day.Publications[0]; newest.PublishedAt != at("2025-01-15T15:45:00Z") || newest.Source != "exchange" ||
			newest.ID != day.Quotes[45].From || newest.Missing != 0 || day.Publications[1].PublishedAt != at("2025-01-15T14:00:00Z") {
			t.Errorf("%+v", day.Publications)
		}
		if day, err := d.Day(t.Context(), seed.Org, flex.Day{}, "another"); err != nil || day.Day.String() != "2025-01-15" || len(day.Publications) != 0 || day.Quotes[0].Known {
			t.Errorf("%+v, %v", day.Publications, err)
		}
	})
}

// TestFetchPrices_AfterTheDay has the price of a day's last half-hour come after the day is
// over, as an imbalance price does, and another be revised then: both count, and are published
// once.
func TestFetchPrices_AfterTheDay(t *testing.T) {
	each(t, "2025-01-15T22:40:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		s := &given{name: "imbalance", prices: flat(span("2025-01-14T23:00:00Z", "2025-01-15T22:30:00Z"), 40)}
		d.Sources = []Source{s}
		fetch := func(published int) {
			t.Helper()
			if r, err := d.FetchPrices(t.Context()); err != nil || r.Count != published {
				t.Errorf("at %s: %+v, %v, want %d", c.now().Format("15:04"), r, err, published)
			}
		}

		fetch(1)
		c.set("2025-01-15T23:10:00Z")
		s.prices["2025-01-15T22:30:00Z"] = 50
		s.prices["2025-01-15T10:00:00Z"] = 45
		fetch(1)
		c.set("2025-01-15T23:20:00Z")
		fetch(0)

		day, err := d.Day(t.Context(), seed.Org, flex.Day{Year: 2025, Month: 1, Dom: 15}, "imbalance")
		if err != nil || len(day.Quotes) != 48 {
			t.Fatalf("%d quotes, %v", len(day.Quotes), err)
		}
		for i, want := range map[int]float64{19: 40, 20: 45, 45: 50} {
			if got := TwoDecimals(day.Quotes[i].Price); got != want {
				t.Errorf("half-hour %d: %v, want %v", i, got, want)
			}
		}
	})
}

// TestImbalanceIsLate has sources whose prices come after the half-hour: that they have none
// of times to come is no fault, and that one falls silent is.
func TestImbalanceIsLate(t *testing.T) {
	for _, name := range []string{"elexon-system-price", "elexon-mid"} {
		t.Run(name, func(t *testing.T) { comesLate(t, name) })
	}
}

func comesLate(t *testing.T, name string) {
	each(t, "2025-01-15T10:00:00Z", func(t *testing.T, d *Service, c *clock, _ *storetest.Seed) {
		s := &given{name: name, prices: flat(span("2025-01-14T23:00:00Z", "2025-01-15T10:00:00Z"), 40)}
		d.Sources = []Source{s}
		if _, err := d.FetchPrices(t.Context()); err != nil {
			t.Fatal(err)
		}

		for at, want := range map[string]string{
			"2025-01-15T10:00:00Z": "",
			"2025-01-15T16:00:00Z": "",
			"2025-01-15T16:00:01Z": "its prices ended at 2025-01-15T10:00:00Z",
		} {
			c.set(at)
			found, err := d.Freshness(t.Context())
			if err != nil || len(found) != 1 || found[0].Stale != want {
				t.Errorf("at %s: %+v, %v", at, found, err)
			}
		}
	})
}

func TestNextDayIsLate(t *testing.T) {
	each(t, "2025-01-15T10:00:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		s := &given{name: "exchange", prices: flat(span("2025-01-14T23:00:00Z", "2025-01-15T23:00:00Z"), 40)}
		d.Sources = []Source{s, &given{name: "silent"}}
		stale := func(want ...string) {
			t.Helper()
			fs, err := d.Freshness(t.Context())
			if err != nil || len(fs) != len(want) {
				t.Fatalf("%v, %v", fs, err)
			}

			for i, f := range fs {
				if want[i] == "" && f.Stale != "" || !strings.Contains(f.Stale, want[i]) {
					t.Errorf("at %s, %s: %q, want %q", c.now().Format("15:04"), f.Source, f.Stale, want[i])
				}
			}
		}
		if _, err := d.FetchPrices(t.Context()); err != nil {
			t.Fatal(err)
		}

		stale("", "never given")
		c.set("2025-01-15T14:30:00Z")
		if got := curve(t, d, seed.Org); got != "15T14:30=40 15T15:00=40 …13… 15T22:00=40 15T22:30=40" {
			t.Errorf("without tomorrow's prices today's stand alone: %s", got)
		}

		stale("", "never given")
		c.set("2025-01-15T15:00:00Z")
		stale("2025-01-16 were due at 2025-01-15T14:00:00Z", "never given")
		c.set("2025-01-15T23:00:00Z")
		stale("ended at 2025-01-15T23:00:00Z", "never given")
		if got := curve(t, d, seed.Org); got != "" {
			t.Errorf("after 23:00 there is nothing: %s", got)
		}
		s.err = errors.New("the exchange is closed")
		if r, err := d.FetchPrices(t.Context()); err != nil || r.Note != "failed: exchange" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// A source that fails says how and when until it answers, in one line of bounded length; one
// that does not fail says nothing.
func TestFreshness_Failure(t *testing.T) {
	each(t, "2025-01-15T10:00:00Z", func(t *testing.T, d *Service, c *clock, _ *storetest.Seed) {
		s := &given{name: "exchange", err: errors.New("ask example.com:\n there is no host named example.com " + strings.Repeat("é", failureMax))}
		d.Sources = []Source{s, &given{name: "silent"}}
		states := func() []Freshness {
			t.Helper()
			if _, err := d.FetchPrices(t.Context()); err != nil {
				t.Fatal(err)
			}

			found, err := d.Freshness(t.Context())
			if err != nil || len(found) != 2 {
				t.Fatalf("%+v, %v", found, err)
			}
			return found
		}

		found := states()
		want := "asked at 2025-01-15T10:00:00Z, it failed: ask example.com: there is no host named example.com é"
		if said := found[0].LastFailure(); !strings.HasPrefix(said, want) || len(said) > len(want)+failureMax {
			t.Errorf("%q, not %q", said, want)
		}
		if said := found[1].LastFailure(); said != "" {
			t.Errorf("a source that answered: %q", said)
		}

		s.err = nil
		c.set("2025-01-15T10:10:00Z")
		if said := states()[0].LastFailure(); said != "" {
			t.Errorf("after an answer: %q", said)
		}
	})
}

// A page of prices says what a source lacks by the clock of the organisation that it is for.
func TestDayView_SourcesByItsClock(t *testing.T) {
	each(t, "2025-01-15T10:00:00Z", func(t *testing.T, d *Service, _ *clock, seed *storetest.Seed) {
		d.Sources = []Source{&given{name: "exchange", prices: flat(span("2025-01-14T23:00:00Z", "2025-01-15T23:00:00Z"), 40)}}
		if _, err := d.FetchPrices(t.Context()); err != nil {
			t.Fatal(err)
		}

		for _, ahead := range []time.Duration{0, 5 * 24 * time.Hour} {
			err := d.DB.Write(t.Context(), seed.Org, func(tx *store.Tx) error {
				return tx.SetClock(t.Context(), ahead)
			})
			if err != nil {
				t.Fatal(err)
			}

			v, err := d.DayView(t.Context(), DayQuery{Org: seed.Org})
			if err != nil || len(v.Sources) != 1 {
				t.Fatalf("%+v, %v", v.Sources, err)
			}

			if stale := v.Sources[0].Stale != ""; stale != (ahead > 0) {
				t.Errorf("a clock ahead by %v: %q", ahead, v.Sources[0].Stale)
			}
		}
	})
}

func TestFetchHistory(t *testing.T) {
	each(t, "2025-06-01T12:00:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		autumn := span("2024-10-25T22:00:00Z", "2024-10-28T23:00:00Z") // three EFA days, one of 50 half-hours
		s := &given{name: "exchange", prices: flat(autumn, 10), split: 36 * time.Hour}
		s.prices["2024-10-27T00:00:00Z"] = 7000
		var progress []string
		r, err := d.Fetch(t.Context(), s, autumn, func(done, total time.Duration) { progress = append(progress, fmt.Sprint(done, "/", total)) })
		if err != nil || r.Prices != 145 || len(r.Rejected) != 1 || r.Rejected[0].Rows != 1 || r.Published != 5 {
			t.Errorf("%+v, %v", r, err)
		}

		if fmt.Sprint(progress) != "[36h0m0s/73h0m0s 72h0m0s/73h0m0s 73h0m0s/73h0m0s]" {
			t.Error(progress)
		}
		if again, err := d.Fetch(t.Context(), s, autumn, nil); err != nil || again.Published != 0 {
			t.Errorf("%+v, %v", again, err)
		}

		// History counts as if it had come out on time: a day's prices at 14:00 of its eve.
		day, err := d.Day(t.Context(), seed.Org, flex.Day{Year: 2024, Month: 10, Dom: 27}, "exchange")
		if err != nil || len(day.Quotes) != 50 || len(day.Publications) != 3 {
			t.Fatalf("%d, %+v, %v", len(day.Quotes), day.Publications, err)
		}
		if last := day.Publications[len(day.Publications)-1]; last.PublishedAt != at("2024-10-26T13:00:00Z") || last.FetchedAt != c.now() {
			t.Errorf("%+v", last)
		}

		if q := day.Quotes[2]; q.Known {
			t.Errorf("a price that cannot be true was kept: %+v", q)
		}
		s.err = errors.New("gone")
		if _, err := d.Fetch(t.Context(), s, autumn, nil); err == nil {
			t.Error("a failure is not reported")
		}
	})
}

// failsLater is a source that answers some pieces of a span and fails then.
type failsLater struct {
	*given
	pieces int
}

func (f *failsLater) Fetch(ctx context.Context, span flex.Span) (Fetched, error) {
	if f.pieces == 0 {
		return Fetched{}, errors.New("the exchange is closed")
	}

	f.pieces--
	return f.given.Fetch(ctx, span)
}

// What was kept out of the first piece of an answer is said though the second one fails; a
// source that gives nothing leaves what was said.
func TestFetch_RejectedBeforeAFailure(t *testing.T) {
	each(t, "2025-06-01T12:00:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		days := span("2025-05-31T22:00:00Z", "2025-06-02T22:00:00Z")
		s := &given{name: "exchange", prices: flat(days, 10)}
		s.prices["2025-06-01T10:00:00Z"] = 7000
		for _, pieces := range []int{1, 0} {
			if _, err := d.Fetch(t.Context(), &failsLater{s, pieces}, days, nil); err == nil {
				t.Fatal("a failure is not reported")
			}

			fresh, err := d.Freshness(t.Context())
			if err != nil || len(fresh) != 1 || len(fresh[0].Rejected) != 1 {
				t.Errorf("after %d pieces: %+v, %v", pieces, fresh, err)
			}
		}
	})
}

func TestCarbonBesidePrices(t *testing.T) {
	each(t, "2018-01-20T12:10:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		s := serve(t)
		path := "/intensity/2018-01-19T23:00Z/2018-01-21T23:00Z?"
		s.answers[path] = `{"data":[
			{"from":"2018-01-20T12:00Z","to":"2018-01-20T12:30Z","intensity":{"forecast":266,"actual":263}},
			{"from":"2018-01-20T12:30Z","to":"2018-01-20T13:00Z","intensity":{"forecast":260,"actual":null}}]}`

		d.Carbon = &Carbon{Web: local(), URL: s.URL}
		expect := func(want string) {
			t.Helper()
			if r, err := d.FetchPrices(t.Context()); err != nil || r.Note != "" {
				t.Errorf("%+v, %v", r, err)
			}

			day, err := d.Day(t.Context(), seed.Org, flex.Day{}, "")
			if err != nil {
				t.Fatal(err)
			}
			noon := flex.PeriodAt(at("2018-01-20T12:00:00Z"))
			if got := fmt.Sprint(day.Carbon[noon].Grams, day.Carbon[noon].Actual, day.Carbon[noon.Add(1)].Grams, len(day.Carbon)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}

		expect("263 true 260 2")
		s.answers[path] = `{"data":[
			{"from":"2018-01-20T12:00Z","to":"2018-01-20T12:30Z","intensity":{"forecast":300,"actual":null}},
			{"from":"2018-01-20T12:30Z","to":"2018-01-20T13:00Z","intensity":{"forecast":250,"actual":null}}]}`
		expect("263 true 260 2") // asked a moment ago
		c.set("2018-01-20T12:20:00Z")
		expect("263 true 250 2") // a forecast does not replace what was measured
		s.answers[path] = `{"data":1}`
		c.set("2018-01-20T12:30:00Z")
		if r, err := d.FetchPrices(t.Context()); err != nil || r.Note != "failed: carbon" {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestDerivedPricesAreMarked(t *testing.T) {
	each(t, "2025-01-15T14:00:00Z", func(t *testing.T, d *Service, c *clock, seed *storetest.Seed) {
		s := serve(t)
		s.know(NordPoolURL, recorded[exchange](t, "nordpool_n2ex.json"))
		if _, err := d.Fetch(t.Context(), NordPool{local(), s.URL}, span("2025-01-14T23:00:00Z", "2025-01-15T23:00:00Z"), nil); err != nil {
			t.Fatal(err)
		}
		day, err := d.Day(t.Context(), seed.Org, flex.Day{}, "")
		if err != nil || !day.Quotes[0].Derived || !day.Quotes[1].Derived || day.Quotes[2].Derived || day.Quotes[2].Known {
			t.Errorf("%+v, %v", day.Quotes[:5], err)
		}
	})
}

func TestTwoDecimals(t *testing.T) {
	for price, want := range map[flex.Price]float64{45_325_000: 45.33, 45_324_999: 45.32, -1_005_000: -1.01, 0: 0, 6000_000_000: 6000, 1: 0} {
		if got := TwoDecimals(price); got != want {
			t.Errorf("%d: %v, want %v", price, got, want)
		}
	}
}
