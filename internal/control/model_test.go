package control_test

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flexd/internal/control"
	"flexd/internal/flex"
	"flexd/internal/store"
	"flexd/internal/store/storetest"
)

// model is what an asset's stored state must come to, worked out as simply as can be. Prices
// are flat and the mode is maximise, so that a schedule is open exactly in off-peak time and
// charge-now, until ready-by.
type model struct {
	enrolled, open bool
	sessions       int
	rate           flex.Watts
	outAt          time.Time
	planned        bool   // a schedule stands in the session
	offPeak        string // of the tariff; empty if none was told
	wall           time.Duration
	intended       bool // an intent
	nowFrom, nowTo time.Time
	readyBy        time.Time
	cut            flex.Span // of the charge-now that stands in the schedule
}

const modelStart = "2026-03-27T16:00:00Z" // the clocks change two nights later

var (
	modelTariffs = []string{"", "00:00-05:30,23:30-24:00", "01:00-02:00, 12:00-15:00", "00:00-24:00"}
	modelWalls   = []time.Duration{7 * time.Hour, 90 * time.Minute, 15*time.Hour + 45*time.Minute}
	modelWaits   = []time.Duration{time.Second, 59 * time.Second, time.Minute, 61 * time.Second, 7 * time.Minute, 5 * time.Hour, 13 * time.Hour}
)

// next is the next instant after now at which London's clocks show the wall time.
func (m *model) next(now time.Time) time.Time {
	for t := now.Truncate(time.Minute); ; t = t.Add(time.Minute) {
		local, before := t.In(flex.London), t.Add(-time.Minute).In(flex.London)
		shown := time.Duration(local.Hour())*time.Hour + time.Duration(local.Minute())*time.Minute
		was := time.Duration(before.Hour())*time.Hour + time.Duration(before.Minute())*time.Minute
		skipped := was < m.wall && m.wall < shown && local.Day() == before.Day()
		_, shift := local.Zone()
		_, shifted := t.Add(-time.Hour).In(flex.London).Zone()
		again := shift < shifted // the hour that comes twice, for the second time
		if t.After(now) && (shown == m.wall && !again || skipped) {
			return t
		}
	}
}

// openAt says whether the schedule lets the asset charge at the instant.
func (m *model) openAt(t time.Time) bool {
	if m.cut.Contains(t) {
		return true
	}
	if !t.Before(m.readyBy) {
		return !t.Before(m.cut.To) // free after the end
	}
	if m.offPeak == "" {
		return true
	}

	clock := t.In(flex.London).Format("15:04")
	return slices.ContainsFunc(strings.Split(m.offPeak, ","), func(r string) bool {
		from, to, _ := strings.Cut(strings.TrimSpace(r), "-")
		return from <= clock && clock < to
	})
}

// plan is what an event does to the schedule.
func (m *model) plan(now time.Time) {
	if !m.open || !m.enrolled {
		return
	}
	m.planned, m.readyBy, m.cut = true, m.next(now), flex.Span{}
	if m.nowTo.After(now) {
		m.cut = flex.Span{From: now, To: m.nowTo}
	}
}

func (m *model) plugIn(now time.Time, rate flex.Watts) {
	same := m.sessions > 0 && (rate == 0 || m.rate == 0 || rate == m.rate)
	switch {
	case m.open && same:
	case same && now.Sub(m.outAt) <= time.Minute && (m.enrolled || !m.planned):
	default:
		if m.open {
			m.outAt = now
		}

		if m.nowFrom.Before(m.outAt) {
			m.nowTo = time.Time{}
		}

		m.sessions++
		m.planned, m.rate = false, 0
	}

	m.open = true
	if rate != 0 {
		m.rate = rate
	}
}

func (m *model) plugOut(now time.Time) {
	if m.open {
		m.open, m.outAt = false, now
	}
}

// machine runs the service and the model side by side.
type machine struct {
	h *fixture
	m model
}

func (c *machine) now() time.Time { return time.UnixMicro(c.h.micro.Load()).UTC() }

func (c *machine) send(t *rapid.T, ev control.Event) {
	if err := c.h.service.Event(c.h.Context(), c.h.Org, c.h.asset, ev); err != nil {
		t.Fatalf("%s: %v", ev.Kind, err)
	}
}

// wishes draws the intent and tariff of an event, and tells the model.
func (c *machine) wishes(t *rapid.T, ev *control.Event) {
	if rapid.Bool().Draw(t, "with tariff") {
		c.m.offPeak = rapid.SampledFrom(modelTariffs[1:]).Draw(t, "tariff")
		ev.Tariff = &flex.Tariff{OffPeak: c.m.offPeak, Zone: "Europe/London", Type: flex.DualRate}
	}

	if ev.Kind != control.TariffUpdate && (ev.Kind == control.IntentUpdate || rapid.Bool().Draw(t, "with intent")) {
		c.m.wall, c.m.intended = rapid.SampledFrom(modelWalls).Draw(t, "ready by"), true
		ev.Intent = &flex.Intent{Need: 1000, ReadyByLocal: new(flex.WallTime(c.m.wall)), Mode: flex.Maximise}
	}
}

func (c *machine) PlugIn(t *rapid.T) {
	ev := control.Event{Kind: control.PlugIn, VehicleRate: rapid.SampledFrom([]flex.Watts{0, 0, 3600, 7000}).Draw(t, "rate")}
	c.m.plugIn(c.now(), ev.VehicleRate)
	c.wishes(t, &ev)
	c.send(t, ev)
	c.m.plan(c.now())
}

func (c *machine) PlugOut(t *rapid.T) {
	c.send(t, control.Event{Kind: control.PlugOut})
	c.m.plugOut(c.now())
}

func (c *machine) Intent(t *rapid.T) {
	ev := control.Event{Kind: control.IntentUpdate}
	c.wishes(t, &ev)
	c.send(t, ev)
	c.m.plan(c.now())
}

func (c *machine) Tariff(t *rapid.T) {
	c.m.offPeak = rapid.SampledFrom(modelTariffs[1:]).Draw(t, "tariff")
	c.send(t, control.Event{Kind: control.TariffUpdate, Tariff: &flex.Tariff{OffPeak: c.m.offPeak, Zone: "Europe/London", Type: flex.DualRate}})
	c.m.plan(c.now())
}

func (c *machine) ChargeNow(t *rapid.T) {
	end := c.now().Add(rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 30 * time.Hour}).Draw(t, "for"))
	c.send(t, control.Event{Kind: control.ChargeNow, EndAt: end})
	c.m.nowFrom, c.m.nowTo = c.now(), end
	c.m.plan(c.now())
}

func (c *machine) ChargeNowDeleted(t *rapid.T) {
	c.send(t, control.Event{Kind: control.ChargeNowDeleted})
	c.m.nowTo = time.Time{}
	c.m.plan(c.now())
}

func (c *machine) Wait(t *rapid.T) {
	c.h.wait(rapid.SampledFrom(modelWaits).Draw(t, "wait"))
}

func (c *machine) Run(*rapid.T) { c.h.replan() }

func (c *machine) Prices(*rapid.T) {
	c.h.publish(c.now().Format(time.RFC3339), slices.Repeat([]float64{50}, 60)...)
	c.h.replan()
}

func (c *machine) Enrol(*rapid.T) {
	if !c.m.enrolled {
		c.write(func(tx *store.Tx) error { return tx.AddMethod(c.h.Context(), c.h.site, flex.FullScheduleMethod) })
		c.m.enrolled = true
	}
}

func (c *machine) Unenrol(*rapid.T) {
	if !c.m.enrolled {
		return
	}

	c.write(func(tx *store.Tx) error {
		if _, err := tx.DropMethod(c.h.Context(), c.h.site, flex.FullScheduleMethod); err != nil {
			return err
		}
		return tx.StopScheduling(c.h.Context(), c.h.asset)
	})

	c.m.enrolled = false
	c.m.plugOut(c.now())
}

// Delete deletes the asset; the next event is of another.
func (c *machine) Delete(*rapid.T) {
	c.write(func(tx *store.Tx) error {
		if err := tx.StopScheduling(c.h.Context(), c.h.asset); err != nil {
			return err
		}
		return tx.DropAsset(c.h.Context(), c.h.asset)
	})

	if err := c.h.service.Event(c.h.Context(), c.h.Org, c.h.asset, control.Event{Kind: control.PlugIn}); flex.KindOf(err) != flex.NotFound {
		c.h.Fatalf("event of a deleted asset: %v", err)
	}

	c.h.asset = c.h.Asset(c.h.site, flex.Charger, 7400)
	c.m = model{enrolled: c.m.enrolled, wall: modelWalls[0]}
}

func (c *machine) write(fn func(*store.Tx) error) {
	if err := c.h.db.Write(c.h.Context(), c.h.Org, fn); err != nil {
		c.h.Fatal(err)
	}
}

// Check compares what is stored with the model.
func (c *machine) Check(t *rapid.T) {
	got, m, now := c.h.look(), &c.m, c.now()
	if got.Open() != m.open || int(got.Session.Number) != m.sessions || m.open && got.Session.VehicleRate != m.rate {
		t.Fatalf("open %v, %d sessions, rate %d; want %v, %d, %d", got.Open(), got.Session.Number, got.Session.VehicleRate, m.open, m.sessions, m.rate)
	}

	if (got.Intent != nil) != m.intended || (got.Tariff != nil) != (m.offPeak != "") {
		t.Fatalf("intent %v, tariff %v", got.Intent, got.Tariff)
	}

	if !m.open || !m.planned || !m.enrolled {
		if m.open && !m.planned && got.Current.Generation != 0 {
			t.Fatalf("a schedule %v, and there should be none", got.Current.Steps)
		}
		return
	}

	for at := now.Truncate(time.Minute).Add(time.Minute); at.Before(now.Add(36 * time.Hour)); at = at.Add(15 * time.Minute) {
		open := true
		for _, s := range got.Current.Steps {
			if s.Contains(at) {
				open = s.Limit > 0
			}
		}

		if open != m.openAt(at) {
			t.Fatalf("at %v open is %v; ready by %v, steps %v", at, open, m.readyBy, got.Current.Steps)
		}
	}
}

// TestModel plays random events, waits, enrolments and deletions: 25 sequences on each
// engine, or as many as -rapid.checks says.
func TestModel(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		f.Value.Set("25")
		defer f.Value.Set(f.DefValue)
	}

	storetest.EachURL(t, func(t *testing.T, url string) {
		h := open(t, url, modelStart)
		rapid.Check(t, func(t *rapid.T) {
			h.site = h.Site(flex.FullScheduleMethod)
			h.asset = h.Asset(h.site, flex.Charger, 7400)
			c := &machine{h: h, m: model{enrolled: true, wall: modelWalls[0]}}
			h.goTo(modelStart)
			t.Repeat(rapid.StateMachineActions(c))

			if findings, err := h.db.Verify(h.Context()); err != nil || len(findings) > 0 {
				t.Fatal(findings, err)
			}

			c.PlugOut(t)
		})
	})
}
