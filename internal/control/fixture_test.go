package control_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// fixture is a store with the control service and one enrolled charger, on a clock of its own.
type fixture struct {
	testing.TB
	*storetest.Seed
	db      *store.DB
	service *control.Service
	micro   *atomic.Int64 // the time
	site    flex.SiteID
	asset   flex.AssetID

	publications int
}

// each runs a test in a fixture on each engine; the charger has 7.4 kW and it is the start.
func each(t *testing.T, start string, test func(h *fixture)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) { test(open(t, url, start)) })
}

// eachOf is each for a case of a matrix, of which PostgreSQL has a sample.
func eachOf(t *testing.T, start string, test func(h *fixture)) {
	t.Helper()
	storetest.EachOf(t, func(t *testing.T, url string) { test(open(t, url, start)) })
}

// eachLogged is each with a count of the writes that lost to another.
func eachLogged(t *testing.T, start string, test func(h *fixture, l *lost)) {
	t.Helper()
	storetest.EachURL(t, func(t *testing.T, url string) {
		l := &lost{Handler: slog.DiscardHandler}
		test(openLogged(t, url, start, slog.New(l)), l)
	})
}

// one is each on SQLite alone, for tables of what no engine can have a part in.
func one(t *testing.T, start string, test func(h *fixture)) {
	t.Helper()
	test(open(t, storetest.SQLite(t), start))
}

func open(t testing.TB, url, start string) *fixture {
	t.Helper()
	return openLogged(t, url, start, nil)
}

func openLogged(t testing.TB, url, start string, log *slog.Logger) *fixture {
	t.Helper()
	h := &fixture{TB: t, micro: new(atomic.Int64)}
	h.goTo(start)
	h.db = storetest.Open(t, url, store.Options{Environment: flex.Sandbox, Now: func() time.Time { return time.UnixMicro(h.micro.Load()) }, Log: log})
	h.service = &control.Service{DB: h.db}
	h.Seed = storetest.NewSeed(t, h.db, url)
	h.site = h.Site(flex.FullScheduleMethod, flex.LimitedPauseMethod)
	h.asset = h.Asset(h.site, flex.Charger, 7400)

	return h
}

func at(s string) time.Time {
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return v
}

func (h *fixture) goTo(s string)        { h.micro.Store(at(s).UnixMicro()) }
func (h *fixture) wait(d time.Duration) { h.micro.Add(d.Microseconds()) }

// event sends an event of the asset and fails the test if it is refused.
func (h *fixture) event(ev control.Event) {
	h.Helper()
	if err := h.service.Event(h.Context(), h.Org, h.asset, ev); err != nil {
		h.Fatalf("%s: %v", ev.Kind, err)
	}
}

// look returns what is stored of the asset.
func (h *fixture) look() (c store.PlanningState) {
	h.Helper()
	err := h.db.Read(h.Context(), h.Org, func(tx *store.Tx) (err error) {
		c, err = tx.PlanningState(h.Context(), h.asset)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}

	return c
}

// accept has the client take the asset's schedule that stands.
func (h *fixture) accept() {
	h.Helper()
	h.acceptAt(h.look().Current.MadeAt)
}

// acceptAt has the client take the schedule in force at an instant.
func (h *fixture) acceptAt(at time.Time) {
	h.Helper()
	s := h.look().Current
	h.Exec(`UPDATE outbox SET accepted = generation, turn_at = NULL WHERE subject = $1`, h.asset.Bytes())
	h.Exec(`INSERT INTO delivery (org_id, event_id, endpoint, kind, asset_id, generation, queued_at, state, tries, at, took, status, error, answer)
		VALUES ($1, $2, 'schedule', 'schedule', $3, $4, $5, 'accepted', 1, $6, 0, 200, '', '')`,
		h.Org.Bytes(), s.EventID.Bytes(), h.asset.Bytes(), s.Generation, s.MadeAt.UnixMicro(), at.UnixMicro())
}

// publish makes prices known from now on, in £/MWh from the half-hour of the instant on;
// missing ones are math.NaN.
func (h *fixture) publish(from string, prices ...float64) {
	h.Helper()
	h.publications++ // the later of two holds
	first := flex.PeriodAt(at(from))
	var ps []flex.PricedPeriod

	for i, p := range prices {
		q := flex.PricedPeriod{Period: first.Add(i), Known: p == p}
		if q.Known {
			q.Price = flex.FromGBPPerMWh(p)
		}
		ps = append(ps, q)
	}

	err := h.db.WriteAll(h.Context(), func(all *store.All) error {
		_, err := all.AddPublication(h.Context(), store.Publication{
			Source: "test", PublishedAt: all.Now().Add(time.Duration(h.publications)*time.Microsecond - time.Second), Span: flex.Span{From: first.Start(), To: first.Add(len(ps)).Start()},
		}, ps)
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
}

func (h *fixture) vector(name string, v any) {
	h.Helper()

	b, err := os.ReadFile("testdata/" + name + ".json")
	if err != nil {
		h.Fatal(err)
	}

	if err := json.Unmarshal(b, v); err != nil {
		h.Fatal(err)
	}
}

// nightTariff is the scenarios' tariff.
func nightTariff(zone string) *flex.Tariff {
	return &flex.Tariff{OffPeak: "00:00-05:30, 23:30-24:00", Zone: zone, Type: flex.DualRate}
}

// need is an intent of the scenarios: energy in kWh by 07:00.
func need(kwh float64, mode flex.ChargingMode) *flex.Intent {
	wall := flex.WallTime(7 * time.Hour)
	return &flex.Intent{Need: flex.FromKWh(kwh), ReadyByLocal: &wall, ReadyBy: at("2020-01-01T07:00:00Z"), Mode: mode}
}
