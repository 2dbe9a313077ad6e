package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"flexd/internal/control"
	"flexd/internal/delivery"
	"flexd/internal/flex"
	"flexd/internal/operations"
	"flexd/internal/store"
)

type fleetAnswer struct {
	Now       string  `json:"now"`
	Plugged   int     `json:"plugged_in"`
	Charging  int     `json:"charging"`
	Short     int     `json:"short"`
	Unplanned int     `json:"unplanned"`
	Drawing   float64 `json:"drawing_kw"`
	HalfHours []struct {
		Start     string  `json:"start_timestamp"`
		Planned   float64 `json:"planned_kw"`
		Without   float64 `json:"without_flexd_kw"`
		Lowest    float64 `json:"lowest_kw"`
		Highest   float64 `json:"highest_kw"`
		Ordered   float64 `json:"battery_dispatch_kw"`
		Batteries float64 `json:"battery_kw"`
		Heat      float64 `json:"heat_kw"`
	} `json:"half_hours"`
}

func TestFleet(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		page := d.page("/console/fleet")
		// Twelve have a schedule that no client accepted. The car that charges now was planned
		// again this minute, because a schedule that was not accepted does not count as
		// delivered.
		d.wants(page, "1 asset will not have what it needs by ready-by", ">CP-2058</a>", // shortfall
			"1 asset plugged in without a schedule", "Moorland Energy has no endpoint for schedules",
			"12 pushes waiting for more than 2 minutes", "of 14 assets at 14 sites")
		for _, path := range []string{"/console/deliveries?late=yes", "/console/developer", "/console/assets?plugged=yes"} {
			d.wants(page, `href="`+path)
			d.page(path)
		}

		var f fleetAnswer
		if err := json.Unmarshal([]byte(d.page("/console/fleet.json")), &f); err != nil {
			t.Fatal(err)
		}
		if f.Plugged != 13 || f.Short != 1 || f.Unplanned != 1 || f.Charging < 1 || len(f.HalfHours) != 48 {
			t.Errorf("%+v", f)
		}

		if f.HalfHours[0].Start != "2026-01-14T21:40:00Z" || f.HalfHours[1].Start != "2026-01-14T22:00:00Z" {
			t.Errorf("half-hours begin at %s and %s", f.HalfHours[0].Start, f.HalfHours[1].Start)
		}
		if now, night := f.HalfHours[0], f.HalfHours[10]; now.Without <= now.Planned || night.Planned < 30 || night.Without != 0 {
			t.Errorf("the plan does not move charging into the night: %+v %+v", now, night)
		}

		for _, h := range f.HalfHours {
			if h.Lowest > h.Planned || h.Highest < h.Planned || h.Lowest < 0 {
				t.Errorf("the band does not hold the plan: %+v", h)
			}
		}
		csv := d.page("/console/fleet.csv")
		if n := strings.Count(csv, "\n"); n != 49 {
			t.Errorf("%d lines of CSV", n)
		}

		if a := d.get("/console/fleet?org=" + flex.OrgID{1}.String()); a.status != 404 {
			t.Errorf("no such organisation: %d", a.status)
		}

		other, err := d.db.AddOrg(t.Context(), "Empty Ltd")
		if err != nil {
			t.Fatal(err)
		}

		d.wait(time.Hour) // past the age of the picture, however long it took to make
		d.wants(d.page("/console/fleet"), `<option value="">All organisations</option>`)
		d.wants(d.page("/console/fleet?org="+other.ID.String()), "No assets are registered yet.")
		d.post("/console/safety/halt", url.Values{"reason": {"a test"}})
		d.wants(d.page("/console/fleet?org="+other.ID.String()), "No assets are registered yet.", `data-kind="halted"`)
		_ = s
	})
}

// The curve includes what dispatches ask of two batteries, beside what the cars are planned to
// draw. Dispatches that began before now, or end after the day that is shown, count; past ones
// do not.
func TestFleet_Batteries(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		before := d.fleetNow()

		var batteries [2]flex.AssetID
		for i := range batteries {
			batteries[i] = d.Asset(d.Site(flex.FullScheduleMethod), flex.Battery, 5000)
		}

		first := flex.PeriodAt(d.db.Now())
		for _, o := range []struct {
			from, to int // half-hours from the running one
			asset    int
			power    flex.Watts
		}{
			{-3, 1, 0, 2000}, {-3, 0, 1, 4000}, {2, 4, 0, -5000}, {3, 4, 1, -2500}, {47, 50, 1, 1000}, {48, 52, 0, 3000},
			{10, 12, 0, 5000}, {11, 12, 0, 0}, // the newer one takes the older one's place
			{20, 21, 1, 3500}, {20, 21, 1, 3500},
		} {
			err := d.db.Write(t.Context(), d.Org, func(tx *store.Tx) error {
				_, err := tx.AddDispatch(t.Context(), store.Dispatch{
					Market: "wholesale", Span: flex.Span{From: first.Add(o.from).Start(), To: first.Add(o.to).Start()},
					Assets: []store.DispatchedAsset{{ID: batteries[o.asset], Power: o.power, Without: make([]flex.Watts, o.to-o.from)}},
				})

				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}

		plan := store.BatteryPlan{From: first, ChangedAt: d.db.Now(), StoredAt: first.Add(-1), ForecastFrom: first}
		plan.Powers = []flex.Watts{9000, 1500, -500, 700, 900, -300}
		err := d.db.Write(t.Context(), d.Org, func(tx *store.Tx) error {
			return tx.PutBatteryPlan(t.Context(), batteries[1], plan)
		})
		if err != nil {
			t.Fatal(err)
		}

		d.wait(time.Hour) // past the age of the picture
		d.Exec(`UPDATE org SET clock_offset = clock_offset - 3600000000, clock_held = TRUE WHERE id = $1`, d.Org.Bytes())
		after := d.fleetNow()
		if len(after.HalfHours) != 48 || after.HalfHours[0].Start != before.HalfHours[0].Start {
			t.Fatalf("half-hours from %s, were from %s", after.HalfHours[0].Start, before.HalfHours[0].Start)
		}

		want := map[int]float64{0: 2, 2: -5, 3: -7.5, 10: 5, 20: 3.5, 47: 1}
		expected := map[int]float64{0: 3.5, 1: -0.5, 2: -4.3, 3: -7.5, 4: -0.3, 10: 5, 20: 3.5, 47: 1}

		for i, h := range after.HalfHours {
			if h.Ordered != want[i] {
				t.Errorf("half-hour %d: dispatched %g kW, want %g", i, h.Ordered, want[i])
			}
			if h.Batteries != expected[i] {
				t.Errorf("half-hour %d: batteries draw %g kW, want %g", i, h.Batteries, expected[i])
			}
			if h.Planned != before.HalfHours[i].Planned {
				t.Errorf("half-hour %d: planned %g kW, was %g without batteries", i, h.Planned, before.HalfHours[i].Planned)
			}
		}

		d.wants(d.page("/console/fleet"), "Batteries, dispatched kW", "<th scope=\"col\" class=\"num\">Batteries kW", "−7.5", "−4.3")
	})
}

func (d *service) fleetNow() (f fleetAnswer) {
	d.Helper()
	if err := json.Unmarshal([]byte(d.page("/console/fleet.json")), &f); err != nil {
		d.Fatal(err)
	}
	return f
}

// The clock of a lone organisation is the fleet's, also where its sandbox has turned it.
func TestFleet_TurnedClock(t *testing.T) {
	d := testScene(t).service
	d.login()
	if err := (turner{d}).Advance(t.Context(), d.Org, at("2026-01-15T01:10:00Z")); err != nil {
		t.Fatal(err)
	}
	d.wants(d.page("/console/fleet"), "Thu 15 Jan, 01:10:00", "by the organisation&#39;s own clock; that of Moorland Energy is turned.")
	for _, path := range []string{"deliveries", "engine", "audit", "alerts", "safety"} {
		d.wants(d.page("/console/"+path), "All times are real time, in London, and not by the turned clock of Moorland Energy.")
	}
	for _, path := range []string{"limits", "search?q=CP-"} {
		d.wants(d.page("/console/"+path), "by the organisation&#39;s own clock; that of Moorland Energy is turned.")
	}

	var f fleetAnswer
	if err := json.Unmarshal([]byte(d.page("/console/fleet.json")), &f); err != nil {
		t.Fatal(err)
	}
	if now := "2026-01-15T01:10:00Z"; f.Now != now || f.HalfHours[0].Start != now || f.HalfHours[1].Start != "2026-01-15T01:30:00Z" {
		t.Errorf("at %s by the organisation's clock the fleet is as of %s, and its half-hours begin at %s and %s", now, f.Now, f.HalfHours[0].Start, f.HalfHours[1].Start)
	}
}

// An empty plot says that nothing is planned, and leads to what was.
func TestFleet_Idle(t *testing.T) {
	s := testScene(t)
	d := s.service
	d.login()
	d.wants(d.page("/console/fleet"), "data-idle hidden>")
	for i := range s.assets {
		if i != idle {
			s.event(i, control.Event{Kind: control.PlugOut})
		}
	}
	d.wait(time.Hour) // past the age of the picture
	d.wants(d.page("/console/fleet"), `data-idle>Nothing is planned in the next 24 hours. <a href="/console/past`)
}

func TestFleet_Empty(t *testing.T) {
	d := newConsole(t, "2026-01-13T12:00:00Z")
	d.Exec(`DELETE FROM org`)
	d.login()
	d.wants(d.page("/console/fleet"), "There is no organisation yet.")
}

func TestFleet_ClocksDiffer(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		other, err := d.db.AddOrg(t.Context(), "Tomorrow Ltd")
		if err != nil {
			t.Fatal(err)
		}

		d.Exec(`UPDATE org SET clock_offset = 86400000000, clock_held = TRUE WHERE id = $1`, other.ID.Bytes())
		d.login()
		page := d.page("/console/fleet")
		d.wants(page, "Sandbox clocks differ", `selected>Moorland Energy</option>`)
		if strings.Contains(page, "All organisations") {
			t.Error("organisations with other clocks are summed")
		}
		if !strings.Contains(d.page("/console/fleet.json?org="+other.ID.String()), `"now":"2026-01-15T21:40:00Z"`) {
			t.Error("not by the organisation's own clock")
		}
	})
}

func TestBrowser_Fleet(t *testing.T) {
	s := testScene(t)
	d := s.service
	d.login()
	b := browse(d)
	b.screen("fleet", "/console/fleet")
	if got := b.text("[data-live=plugged_in]"); got != "13" {
		t.Errorf("plugged in: %q", got)
	}
	s.plugIn(idle, 10, "07:00", false, "00:30-05:30")
	d.wait(time.Hour)                                                                // as above
	b.await(`document.querySelector("[data-live=plugged_in]").textContent === "14"`) // by itself
}

// TestFleet_Refused: a client refuses one schedule for good. The asset is not controlled, and
// the page, its numbers and the metrics all say so, until the client accepts it.
func TestFleet_Refused(t *testing.T) {
	eachScene(t, func(s *scene) {
		d := s.service
		d.login()
		c := s.serve()
		c.mu.Lock()
		c.status = http.StatusNotFound
		c.mu.Unlock()

		d.wait(10 * time.Minute) // the tries that 503 asked for
		s.send()

		const title = "1 asset whose schedule the client refused"
		page := d.page("/console/fleet")
		d.wants(page, title, "It answered 404.", ">CP-2058</a>")

		if text := d.page("/console/fleet.json"); !strings.Contains(text, `"kind":"refused"`) && !strings.Contains(text, `"kind": "refused"`) {
			t.Errorf("not in the numbers: %s", text)
		}
		if n := d.exceptionGauge("refused"); n != 1 {
			t.Errorf("the metric counts %v", n)
		}

		c.dislike("")
		if _, _, err := s.push.SetEndpoint(s.Context(), s.Org, flex.ScheduleEndpoint, delivery.Settings{URL: s.endpointURL()}); err != nil {
			t.Fatal(err)
		}
		s.send()
		d.wait(time.Minute)

		if page := d.page("/console/fleet"); strings.Contains(page, title) {
			t.Error("it is still an exception when the client has taken it")
		}
		if n := d.exceptionGauge("refused"); n != 0 {
			t.Errorf("the metric counts %v", n)
		}
	})
}

// exceptionGauge reads the metric of exceptions of a kind.
func (d *service) exceptionGauge(kind string) float64 {
	d.Helper()
	reg := prometheus.NewRegistry()
	if err := reg.Register(operations.Metrics{Service: d.server.Operations}); err != nil {
		d.Fatal(err)
	}

	families, err := reg.Gather()
	if err != nil {
		d.Fatal(err)
	}

	for _, f := range families {
		if f.GetName() != "flexd_exceptions" {
			continue
		}
		if len(f.GetMetric()) != len(operations.Kinds) {
			d.Errorf("%d series for %d kinds", len(f.GetMetric()), len(operations.Kinds))
		}

		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == kind {
				return m.GetGauge().GetValue()
			}
		}
	}

	d.Errorf("no series of %s", kind)
	return -1
}

// endpointURL is where the organisation's schedules go.
func (s *scene) endpointURL() string {
	e, err := s.push.Endpoint(s.Context(), s.Org, flex.ScheduleEndpoint)
	if err != nil {
		s.Fatal(err)
	}
	return e.URL
}
