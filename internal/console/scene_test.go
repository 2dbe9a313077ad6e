package console_test

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// scene is a winter's evening in a small fleet, with one of each thing that an operator meets.
type scene struct {
	*service
	sites  []flex.SiteID
	assets []flex.AssetID
}

// The assets of the scene, named by what they show.
const (
	plain     = 0 // plugged in at six, planned into the night
	shortfall = 1 // needs more than the off-peak hours hold
	atOnce    = 2 // charges now
	free      = 3 // not controlled
	idle      = 4 // nothing is plugged in
	others    = 5 // and from here on
)

var addresses = []string{"4 Elm Row", "12 Station Road", "1 The Green", "27 Mill Lane", "8 Church Street", "15 Bridge End", "3 Orchard Close",
	"40 High Street", "9 Weavers Court", "22 Quarry Hill", "6 Canal Side", "31 Beech Avenue", "18 Lower Field", "5 Chapel Yard"}

// winterPrice returns the price of a half-hour of a winter's day in £/MWh: low at night, high
// at five, and below zero in two half-hours.
func winterPrice(slot int) float64 {
	h := float64(slot) / 2
	p := 68 + 22*math.Sin((h-9)/24*2*math.Pi) + 74*math.Exp(-(h-17.5)*(h-17.5)/3) + 24*math.Exp(-(h-8)*(h-8)/2) - 38*math.Exp(-(h-3.25)*(h-3.25)/2.5)
	if slot == 6 || slot == 7 {
		p -= 22
	}
	return math.Round(p*100) / 100
}

// publish makes two days' prices known as the exchange does.
func (d *service) publish(source string, day flex.Day, at time.Time, missing ...int) {
	d.Helper()
	d.publishOff(0, source, day, at, missing...)
}

// publishOff publishes prices that are off by so many pounds.
func (d *service) publishOff(by float64, source string, day flex.Day, at time.Time, missing ...int) {
	d.Helper()
	first := flex.PeriodAt(day.Start())
	var ps []flex.PricedPeriod
	for i := range day.Periods() {
		ps = append(ps, flex.PricedPeriod{Period: first.Add(i), Known: true, Price: flex.FromGBPPerMWh(winterPrice(i) + float64(day.Dom%3) + by)})
	}

	for _, i := range missing {
		ps[i].Known = false
	}
	err := d.db.WriteAll(d.Context(), func(all *store.All) error {
		_, err := all.AddPublication(d.Context(), store.Publication{Source: source, PublishedAt: at, Span: day.Span()}, ps)
		return err
	})
	if err != nil {
		d.Fatal(err)
	}
}

// settle makes the control service do what is due.
func (s *scene) settle() {
	s.Helper()
	for range 3 {
		if _, err := s.control.PlanDue(s.Context()); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *scene) event(asset int, ev control.Event) {
	s.Helper()
	if err := s.control.Event(s.Context(), s.Org, s.assets[asset], ev); err != nil {
		s.Fatalf("%s: %v", ev.Kind, err)
	}
}

// plugIn plugs a car in.
func (s *scene) plugIn(asset int, kwh float64, by string, peak bool, offPeak string) {
	s.Helper()
	wall, err := flex.ParseWallTime(by)
	if err != nil {
		s.Fatal(err)
	}
	s.event(asset, control.Event{Kind: control.PlugIn,
		Intent: &flex.Intent{Need: flex.FromKWh(kwh), ReadyByLocal: &wall, MayChargePeak: peak, Mode: flex.Minimise},
		Tariff: &flex.Tariff{OffPeak: offPeak, Zone: "Europe/London", Type: flex.DualRate}})
}

// eachScene runs the test on the scene over each engine, with an operator who is logged in.
func eachScene(t *testing.T, test func(s *scene)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(testScene(t)) })
	t.Run("postgres", func(t *testing.T) {
		s := newScene(newService(t, storetest.Postgres(t), sceneBegins))
		s.login()
		test(s)
	})
}

// When the scene begins, and what its tests look at.
const sceneBegins, sceneNow = "2026-01-13T12:00:00Z", "2026-01-14T21:40:00Z"

// played is the scene's store after it was played once.
var played struct {
	sync.Once
	image  []byte
	scene  scene
	cookie *http.Cookie
}

// testScene is the scene in a SQLite store of its own, a copy of one in which it was played.
func testScene(t *testing.T) *scene {
	t.Helper()
	played.Do(func() {
		s := newScene(newConsole(t, sceneBegins))
		s.login()
		file := filepath.Join(t.TempDir(), "scene.db")
		err := s.db.Backup(t.Context(), file)
		if err == nil {
			played.image, err = os.ReadFile(file)
		}
		if err != nil {
			t.Fatal(err)
		}

		played.scene, played.cookie = *s, s.cookie
	})

	if played.image == nil {
		t.Fatal("the scene could not be played")
	}
	file := filepath.Join(t.TempDir(), "flexd.db")
	if err := os.WriteFile(file, played.image, 0o600); err != nil {
		t.Fatal(err)
	}
	d := openStore(t, "sqlite:"+file, sceneNow)
	d.Seed, d.cookie = played.scene.Seed.Again(t, d.db, "sqlite:"+file), played.cookie
	return &scene{service: d, sites: played.scene.sites, assets: played.scene.assets}
}

// newScene plays the evening up to 21:40.
func newScene(d *service) *scene {
	d.Helper()
	s := &scene{service: d}
	d.Exec(`UPDATE org SET name = 'Moorland Energy' WHERE id = $1`, d.Org.Bytes())

	for i, address := range addresses {
		methods := []flex.DispatchMethod{flex.FullScheduleMethod}
		if i == free {
			methods = nil
		}
		site := d.Site(methods...)
		power := []flex.Watts{7400, 7400, 7400, 11000, 3600, 7400, 22000}[i%7]
		asset := d.Asset(site, flex.Charger, power)
		d.Exec(`UPDATE site SET mpan = $2, postcode = $3, address = $4, email = $5, created_at = $6 WHERE id = $1`, site.Bytes(),
			d.Kept("site", "mpan", fmt.Sprintf("20000000%05d", 10007+i*131)), d.Kept("site", "postcode", fmt.Sprintf("S%d %dGL", 11-i%4, 1+i%9)),
			d.Kept("site", "address", address), d.Kept("site", "email", fmt.Sprintf("driver%d@post.example", i+1)),
			at("2025-11-03T09:00:00Z").UnixMicro())
		d.Exec(`UPDATE asset SET external_id = $2, model = 'Zappi 2.1', created_at = $3 WHERE id = $1`, asset.Bytes(), fmt.Sprintf("CP-%04d", 2041+i*17), at("2025-11-03T09:00:00Z").UnixMicro())
		s.sites, s.assets = append(s.sites, site), append(s.assets, asset)
	}

	d.Consent(at("2025-11-03T09:00:00Z"))
	d.goTo("2026-01-13T14:00:00Z")
	d.publish("market-index", flex.Day{Year: 2026, Month: 1, Dom: 13}, at("2026-01-12T14:00:00Z"))
	d.publish("market-index", flex.Day{Year: 2026, Month: 1, Dom: 14}, at("2026-01-13T14:00:00Z"))
	d.goTo("2026-01-14T14:00:00Z")
	d.publish("market-index", flex.Day{Year: 2026, Month: 1, Dom: 15}, at("2026-01-14T14:00:00Z"), 40, 41)

	const night, late = "00:30-05:30", "23:30-05:30"
	d.goTo("2026-01-14T17:12:30Z")
	s.plugIn(shortfall, 52, "06:00", false, night)
	d.goTo("2026-01-14T18:04:10Z")
	s.plugIn(plain, 20, "07:00", false, late)
	d.goTo("2026-01-14T18:30:00Z")
	s.event(free, control.Event{Kind: control.PlugIn})

	for i := others; i < len(s.assets); i++ {
		d.wait(9*time.Minute + 13*time.Second)
		s.plugIn(i, float64(8+5*(i%5)), []string{"06:30", "07:00", "08:15"}[i%3], i%4 == 0, []string{night, late}[i%2])
	}

	d.goTo("2026-01-14T20:15:20Z")
	s.plugIn(atOnce, 30, "07:30", false, night)
	d.wait(3 * time.Minute)
	s.event(atOnce, control.Event{Kind: control.ChargeNow, EndAt: at("2026-01-14T22:30:00Z")})
	d.goTo("2026-01-14T21:05:00Z")
	s.event(plain, control.Event{Kind: control.IntentUpdate, Intent: &flex.Intent{Need: flex.FromKWh(26), ReadyByLocal: new(flex.WallTime(7 * time.Hour)), Mode: flex.Minimise}})
	d.goTo(sceneNow)
	s.settle()
	return s
}
